"""The training contest: methods x recordings x scenarios x seeds, against an oracle that never probes.

A run is the product's own search on a recorded cloud, with the ledger in memory: no second implementation.

    limit     the factor x the smallest possible time (a deadline) or cost (a budget) of training
    total     all probes, and then training on the chosen configuration at its recorded rate
    oracle    the best configuration within the limit, without a probe
    ratio     total over oracle, in the scenario's objective
    violated  the total passes the limit
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from enum import StrEnum
from itertools import product
from typing import Any

from mlcd.assemble import method, recorded_cloud
from mlcd.backends import Recording
from mlcd.configuration import Configuration
from mlcd.drive import search
from mlcd.job import Goal, Job, Objective
from mlcd.ledger import Ledger, Started
from mlcd.version import VERSION


class Scenario(StrEnum):
    """The paper's three."""

    FASTEST = "fastest"
    CHEAPEST_BY_DEADLINE = "cheapest-by-deadline"
    FASTEST_WITHIN_BUDGET = "fastest-within-budget"

    @property
    def objective(self) -> Objective:
        """What is made small."""
        return Objective.CHEAPEST if self is Scenario.CHEAPEST_BY_DEADLINE else Objective.FASTEST


@dataclass(frozen=True)
class Problem:
    """A recording under a scenario, and what the oracle does there."""

    recording: Recording
    scenario: Scenario
    limit_factor: float | None
    limit: float | None
    goal: Goal
    oracle_usd: float
    oracle_hours: float


@dataclass(frozen=True)
class Result:
    """One run of one method: the row that `mlcd bench train -o json` prints."""

    recording: str
    scenario: str
    limit_factor: float | None
    limit: float | None
    method: str
    seed: int
    probes: list[dict[str, Any]]
    chosen: tuple[str, int] | None
    certified: bool
    probing_usd: float
    probing_hours: float
    total_usd: float
    total_hours: float
    oracle_usd: float
    oracle_hours: float
    ratio: float | None
    violated: bool

    def document(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


def problems(
    recordings: Iterable[Recording], scenarios: Sequence[Scenario], limit_factors: Sequence[float]
) -> list[Problem]:
    """Every recording under every scenario and, where there is a limit, every factor."""
    found = []
    for recording, scenario in product(recordings, scenarios):
        factors: Sequence[float | None] = [None] if scenario is Scenario.FASTEST else list(limit_factors)
        found += [_problem(recording, scenario, factor) for factor in factors]
    return found


def contest(
    problems: Sequence[Problem], methods: Sequence[str], seeds: Sequence[int], noise: float, processes: int = 1
) -> Iterator[Result]:
    """Run them all, in order; more processes only make it faster."""
    tasks = [(problem, name, seed, noise) for problem, name, seed in product(problems, methods, seeds)]
    if processes == 1:
        yield from map(_run, tasks)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(_run, tasks, chunksize=4)


def training_hours(recording: Recording, configuration: Configuration) -> float | None:
    """What training takes at the recorded rate; None where it failed."""
    rate = recording.points[configuration].samples_per_s
    return None if rate is None else recording.work_samples / rate / 3_600


def _problem(recording: Recording, scenario: Scenario, factor: float | None) -> Problem:
    totals = []
    for configuration in recording.points:
        hours = training_hours(recording, configuration)
        if hours is not None:
            totals.append((hours, hours * configuration.usd_per_hour))
    limit: float | None = None
    goal = Goal(scenario.objective)
    if factor is not None and scenario is Scenario.CHEAPEST_BY_DEADLINE:
        limit = factor * min(hours for hours, _ in totals)
        goal = Goal(scenario.objective, deadline_s=limit * 3_600)
        totals = [(hours, usd) for hours, usd in totals if hours <= limit]
    elif factor is not None:
        limit = factor * min(usd for _, usd in totals)
        goal = Goal(scenario.objective, budget_usd=limit)
        totals = [(hours, usd) for hours, usd in totals if usd <= limit]
    cheapest = scenario.objective is Objective.CHEAPEST
    hours, usd = min(totals, key=lambda total: (total[1], total[0]) if cheapest else total)
    return Problem(recording, scenario, factor, limit, goal, usd, hours)


def _run(task: tuple[Problem, str, int, float]) -> Result:
    problem, name, seed, noise = task
    recording = problem.recording
    job = Job(recording.name, recording.work_samples, problem.goal)
    cloud = recorded_cloud(recording, job, noise=noise, seed=seed)
    ledger = Ledger(None)
    first = Started(job, cloud.space, "recorded", cloud.provenance, VERSION)
    book = ledger.begin(recording.name, cloud.clock, first)
    decision = search(method(name, seed), job, cloud.space, cloud.profiler, book)
    ledger.close()
    history = book.account.history
    probing_hours = history.elapsed_s / 3_600
    total_usd, total_hours = history.spent_usd, probing_hours
    ratio = None
    if decision.configuration is not None:
        hours = training_hours(recording, decision.configuration) or 0.0
        total_hours += hours
        total_usd += hours * decision.configuration.usd_per_hour
        cheapest = problem.scenario.objective is Objective.CHEAPEST
        ratio = total_usd / problem.oracle_usd if cheapest else total_hours / problem.oracle_hours
    spent = total_hours if problem.goal.deadline_s is not None else total_usd
    chosen = decision.configuration
    return Result(
        recording=recording.name,
        scenario=str(problem.scenario),
        limit_factor=problem.limit_factor,
        limit=problem.limit,
        method=name,
        seed=seed,
        probes=[
            {
                "instance_type": m.configuration.offer.instance_type,
                "nodes": m.configuration.nodes,
                "fraction": 1.0,
                "round": i,
            }
            for i, m in enumerate(history.measurements)
        ],
        chosen=(chosen.offer.instance_type, chosen.nodes) if chosen is not None else None,
        certified=decision.certified,
        probing_usd=history.spent_usd,
        probing_hours=probing_hours,
        total_usd=total_usd,
        total_hours=total_hours,
        oracle_usd=problem.oracle_usd,
        oracle_hours=problem.oracle_hours,
        ratio=ratio,
        violated=problem.limit is not None and spent > problem.limit,
    )
