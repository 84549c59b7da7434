"""The trade-off and the sliders over it: stored probes alone, and what a slider's ends promise is true."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import files
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlcd_fixtures.api import TRAIN
from mlcd_fixtures.scale_runs import curve, elastic_run
from mlcd_fixtures.serving_runs import serving_lines
from stage import API, Stage, staged

from mlcd.core.job import Goal
from mlcd.core.ledger import Ledger
from mlcd.core.runs.run import start, what_if
from mlcd.planners.form.jobs import job_from_text
from mlcd.reports.story import Story
from mlcd.reports.tradeoff import FARTHEST, tradeoff_of

FUNCTIONS = files("mlcd.service.web").joinpath("examples", "tune.yaml").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    home = tmp_path_factory.mktemp("explore")
    with pytest.MonkeyPatch.context() as patch, staged(home, mode="ui") as stage:
        patch.setenv("MLCD_HOME", str(home))
        for job in (job_from_text("train", TRAIN, {}), job_from_text("tune", FUNCTIONS, {"trials": "8"})):
            start(job, stage.state.ledger).search()
        stage.look()
        yield stage


def asked(stage: Stage, path: str) -> Any:
    told = stage.ask("GET", f"{API}{path}")
    assert told.status == 200, told.body
    return told.json()


def test_points_are_totals_with_the_frontier_that_nothing_beats_and_one_knee_on_it(stage: Stage) -> None:
    told = asked(stage, "/runs/demo-1/tradeoff")
    points = told["points"]
    assert sum(point["knee"] for point in points) == 1
    assert sum(point["chosen"] for point in points) == 1
    for point in points:
        beaten = any(
            other["seconds"] <= point["seconds"]
            and other["usd"] <= point["usd"]
            and (other["seconds"], other["usd"]) != (point["seconds"], point["usd"])
            for other in points
        )
        assert point["frontier"] == (not beaten)
        assert point["worst_usd"] >= point["usd"] > told["spent_usd"]
        assert point["worst_seconds"] >= point["seconds"] > told["elapsed_s"]
    assert all(point["frontier"] for point in points if point["knee"])


def test_below_the_range_nothing_can_be_certified_and_above_it_the_budget_changes_nothing(stage: Stage) -> None:
    low, high = asked(stage, "/runs/demo-1/tradeoff")["ranges"]["budget"]
    assert asked(stage, f"/runs/demo-1/what-if?budget={low / FARTHEST:.6f}")["label"] is None
    enough, free = (asked(stage, f"/runs/demo-1/what-if?budget={budget}") for budget in (f"{high:.6f}", "none"))
    assert enough["label"] == free["label"] is not None


@given(share=st.floats(0.0, 1.0))
def test_wherever_the_slider_stands_the_answer_is_that_of_the_command_line(stage: Stage, share: float) -> None:
    told = asked(stage, "/runs/demo-1/tradeoff")
    low, high = told["ranges"]["budget"]
    budget = round(low + share * (high - low), 4)
    answer = asked(stage, f"/runs/demo-1/what-if?budget={budget}&goal=cheapest")
    ledger = stage.state.ledger
    goal = replace(ledger.account("demo-1").job.goal, budget_usd=budget)
    expected = what_if("demo-1", ledger, replace(goal, objective=type(goal.objective)("cheapest")))
    assert answer["label"] == (str(expected.configuration) if expected.configuration is not None else None)
    if answer["label"] is not None:
        point = next(point for point in told["points"] if point["label"] == answer["label"])
        assert point["worst_usd"] <= budget
        assert answer["certificate"]["certified"]
        assert all(term["holds"] for term in answer["certificate"]["terms"])
    else:
        assert all(way["label"] for way in answer["decision"]["relaxations"])


def test_more_money_never_makes_the_fastest_slower(stage: Stage) -> None:
    told = asked(stage, "/runs/demo-1/tradeoff")
    low, high = told["ranges"]["budget"]
    seconds = {point["label"]: point["seconds"] for point in told["points"]}
    budgets = [low + step * (high - low) / 12 for step in range(13)]
    labels = [asked(stage, f"/runs/demo-1/what-if?goal=fastest&budget={budget:.6f}")["label"] for budget in budgets]
    times = [seconds[label] for label in labels if label is not None]
    assert labels[-1] is not None
    assert all(after <= before for before, after in pairwise(times))


def test_an_elastic_run_shows_its_curve_measured_or_not() -> None:
    ledger = Ledger(None)
    told = tradeoff_of(ledger.lines(elastic_run(ledger)))
    assert len(told["points"]) == len(curve())
    assert {point["measured"] for point in told["points"]} == {True, False}
    assert not any(point["certified"] for point in told["points"] if not point["measured"])


def test_an_elastic_run_that_claims_no_time_ranks_and_its_totals_are_those_of_all_the_work() -> None:
    ledger = Ledger(None)
    run = elastic_run(ledger, [replace(each, relative=True) for each in curve()])
    told, story = tradeoff_of(ledger.lines(run)), Story.of(ledger.lines(run))
    ranking = {each["label"]: each for each in told["ranking"]}
    assert len(ranking) == len(curve())
    for each in curve():
        place = ranking[str(each.configuration)]
        assert (place["frontier"], place["knee"], place["measured"]) == (each.on_boundary, each.knee, each.measured)
    assert min(place["time_factor"] for place in ranking.values()) == 1
    assert min(place["cost_factor"] for place in ranking.values()) == 1
    assert [(point["seconds"], point["usd"]) for point in told["points"]] == sorted(
        story.total(story.ahead(probe)) for probe in story.good
    )
    assert not any(point["frontier"] or point["knee"] for point in told["points"])
    assert told["ranges"]["budget"] is not None


def test_what_was_measured_takes_in_the_picture_what_the_table_says() -> None:
    """A curve that expects more than the worst case is not believed, in neither of them."""
    ledger = Ledger(None)
    slow = [replace(p, seconds=1e3 * p.seconds, usd=1e3 * p.usd, high_s=1e4 * p.high_s) for p in curve()]
    lines = ledger.lines(elastic_run(ledger, slow))
    story, points = Story.of(lines), {point["label"]: point for point in tradeoff_of(lines)["points"]}
    for probe in story.good:
        point = points[str(probe.measurement.configuration)]
        assert (point["seconds"], point["usd"]) == story.total(story.ahead(probe))
        assert point["seconds"] <= point["worst_seconds"]


def test_an_elastic_run_that_claims_a_time_needs_no_ranking() -> None:
    ledger = Ledger(None)
    assert tradeoff_of(ledger.lines(elastic_run(ledger)))["ranking"] == []


def test_on_functions_the_points_are_the_plans_and_what_if_names_one_of_them(stage: Stage) -> None:
    told = asked(stage, "/runs/tune-lr-higgs-1/tradeoff")
    view = asked(stage, "/runs/tune-lr-higgs-1")
    assert {point["label"] for point in told["points"]} == {
        plan["name"] for plan in view["document"]["decision"]["plans"]
    }
    again = asked(stage, f"/runs/tune-lr-higgs-1/what-if?budget={told['ranges']['budget'][1]:.6f}")
    assert again["label"] in {point["label"] for point in told["points"]}
    assert again["decision"]["plans"]


def test_a_service_has_its_trials_and_no_totals() -> None:
    told = tradeoff_of(serving_lines())
    assert told["points"] == []
    assert told["ranges"] == {"budget": None, "deadline": None}


@pytest.mark.parametrize("lines", [1, 2])
def test_before_the_first_probe_there_is_nothing_to_slide_over(stage: Stage, lines: int) -> None:
    told = tradeoff_of(stage.state.ledger.lines("demo-1")[:lines])
    assert told["points"] == []
    assert told["budget_usd"] == Goal(budget_usd=60.0).budget_usd


def test_a_decision_is_made_again_without_a_word_in_the_ledger(stage: Stage) -> None:
    before = stage.state.ledger.last_seq()
    asked(stage, "/runs/demo-1/what-if?deadline=none&budget=none&goal=cheapest")
    assert stage.state.ledger.last_seq() == before
