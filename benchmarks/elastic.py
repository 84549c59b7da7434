"""Real elastic training: what searches predict and cost, compared with every (workers, batch) trained to the target.

    python benchmarks/elastic.py --out elastic.json            # about 45 minutes on two quiet cores

The job is examples/pytorch-digits on nodes of this machine. Ground truth: each configuration is trained to the target
from the start, once for each seed. Then each search probes the same job, with each seed, and knows the epochs of one
earlier run, of another seed, at the reference batch. It prints the error of the predicted time of every configuration.
(The job takes half a minute, so probes here never reach its target.)

    python benchmarks/elastic.py --oracle 4 256 --options '--learning-rate 5e-5' --epochs 1500 --modes partial

A longer job, searched and run to its end; prints the total over that of an oracle that runs the best
configuration from the start.

Two times are printed: `training`, from the first step on, which is what is predicted; and `wall`, with start-ups. On a
share of a core PyTorch takes 10 to 20 s to import, so a switch is a large part of a short job.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from mlcd.core.backend import Launch, Purpose
from mlcd.core.clock import WallClock
from mlcd.core.configuration import Configuration
from mlcd.core.job import Goal, Job, Objective, Target, parse_target
from mlcd.core.ledger import Ledger
from mlcd.core.measurement import Sample
from mlcd.core.planner import planner_of
from mlcd.core.runs.run import start as start_run
from mlcd.core.version import VERSION
from mlcd.planners.jobfile.read import load_job
from mlcd.planners.scale.feasibility import local_batch, machine_of
from mlcd.planners.scale.job_model import fit_job_model
from mlcd.planners.scale.nouns import Batch, Mode, ScalingTask, batch_of, scaling_task

EXAMPLE = Path(__file__).parents[1] / "examples" / "pytorch-digits" / "job.yaml"
NODES = """
probe: 60s
probe_extra: 5s
startup: 90s
nodes: 1..4
types:
  share: {cpus: CPUS, memory: 3GB, link: 500Mbit, usd_per_hour: $0.50}
