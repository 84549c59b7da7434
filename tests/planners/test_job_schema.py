"""The JSON Schema of a job file, with a validator of JSON Schema: it takes what MLCD takes, and says what keys mean."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from test_mistakes import ODD, TEXTS, trails

from mlcd.core.planner import added_names
from mlcd.planners.jobfile.read import mistakes_in
from mlcd.planners.jobfile.schema import job_schema
from mlcd.planners.jobfile.source import read_source

SCHEMA = job_schema()
VALIDATOR = Draft202012Validator(SCHEMA)


def as_json(written: Any) -> Any:
    return json.loads(json.dumps(written, default=str))


def test_it_is_a_schema():
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize(("text", "folder"), TEXTS)
def test_what_is_shipped_and_shown_is_valid(text: str, folder: Path):
    assert [each.message for each in VALIDATOR.iter_errors(as_json(read_source(text).written))] == []


@given(st.data())
def test_what_the_schema_refuses_is_refused_by_the_check(data: st.DataObject):
    text, folder = data.draw(st.sampled_from(TEXTS))
    written = deepcopy(read_source(text).written)
    inside, trail = written, data.draw(st.sampled_from(list(trails(written))))
    for key in trail[:-1]:
        inside = inside[key]
    if data.draw(st.booleans()):
        inside[trail[-1]] = data.draw(ODD)
    else:
        inside[f"{trail[-1]}x"] = inside.pop(trail[-1])
    changed = yaml.safe_dump(written, sort_keys=False)
    if not VALIDATOR.is_valid(as_json(read_source(changed).written)):
        assert mistakes_in(changed, folder) != []


@pytest.mark.parametrize(
    "block",
    [
        "{work: 1M, bugdet: 5}",
        "{work: 1M, goal: fast}",
        "{work: 1M, checkpoints: maybe}",
        "{work: 1M, search: {seeed: 1}}",
        "{work: 1M, search: [1]}",
        "{work: [1]}",
        "{budget: 5}",
        "{work: 1M, scale: {search: some}}",
        "{work: 1M, plan: {micro_batch: 1, sharding: zero9}}",
        "{work: 1M, functions: {model: lr}}",
    ],
)
def test_it_finds_what_an_editor_should_mark(block: str):
    assert not VALIDATOR.is_valid(as_json(read_source(f"mlcd: {block}").written))


def keys(schema: dict[str, Any], name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for key, each in schema.get("properties", {}).items():
        if each is not False:
            yield f"{name}.{key}", each
    for each in schema.get("anyOf", ()):
        yield from keys(each, name)


def test_every_key_says_what_it_means_and_its_examples_and_defaults_may_be_written():
    added = tuple(name.capitalize() for name in added_names())  # other packages say what they like
    blocks = {name: each for name, each in SCHEMA["$defs"].items() if not name.startswith((*added, "Target"))}
    for name, block in {**blocks, "": SCHEMA}.items():
        for key, each in keys(block, name):
            named = [one["$ref"].rpartition("/")[2] for one in (each, *each.get("anyOf", ())) if "$ref" in one]
            assert any(one.get("description") for one in (each, *(SCHEMA["$defs"][name] for name in named))), key
            for value in (*each.get("examples", ()), *([each["default"]] if "default" in each else ())):
                Draft202012Validator({**each, "$defs": SCHEMA["$defs"]}).validate(value)
