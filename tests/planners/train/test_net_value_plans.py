"""Net value on jobs whose training plans vary."""

from __future__ import annotations

from mlcd_fixtures.planned import asked, machines, nodes_of, planned_job

from mlcd.core.drive import conclude
from mlcd.core.history import History
from mlcd.core.job import Goal, Objective
from mlcd.core.strategy import Finish
from mlcd.planners.train.net_value import NetValue
from mlcd.planners.train.nouns import PlanKnob
from mlcd.planners.train.plans.space import plan_space


def test_a_model_that_fits_nothing_is_refused_for_its_memory_and_not_for_the_limits() -> None:
    task = asked(knobs=(PlanKnob("micro_batch", (1, 2)),))
    space, job = plan_space(machines(nodes_of("A10G", 1)), task), planned_job(goal=Goal(Objective.FASTEST, 1e6))
    step = NetValue(0).next_step(job, space, History())
    assert isinstance(step, Finish)
    assert "memory" in conclude(step, job, space, History()).binding
