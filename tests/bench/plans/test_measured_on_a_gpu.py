"""90 plans of four Llamas on an H200, measured after all that is learned was settled: what the shipped prior says."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlcd.planners.train.plans.memory import CALLED_FITTING
from mlcd_bench.plans.contest import OURS, SHOWN_AFTER, PlanRun, play_plans
from mlcd_bench.plans.folder import Outcome, read_plans
from mlcd_bench.plans.problem import PlanGoal, plan_problems

MEASURED = Path(__file__).parents[3] / "examples" / "measured-plans"
FOLDERS = (MEASURED / "llama-h200", MEASURED / "llama32-h200")
PROBLEMS = [each for folder in FOLDERS for each in plan_problems(read_plans(folder), [], [PlanGoal.FASTEST])]


@pytest.fixture(scope="module", params=PROBLEMS, ids=lambda p: f"{p.rows[0].model} {p.rows[0].spec.plan.adapter}")
def run(request: pytest.FixtureRequest) -> PlanRun:
    assert request.param.prior is None, "the shipped one"
    return play_plans(request.param, OURS, 0, 3)


def test_the_choice_is_within_5_percent_unseen_and_the_best_after_three_probes(run: PlanRun) -> None:
    ratio = dict(zip(SHOWN_AFTER, run.ratio, strict=True))
    assert ratio[0] is not None
    assert ratio[0] <= 1.05
    assert ratio[3] == 1.0
    assert [probe["outcome"] for probe in run.probes] == ["ok"] * 3


def test_what_ran_out_of_memory_was_not_said_to_fit(run: PlanRun) -> None:
    model = run.problem["model"]
    outcomes = {row.row: row.outcome for folder in FOLDERS for row in read_plans(folder) if row.model == model}
    failed = [told for told in run.predicted if outcomes[told["row"]] is Outcome.OUT_OF_MEMORY]
    assert all(told["fits"] < CALLED_FITTING for told in failed)
