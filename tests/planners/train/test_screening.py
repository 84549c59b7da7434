"""Which configurations of a large space are looked at."""

from __future__ import annotations

import numpy as np

from mlcd.core.configuration import Choice, Offer, Space
from mlcd.core.history import History
from mlcd.core.job import Goal, Objective
from mlcd.planners.train.screening import screened

CHEAP, DEAR = Offer("cheap", 0.5, 8, 64), Offer("dear", 100.0, 8, 64)
SPACE = Space((Choice(CHEAP, tuple(range(1, 101))), Choice(DEAR, (1, 2))))
H = 3_600.0
FINISH_S = np.array([11_000 * H / n for n in range(1, 101)] + [100 * H, 60 * H])
"""110 h and $5,500 on 100 of the cheap nodes; 100 h and $10,000 on one that is dear, 60 h and $12,000 on two."""


def kept(goal: Goal, is_rough: bool = False) -> set[str]:
    found = screened(goal, SPACE, History(), FINISH_S, 8, is_rough=is_rough)
    return {str(SPACE.configurations[i]) for i in found}


def test_configurations_within_the_deadline_are_kept_although_others_are_cheaper():
    assert "1 x dear" in kept(Goal(Objective.CHEAPEST, deadline_s=105 * H))
    assert "1 x dear" not in kept(Goal(Objective.CHEAPEST))


def test_configurations_within_the_budget_are_kept_although_others_are_faster():
    assert "1 x cheap" in kept(Goal(Objective.FASTEST, budget_usd=6_000.0))
    assert "1 x cheap" not in kept(Goal(Objective.FASTEST))


def test_the_cheapest_are_kept_although_a_rough_forecast_says_too_slow():
    """Of 51,200 configurations the fastest alone were looked at, and were up to 786 times as dear as the best."""
    goal = Goal(Objective.CHEAPEST, deadline_s=105 * H)
    assert {"1 x cheap", "1 x dear"} <= kept(goal, is_rough=True)
    assert "1 x cheap" not in kept(goal)
