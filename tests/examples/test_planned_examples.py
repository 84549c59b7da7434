"""The examples that train by a plan: every way to lay them out is in their space, and some of it can do the job."""

from __future__ import annotations

from pathlib import Path

import pytest

import mlcd
from mlcd.clouds.simulated_plans import SimulatedPlans
from mlcd.core.planner import planner_of
from mlcd.planners.train.nouns import Adapter, planned_training

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("file", "adapter", "parameters"),
    [("llama-8b-lora.yaml", Adapter.LORA, 8.03e9), ("one-billion.yaml", Adapter.FULL, 1.24e9)],
)
def test_some_plan_does_the_job_within_its_limits(file: str, adapter: Adapter, parameters: float):
    job = mlcd.load_job(EXAMPLES / file)
    asked = planned_training(job)
    assert asked is not None
    assert asked.fixed.adapter is adapter
    assert asked.architecture.params_b * 1e9 == pytest.approx(parameters, rel=0.01)
    assert "$MLCD_ARGUMENTS" in job.task["run"]
    space = planner_of(job).place(job).space
    assert 100 < len(space) < 4_000
    truth = SimulatedPlans(job.search.seed)
    fitting = [c for c in space.configurations if truth.fits(c, asked)]
    assert 0 < len(fitting) < len(space)
    finish = [(c, job.work_samples / truth.samples_per_s(c, asked)) for c in fitting]
    within = [c.usd(s) for c, s in finish if job.goal.allows(c.usd(s), s)]
    assert within
    assert min(within) < 0.6 * job.goal.most_usd, "with room for probes, and for what is not known"
