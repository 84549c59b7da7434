"""The paper's cloud on our simulated AWS: its instance families and node counts.

The paper's testbed (section V-A): c5, c5n, c4 up to 100 nodes; p2 (K80) and p3 (V100) up to 50.

LIMIT_FACTOR   a limit over the least that training can take. The paper does not state it; its numbers give it:
               under $100 (Fig. 11) HeterBO spends $96 and ConvBO $225, with 21 % of ConvBO's profiling. If both
               train alike, ConvBO's profiling is (225 - 96) / 0.79 = $163, and training $62: the limit is 1.6 of it.
FEW_TYPES      how many types an experiment had; the paper does not state it; Fig. 15 has three first points, one
               for each type. These are Fig. 1's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import inf

from mlcd.catalog import load_offers
from mlcd.clouds.recording import Recording
from mlcd.clouds.simulated import Simulated
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Configuration, Offer
from mlcd.core.job import Job, Objective
from mlcd_bench.problems import Problem, Scenario, problems, rescaled, training_hours
from mlcd_bench.simulated import SimulatedRecording, recorded_from

MOST_NODES = {"c4": 100, "c5": 100, "c5n": 100, "p2": 50, "p3": 50}
FEW_TYPES = ("c5.xlarge", "c5.4xlarge", "p2.xlarge")
FEW_GPU_TYPES = ("c5n.4xlarge", "p2.xlarge", "p3.2xlarge")
"""For models that do not suit Fig. 1's types: the best CPU type of Fig. 18, and the smallest of both GPU families."""
LIMIT_FACTOR = 1.6
HOURS = 6.0 / LIMIT_FACTOR
"""The best possible time without a limit: that of the job with the 6-hour deadline (Fig. 10)."""


def testbed(job: Job, seed: int, *types: str) -> SimulatedRecording:
    """The paper's 25 types, or some of them, with its node counts; the seed determines how efficient each is."""
    backend = Simulated(VirtualClock(), seed)
    parts = [
        recorded_from(backend, job, (offer,), MOST_NODES[_family(offer)])
        for offer in load_offers(("aws",))
        if _family(offer) in MOST_NODES and (not types or offer.instance_type in types)
    ]
    return replace(parts[0], points={c: point for part in parts for c, point in part.points.items()})


def within(recording: Recording, scenario: Scenario, limit: float) -> Problem:
    """The scenario under this limit, in hours or dollars; the work is scaled so that the limit binds as it should."""
    deadline = scenario is Scenario.CHEAPEST_BY_DEADLINE
    least = min(hours if deadline else usd for _, hours, usd in finishes(recording))
    work = recording.work_samples * limit / (LIMIT_FACTOR * least)
    return problems([replace(recording, work_samples=work)], [scenario], [LIMIT_FACTOR])[0]


def within_budget_for(recording: Recording, hours: float) -> Problem:
    """The fastest within a budget of the usual tightness, the work scaled so that the optimum trains for so long."""
    scenario = Scenario.FASTEST_WITHIN_BUDGET
    (posed,) = problems([recording], [scenario], [LIMIT_FACTOR])
    work = recording.work_samples * hours / posed.oracle_hours
    return problems([replace(recording, work_samples=work)], [scenario], [LIMIT_FACTOR])[0]


def fastest(recording: Recording, hours: float = HOURS) -> Problem:
    """No limit; the work scaled to so many hours at best."""
    return problems(rescaled([recording], [hours]), [Scenario.FASTEST], [])[0]


def favoured(problem: Problem, types: int) -> Problem:
    """As the paper helps CherryPick: only the best types remain, chosen with knowledge that no method has.

    A type is as good as its best configuration within the limit. The oracle stays that of the whole problem.
    """
    best = dict.fromkeys(problem.space.offers, inf)
    for value, configuration in _within_limits(problem):
        best[configuration.offer] = min(best[configuration.offer], value)
    kept = sorted(best, key=best.__getitem__)[:types]
    points = {c: point for c, point in problem.recording.points.items() if c.offer in kept}
    recording = replace(problem.recording, points=points)
    return replace(problem, recording=recording, space=recording.space)


def optimum(problem: Problem) -> Configuration:
    """The best within the limit, without a probe."""
    return min(_within_limits(problem), key=lambda pair: pair[0])[1]


def finishes(recording: Recording) -> Iterator[tuple[Configuration, float, float]]:
    """Hours and dollars of training on every configuration that runs the job."""
    for configuration in recording.points:
        hours = training_hours(recording, configuration)
        if hours is not None:
            yield configuration, hours, hours * configuration.usd_per_hour


def _within_limits(problem: Problem) -> Iterator[tuple[float, Configuration]]:
    """The objective of every configuration that trains within the limit."""
    goal = problem.job.goal
    for configuration, hours, usd in finishes(problem.recording):
        if hours * 3_600 <= (goal.deadline_s or inf) and usd <= (goal.budget_usd or inf):
            yield (usd if goal.objective is Objective.CHEAPEST else hours), configuration


def _family(offer: Offer) -> str:
    return offer.instance_type.partition(".")[0]
