"""Net value on jobs whose memory is tight, on the simulated cloud, compared with `random` and brute force.

python benchmarks/memory_bound.py [--jobs 30] [--first 0] [--paths]

Two parts. The first is one job, of one billion parameters and 48 GB of activations a sample, that fits 43 of 950
configurations, with seeds 1 to 6; the seed is used for the cloud's efficiencies, its noise and the search.
The second is made jobs of 0.1 to 70 billion parameters, drawn by their number, that fit at most half of their space;
every sixth fits none of it. Every search has the default `max_probe`.

Brute force knows every rate without noise: the best configuration within the limit. 'choice' is training on the
chosen configuration over that, in the job's objective; 'total' includes all probes. 'could': whether one whole probe of
some configuration could have been certified (three standard errors of 3 %). The simulated cloud and the hints of a job
use the same memory formula, unlike reality: 'no hints' is the same search without them.

The exit code is 1 if a probe cost more than `max_probe`, or if `random` certified a job that net value did not. Nothing
is rented. It takes about two minutes on one core.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import exp

import numpy as np
import scipy

from mlcd.clouds.simulated import Simulated
from mlcd.core.configuration import Configuration, Space
from mlcd.core.decision import Decision
from mlcd.core.drive import search
from mlcd.core.history import History
from mlcd.core.job import Goal, Hints, Job, Objective, Search
from mlcd.core.ledger import Ledger, Started
from mlcd.core.measurement import Outcome, Z
from mlcd.core.place import Cloud, cloud
from mlcd.core.runs.run import with_probe_limit
from mlcd.core.strategy import Step, Strategy
from mlcd.core.version import VERSION
from mlcd.planners.modeling.outlook import usual_probe_limit
from mlcd.planners.train.planner import method

BLIND = "net-value, no hints"
METHODS = ("net-value", BLIND, "random")
SEEDS = (1, 2, 3, 4, 5, 6)
ONE_BILLION = Job(
    "one-billion",
    1e6,
    Goal(Objective.CHEAPEST, budget_usd=1_000.0),
    hints=Hints(parameters=1e9, flops_per_sample=6e12, global_batch=64),
    task={"resources": {"accelerators": ["H100", "L40S", "A100", "L4"]}},
)
MOST_THAT_FITS = 0.5
"""If more of the space fits, memory is not tight."""
NOISE = 0.03


@dataclass(frozen=True)
class WithoutHints:
    """A strategy that does not get the hints about the model."""

    within: Strategy

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        return self.within.next_step(replace(job, hints=Hints()), space, history)


@dataclass(frozen=True)
class SearchResult:
    """One search: its decision, its measurements, and the brute-force results."""

    job: Job
    method: str
    decision: Decision
    history: History
    best: float | None
    chosen: float | None
    could: bool
    fitting: int
    size: int

    @property
    def probed(self) -> float:
        """The probes' share of the objective."""
        return self.history.elapsed_s if self.job.goal.objective is Objective.FASTEST else self.history.spent_usd

    def row(self) -> str:
        outcomes = [m.outcome for m in self.history.measurements]
        ratios = "- | -"
        if self.best is not None and self.chosen is not None:
            ratios = f"{self.chosen / self.best:.2f} | {(self.chosen + self.probed) / self.best:.2f}"
        dearest = max((m.usd for m in self.history.measurements), default=0.0)
        return (
            f"{'yes' if self.decision.certified else 'no'} | {self.decision.configuration or '-'} | {len(outcomes)} | "
            f"{outcomes.count(Outcome.OUT_OF_MEMORY)} | ${self.history.spent_usd:,.2f} | ${dearest:,.2f} | {ratios}"
        )


