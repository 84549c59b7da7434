"""Pictures of a job on functions: well-formed, readable alone, inside their frame, and true to the numbers."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from mlcd_fixtures.serverless_runs import (
    TRAINED,
    TUNED,
    decision,
    infeasible,
    plan,
    points,
    training_lines,
    tuning_lines,
)

from mlcd.core.job import Target
from mlcd.core.ledger import Account
from mlcd.planners.functions.nouns import Allocation, Planned, Stage, StagePlan, Tuning, functions_task, plan_of
from mlcd.reports.figures import allocations, allocations_key, alone, loss_curve, loss_key, stages, stages_key
from mlcd.reports.figures.axes import Scale, fitted, time_ticks, usd_tick
from mlcd.reports.figures.loss import can_be_drawn
from mlcd.reports.functions.picture import plan_picture
from mlcd.reports.functions.rows import best_path
from mlcd.reports.html import NARROW, WIDE

SVG = "{http://www.w3.org/2000/svg}"
MANY = replace(TUNED, ask=replace(functions_task(TUNED), tuning=Tuning(16_384, 2, 2)))  # type: ignore[type-var]


def path_of(lines):
    return best_path(Account.replay((line.entry, line.elapsed_s) for line in lines))


def drawings(width: int) -> dict[str, tuple[str, list[tuple[str, str]]]]:
    made = plan_of(decision(MANY)).plans
    path = path_of(training_lines())
    return {
        "stages": (stages(made, made[0], width), stages_key(made, made[0])),
        "no choice": (stages(made, None, width), stages_key(made, None)),
        "allocations": (allocations(points(), made[0], width), allocations_key(points(), made[0])),
        "no plan": (allocations(points(), None, width), allocations_key(points(), None)),
        "one point": (allocations(points()[:1], None, width), allocations_key(points()[:1], None)),
        "loss": (loss_curve(path, TRAINED.target, width), loss_key(path)),
        "no target": (loss_curve(path_of(tuning_lines()), None, width), loss_key(path)),
        "one epoch": (loss_curve(path[:1], TRAINED.target, width), loss_key(path[:1])),
    }


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("name", drawings(WIDE))
def test_every_picture_stands_alone_with_its_title_and_keeps_inside_its_frame(name, width):
    drawn, marks = drawings(width)[name]
    root = ElementTree.fromstring(alone(drawn, marks))
    assert root.find(f"{SVG}title") is not None
    description = root.find(f"{SVG}desc")
    assert description is not None
    assert description.text
    for _, words in marks:
        assert words in alone(drawn, marks)
    height = float(re.search(r'viewBox="0 0 \d+ (\d+)"', drawn)[1])  # type: ignore[index]
    for text in root.iter(f"{SVG}text"):
        assert -1 <= float(text.get("x", "0")) <= width + 1
    for circle in root.iter(f"{SVG}circle"):
        assert 0 <= float(circle.get("cx", "0")) <= width
        assert 0 <= float(circle.get("cy", "0")) <= height
    assert "nan" not in re.sub(r"<(title|desc|text|style).*?</\1>", "", drawn, flags=re.DOTALL)


@pytest.mark.parametrize(
    "made", [decision(MANY), decision(TRAINED), infeasible(TUNED)], ids=["tuning", "training", "no"]
)
def test_a_plan_is_one_picture_of_all_that_there_is_to_draw(made):
    root = ElementTree.fromstring(plan_picture(made, points()))
    inside = [each.get("aria-labelledby", "") for each in root.findall(f"{SVG}svg")]
    assert len(inside) == (2 if any(len(each.stages) > 1 for each in plan_of(made).plans[:1]) else 1)
    assert inside[-1].startswith("allocations")
    assert "predicted from a calibration" in plan_picture(made, points())
    ElementTree.fromstring(plan_picture(replace(made, plan=replace(plan_of(made), plans=())), ()))


def test_stages_are_named_by_their_trials_and_every_point_tells_its_allocation():
    made = plan_of(decision(MANY)).plans
    drawn = stages(made, made[0], WIDE)
    for stage in plan(MANY).stages:
        assert f">{stage.stage.trials:,}</text>" in drawn
        assert str(stage.allocation) in drawn
    assert drawn.count("<title>") == 2 * sum(len(each.stages) for each in made)


def test_allocations_of_the_plan_are_ringed_once_each_with_their_stages():
    where = points()[3]
    twice = StagePlan("exact", tuple(Planned(Stage(q, 2), where.allocation, 2 * where.seconds, 1.0) for q in (8, 4, 2)))
    drawn = allocations(points(), twice, WIDE)
    assert drawn.count('class="ring"') == 1
    assert "stages 1-3: " in drawn


def test_a_boundary_of_thousands_is_thinned_to_what_can_be_seen():
    many = [Planned(Stage(1, 1), Allocation(i, 512, "s3"), float(i), 1 / i) for i in range(1, 5_000)]
    assert allocations(many, None, WIDE).count("<circle") <= 240
    assert allocations(many, None, NARROW).count("<circle") <= 90


def test_the_loss_has_a_mark_for_each_epoch_and_a_line_for_each_change_of_allocation():
    path = path_of(training_lines())
    drawn = loss_curve(path, TRAINED.target, WIDE)
    assert drawn.count("<title>epoch ") == len(path) == 39
    assert drawn.count('class="off"') == 2
    assert "loss &lt;= 0.5" in drawn
    assert "12 x 1769 MB, vm-ps" in drawn


def test_a_loss_that_was_never_a_number_is_not_drawn():
    rows = path_of(training_lines())
    broken = [replace(row, epoch=replace(row.epoch, loss=math.nan)) for row in rows if row.epoch is not None]
    assert not can_be_drawn(broken)
    assert can_be_drawn([*broken, rows[-1]])
    assert "From " in loss_curve([*broken, rows[-1]], Target("loss", 0.5, at_least=False), WIDE)


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
