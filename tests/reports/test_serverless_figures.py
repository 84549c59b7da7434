"""Pictures of a job on functions: well-formed, readable alone, inside their frame, and true to the numbers."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from mlcd_fixtures.serverless_runs import TRAINED, TUNED, decision, infeasible, plan, points

from mlcd.planners.functions.nouns import (
    Allocation,
    FunctionsPlan,
    Planned,
    Stage,
    StagePlan,
    Tuning,
    functions_task,
    plan_of,
)
from mlcd.reports.figures.still import shortened
from mlcd.reports.figures.svg import Scale, fitted, time_ticks, usd_tick
from mlcd.reports.functions.picture import plan_picture

SVG = "{http://www.w3.org/2000/svg}"
MANY = replace(TUNED, ask=replace(functions_task(TUNED), tuning=Tuning(16_384, 2, 2)))  # type: ignore[type-var]


PICTURES = {
    "tuning": plan_picture(decision(MANY), points()),
    "training": plan_picture(decision(TRAINED), points()),
    "infeasible": plan_picture(infeasible(TUNED), points()),
    "no boundary": plan_picture(decision(MANY)),
    "one point": plan_picture(decision(TRAINED), points()[:1]),
    "nothing": plan_picture(replace(infeasible(TUNED), plan=FunctionsPlan(()))),
}


@pytest.mark.parametrize("drawn", PICTURES.values(), ids=PICTURES)
def test_every_picture_stands_alone_with_its_title_and_keeps_inside_its_frame(drawn):
    root = ElementTree.fromstring(drawn)
    assert root.find(f"{SVG}title") is not None
    description = root.find(f"{SVG}desc")
    assert description is not None
    assert description.text
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    for text in root.iter(f"{SVG}text"):
        assert -1 <= float(text.get("x", "0")) <= width + 1
    for circle in root.iter(f"{SVG}circle"):
        assert 0 <= float(circle.get("cx", "0")) <= width
        assert 0 <= float(circle.get("cy", "0")) <= height
    assert "nan" not in re.sub(r"<(title|desc|text|style).*?</\1>", "", drawn, flags=re.DOTALL)


def test_a_plan_is_one_picture_of_all_that_there_is_to_draw():
    for name, charts in {"tuning": 3, "training": 1, "infeasible": 1, "no boundary": 2, "nothing": 0}.items():
        assert PICTURES[name].count("<clipPath") == charts
    assert "predicted from a calibration" in PICTURES["tuning"]
    assert "There is no plan to draw." in PICTURES["nothing"]


def test_stages_are_named_by_their_trials_and_every_point_tells_its_allocation():
    drawn = PICTURES["no boundary"]
    for stage in plan(MANY).stages:
        assert f">{stage.stage.trials:,}</text>" in drawn
        assert str(stage.allocation) in drawn
    assert drawn.count("<title>") == 2 * sum(len(each.stages) for each in plan_of(decision(MANY)).plans)


def test_allocations_of_the_plan_are_ringed_once_each_with_their_stages():
    where = points()[3]
    thrice = StagePlan(
        "exact", tuple(Planned(Stage(q, 2), where.allocation, 2 * where.seconds, 1.0) for q in (8, 4, 2))
    )
    drawn = plan_picture(replace(decision(TUNED), plan=FunctionsPlan((thrice,))), points())
    assert drawn.count('class="ring"') == 2  # one of them in the legend
    assert "stages 1, 2, 3: " in drawn


def test_a_boundary_of_thousands_is_thinned_to_what_can_be_seen():
    many = [Planned(Stage(1, 1), Allocation(i, 512, "s3"), float(i), 1 / i) for i in range(1, 5_000)]
    assert plan_picture(replace(infeasible(TUNED), plan=FunctionsPlan(())), many).count("<title>") <= 240


def test_times_have_round_ticks_from_milliseconds_to_days():
    for low, high in ((0.002, 0.9), (0.5, 9_000.0), (3.0, 40.0), (30.0, 1e6), (7_200.0, 20_000.0)):
        scale = fitted([low, high], 0.0, 100.0)
        ticks = time_ticks(scale)
        assert 1 <= len(ticks) <= 7
        assert all(0 <= at <= 100 for at, _ in ticks)
        assert len({words for _, words in ticks}) == len(ticks)
    assert [words for _, words in time_ticks(Scale(1.0, 7_300.0, 0, 1, log=True), 8)][:3] == ["1 s", "10 s", "1 m"]


def test_numbers_that_hardly_differ_are_not_drawn_far_apart():
    close = fitted([0.0029125, 0.0029145], 0.0, 100.0)
    assert close(0.0029145) - close(0.0029125) < 1.0
    assert all(len(usd_tick(tick)) <= 8 for tick in close.ticks())
    apart = fitted([1.0, 3.0], 0.0, 100.0)
    assert apart(3.0) - apart(1.0) > 80.0


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(("low", "high"), [(1, 50), (0.0001, 0.0009), (3.0, 3.3), (1, 1e9), (7, 7)])
def test_ticks_are_few_and_inside(low: float, high: float, log: bool):
    ticks = Scale(low, high, 0, 100, log).ticks(6)
    assert 1 <= len(ticks) <= 7
    assert all(low <= tick <= high for tick in ticks)


def test_a_long_name_keeps_both_ends():
    assert shortened("Standard_ND96amsr_A100_v4_reserved", 20) == "Standard_N…_reserved"
