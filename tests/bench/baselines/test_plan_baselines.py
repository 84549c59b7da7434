"""What a plan's search is compared with: orders that a reader would write down by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from mlcd_fixtures.measured_plans import write_plans

from mlcd.planners.train.nouns import Checkpointing
from mlcd_bench.baselines.plans.gp_ei import gp_ei, points
from mlcd_bench.baselines.plans.orders import practice, random_order
from mlcd_bench.baselines.plans.popular import popular
from mlcd_bench.baselines.plans.textbook import needed_gib, step_s, textbook
from mlcd_bench.plans.folder import read_plans
from mlcd_bench.plans.problem import PlanGoal, PlanProblem, Shown, plan_problems


@pytest.fixture
def large(tmp_path: Path) -> PlanProblem:
    return plan_problems(read_plans(write_plans(tmp_path)), ["large"], [PlanGoal.FASTEST])[0]


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_random_textbook_and_popular_have_every_plan_once(large: PlanProblem) -> None:
    for order in (random_order, textbook, popular):
        assert sorted(order(large, rng())) == list(range(len(large.rows)))


def test_practice_takes_little_tensor_parallelism_and_large_micro_batches(large: PlanProblem) -> None:
    order = practice(large, rng())
    plans = [large.rows[i].spec.plan for i in order]
    ranked = [(plan.tensor * plan.pipeline, -plan.micro_batch) for plan in plans]
    assert ranked == sorted(ranked)
    assert sorted(order) == [i for i, row in enumerate(large.rows) if row.step_s is not None]


def test_practice_takes_the_most_machines_for_time_and_the_fewest_for_money(tmp_path: Path) -> None:
    rows = read_plans(write_plans(tmp_path, ["tiny"]))
    more = [replace(row, row=100 + row.row, spec=replace(row.spec, gpus=16)) for row in rows]
    fastest, cheapest = plan_problems([*rows, *more], [], list(PlanGoal))
    assert fastest.rows[practice(fastest, rng())[0]].spec.gpus == 16
    assert cheapest.rows[practice(cheapest, rng())[0]].spec.gpus == 8


def test_popular_is_what_was_best_for_the_others(large: PlanProblem) -> None:
    first = large.rows[popular(large, rng())[0]].spec.plan
    groups = {model: [row for row in large.others if row.model == model] for model in ("tiny", "small")}
    best = {min(rows, key=lambda row: row.step_s or np.inf).spec.plan for rows in groups.values()}
    assert first in best


def test_the_textbook_depends_on_the_plan_as_published(large: PlanProblem) -> None:
    facts = next(row.spec for row in large.rows if row.spec.plan.tensor == 1)

    def planned(**changed: object) -> float:
        return step_s(replace(facts, plan=replace(facts.plan, **changed)))

    assert planned(checkpointing=Checkpointing.FULL) > planned()
    assert planned(pipeline=4) > planned(), "a bubble"
    assert step_s(replace(facts, gpus=16)) < step_s(facts)
    assert needed_gib(replace(facts, plan=replace(facts.plan, micro_batch=32))) > needed_gib(facts)
    assert needed_gib(replace(facts, plan=replace(facts.plan, tensor=4))) < needed_gib(facts)


def test_plans_that_fit_by_the_formulas_come_first(large: PlanProblem) -> None:
    over = [needed_gib(large.rows[i].spec) > 80 for i in textbook(large, rng())]
    assert over == sorted(over)


def test_gp_ei_tries_every_plan_once_and_then_none(large: PlanProblem) -> None:
    tried: list[int] = []
    while (pick := gp_ei(large, Shown.of(large, tried), rng())) is not None:
        tried.append(pick)
    assert sorted(tried) == list(range(len(large.rows)))


def test_plans_that_differ_are_different_points(large: PlanProblem) -> None:
    x = points(large)
    assert len(np.unique(x, axis=0)) == len(large.rows)
    assert x.min() == 0
    assert x.max() == 1
