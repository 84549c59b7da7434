"""Hedged plans for an uncertain number of epochs: compared with all possible plans, and always within the limit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mlcd.core.configuration import Floats
from mlcd.core.job import Goal, Objective, Target
from mlcd.planners.functions.choice import Schedule
from mlcd.planners.functions.epoch_forecast import (
    LEAST_CHANCE,
    EpochForecast,
    epoch_quantiles,
    forecast_from_estimate,
    forecast_from_losses,
    known_epochs,
)
from mlcd.planners.functions.epoch_model.boundary import Boundary
from mlcd.planners.functions.hedge import KNOWN_AFTER, LEVELS, MISS_PENALTY, hedged_plan

SURE = np.ones(10)
Corner = tuple[float, float]
"""Weight and value."""


def offer(seconds: Floats, usd: Floats) -> Boundary:
    """Allocations with so many seconds, rising, and dollars, falling, of an epoch."""
    some = np.arange(1, len(seconds) + 1)
    return Boundary(some, 128 * some, np.zeros_like(some), ("s3",), seconds, usd, seconds, usd)


FEW = offer(np.array([1.0, 2.0, 4.0]), np.array([0.5, 0.3, 0.2]))
SMOOTH = offer(np.geomspace(1.0, 100.0, 3_000), 1.0 / np.geomspace(1.0, 100.0, 3_000))
"""v = 1 / w."""


def each(found: Schedule) -> list[int]:
    return [option for option, count in found for _ in range(count)]


def planned(offered: Boundary, chances: Floats, goal: Goal, old: int | None = None) -> list[int]:
    found = hedged_plan(offered, chances, goal, old=old)
    assert found is not None
    return each(found.epochs)


def test_with_a_known_number_of_epochs_the_two_allocations_around_their_share_are_used() -> None:
    fast = planned(FEW, SURE, Goal(Objective.FASTEST, budget_usd=4.0))
    cheap = planned(FEW, SURE, Goal(Objective.CHEAPEST, deadline_s=30.0))
    assert (len(fast), len(cheap)) == (10, 10)
    assert FEW.seconds[fast].sum() <= 1.1 * 15  # five each; what is left is looked at in levels
    assert FEW.usd[cheap].sum() <= 1.1 * 2.5
    assert planned(FEW, SURE, Goal(Objective.FASTEST)) == [0] * 10
    assert planned(FEW, SURE, Goal(Objective.CHEAPEST)) == [2] * 10


def test_there_is_no_plan_if_not_one_epoch_fits_or_the_other_limit_is_broken() -> None:
    assert hedged_plan(FEW, SURE, Goal(Objective.FASTEST, budget_usd=0.19)) is None
    assert hedged_plan(FEW, SURE, Goal(Objective.FASTEST, budget_usd=4.0, deadline_s=0.9)) is None


def expected(
    menu: list[Corner], chances: Floats, limit: float, first: Corner | None = None, less: float = 0.0
) -> float:
    """The definition, by trying everything; `less` of the limit is left. `menu`: weights rising."""
    weights, values = zip(*menu, strict=True)

    def least(share: float) -> float:
        return float(np.interp(share, weights, values)) if share >= weights[0] * (1 - 1e-9) else math.inf

    likely = chances - np.append(chances[1:], 0.0)
    cases = [
        (left, math.ceil(KNOWN_AFTER * left), p, p / (left * least(limit / left)))
        for left, p in enumerate(likely, 1)
        if p and math.isfinite(least(limit / left))
    ]

    def from_step(k: int, left: float, only: Corner | None = None) -> float:
        still = [case for case in cases if case[1] >= k]
        missed = MISS_PENALTY * sum(p for _, _, p, _ in still)
        found = [missed] if still else [0.0]
        for weight, value in [only] if only else menu:
            over = left - weight
            if over >= -1e-9 * limit and still:
                known = [
                    min(share * (total - k) * least(over / (total - k)), MISS_PENALTY * p)
                    for total, shown, p, share in still
                    if shown == k and total > k
                ]
                now = value * sum(share for *_, share in still)
                found.append(now + sum(known) + from_step(k + 1, over))
        return min(found)

    return from_step(1, (1 - less) * limit, first)


@given(
    st.lists(st.tuples(st.floats(1.2, 4), st.floats(1.2, 4)), min_size=1, max_size=3),
    st.lists(st.floats(0.2, 1), min_size=2, max_size=6),
    st.floats(1, 8),
    st.booleans(),
)
def test_the_choice_is_nearly_optimal_in_expectation_and_keeps_the_limit(
    menu: list[tuple[float, float]], falls: list[float], room: float, cheapest: bool
) -> None:
    seconds, usd = (np.cumprod(column) for column in zip(*menu, strict=True))
    offered = offer(seconds, usd[::-1])
    chances: Floats = np.cumprod([1.0, *falls], dtype=np.float64)
    value, weight = (offered.usd, offered.seconds) if cheapest else (offered.seconds, offered.usd)
    limit = room * float(weight.min()) * len(chances) / 2
    goal = Goal(Objective.CHEAPEST, deadline_s=limit) if cheapest else Goal(Objective.FASTEST, budget_usd=limit)
    fewest = len(chances) if min(falls) == 1.0 else 1 + next(i for i, fall in enumerate(falls) if fall < 1)
    if fewest * float(weight.min()) > limit * (1 + 1e-8):  # as many are needed for certain, and too many
        assert hedged_plan(offered, chances, goal) is None
        return
    picks = planned(offered, chances, goal)
    assert weight[picks].sum() <= limit * (1 + 1e-8)
    corners = sorted((float(weight[i]), float(value[i])) for i in offered.corners)
    first, enough = (float(weight[picks[0]]), float(value[picks[0]])), limit * (1 + 1e-9)
    # What is left is looked at in levels, so that each step may see one of them too little.
    best = expected(corners, chances, enough, less=len(chances) / LEVELS)
    assert expected(corners, chances, enough, first) <= 1.05 * best


@given(st.floats(5, 60), st.floats(1.0, 30.0), st.integers(0, 2_999))
def test_all_planned_epochs_are_within_the_limit_however_many_may_be_needed(
    estimate: float, room: float, old: int
) -> None:
    chances = forecast_from_estimate(estimate, 10 * estimate).survival(0)
    goal = Goal(Objective.FASTEST, budget_usd=room * estimate * float(SMOOTH.usd.min()))
    assert goal.budget_usd is not None
    for picks in (planned(SMOOTH, chances, goal), planned(SMOOTH, chances, goal, old)):
        assert SMOOTH.usd[picks].sum() <= goal.budget_usd * (1 + 1e-8)


def test_the_reserve_shrinks_as_the_number_of_epochs_becomes_certain() -> None:
    goal = Goal(Objective.FASTEST, budget_usd=6.0)

    def spent(spread: float) -> float:
        """On the first thirty."""
        cases = 30 * np.exp(spread * np.linspace(-2, 2, 101))
        chances = 1 - np.searchsorted(cases, np.arange(int(cases[-1])) + 0.5) / len(cases)
        return float(SMOOTH.usd[planned(SMOOTH, chances, goal)[:30]].sum())

    assert spent(0.0) == pytest.approx(6.0, rel=0.05)
    assert 0.5 * 6.0 < spent(0.4) < spent(0.2) < spent(0.0)


def test_a_tight_limit_covers_the_likely_epochs_and_states_the_risk_of_needing_more() -> None:
    chances = forecast_from_estimate(40, 400).survival(0)
    tight, loose = (Goal(Objective.FASTEST, budget_usd=room * 40 * 0.01) for room in (1.0, 10.0))
    found, all_of_them = hedged_plan(SMOOTH, chances, tight), hedged_plan(SMOOTH, chances, loose)
    assert found is not None
    assert all_of_them is not None
    assert 0 < found.risk == chances[len(each(found.epochs))]
    assert found.risk > all_of_them.risk
    assert len(each(all_of_them.epochs)) > 70


def test_the_current_allocation_is_kept_if_it_is_hardly_worse() -> None:
    goal, chances = Goal(Objective.FASTEST, budget_usd=2.0), forecast_from_estimate(10, 100).survival(0)
    first = planned(SMOOTH, chances, goal)[0]
    assert planned(SMOOTH, chances, goal, first + 10)[0] == first + 10
    assert planned(SMOOTH, chances, goal, first + 1_000)[0] == first


# How likely they are.


def test_survival_starts_at_one_and_falls() -> None:
    for outlook, done in (
        (forecast_from_estimate(40, 400), 0),
        (forecast_from_estimate(40, 400), 30),
        (known_epochs(12), 4),
    ):
        chances = outlook.survival(done)
        assert chances[0] == 1
        assert (np.diff(chances) <= 0).all()
        assert chances[-1] >= LEAST_CHANCE
    assert known_epochs(12).survival(4).tolist() == [1.0] * 8
    assert forecast_from_estimate(40, 400).survival(0)[39] == pytest.approx(0.5, abs=0.05)


@given(st.floats(2, 100), st.integers(0, 150), st.integers(1, 400))
def test_the_next_epoch_is_always_planned(estimate: float, done: int, most: int) -> None:
    assume(done < most)
    chances = forecast_from_estimate(estimate, float(most), done).survival(done)
    assert chances[0] == 1
    assert len(chances) <= most - done


def drawn(middle: float, spread: float) -> Floats:
    """Draws of a fit, rising."""
    return middle * np.exp(spread * np.linspace(-2, 2, 400))


def test_losses_that_say_nothing_leave_the_estimate_unchanged() -> None:
    alone = epoch_quantiles(40, 4_000, 10)
    assert epoch_quantiles(40, 4_000, 10, np.full(400, math.inf)) == pytest.approx(alone)
    half = np.append(drawn(20, 0.1)[::2], np.full(200, math.inf))
    assert np.median(epoch_quantiles(40, 4_000, 10, drawn(20, 0.1))) < np.median(epoch_quantiles(40, 4_000, 10, half))


def test_estimate_and_losses_are_weighted_by_their_precision() -> None:
    found = np.median(epoch_quantiles(40, 4_000, 1, drawn(25, 0.3)))
    assert 27 < found < 33
    assert np.median(epoch_quantiles(40, 4_000, 1, drawn(25, 0.1))) < found


def test_a_plateau_does_not_overrule_the_estimate() -> None:
    losses = tuple(0.6 + 0.4 * math.exp(-e / 2) for e in range(1, 16))  # level long before the target; then a cliff
    outlook = forecast_from_losses(losses, Target("loss", 0.4, at_least=False), 30.0, 300.0)
    assert not outlook.in_sight
    assert outlook.epochs == pytest.approx(forecast_from_estimate(30.0, 300.0, 15).quantiles[100], rel=0.1)


def test_precise_losses_overrule_a_wrong_estimate_but_wrong_losses_do_not_overrule_the_estimate() -> None:
    assert np.median(epoch_quantiles(120, 1_000, 30, drawn(40, 0.02))) == pytest.approx(40, rel=0.1)
    cases = epoch_quantiles(40, 1_000, 12, drawn(14, 0.02))
    assert np.quantile(cases, 0.5) < 18
    assert np.quantile(cases, 0.95) > 30


def test_even_a_precise_forecast_may_be_an_epoch_off() -> None:
    assert np.quantile(epoch_quantiles(20, 200, 19, np.full(400, 20.0)), 0.9) > 21


def test_nothing_is_reserved_for_very_unlikely_epochs() -> None:
    chances = np.append([1.0, 0.9], np.full(14, 0.1))  # one or two more, or, hardly, sixteen
    goal = Goal(Objective.FASTEST, budget_usd=0.06 * 16)
    first, *others = planned(SMOOTH, chances, goal)
    assert SMOOTH.usd[first] > 0.2
    assert len(others) == 15  # and if they come, they are paid for
    assert SMOOTH.usd[others[5]] < 0.06


def test_the_weight_of_the_estimate_falls_with_the_epochs_done() -> None:
    def at(seen: int, estimate: float) -> EpochForecast:
        losses = tuple(0.3 + 0.7 / (1 + e / 5) for e in range(1, seen + 1))  # 0.4 after 30 epochs
        return forecast_from_losses(losses, Target("loss", 0.4, at_least=False), estimate, 300.0)

    assert at(5, 60).epochs > 1.15 * at(5, 30).epochs
    assert at(26, 60).epochs == pytest.approx(at(26, 30).epochs, rel=0.1)
    assert at(26, 45).epochs == pytest.approx(30, rel=0.1)
