"""The outlook names a configuration that keeps the limits, if any is modelled to."""

from __future__ import annotations

import pytest

from mlcd.core.configuration import Offer
from mlcd.core.job import Goal, Hints, Job, Objective
from mlcd.planners.modeling.outlook import Chance, outlook
from mlcd.planners.train.space import grid

SLOW = Offer("slow.large", 1.0, vcpus=8, memory_gb=64)
FAST = Offer("fast.large", 40.0, vcpus=80, memory_gb=64)
"""Ten times as fast, and four times as expensive for the same work."""
SPACE = grid((SLOW, FAST), (1, 1))
HINTS = Hints(parameters=1e6, flops_per_sample=1e9, global_batch=256)
WORK = 1e6


def planned(goal: Goal) -> tuple[str, Chance, float, float]:
    found = outlook(Job("j", WORK, goal, hints=HINTS), SPACE)
    assert found.best is not None
    assert found.modelled is not None
    return found.best.offer.instance_type, found.chance, *found.modelled


def test_the_fastest_that_keeps_a_budget_is_named_and_the_fastest_of_all_without_one():
    name, chance, fast_s, fast_usd = planned(Goal(Objective.FASTEST))
    assert (name, chance) == ("fast.large", Chance.NO_LIMIT)
    name, chance, slow_s, slow_usd = planned(Goal(Objective.FASTEST, budget_usd=0.9 * fast_usd))
    assert (name, chance) == ("slow.large", Chance.LIKELY)
    assert slow_s > fast_s
    assert slow_usd < fast_usd


@pytest.mark.parametrize("objective", [Objective.FASTEST, Objective.CHEAPEST])
def test_what_keeps_a_deadline_is_named_whatever_it_costs(objective):
    _, _, slow_s, _ = planned(Goal(Objective.CHEAPEST))
    name, chance, seconds, _ = planned(Goal(objective, deadline_s=0.5 * slow_s))
    assert (name, chance) == ("fast.large", Chance.LIKELY)
    assert seconds <= 0.5 * slow_s