def run(job: Job, name: str, seed: int) -> SearchResult:
    """Run one search by a method, as `mlcd train --decide-only`."""
    job = replace(job, search=replace(job.search, method=name.partition(",")[0], seed=seed))
    place = cloud("simulated", job)
    job = with_probe_limit(job, usual_probe_limit(job, place.space))
    strategy = method(job.search) if name != BLIND else WithoutHints(method(job.search))
    ledger = Ledger(None)
    started = Started(job, place.space, "simulated", place.provenance, VERSION, ())
    book = ledger.begin(job.name, place.clock, started)
    decision = search(strategy, job, place.space, place.profiler, book)
    history = book.account.history
    ledger.close()
    totals = brute_force(job, place)
    fast = job.goal.objective is Objective.FASTEST
    within = [(s if fast else usd) for s, usd in totals.values() if job.goal.allows(usd, s)]
    chosen = totals.get(decision.configuration) if decision.configuration is not None else None
    return SearchResult(
        job,
        name,
        decision,
        history,
        min(within, default=None),
        None if chosen is None else chosen[0] if fast else chosen[1],
        any(_certifiable(job, place, where, s) for where, (s, _) in totals.items()),
        len(totals),
        len(place.space),
    )


def brute_force(job: Job, place: Cloud) -> dict[Configuration, tuple[float, float]]:
    """Seconds and dollars of training on every configuration that fits memory."""
    backend = place.backend
    assert isinstance(backend, Simulated)
    totals = {}
    for where in place.space.configurations:
        if backend.fits(job, where):
            seconds = job.work_samples / backend.true_samples_per_s(job, where)
            totals[where] = (seconds, where.usd(seconds))
    return totals


def _certifiable(job: Job, place: Cloud, where: Configuration, seconds: float) -> bool:
    """Whether one whole probe, with typical noise, could be certified afterwards."""
    probe_s, probe_usd = place.space.worst_probe(where)
    slow_s = place.space.startup_limit_s + seconds * exp(Z * NOISE)
    most_usd = job.search.max_probe_usd
    allowed = most_usd is None or probe_usd <= most_usd
    return allowed and job.goal.allows(probe_usd + where.usd(slow_s), probe_s + slow_s)


def random_jobs(numbers: range) -> Iterator[tuple[int, Job]]:
    """Jobs with tight memory, each drawn by its number alone."""
    for number in numbers:
        rng = np.random.default_rng([16, number])
        while (job := _drawn(rng, number)) is None:
            pass
        yield number, job


def _drawn(rng: np.random.Generator, number: int) -> Job | None:
    """A job with one limit, 1.3 to 4 times the least possible; None if memory is not tight.

    Every sixth fits nothing: a good search says so, and spends little.
    """
    parameters = 10 ** rng.uniform(8, np.log10(70e9))
    hints = Hints(parameters, parameters * 10 ** rng.uniform(2, 4), int(2 ** rng.integers(4, 11)))
    kinds = list(rng.choice(["H200", "H100", "A100-80GB", "A100", "L40S", "A10G", "L4"], 4, replace=False))
    resources = {"accelerators": [str(kind) for kind in kinds]} if rng.random() < 0.5 else {}
    hours, factor, kind = 10 ** rng.uniform(0, 1.5), rng.uniform(1.3, 4.0), rng.integers(3)
    job = Job(f"made-{number}", 1e9, hints=hints, task={"resources": resources}, search=Search(seed=number))
    place = cloud("simulated", job)
    totals = brute_force(job, place)
    if len(totals) > MOST_THAT_FITS * len(place.space) or bool(totals) == (number % 6 == 5):
        return None
    if not totals:
        return replace(job, work_samples=1e6, goal=Goal(Objective.CHEAPEST, budget_usd=1_000.0))
    least_s, least_usd = min(s for s, _ in totals.values()), min(usd for _, usd in totals.values())
    scale = hours * 3_600 / least_s  # the fastest configuration takes so many hours
    goals = (
        Goal(Objective.CHEAPEST, budget_usd=factor * least_usd * scale),
        Goal(Objective.FASTEST, budget_usd=factor * least_usd * scale),
        Goal(Objective.CHEAPEST, deadline_s=factor * least_s * scale),
    )
    return replace(job, work_samples=job.work_samples * scale, goal=goals[kind])


def words(job: Job) -> str:
    hints, goal = job.hints, job.goal
    limit = f"${goal.budget_usd:,.0f}" if goal.budget_usd is not None else f"{(goal.deadline_s or 0) / 3_600:.1f} h"
    kinds = (job.task["resources"] or {}).get("accelerators")
    size = (
        f"{(hints.parameters or 0) / 1e9:.2f}B, {(hints.flops_per_sample or 0) / 1e12:.1f}T, batch {hints.global_batch}"
    )
    return f"{size}, {goal.objective} in {limit}{', ' + ' '.join(kinds) if kinds else ''}"


