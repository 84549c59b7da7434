"""Allocations for epochs that may not be needed: against all plans there are, and never beyond the limit."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mlcd.configuration import Floats
from mlcd.job import Goal, Objective, Target
from mlcd.modeling.loss_curve import EpochsTo
from mlcd.modeling.serverless.boundary import Boundary
from mlcd.planners.serverless.choice import Epochs, Options, options
from mlcd.planners.serverless.hedge import ALIKE, KEPT, hedged
from mlcd.planners.serverless.outlook import (
    SAMPLING_ERROR,
    SIGMAS,
    UNLIKELY,
    Outlook,
    after,
    before,
    certain,
    spread_over,
)

SURE = np.ones(10)


def offer(seconds: Floats, usd: Floats) -> Options:
    """Allocations with so many seconds, rising, and dollars, falling, of an epoch."""
    some = np.arange(1, len(seconds) + 1)
    return options(Boundary(some, 128 * some, np.zeros_like(some), ("s3",), seconds, usd))


FEW = offer(np.array([1.0, 2.0, 4.0]), np.array([0.5, 0.3, 0.2]))
SMOOTH = offer(np.geomspace(1.0, 100.0, 3_000), 1.0 / np.geomspace(1.0, 100.0, 3_000))
"""v = 1 / w."""


def each(found: Epochs) -> list[int]:
    return [option for option, count in found for _ in range(count)]


def planned(offered: Options, chances: Floats, goal: Goal, old: int | None = None) -> list[int]:
    found = hedged(offered, chances, goal, old=old)
    assert found is not None
    return each(found.epochs)


def test_epochs_that_are_all_needed_get_the_two_allocations_around_their_share() -> None:
    assert planned(FEW, SURE, Goal(Objective.FASTEST, budget_usd=4.0)) == [0] * 5 + [1] * 5
    assert planned(FEW, SURE, Goal(Objective.CHEAPEST, deadline_s=30.0)) == [2] * 5 + [1] * 5
    assert planned(FEW, SURE, Goal(Objective.FASTEST)) == [0] * 10
    assert planned(FEW, SURE, Goal(Objective.CHEAPEST)) == [2] * 10


def test_no_plan_is_made_where_not_one_epoch_is_within_a_limit_or_the_other_limit_is_passed() -> None:
    assert hedged(FEW, SURE, Goal(Objective.FASTEST, budget_usd=0.19)) is None
    assert hedged(FEW, SURE, Goal(Objective.FASTEST, budget_usd=4.0, deadline_s=0.9)) is None


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.floats(1.2, 4), st.floats(1.2, 4)), min_size=1, max_size=4),
    st.lists(st.floats(0.2, 1), min_size=2, max_size=4),
    st.floats(1, 8),
    st.booleans(),
)
def test_the_plan_is_less_than_a_step_of_one_epoch_from_the_best_there_is(
    menu: list[tuple[float, float]], falls: list[float], room: float, cheapest: bool
) -> None:
    seconds, usd = (np.cumprod(column) for column in zip(*menu, strict=True))
    offered, chances = offer(seconds, usd[::-1]), np.cumprod([1.0, *falls])
    value, weight = (offered.usd, offered.seconds) if cheapest else (offered.seconds, offered.usd)
    limit = room * len(chances) * float(weight.min())
    goal = Goal(Objective.CHEAPEST, deadline_s=limit) if cheapest else Goal(Objective.FASTEST, budget_usd=limit)
    picks = planned(offered, chances, goal)
    used = chances[: len(picks)]
    plans = [list(plan) for plan in product(range(len(menu)), repeat=len(picks))]
    best, none_better = (
        min(float(used @ value[plan]) for plan in plans if weight[plan].sum() <= limit * rounding)
        for rounding in (1 + 1e-12, 1 + 1e-8)
    )
    step = max(np.abs(np.diff(value[offered.corners])), default=0.0)
    assert weight[picks].sum() <= limit * (1 + 1e-8)
    assert none_better * (1 - 1e-8) <= used @ value[picks] <= best + step + 1e-8


@settings(max_examples=40, deadline=None)
@given(st.floats(5, 60), st.floats(1.0, 30.0), st.integers(0, 2_999))
def test_the_less_likely_an_epoch_is_the_less_it_gets_and_all_of_them_are_within_the_limit(
    estimate: float, room: float, old: int
) -> None:
    chances = before(estimate, 10 * estimate).chances(0)
    goal = Goal(Objective.FASTEST, budget_usd=room * estimate * float(SMOOTH.usd.min()))
    usd = SMOOTH.usd[planned(SMOOTH, chances, goal)]
    assert (np.diff(usd) <= 0).all()
    assert goal.budget_usd is not None
    for picks in (planned(SMOOTH, chances, goal), planned(SMOOTH, chances, goal, old)):
        assert SMOOTH.usd[picks].sum() <= goal.budget_usd * (1 + 1e-8)


def test_where_value_is_one_over_weight_an_epoch_gets_the_root_of_its_chance() -> None:
    chances = np.geomspace(1.0, 0.05, 30)
    usd = SMOOTH.usd[planned(SMOOTH, chances, Goal(Objective.FASTEST, budget_usd=6.0))]
    assert len(usd) == 30
    expected = 6.0 * np.sqrt(chances) / np.sqrt(chances).sum()
    assert usd == pytest.approx(expected, rel=ALIKE)
    blocks = 1 + int((np.diff(usd) != 0).sum())
    assert blocks < 25


def test_a_limit_that_is_too_tight_for_all_of_them_covers_what_is_worth_it_and_says_what_is_left_to_chance() -> None:
    chances = before(40, 400).chances(0)
    tight, loose = (Goal(Objective.FASTEST, budget_usd=room * 40 * 0.01) for room in (1.0, 10.0))
    found, all_of_them = hedged(SMOOTH, chances, tight), hedged(SMOOTH, chances, loose)
    assert found is not None
    assert all_of_them is not None
    assert 0 < found.risk == chances[len(each(found.epochs))]
    assert found.risk > all_of_them.risk
    assert len(each(all_of_them.epochs)) > 70


def test_what_runs_now_is_kept_if_it_is_hardly_worse() -> None:
    goal = Goal(Objective.FASTEST, budget_usd=2.0)
    first = planned(SMOOTH, SURE, goal)[0]
    slower = int(np.searchsorted(SMOOTH.seconds, SMOOTH.seconds[first] * (1 + KEPT / 2)))
    assert planned(SMOOTH, SURE, goal, slower)[0] == slower
    much_slower = int(np.searchsorted(SMOOTH.seconds, SMOOTH.seconds[first] * (1 + 2 * KEPT)))
    assert planned(SMOOTH, SURE, goal, much_slower)[0] == first


# How likely they are.


def test_an_epoch_is_the_less_likely_the_later_it_is_and_the_next_one_is_certain() -> None:
    for outlook, done in ((before(40, 400), 0), (before(40, 400), 30), (certain(12), 4)):
        chances = outlook.chances(done)
        assert chances[0] == 1
        assert (np.diff(chances) <= 0).all()
        assert chances[-1] >= UNLIKELY
    assert certain(12).chances(4).tolist() == [1.0] * 8
    assert before(40, 400).chances(0)[39] == pytest.approx(0.5, abs=0.05)
    assert before(40, 400).latest == pytest.approx(40 * np.exp(2.05 * SAMPLING_ERROR), rel=0.05)


@settings(max_examples=30, deadline=None)
@given(st.floats(2, 100), st.integers(0, 150), st.integers(1, 400))
def test_however_long_it_takes_the_next_epoch_is_planned(estimate: float, done: int, most: int) -> None:
    assume(done < most)
    chances = before(estimate, float(most), done).chances(done)
    assert chances[0] == 1
    assert len(chances) <= most - done


def test_losses_that_leave_open_how_long_it_takes_leave_that_to_the_estimate() -> None:
    alone, open_ended = spread_over(40, 4_000, 10), spread_over(40, 4_000, 10, EpochsTo(20, 15, math.inf))
    above = [case for case in alone if case > 25]
    assert np.median([case for case in open_ended if case > 25]) == pytest.approx(np.median(above), rel=0.02)
    assert min(open_ended) > min(alone)  # but not how short
    assert np.median(spread_over(40, 4_000, 10, EpochsTo(20, 15, 30))) < np.median(open_ended)


def test_both_ends_alike_are_averaged_by_their_precision() -> None:
    sd = SAMPLING_ERROR / 2
    ends = (25 * math.exp(sign * SIGMAS * sd) for sign in (-1, 1))
    found = spread_over(40, 4_000, 1, EpochsTo(25, *ends))
    assert np.median(found) == pytest.approx(25**0.8 * 40**0.2, rel=0.02)
    assert np.std(np.log(found)) == pytest.approx(sd * math.sqrt(0.8), rel=0.03)


def test_the_more_epochs_are_seen_the_less_the_estimate_counts() -> None:
    def at(seen: int, estimate: float) -> Outlook:
        losses = tuple(0.3 + 0.7 / (1 + e / 5) for e in range(1, seen + 1))  # 0.4 after 30 epochs
        return after(losses, Target("loss", 0.4, at_least=False), estimate, 300.0)

    assert at(5, 60).epochs > 1.15 * at(5, 30).epochs
    assert at(26, 60).epochs == pytest.approx(at(26, 30).epochs, rel=0.1)
    assert at(26, 45).epochs == pytest.approx(30, rel=0.1)
