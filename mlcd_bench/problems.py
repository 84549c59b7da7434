"""Problems of a comparison: a recorded job under a scenario and a limit, and what an oracle does with it.

limit     the factor x the smallest possible time (a deadline) or cost (a budget) of training
oracle    the best configuration within the limit, without a probe
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import product

from mlcd.clouds.recording import Recording
from mlcd.core.configuration import Configuration, Space
from mlcd.core.job import Communication, Goal, Hints, Job, Objective, Search
from mlcd_bench.simulated import SimulatedRecording


class Scenario(StrEnum):
    """The three scenarios of the HeterBO paper."""

    FASTEST = "fastest"
    CHEAPEST_BY_DEADLINE = "cheapest-by-deadline"
    FASTEST_WITHIN_BUDGET = "fastest-within-budget"

    @property
    def objective(self) -> Objective:
        """What is minimised."""
        return Objective.CHEAPEST if self is Scenario.CHEAPEST_BY_DEADLINE else Objective.FASTEST


@dataclass(frozen=True)
class Problem:
    """A recording under a scenario, and the oracle's result.

    `space` is the same object for all problems of a recording, so that its caches are shared.
    """

    recording: Recording
    space: Space
    job: Job
    scenario: Scenario
    limit_factor: float | None
    limit: float | None
    oracle_usd: float
    oracle_hours: float


def problems(
    recordings: Iterable[Recording], scenarios: Sequence[Scenario], limit_factors: Sequence[float]
) -> list[Problem]:
    """Every recording under every scenario and, if it has a limit, every factor."""
    all_problems = []
    for recording in recordings:
        space, job = recording.space, job_of(recording)
        for scenario in scenarios:
            factors: Sequence[float | None] = [None] if scenario is Scenario.FASTEST else list(limit_factors)
            all_problems += [_problem(recording, space, job, scenario, factor) for factor in factors]
    return all_problems


def rescaled(recordings: Sequence[Recording], hours: Sequence[float]) -> list[Recording]:
    """Each recording with its work scaled so that the best possible time is so many hours: 'bert@20h'."""
    return [
        replace(recording, name=f"{recording.name}@{target:g}h", work_samples=_fastest(recording) * target * 3_600)
        for recording, target in product(recordings, hours)
    ]


def job_of(recording: Recording) -> Job:
    """The recorded job, with all that the recording says about it."""
    known = recording.communication in set(Communication)
    batch = Hints(global_batch=recording.global_batch)
    return Job(
        recording.name,
        recording.work_samples,
        communication=Communication(recording.communication) if known else Communication.ALL_REDUCE,
        hints=recording.hints if isinstance(recording, SimulatedRecording) else batch,
        search=Search(nodes=(1, max(configuration.nodes for configuration in recording.points))),
    )


def training_hours(recording: Recording, configuration: Configuration) -> float | None:
    """Training time at the recorded rate; None if training failed."""
    rate = recording.points[configuration].samples_per_s
    return None if rate is None else recording.work_samples / rate / 3_600


def _fastest(recording: Recording) -> float:
    return max(point.samples_per_s for point in recording.points.values() if point.samples_per_s is not None)


def _problem(recording: Recording, space: Space, job: Job, scenario: Scenario, factor: float | None) -> Problem:
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
    return Problem(recording, space, replace(job, goal=goal), scenario, factor, limit, usd, hours)
