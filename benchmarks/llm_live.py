"""vLLM on this machine's CPU: 32 configurations of two models, and what the search of `mlcd serve` finds among them.

    make .venv-vllm/installed
    python benchmarks/llm_live.py FOLDER            # some 40 minutes a model, alone on the machine; it can be stopped
    python benchmarks/llm_live.py FOLDER --most 24  # so many configurations of each model; later calls add to them
    python benchmarks/llm_live.py FOLDER --search   # only the searches, on what is there

FOLDER/MODEL.jsonl has one measurement a line, as it was measured; what is there is not measured again. The searches see
these measurements as their trials: within 5 % of the best that keeps the caps, in a quarter of the trials, is the goal.
The configurations are half of all settings of six knobs with two values each, those with an even number of second
values: each knob, and each pair of them, is varied evenly. They are measured in an order by lot, so that the machine's
slow hours fall on no knob, and a part of them is an even one.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from pydantic import ConfigDict, TypeAdapter

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from mlcd_fixtures.tiny_llama import tiny_llama

from mlcd.clouds.engines.trial import Engines
from mlcd.clouds.places.serve.engines import engine_space
from mlcd.clouds.serving.trial import Timing
from mlcd.core.backend import Launch, Progress, Provenance, Purpose
from mlcd.core.clock import VirtualClock, WallClock
from mlcd.core.configuration import Configuration, Space
from mlcd.core.drive import search
from mlcd.core.job import Goal, Job, Objective, Search
from mlcd.core.ledger import Ledger, Started
from mlcd.core.measurement import Measurement
from mlcd.core.strategy import Look, Watch
from mlcd.planners.serve.llm.architecture import read_architecture
from mlcd.planners.serve.llm.nouns import Engine, LanguageModel, Prompts
from mlcd.planners.serve.llm.sweep import Steps, SweepProfiler
from mlcd.planners.serve.model_facts import ModelFacts
from mlcd.planners.serve.nouns import Cap, Counted, Figure, Knob, KnobTable, ServingTask, knobs_of, served_by
from mlcd.planners.serve.planner import knowledge_for, serve_method
from mlcd.planners.serve.promise import best, decide, keeps, refusal, value

MODELS = {"small": {"layers": 2, "hidden": 128}, "large": {"layers": 4, "hidden": 512}}
KNOBS: Mapping[str, tuple[Knob, ...]] = {
    "threads": (1, 2),
    "precision": ("bf16", "fp32"),
    "batched_tokens": (64, 1_024),
    "sequences": (4, 32),
    "kv_cache_gb": (0.25, 1),
    "eager": ("eager", "compiled"),
}
TABLE = KnobTable({**KNOBS, "load_format": ("dummy",)}, {"threads": 0.04048, "kv_cache_gb": 0.004445}, cores="threads")
SWEEP, PROMPTS = (1, 4, 16, 32), Prompts(input_tokens=64, output_tokens=32)
TIMING = Timing(startup_s=400.0, every_s=0.5, timeout_s=60.0)
TRIAL_S, SEEDS = 40.0, (0, 1, 2)
BUDGET_USD = 5.0
STORED: TypeAdapter[tuple[Measurement]] = TypeAdapter(tuple[Measurement], config=ConfigDict(ser_json_inf_nan="strings"))


def job_of(model: Path, caps: tuple[Cap, ...] = (), seed: int = 0, trials: int | None = None) -> Job:
    engine = Engine("vllm", startup_s=TIMING.startup_s)
    language = LanguageModel(engine, read_architecture(model), PROMPTS, SWEEP)
    task = ServingTask(
        ModelFacts(model.name), caps, counted=Counted.TOKENS, path=str(model), table=TABLE, trial_s=TRIAL_S,
        language=language,
    )  # fmt: skip
    goal = Goal(Objective.PER_DOLLAR, BUDGET_USD)
    return Job(model.name, 1.0, goal, search=Search("grey-box", seed=seed, trials=trials), on="local", ask=task)


def is_in_half(configuration: Configuration) -> bool:
    """Whether a setting has an even number of second values."""
    set_ = dict(knobs_of(configuration))
    return sum(values.index(set_[name]) for name, values in KNOBS.items()) % 2 == 0


def part(space: Space, keep: Callable[[Configuration], bool]) -> Space:
    choices = []
    for choice in space.choices:
        kept = tuple(each.setting for each in choice.configurations if keep(each) and each.setting is not None)
        choices += [replace(choice, settings=kept)] if kept else []
    return replace(space, choices=tuple(choices))


def measure_all(model: Path, space: Space, file: Path, most: int) -> None:
    """Measure what is not there yet, one after the other, and write down each at once."""
    done = {each.configuration for each in stored(file)}
    order = np.random.default_rng(0).permutation(len(space))[:most]
    job, steps = job_of(model), Steps()
    backend = Engines(file.parent / "state", WallClock(datetime.now(UTC)), TIMING, steps.known)
    for i, configuration in enumerate((space.configurations[at] for at in order), start=1):
        if configuration in done:
            continue
        seconds, _ = space.worst_probe(configuration)
        launch = Launch(f"{model.name}-{os.getpid()}-{i}", configuration, Purpose.PROBE, 1.0, seconds, i)
        m = SweepProfiler(backend, steps).measure(job, launch)
        with file.open("a", encoding="utf-8") as lines:
            lines.write(STORED.dump_json((m,)).decode() + "\n")
        rate = f"{m.rate:,.0f} tokens/s" if m.ok else m.ending
        print(f"{model.name} {i}/{len(order)}  {configuration}: {rate}, {m.seconds:.0f} s", flush=True)


def stored(file: Path) -> list[Measurement]:
    if not file.is_file():
        return []
    return [STORED.validate_json(line)[0] for line in file.read_text(encoding="utf-8").splitlines()]


@dataclass(frozen=True)
class Stored:
    """A profiler whose trials were made before."""

    measured: Mapping[Configuration, Measurement]

    def telling(self, progress: Progress) -> Stored:
        return self

    def measure(self, job: Job, launch: Launch, look: Look | None = None, watch: Watch | None = None) -> Measurement:
        return self.measured[launch.configuration]

    def reclaim(self, label: str) -> None:
        return None


def search_all(model: Path, space: Space, measured: list[Measurement]) -> None:
    """Every seed under every cap, against the best of all."""
    profiler = Stored({m.configuration: m for m in measured})
    print(f"\n{model.name}: {len(measured)} of {len(space)} measured")
    space = part(space, profiler.measured.__contains__)
    most = len(space) // 4
    for caps in caps_of(measured):
        words = ", ".join(map(str, caps)) or "no caps"
        for seed in SEEDS:
            job, ledger, clock = job_of(model, caps, seed, most), Ledger(None), VirtualClock()
            optimum = best(job, measured)
            if optimum is None:
                print(f"  {words}: nothing keeps them")
                break
            book = ledger.begin(job.name, clock, Started(job, space, "benchmark", Provenance.RECORDED, "benchmark"))
            strategy = serve_method(job.search, knowledge_for(job))
            decision = search(strategy, job, space, profiler, book, guard=refusal, decide=decide)
            found = next((m for m in measured if m.configuration == decision.configuration), None)
            share = value(job, found) / max(value(job, m) for m in measured if keeps(job, m)) if found else 0.0
            made = [profiler.measured[m.configuration] for m in book.account.history.measurements]
            trials, usd = len(made), sum(m.usd for m in made)
            verdict = "ok" if share >= 0.95 and trials <= most else "MISSED"
            print(f"  {words}, seed {seed}: {share:.1%} of the best after {trials} trials, ${usd:.4f}  {verdict}")


def caps_of(measured: list[Measurement]) -> list[tuple[Cap, ...]]:
    """None, and caps that two in five of all levels keep: they bind, and can be kept."""
    levels = [level for m in measured for level in served_by(m).levels]
    found: list[tuple[Cap, ...]] = [()]
    for figures in ((Figure.TPOT_P95,), (Figure.TPOT_P95, Figure.TTFT_P95)):
        limits = [float(np.quantile([level.figures[figure] for level in levels], 0.4)) for figure in figures]
        found.append(tuple(Cap(figure, float(f"{at:.2g}")) for figure, at in zip(figures, limits, strict=True)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--most", type=int, default=32, metavar="N", help="measure so many of each model; 32")
    parser.add_argument("--search", action="store_true", help="measure nothing more")
    parser.add_argument("--model", choices=MODELS, action="append", help="only this one")
    given = parser.parse_args()
    os.environ["PATH"] = f"{Path(__file__).resolve().parents[1] / '.venv-vllm' / 'bin'}:{os.environ['PATH']}"
    for name in given.model or MODELS:
        model, file = tiny_llama((given.folder / name).resolve(), **MODELS[name]), given.folder / f"{name}.jsonl"
        space = part(engine_space(job_of(model).ask, TIMING), is_in_half)
        if not given.search:
            measure_all(model, space, file, given.most)
        if measured := stored(file):
            search_all(model, space, measured)


if __name__ == "__main__":
    main()
