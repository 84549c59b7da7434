"""The limit of all policies against trying every course of action, and how near to it cost-to-go is."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import product
from statistics import fmean

import numpy as np
import pytest

from mlcd.planners.train.market import CostToGo, Guarded, Seen, Terms, from_history
from mlcd.planners.train.market.rates import DAY_H, Rates
from mlcd_bench.spot import Recorded, optima, play
from mlcd_bench.spot.limit import Job, Phased, Seeing

STEP_H, LOSS_PER_H, BACK_PER_H = 0.5, 0.2, 0.3
LOST, BACK = (float(-np.expm1(-per_h * STEP_H)) for per_h in (LOSS_PER_H, BACK_PER_H))
SIMPLE = Phased(np.array([[1 - LOST, LOST], [BACK, 1 - BACK]]), 1)
CALMING = Phased(np.array([[0.6, 0.2, 0.2], [0.0, 0.9, 0.1], [0.3, 0.0, 0.7]]), 2)


def every_course(zone: Phased, job: Job, first: tuple[int, ...]) -> float:
    """The least expected cost, by recursion over what each zone does."""

    def mean(t: int, work: int, held: int | str | None, now: tuple[int, ...]) -> float:
        total = 0.0
        for then in product(range(len(zone.step)), repeat=len(now)):
            chance = float(np.prod([zone.step[a, b] for a, b in zip(now, then, strict=True)]))
            kept = None if isinstance(held, int) and then[held] >= zone.up else held
            total += chance * least(t, work, kept, then) if chance else 0.0
        return total

    @cache
    def least(t: int, work: int, held: int | str | None, now: tuple[int, ...]) -> float:
        if work <= 0:
            return 0.0
        if t == job.ticks:
            return 1e9
        found = [mean(t + 1, work, None, now), job.dear + mean(t + 1, work, "on demand", now)]
        found += [job.cheap + mean(t + 1, work, z, now) for z, phase in enumerate(now) if phase < zone.up]
        if held is not None:
            found.append((job.dear if isinstance(held, str) else job.cheap) + mean(t + 1, work - 1, held, now))
        return min(found)

    return least(0, job.work, None, first)


@pytest.mark.parametrize("zone", [SIMPLE, CALMING])
def test_the_limit_is_that_of_trying_every_course_of_action(zone: Phased) -> None:
    job = Job(7, 4, 1.0, 3.0)
    limit = Seeing(zone, 2, job)
    for first in product(range(len(zone.step)), repeat=2):
        assert limit.expected(np.array(first)) == pytest.approx(every_course(zone, job, first))


def test_playing_by_the_limit_costs_in_the_mean_what_it_says() -> None:
    limit, rng = Seeing(CALMING, 2, Job(40, 32, 1.0, 3.0)), np.random.default_rng(3)
    drawn = [CALMING.drawn(2, 40, rng) for _ in range(400)]
    assert fmean(map(limit.played, drawn)) == pytest.approx(fmean(limit.expected(each[0]) for each in drawn), rel=0.03)


def true_rates(seen: Seen, zones: Sequence[str]) -> Rates:
    same = np.ones((len(zones), DAY_H))
    return Rates(np.full((len(zones), 6), LOSS_PER_H), np.full((len(zones), 6), BACK_PER_H), same, same)


@pytest.mark.parametrize(("ticks", "work", "most"), [(48, 38, 1.04), (48, 43, 1.06)])
def test_cost_to_go_is_near_the_limit_of_all_policies(ticks: int, work: int, most: float) -> None:
    """On one zone whose rates it knows, at changeovers of half an hour: with slack, and with little."""
    limit, rng = Seeing(SIMPLE, 1, Job(ticks, work, STEP_H, 3 * STEP_H)), np.random.default_rng(5)
    terms = Terms(("a",), ticks * STEP_H, work * STEP_H, STEP_H, STEP_H, (3.0,))
    ours, least, best = list[float](), list[float](), list[float]()
    for _ in range(40):
        phases = SIMPLE.drawn(1, ticks + 1, rng)
        up, prices = phases[1:] < SIMPLE.up, np.ones((ticks, 1))
        before = from_history(("a",), (phases[:1] < SIMPLE.up).tolist(), STEP_H)
        ours.append(play(Guarded(CostToGo(belief=true_rates)), Recorded(up, prices), terms, before).cost_usd)
        least.append(limit.played(phases[1:]))
        best += optima(up, prices, terms, [terms.work_h])
    assert fmean(best) < fmean(least)
    assert fmean(ours) < most * fmean(least)
