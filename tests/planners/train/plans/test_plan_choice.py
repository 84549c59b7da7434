"""Which plan is probed next and which is chosen, compared with a calculation by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.core.configuration import Floats
from mlcd.planners.train.plans.belief import PlanBelief
from mlcd.planners.train.plans.plan_choice import best_plan, next_plan


@st.composite
def beliefs(draw: st.DrawFn) -> tuple[PlanBelief, Floats, Floats, list[int]]:
    """A belief, factors, costs of the plans that ran, and the failed ones."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, draws = draw(st.integers(1, 8)), draw(st.integers(1, 6))
    logs, fits = rng.normal(size=(draws, n)), rng.random((draws, n)) < 0.7
    ruled_out = rng.random(n) < 0.2
    fits &= ~ruled_out
    state = rng.integers(0, 3, n)
    costs = np.where((state == 1) & ~ruled_out, rng.normal(size=n), np.nan)
    failed = [i for i in range(n) if state[i] == 2]
    return PlanBelief(logs, fits, ruled_out, fits.mean(axis=0)), rng.normal(size=n), costs, failed


@given(beliefs())
def test_what_was_probed_or_is_sure_not_to_fit_is_never_probed(
    case: tuple[PlanBelief, Floats, Floats, list[int]],
) -> None:
    belief, factor, costs, failed = case
    open_ = {i for i in range(len(factor)) if np.isnan(costs[i]) and i not in failed and not belief.ruled_out[i]}
    pick = next_plan(belief, factor, costs, failed)
    assert pick in open_ if open_ else pick is None


@given(beliefs())
def test_after_a_successful_probe_the_best_probed_plan_is_chosen(
    case: tuple[PlanBelief, Floats, Floats, list[int]],
) -> None:
    belief, factor, costs, _ = case
    ran = [i for i in range(len(costs)) if not np.isnan(costs[i])]
    pick = best_plan(belief, factor, costs)
    if ran:
        assert pick == min(ran, key=lambda i: costs[i])
    else:
        assert pick is None or not belief.ruled_out[pick]


def certain(logs: list[float], fits: list[bool] | None = None) -> PlanBelief:
    known = np.array([fits or [True] * len(logs)])
    return PlanBelief(np.array([logs]), known, np.zeros(len(logs), dtype=bool), known.mean(axis=0))


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=6), st.data())
def test_with_perfect_knowledge_the_best_is_probed_first(logs: list[float], data: st.DataObject) -> None:
    fits = data.draw(st.lists(st.booleans(), min_size=len(logs), max_size=len(logs)))
    factor = np.array(data.draw(st.lists(st.floats(-1, 1), min_size=len(logs), max_size=len(logs))))
    nothing = np.full(len(logs), np.nan)
    pick = next_plan(certain(logs, fits), factor, nothing, [])
    assert pick == best_plan(certain(logs, fits), factor, nothing)
    assert pick is not None
    if any(fits):
        best = min(log + f for log, f, fit in zip(logs, factor, fits, strict=True) if fit)
        assert fits[pick]
        assert logs[pick] + factor[pick] == pytest.approx(best, abs=1e-6)


def test_a_plan_that_may_be_far_better_is_probed_before_one_that_is_a_little_better_for_sure() -> None:
    logs = np.array([[0.0, -0.02, 0.5], [0.0, -0.02, -0.5]])
    belief = PlanBelief(logs, np.ones((2, 3), dtype=bool), np.zeros(3, dtype=bool), np.ones(3))
    assert next_plan(belief, np.zeros(3), np.array([0.0, np.nan, np.nan]), []) == 2


def test_of_two_equally_good_plans_the_one_likelier_to_fit_is_probed() -> None:
    fits = np.array([[True, True, True], [True, False, True]])
    logs = np.array([[0.0, -0.4, -0.2], [0.0, -0.4, -0.2]])
    belief = PlanBelief(logs, fits, np.zeros(3, dtype=bool), fits.mean(axis=0))
    assert next_plan(belief, np.zeros(3), np.array([0.0, np.nan, np.nan]), []) == 2


def test_if_nothing_can_fit_nothing_is_probed_or_chosen() -> None:
    out = PlanBelief(np.zeros((2, 2)), np.zeros((2, 2), dtype=bool), np.ones(2, dtype=bool), np.zeros(2))
    nothing = np.full(2, np.nan)
    assert next_plan(out, np.zeros(2), nothing, []) is None
    assert best_plan(out, np.zeros(2), nothing) is None
