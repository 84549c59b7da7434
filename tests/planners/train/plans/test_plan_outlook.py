"""What is said of plans before a first probe."""

from __future__ import annotations

from mlcd_fixtures.planned import asked, machines, nodes_of, planned_job

from mlcd.planners.train.plans.belief import _drawn
from mlcd.planners.train.plans.outlook import PlanOutlook
from mlcd.planners.train.plans.space import plan_space


def test_surfaces_are_drawn_once_for_all_that_asks_about_a_space():
    task = asked()
    space, job = plan_space(machines(nodes_of("H100", 8)), task), planned_job(task)
    drawn = _drawn.cache_info().misses
    first, second = PlanOutlook(job, space), PlanOutlook(job, space)
    assert (first.belief.log_step_s == second.belief.log_step_s).all()
    assert _drawn.cache_info().misses == drawn + 1
