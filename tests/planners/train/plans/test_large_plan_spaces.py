"""Screening of large plan spaces."""

from __future__ import annotations

from dataclasses import replace

import pytest
from mlcd_fixtures.planned import LLAMA_8B, machines, nodes_of, planned_job, planned_task

from mlcd.core.history import History
from mlcd.core.job import Goal, Objective
from mlcd.core.strategy import Finish
from mlcd.planners.train.net_value import NetValue
from mlcd.planners.train.plans.outlook import PlanOutlook
from mlcd.planners.train.plans.space import plan_space


def test_in_a_space_too_large_to_consider_whole_the_best_of_each_gpu_is_reported_too() -> None:
    dollars = {"A100-80GB": 2.5, "H100": 10.0}
    offers = [nodes_of(gpu, count, count * usd) for gpu, usd in dollars.items() for count in (2, 4, 8)]
    space = plan_space(machines(*offers, nodes=tuple(2**n for n in range(7))), planned_task())
    job = planned_job(goal=Goal(Objective.CHEAPEST))
    whole, part = PlanOutlook(job, space), PlanOutlook(job, space, most=1_000)
    assert len(part.considered) < len(space) == len(whole.considered)
    assert [each.gpu for each in part.by_gpu] == [each.gpu for each in whole.by_gpu] == ["A100-80GB", "H100"]
    for one, other in zip(part.by_gpu, whole.by_gpu, strict=True):
        assert one.usd[1] == pytest.approx(other.usd[1], rel=0.1)
    assert part.of_space.configurations == len(space)
    assert replace(part, most=10**6).considered is space


@pytest.mark.parametrize(("nodes", "least"), [((1, 2, 4, 8), 3_000), ((1, 2, 4, 8, 16, 32, 64), 8_000)])
def test_a_model_that_fits_nowhere_in_a_large_space_gets_an_answer(nodes: tuple[int, ...], least: int) -> None:
    task = planned_task(replace(LLAMA_8B, params_b=30_000.0, active_b=30_000.0))
    offers = [nodes_of(gpu, count, float(count)) for gpu in ("A10G", "A100-80GB") for count in (2, 4, 8)]
    space = plan_space(machines(*offers, nodes=nodes), task)
    assert len(space) > least
    job = planned_job(task, goal=Goal(Objective.FASTEST, budget_usd=1e6))
    assert isinstance(NetValue(0).next_step(job, space, History()), Finish)
