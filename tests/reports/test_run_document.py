"""The document of a run: it keeps its keys, keeps to its schema, and has room for a planner of another package."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mlcd_fixtures.api import TRAIN
from mlcd_fixtures.functions_runs import points, training_lines, tuning_lines
from mlcd_fixtures.scale_runs import elastic_run
from mlcd_fixtures.serving_runs import language_lines, serving_lines
from pydantic import TypeAdapter, ValidationError
from rich.console import Console

from mlcd.core.additions import Additions, Axis, Column, Fact, Figure, LimitLine, Point, Series, Table
from mlcd.core.ledger import Ledger, Line, Settled
from mlcd.core.runs.run import start
from mlcd.planners.form.jobs import job_from_text
from mlcd.reports.document import document_of, run_document
from mlcd.reports.run_document import OtherRun, RunDocument, run_schema
from mlcd.reports.story import Story
from mlcd.reports.terminal_tables import show_additions
from mlcd.reports.view.view import view_of

KEYS = json.loads((Path(__file__).parent / "document_keys.json").read_text())
"""For a run of each kind, the keys that its document had before there was a model of it."""
ADDED = Additions(
    planner="archive",
    facts=[Fact(label="Copies", value="3", hint="one in another region")],
    tables=[
        Table(
            title="What a copy costs",
            columns=[
                Column(label="Store"),
                Column(label="Cost", unit="usd", align="right"),
                Column(label="To restore", unit="s", align="right"),
                Column(label="Size", unit="GB", align="right"),
                Column(label="Kept"),
            ],
            rows=[["near", 1.5, 90, 12, True], ["far [1]", 0.25, None, 0.5, False]],
        )
    ],
    figures=[
        Figure(
            title="Cost against time",
            kind="points",
            x=Axis(label="to restore", unit="s", scale="log"),
            y=Axis(label="cost", unit="usd"),
            series=[Series(name="near", points=[Point(x=90, y=1.5), Point(x=100, y=float("nan"))])],
            limits=[LimitLine(label="budget", value=2)],
        )
    ],
    part={"copies": 3},
)


def trained_lines() -> list[Line]:
    ledger = Ledger(None)
    run = start(job_from_text("train", TRAIN, {}), ledger)
    run.search()
    run.launch()
    return ledger.lines(run.name)


def elastic_lines() -> list[Line]:
    ledger = Ledger(None)
    return ledger.lines(elastic_run(ledger))


RUNS = {
    "train": trained_lines(),
    "scale": elastic_lines(),
    "serve": serving_lines(),
    "language": language_lines(),
    "tune": tuning_lines(),
    "functions": training_lines(),
}
PLANNERS = {"language": "serve", "functions": "tune"}
EVERY = pytest.mark.parametrize("kind", RUNS)


def keys(value: Any, at: str = "") -> Iterator[str]:
    """Every key with those above it: 'decision.forecast.usd'."""
    if isinstance(value, dict):
        for name, inner in value.items():
            here = f"{at}.{name}".lstrip(".")
            yield here
            yield from keys(inner, here)
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner, f"{at}[]")


@EVERY
def test_no_key_of_a_document_is_lost(kind: str) -> None:
    assert set(KEYS[kind]) <= set(keys(run_document(RUNS[kind], points())))


@EVERY
def test_a_document_is_one_of_its_planner_at_every_moment_and_json_keeps_it(kind: str) -> None:
    lines = RUNS[kind]
    for end in (1, len(lines) // 2, len(lines)):
        document = run_document(lines[:end], points())
        assert document["planner"] == PLANNERS.get(kind, kind)
        text = json.dumps(document, allow_nan=False)
        assert TypeAdapter(RunDocument).validate_json(text).model_dump(mode="json") == json.loads(text)


def test_what_one_planner_has_cannot_be_written_into_the_document_of_another() -> None:
    document = run_document(RUNS["train"]) | {"trials": []}
    with pytest.raises(ValidationError):
        TypeAdapter(RunDocument).validate_python(document)


def test_the_schema_says_what_a_run_has_and_describes_every_property() -> None:
    schema = run_schema()
    assert {each["$ref"].rpartition("/")[2] for each in schema["anyOf"]} == {
        "TrainRun", "ScaleRun", "ServeRun", "TuneRun", "OtherRun",
    }  # fmt: skip
    for name, part in schema["$defs"].items():
        assert part["description"], name
        for key, about in part.get("properties", {}).items():
            assert about.get("description"), f"{name}.{key}"


def test_a_run_of_no_entries_is_empty() -> None:
    assert run_document([]) == {"run": None, "status": "empty", "job": ""}


def test_a_planner_of_another_package_shows_itself_in_the_document_and_the_page() -> None:
    document = document_of(Story.of(RUNS["train"]), additions=ADDED)
    assert isinstance(document, OtherRun)
    written = document.model_dump(mode="json")
    assert (written["planner"], written["part"]) == ("archive", {"copies": 3})
    assert written["facts"] == [{"label": "Copies", "value": "3", "hint": "one in another region"}]
    assert written["figures"][0]["series"][0]["points"][1]["y"] is None  # JSON has no NaN
    assert written["spent_usd"] == run_document(RUNS["train"])["spent_usd"]
    assert [each["label"] for each in written["probes"]]
    assert view_of(RUNS["train"], additions=ADDED)["document"] == written
    json.dumps(written, allow_nan=False)


def test_the_terminal_prints_facts_and_tables() -> None:
    said = io.StringIO()
    show_additions(Console(file=said, width=120), ADDED)
    show_additions(Console(file=said, width=120), None)
    lines = [line.split() for line in said.getvalue().splitlines()]
    assert ["Copies:", "3", "one", "in", "another", "region"] in lines
    assert ["STORE", "COST", "TO", "RESTORE", "SIZE", "KEPT"] in lines
    assert ["near", "$1.50", "1", "m", "30", "s", "12", "GB", "yes"] in lines
    assert ["far", "[1]", "$0.25", "-", "0.5", "GB", "no"] in lines


def test_our_own_planners_may_add_to_their_documents() -> None:
    document = run_document(RUNS["serve"], additions=Additions(facts=ADDED.facts))
    assert document["planner"] == "serve"
    assert document["facts"] == [fact.model_dump() for fact in ADDED.facts]


def test_the_memory_that_a_launch_used_is_in_its_document_where_it_was_counted() -> None:
    def counted(line: Line) -> Line:
        if not isinstance(line.entry, Settled):
            return line
        return replace(line, entry=replace(line.entry, measurement=replace(line.entry.measurement, memory=0.97)))

    document = run_document([counted(line) for line in RUNS["train"]])
    assert {probe["memory"] for probe in document["probes"]} == {0.97}
    assert {probe["memory"] for probe in run_document(RUNS["train"])["probes"]} == {None}
