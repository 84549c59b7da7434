"""The forecast of plans before the first probe."""

from __future__ import annotations

import numpy as np
import pytest
from mlcd_fixtures.planned import machines, nodes_of, planned_job, planned_task

from mlcd.core.job import Goal
from mlcd.planners.train.plans.belief import _drawn, expected_of
from mlcd.planners.train.plans.outlook import PlanOutlook, best_of, failure_cost_factor
from mlcd.planners.train.plans.prior import shipped_prior
from mlcd.planners.train.plans.space import plan_space
from mlcd.planners.train.plans.surfaces import run_specs_in


def test_samples_are_drawn_once_for_a_space():
    task = planned_task()
    space, job = plan_space(machines(nodes_of("H100", 8)), task), planned_job(task)
    drawn = _drawn.cache_info().misses
    first, second = PlanOutlook(job, space), PlanOutlook(job, space)
    assert (first.belief.log_step_s == second.belief.log_step_s).all()
    assert _drawn.cache_info().misses == drawn + 1


def test_the_median_is_exact_and_not_that_of_the_luckiest_samples():
    task = planned_task()
    job, space = planned_job(task), plan_space(machines(nodes_of("H100", 8), nodes_of("A100-80GB", 8)), task)
    plans = PlanOutlook(job, space)
    steps = job.work_samples / task.global_batch
    _, log_step_s, _ = expected_of(run_specs_in(space, task), shipped_prior().time)
    assert plans.finish_s[1] == pytest.approx(steps * np.exp(log_step_s))
    for each in plans.by_gpu:
        assert each.seconds[1] == pytest.approx(steps * np.exp(log_step_s[space.index[each.configuration]]))
        assert each.seconds[0] < each.seconds[1] < each.seconds[2]


def test_of_plans_of_about_equal_cost_the_one_likelier_to_fit_is_best():
    space = machines(nodes_of("H100", 8), nodes=(1, 2, 3))
    goal, finish_s = Goal(), np.array([100.0, 100.9, 110.0])
    for chances, best in (([0.75, 1.0, 1.0], 1), ([0.97, 1.0, 1.0], 0), ([0.75, 0.75, 1.0], 0)):
        assert best_of(goal, space, finish_s, failure_cost_factor(np.array(chances))) == best


def test_the_first_row_is_the_best_of_the_space_and_rows_are_in_order():
    task = planned_task()
    gpus = [nodes_of(gpu, 8) for gpu in ("H100", "A100-80GB", "A10G")]
    plans = PlanOutlook(planned_job(task), plan_space(machines(*gpus), task))
    assert plans.of_space.best == plans.by_gpu[0].configuration
    assert plans.of_space.modelled == pytest.approx((plans.by_gpu[0].seconds[1], plans.by_gpu[0].usd[1]))
    assert [each.seconds[1] for each in plans.by_gpu] == sorted(each.seconds[1] for each in plans.by_gpu)
