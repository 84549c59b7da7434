"""The choice of an allocation for a known number of epochs."""

from __future__ import annotations

import numpy as np
import pytest

from mlcd.core.job import Goal, Objective
from mlcd.planners.functions.choice import best_single, most_epochs
from mlcd.planners.functions.epoch_model.boundary import Boundary
from mlcd_bench.baselines.functions import reserved


def offer(seconds: list[float], usd: list[float]) -> Boundary:
    """Allocations with so many seconds, rising, and dollars, falling, of an epoch."""
    some, takes = np.arange(1, len(seconds) + 1), (np.array(seconds), np.array(usd))
    return Boundary(some, 128 * some, np.zeros_like(some), ("s3",), *takes, *takes)


def test_the_best_single_allocation_keeps_the_limits_for_all_epochs() -> None:
    offered = offer([1.0, 2.0, 4.0], [0.5, 0.3, 0.2])
    assert best_single(offered, 10, Goal(Objective.FASTEST, budget_usd=4.0)) == ((1, 10),)
    assert best_single(offered, 10, Goal(Objective.CHEAPEST, deadline_s=30.0)) == ((1, 10),)
    assert best_single(offered, 10, Goal(Objective.FASTEST)) == ((0, 10),)
    assert best_single(offered, 10, Goal(Objective.FASTEST, budget_usd=1.9)) is None
    assert best_single(offered, 10, Goal(Objective.FASTEST, budget_usd=4.0, deadline_s=14.0)) is None


def test_the_reserve_never_makes_a_plan_impossible() -> None:
    offered = offer([1.0, 2.0, 4.0], [0.5, 0.3, 0.2])
    goal = Goal(Objective.FASTEST, budget_usd=10 * 0.2)
    assert reserved(offered, goal, 10, 100).budget_usd == pytest.approx(10 * 0.2)
    assert best_single(offered, 10, reserved(offered, goal, 10, 100)) is not None
    assert reserved(offered, goal, 4, 2).budget_usd == pytest.approx(8 * 0.2)
    assert most_epochs(offered, goal) == 2
