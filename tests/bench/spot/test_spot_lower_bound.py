"""The lower bound of all policies against trying every course of action, and how near cost-to-go comes to it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import product
from statistics import fmean

import numpy as np
import pytest

from mlcd.planners.train.market import CostToGo, Guarded, Observations, Terms, observations_from_table
from mlcd.planners.train.market.hazard_rates import DAY_H, HazardRates
from mlcd_bench.spot import RecordedConditions, optima, play
from mlcd_bench.spot.lower_bound import FullyObserved, Job, ZoneModel

STEP_H, PREEMPTION_PER_H, RETURN_PER_H = 0.5, 0.2, 0.3
PREEMPTED, RETURNED = (float(-np.expm1(-per_h * STEP_H)) for per_h in (PREEMPTION_PER_H, RETURN_PER_H))
SIMPLE = ZoneModel(np.array([[1 - PREEMPTED, PREEMPTED], [RETURNED, 1 - RETURNED]]), 1)
CALMING = ZoneModel(np.array([[0.6, 0.2, 0.2], [0.0, 0.9, 0.1], [0.3, 0.0, 0.7]]), 2)


def every_course(zone: ZoneModel, job: Job, first: tuple[int, ...]) -> float:
    """The least expected cost, by recursion over what each zone does."""

    def mean(t: int, work: int, held: int | str | None, now: tuple[int, ...]) -> float:
        total = 0.0
        for then in product(range(len(zone.transition)), repeat=len(now)):
            probability = float(np.prod([zone.transition[a, b] for a, b in zip(now, then, strict=True)]))
            kept = None if isinstance(held, int) and then[held] >= zone.up else held
            total += probability * least(t, work, kept, then) if probability else 0.0
        return total

    @cache
    def least(t: int, work: int, held: int | str | None, now: tuple[int, ...]) -> float:
        if work <= 0:
            return 0.0
        if t == job.ticks:
            return 1e9
        found = [mean(t + 1, work, None, now), job.on_demand_usd + mean(t + 1, work, "on demand", now)]
        found += [job.spot_usd + mean(t + 1, work, z, now) for z, phase in enumerate(now) if phase < zone.up]
        if held is not None:
            found.append(
                (job.on_demand_usd if isinstance(held, str) else job.spot_usd) + mean(t + 1, work - 1, held, now)
            )
        return min(found)

    return least(0, job.work, None, first)


@pytest.mark.parametrize("zone", [SIMPLE, CALMING])
def test_the_bound_equals_the_best_of_all_courses_of_action(zone: ZoneModel) -> None:
    job = Job(7, 4, 1.0, 3.0)
    bound = FullyObserved(zone, 2, job)
    for first in product(range(len(zone.transition)), repeat=2):
        assert bound.expected(np.array(first)) == pytest.approx(every_course(zone, job, first))


def test_the_mean_cost_of_the_bounding_policy_is_the_bound() -> None:
    bound, rng = FullyObserved(CALMING, 2, Job(40, 32, 1.0, 3.0)), np.random.default_rng(3)
    drawn = [CALMING.drawn(2, 40, rng) for _ in range(400)]
    assert fmean(map(bound.simulated, drawn)) == pytest.approx(
        fmean(bound.expected(each[0]) for each in drawn), rel=0.03
    )


def true_rates(observations: Observations, zones: Sequence[str]) -> HazardRates:
    same = np.ones((len(zones), DAY_H))
    return HazardRates(np.full((len(zones), 6), PREEMPTION_PER_H), np.full((len(zones), 6), RETURN_PER_H), same, same)


@pytest.mark.parametrize(("ticks", "work", "most"), [(48, 38, 1.04), (48, 43, 1.06)])
def test_cost_to_go_is_near_the_lower_bound_of_all_policies(ticks: int, work: int, most: float) -> None:
    """In one zone whose rates it knows, with changeovers of half an hour, and with more or less slack."""
    bound, rng = FullyObserved(SIMPLE, 1, Job(ticks, work, STEP_H, 3 * STEP_H)), np.random.default_rng(5)
    terms = Terms(("a",), ticks * STEP_H, work * STEP_H, STEP_H, STEP_H, (3.0,))
    ours, least, best = list[float](), list[float](), list[float]()
    for _ in range(40):
        phases = SIMPLE.drawn(1, ticks + 1, rng)
        up, prices = phases[1:] < SIMPLE.up, np.ones((ticks, 1))
        before = observations_from_table(("a",), (phases[:1] < SIMPLE.up).tolist(), STEP_H)
        ours.append(
            play(Guarded(CostToGo(estimator=true_rates)), RecordedConditions(up, prices), terms, before).cost_usd
        )
        least.append(bound.simulated(phases[1:]))
        best += optima(up, prices, terms, [terms.work_h])
    assert fmean(best) < fmean(least)
    assert fmean(ours) < most * fmean(least)