HEAD = (
    "method | certified | chosen | probes | out of memory | spent | dearest probe | choice | total |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|---|"
)


def tell(runs: list[SearchResult], label: str, paths: bool) -> None:
    for ran in runs:
        print(
            f"| {label} | {ran.fitting} of {ran.size} | {'yes' if ran.could else 'no'} | {ran.method} | {ran.row()} |"
        )
        if paths:
            for m in ran.history.measurements:
                print(f"    {m.configuration}: {m.ending}, ${m.usd:,.2f}")
            print(f"    {ran.decision.because} {ran.decision.binding}")


def too_dear(ran: SearchResult) -> bool:
    """Whether a probe cost more than `max_probe`."""
    most_usd = ran.job.search.max_probe_usd
    return most_usd is not None and any(m.usd > most_usd * (1 + 1e-9) for m in ran.history.measurements)


def summary(runs: list[SearchResult]) -> None:
    """How often each certified, and the spread of its choices."""
    for name in METHODS:
        own = [ran for ran in runs if ran.method == name]
        certified = [ran for ran in own if ran.decision.certified]
        ratios = np.array(
            [ran.chosen / ran.best for ran in certified if ran.chosen is not None and ran.best is not None]
        )
        totals = np.array([(ran.chosen + ran.probed) / ran.best for ran in certified if ran.chosen and ran.best])
        probes = np.array([len(ran.history.measurements) for ran in own])
        spread = ""
        if ratios.size:
            choice, total = (
                f"{np.median(each):.2f} (90 %: {np.quantile(each, 0.9):.2f}, worst {each.max():.2f})"
                for each in (ratios, totals)
            )
            spread = f"; over brute force: choice {choice}, with probes {total}"
        could = [ran for ran in own if ran.could]
        print(
            f"{name}: {len(certified)} of {len(own)} certified, {sum(ran.decision.certified for ran in could)} of the "
            f"{len(could)} that one probe could certify; probes {np.median(probes):.0f} (most {probes.max()}){spread}"
        )


def lost(runs: list[SearchResult]) -> list[str]:
    """The jobs that `random` certified but net value did not."""
    by_job: dict[str, dict[str, bool]] = {}
    for ran in runs:
        by_job.setdefault(f"{ran.job.name} seed {ran.job.search.seed}", {})[ran.method] = ran.decision.certified
    return [name for name, certified in by_job.items() if certified["random"] and not certified["net-value"]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=30, help="how many made jobs; default 30")
    parser.add_argument("--first", type=int, default=0, help="the number of the first; default 0")
    parser.add_argument("--paths", action="store_true", help="every probe")
    given = parser.parse_args()
    started = time.perf_counter()
    python, versions = platform.python_version(), f"numpy {np.__version__}, scipy {scipy.__version__}"
    numbers = range(given.first, given.first + given.jobs)
    print(f"mlcd {VERSION}, {versions}, Python {python}; seeds {SEEDS}; made jobs {numbers.start}..{numbers.stop - 1}")
    print(f"\n| seed | fits | could | {HEAD}")
    one_job: list[SearchResult] = []
    for seed in SEEDS:
        runs = [run(ONE_BILLION, name, seed) for name in METHODS]
        tell(runs, str(seed), given.paths)
        one_job += runs
    summary(one_job)
    print(f"\n| job | fits | could | {HEAD}")
    made: list[SearchResult] = []
    for number, job in random_jobs(numbers):
        runs = [run(job, name, number) for name in METHODS]
        tell(runs, f"{number}: {words(job)}", given.paths)
        made += runs
    summary(made)
    dear, refused = [ran.job.name for ran in one_job + made if too_dear(ran)], lost(one_job + made)
    print(f"\nprobes above max_probe: {', '.join(dear) or 'none'}")
    print(f"certified by random and not by net-value: {', '.join(refused) or 'none'}")
    print(f"{time.perf_counter() - started:.0f} s")
    return 1 if dear or refused else 0


if __name__ == "__main__":
    sys.exit(main())
