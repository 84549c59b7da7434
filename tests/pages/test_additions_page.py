"""A planner of another package shows itself on the page of a run: its facts, figures and tables."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from mlcd.core.additions import Additions, Axis, Column, Fact, Figure, LimitLine, Point, Series, Table

DEMO = "resnet50-1"
DOLLARS = Axis(label="cost", unit="usd")
ADDED = Additions(
    planner="archive",
    facts=[Fact(label="Copies", value="3", hint="one in another region")],
    tables=[
        Table(
            title="What a copy costs",
            columns=[Column(label="Store"), Column(label="Cost", unit="usd", align="right")],
            rows=[["near", 1.5], ["far", None]],
        )
    ],
    figures=[
        Figure(
            title="Cost against time",
            kind="points",
            x=Axis(label="to restore", unit="s", scale="log"),
            y=DOLLARS,
            series=[
                Series(name="near", points=[Point(x=90, y=1.5, label="one copy"), Point(x=4000, y=0.4)]),
                Series(name="far", points=[Point(x=9000, y=0.2), Point(x=0, y=0.1)]),
            ],
            limits=[LimitLine(label="budget", value=2), LimitLine(label="deadline", value=7200, axis="x")],
            note="Down and to the left is better.",
        ),
        Figure(
            title="Copies by day",
            kind="lines",
            x=Axis(label="day"),
            y=Axis(label="copies", unit="GB"),
            series=[Series(name="", points=[Point(x=day, y=day**0.5) for day in range(1, 9)])],
        ),
        Figure(
            title="Cost by store",
            kind="bars",
            x=Axis(label="store"),
            y=DOLLARS,
            series=[
                Series(name=year, points=[Point(x=name, y=y) for name, y in (("near", 2), ("far", 1), ("tape", 0.3))])
                for year in ("2025", "2026")
            ],
        ),
        Figure(
            title="When copies were made",
            kind="spans",
            x=Axis(label="time", unit="s"),
            y=Axis(label="store", names=["near", "far"]),
            series=[
                Series(
                    name="copying", points=[Point(x=x, y=y) for x, y in ((0, 1), (3600, 1), (3600, None), (5400, 2))]
                ),
                Series(name="lost", look="limit", points=[Point(x=x, y=1, label="a copy") for x in (1800, 3600)]),
                Series(name="full", look="quiet", points=[Point(x=7200, y=1)]),
            ],
            limits=[LimitLine(label="deadline", value=9000, axis="x")],
        ),
    ],
)


@pytest.fixture
def told(page: Any, ui: Any) -> Any:
    """The page of a run whose document says that another planner made it."""

    def changed(route: Any) -> None:
        answer = route.fetch()
        view = answer.json()
        ours = {"probes", "work_samples", "saved_samples", "target", "final_run", "probing_usd", "probing_s"}
        core = {name: value for name, value in view["document"].items() if name not in ours}
        view["document"] = core | {"probes": []} | json.loads(ADDED.model_dump_json())
        route.fulfill(response=answer, json=view)

    page.route(
        re.compile(rf"/runs/{DEMO}$"),
        lambda route: changed(route) if "/api/" in route.request.url else route.continue_(),
    )
    page.goto(f"{ui.url}/runs/{DEMO}")
    return page


@pytest.mark.night  # at each change: every figure as a table, below
def test_facts_figures_and_tables_of_any_planner_are_shown(told, expect):
    expect(told.get_by_text("one in another region")).to_be_visible()
    row = told.get_by_role("row").filter(has_text="near").filter(has_text="$1.50")
    expect(row).to_be_visible()
    marks = {}
    for figure in ADDED.figures:
        chart = told.get_by_role("figure", name=figure.title)
        expect(chart.get_by_role("img")).to_be_visible()
        marks[figure.kind] = chart.locator("svg[role=img] .mark").count()
    assert marks == {"points": 3, "lines": 8, "bars": 6, "spans": 3}  # what has no logarithm is not drawn


def test_every_figure_is_also_a_table_and_limits_are_lines(told, expect):
    chart = told.get_by_role("figure", name="Cost against time")
    expect(chart.locator("svg .limit")).to_have_count(2)
    expect(chart).to_contain_text("budget $2.00")
    chart.get_by_role("button", name="Show as table").click()
    expect(chart.get_by_role("row").filter(has_text="one copy")).to_contain_text("1 m 30 s")


def test_a_time_line_has_bars_moments_and_a_row_for_each_in_its_table(told, expect):
    chart = told.get_by_role("figure", name="When copies were made")
    expect(chart.locator("svg[role=img] .span")).to_have_count(2)
    expect(chart.locator("svg[role=img] .cross")).to_have_count(1)
    expect(chart.get_by_role("listitem")).to_have_text(["copying", "lost", "full"])
    chart.get_by_role("button", name="Show as table").click()
    expect(chart.get_by_role("row").filter(has_text="a copy")).to_have_text("30 m1 hlostneara copy")