"""
REFERENCE = 128


@dataclass(frozen=True)
class Trained:
    """A configuration, trained to the target."""

    workers: int
    batch: int
    seed: int
    epochs: float
    training_s: float
    wall_s: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--batches", type=int, nargs="+", default=[64, 128, 256])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--target", default="accuracy >= 0.985")
    parser.add_argument("--cpus", type=float, default=0.45, help="of a node")
    parser.add_argument("--options", default="", help="of the script, such as '--learning-rate 5e-5'")
    parser.add_argument("--epochs", type=int, default=150, help="at the most")
    parser.add_argument("--oracle", type=int, nargs=2, help="workers and batch: the only truth of a long job")
    parser.add_argument("--modes", nargs="+", default=["partial", "full"])
    parser.add_argument("--truth", type=Path, help="a file of an earlier --out whose truth is used again")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MLCD_HOME"] = folder
        (Path(folder) / "nodes.yaml").write_text(NODES.replace("CPUS", str(options.cpus)))
        job = elastic_job(options, Path(folder))
        truth = [Trained(**row) for row in json.loads(options.truth.read_text())["truth"]] if options.truth else []
        truth = truth or measure(options, job, folder)
        searches = [
            searched(job, mode, seed, truth, bool(options.oracle))
            for mode in options.modes
            for seed in range(options.seeds)
        ]
    result = {"truth": [vars(each) for each in truth], "searches": searches}
    if options.out:
        options.out.write_text(json.dumps(result, indent=1))
    summarise(truth, searches, options)


def elastic_job(options: argparse.Namespace, folder: Path) -> Job:
    job = load_job(EXAMPLE)
    assert isinstance(job.ask, ScalingTask)
    workers = (min(options.workers), max(options.workers))
    run = f"torchrun train.py --epochs {options.epochs} {options.options}"
    assert job.dataset_samples is not None
    return replace(
        job,
        work_samples=options.epochs * job.dataset_samples,
        task={**job.task, "run": run},
        hints=replace(job.hints, global_batch=options.oracle[1] if options.oracle else REFERENCE),
        target=parse_target(options.target),
        goal=Goal(Objective.FASTEST),
        ask=replace(scaling_task(job) or ScalingTask(), workers=workers, batches=tuple(options.batches)),
        search=replace(job.search, instances=("*",), earlier=False),
        on=f"local:{folder / 'nodes.yaml'}",
    )


def seeded(job: Job, seed: int) -> Job:
    return replace(job, name=f"{job.name}-s{seed}", task={**job.task, "run": f"{job.task['run']} --seed {seed}"})


def measure(options: argparse.Namespace, job: Job, folder: str) -> list[Trained]:
    found = []
    batches, workers = (
        ([options.oracle[1]], [options.oracle[0]]) if options.oracle else (options.batches, options.workers)
    )
    for seed in range(options.seeds):
        for batch in batches:
            for count in workers:
                found.append(train(seeded(job, seed), count, batch, seed))
                print(found[-1], flush=True)
    return found


def train(job: Job, workers: int, batch: int, seed: int) -> Trained:
    """One configuration from the start to the target, on real nodes."""
    clock = WallClock(datetime.now(UTC))
    place = planner_of(job).place(job)
    label = f"truth{os.getpid()}{seed}{workers}{batch}-1"
    order = Launch(
        label,
        Configuration(place.space.offers[0], workers, Batch(batch)),
        Purpose.RUN,
        job.work_samples,
        900.0,
        ordinal=0,
    )
    before_s, seen = clock.elapsed_s(), []
    with closing(place.backend.run(job, order)) as events:
        for event in events:
            if isinstance(event, Sample):
                seen.append(event)
                if event.metric is not None and job.target is not None and job.target.reached(event.metric):
                    break
            else:
                raise SystemExit(f"{order.configuration}, seed {seed}: {event.outcome} {event.detail}")
    wall_s = clock.elapsed_s() - before_s
    assert job.dataset_samples is not None
    training_s = seen[-1].elapsed_s - seen[0].elapsed_s
    return Trained(workers, batch, seed, seen[-1].samples / job.dataset_samples, training_s, wall_s)


def searched(job: Job, mode: str, seed: int, truth: list[Trained], to_the_end: bool) -> dict[str, object]:
    """A search on real nodes and the rest of the job: its predictions, and the measured time."""
    assert isinstance(job.ask, ScalingTask)
    seeds = sorted({each.seed for each in truth})
    other = seeds[(seeds.index(seed) + 1) % len(seeds)]
    known = next(each.epochs for each in truth if each.batch == job.hints.global_batch and each.seed == other)
    elastic = replace(job.ask, mode=Mode(mode), epochs=known)
    target = job.target if to_the_end else Target("accuracy", 2.0)
    run = start_run(replace(seeded(job, seed), ask=elastic, target=target), Ledger(None))
    decision = run.search()
    model = fit_job_model(run.job, run.cloud.space, run.book.account.history)
    assert model is not None
    assert decision.configuration is not None
    expected = {}
    for configuration in run.cloud.space.configurations:
        batch = float(batch_of(configuration) or REFERENCE)
        step_s, _ = model.steps[machine_of(configuration)].predict(
            np.array([float(configuration.nodes)]), np.array([local_batch(run.job, configuration)])
        )
        epochs, _ = model.epochs.predict(np.array([batch]))
        expected[f"{configuration.nodes}x{batch_of(configuration)}"] = float(
            epochs[0] * model.dataset_samples / batch * step_s[0]
        )
    searched_s = run.book.account.history.elapsed_s
    if to_the_end:
        run.launch()
    history = run.book.account.history
    startup_s = sum(m.startup_s for m in (*history.measurements, *history.runs))
    told = {
        "mode": mode,
        "seed": seed,
        "chosen": str(decision.configuration),
        "expected_s": expected,
        "noise_scale": model.epochs.noise_scale,
        "probes": len(history.measurements),
        "search_s": searched_s,
        "wall_s": history.elapsed_s,
        "training_s": history.elapsed_s - startup_s,
        "usd": history.spent_usd,
        "ended": run.book.account.ended.because if run.book.account.ended is not None else "",
    }
    print(told, flush=True)
    return told


def summarise(truth: list[Trained], searches: list[dict[str, object]], options: argparse.Namespace) -> None:
    places = sorted({(each.workers, each.batch) for each in truth})
    print(f"\nMLCD {VERSION}, {len(places)} configurations x {options.seeds} seeds, target {options.target}")
    mean_s, wall_s = {}, {}
    for place in places:
        here = [each for each in truth if (each.workers, each.batch) == place]
        mean_s[place] = statistics.mean(each.training_s for each in here)
        wall_s[place] = statistics.mean(each.wall_s for each in here)
        spread = statistics.stdev(each.training_s for each in here) / mean_s[place] if len(here) > 1 else 0.0
        epochs = statistics.mean(each.epochs for each in here)
        print(f"  {place[0]} workers, batch {place[1]:>4}: {mean_s[place]:6.1f} s training +- {100 * spread:.0f} % "
              f"between seeds, {wall_s[place]:6.1f} s in all, {epochs:.1f} epochs")  # fmt: skip
    best = min(mean_s, key=lambda place: mean_s[place])
    for mode in options.modes:
        mine = [each for each in searches if each["mode"] == mode]
        errors = [
            abs(float(seconds) / mean_s[tuple(int(n) for n in name.split("x"))] - 1)  # type: ignore[index,attr-defined]
            for each in mine
            for name, seconds in each["expected_s"].items()  # type: ignore[attr-defined]
            if tuple(int(n) for n in name.split("x")) in mean_s
        ]
        if not errors:
            continue
        print(
            f"{mode}: error of predicted time, median {100 * statistics.median(errors):.1f} %, p90 "
            f"{100 * float(np.quantile(errors, 0.9)):.1f} %, of {len(errors)}; "
            f"chosen: {', '.join(str(each['chosen']) for each in mine)}"
        )
        if options.oracle:
            price = 0.50 / 3600
            over = [float(str(each["training_s"])) / mean_s[best] - 1 for each in mine]
            over_wall = [float(str(each["wall_s"])) / wall_s[best] - 1 for each in mine]
            over_usd = [float(str(each["usd"])) / (wall_s[best] * best[0] * price) - 1 for each in mine]
            print(
                f"  over an oracle on {best[0]} workers, batch {best[1]}: training {_range(over)}, wall "
                f"{_range(over_wall)}, cost {_range(over_usd)}"
            )


def _range(shares: list[float]) -> str:
    return f"{100 * statistics.mean(shares):+.0f} % ({100 * min(shares):+.0f} to {100 * max(shares):+.0f})"


if __name__ == "__main__":
    main()
