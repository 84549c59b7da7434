"""A knowledge base on disk is read back unchanged, and errors in its files are one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlcd_fixtures.knowledge_folders import write_knowledge

from mlcd.core.errors import RecordingError
from mlcd.planners.serve.known_models import Anatomy, Cell, Kind, Knowledge, SeenModel, read_knowledge
from mlcd.planners.serve.model_facts import ModelFacts, Operator, Profile
from mlcd.planners.serve.nouns import Figure

CELL = ("precision", "batch")
sizes = st.floats(0, 1e12, allow_subnormal=False)
above_zero = st.floats(1e-9, 1e12)
words = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=8)
operators = st.builds(Operator, words, st.integers(0, 999), sizes, sizes)
profiles = st.builds(
    Profile, st.integers(1, 256), st.lists(operators, min_size=1, max_size=3).map(tuple), st.sampled_from(["fp32", ""])
)
facts = st.builds(
    ModelFacts,
    name=words,
    family=st.sampled_from(["cnn", ""]),
    inputs=st.sampled_from(["image224", ""]),
    weights_mb=st.none() | sizes,
    parameters=st.none() | sizes,
    profiles=st.lists(profiles, max_size=3, unique_by=lambda each: (each.precision, each.batch)).map(tuple),
)
cells = st.dictionaries(
    st.tuples(
        st.tuples(st.just("precision"), st.sampled_from(["fp32", "bf16", "a,b", 'say "no"'])),
        st.tuples(st.just("batch"), st.integers(1, 64) | st.sampled_from([0.5, 1.5])),
    ),
    st.builds(Cell, above_zero, st.dictionaries(st.sampled_from(list(Figure)), sizes), st.none() | sizes),
    max_size=4,
)
knowledge_bases = st.builds(
    Knowledge,
    kind=st.sampled_from(list(Kind)),
    anatomy=st.just(Anatomy(CELL, host="cores", memory="memory_gb")),
    models=st.lists(st.builds(SeenModel, facts, cells), max_size=3, unique_by=lambda each: each.facts.name).map(tuple),
    host_rates=st.dictionaries(words, st.dictionaries(st.sampled_from([1.0, 2.0, 0.5]), above_zero, min_size=1)),
    resources=st.dictionaries(words, st.dictionaries(words, st.dictionaries(words, sizes)), max_size=2),
    source=st.text(st.characters(exclude_categories=("Cs",)), max_size=20),
)
SMALL = Knowledge(
    Kind.DEVICE,
    Anatomy(CELL),
    (
        SeenModel(
            ModelFacts("net", "cnn", "image32", 1.5, 0.001, (Profile(8, (Operator("Conv", 3, 0.01, 2.0),)),)),
            {(("precision", "fp32"), ("batch", batch)): Cell(100.0, {Figure.P50: 0.01}, 0.1) for batch in (1, 8)},
        ),
    ),
    {"image32": {1.0: 500.0}},
    source="made up",
)


@given(knowledge_bases)
def test_a_written_knowledge_base_is_read_back_unchanged(knowledge: Knowledge):
    with TemporaryDirectory() as folder:
        write_knowledge(Path(folder), knowledge)
        assert read_knowledge(Path(folder)) == knowledge


def test_operators_and_host_may_be_missing(tmp_path: Path):
    write_knowledge(tmp_path, SMALL)
    for name in ("operators.csv", "host.csv"):
        (tmp_path / name).unlink()
    read = read_knowledge(tmp_path)
    assert read.models[0].facts.profiles == ()
    assert read.host_rates == {}


def _replaced(name: str, old: str, new: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        text = (folder / name).read_text(encoding="utf-8")
        assert old in text
        (folder / name).write_text(text.replace(old, new, 1), encoding="utf-8")

    return change


def _bytes(name: str, content: bytes) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes(content) and None


WRONG = {
    "no folder": (lambda folder: (folder / "knowledge.json").unlink(), "knowledge.json: no such file", "mlcd learn"),
    "not JSON": (_replaced("knowledge.json", "{", ""), "knowledge.json:2:", "not JSON"),
    "no kind": (_replaced("knowledge.json", "kind", "sort"), "knowledge.json:1:", "'kind'"),
    "unknown kind": (_replaced("knowledge.json", '"device"', '"devise"'), "knowledge.json:1:", "devise"),
    "a list": (_bytes("knowledge.json", b"[]"), "knowledge.json:1:", "not as expected"),
    "no points": (lambda folder: (folder / "points.csv").unlink(), "points.csv: no such file", "mlcd learn"),
    "bytes": (_bytes("points.csv", b"\xff\xfe\x00"), "points.csv:", "UTF-8"),
    "no column": (_replaced("points.csv", "rate", "speed"), "points.csv:1:", "missing column rate"),
    "no knob": (_replaced("points.csv", "precision", "accuracy"), "points.csv:1:", "missing column precision"),
    "no number": (_replaced("points.csv", "100.0", "fast"), "points.csv:2:", "rate 'fast'"),
    "no rate at all": (_replaced("points.csv", "100.0", "0"), "points.csv:2:", "more than zero"),
    "endless": (_replaced("points.csv", "100.0", "inf"), "points.csv:2:", "rate 'inf'"),
    "short line": (_replaced("points.csv", "net,cnn,", "net,"), "points.csv:2:", "cells, but the header has"),
    "no name": (_replaced("points.csv", "net,", ","), "points.csv:2:", "model is empty"),
    "no value": (_replaced("points.csv", "fp32,", ","), "points.csv:2:", "precision is empty"),
    "twice": (_replaced("points.csv", "fp32,8", "fp32,1"), "points.csv:3:", "already measured"),
    "two models": (_replaced("points.csv", "net,cnn", "net,rnn"), "points.csv:3:", "points.csv:2"),
    "a quote": (_replaced("points.csv", "net,", '"net'), "points.csv:", "not a CSV line"),
    "calls": (_replaced("operators.csv", "3,0.01", "3.5,0.01"), "operators.csv:2:", "whole number"),
    "stranger": (_replaced("operators.csv", "net", "other"), "operators.csv:", "other"),
    "cores": (_replaced("host.csv", "1.0", "one"), "host.csv:2:", "cores 'one'"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_bad_file_is_one_line_that_says_where(tmp_path: Path, wrong: str):
    write_knowledge(tmp_path, SMALL)
    change, where, why = WRONG[wrong]
    change(tmp_path)
    with pytest.raises(RecordingError) as refused:
        read_knowledge(tmp_path)
    complaint = str(refused.value)
    assert complaint.startswith(str(tmp_path))
    assert where in complaint
    assert why in complaint
    assert "\n" not in complaint
