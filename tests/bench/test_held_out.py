"""The frame of `benchmarks/held_out.py`, and the recordings and the floor of its decisions."""

from __future__ import annotations

import sys
from dataclasses import replace
from math import exp
from pathlib import Path

import pytest

from mlcd.planners.serve.nouns import knobs_of

sys.path.insert(0, str(Path(__file__).parents[2]))  # studies are scripts, not a package

from benchmarks.held_out import tables
from benchmarks.splits import decisions, made_decisions
from benchmarks.splits.other_sources import Elsewhere, Source, elsewhere
from mlcd.clouds.recording import Point, Recording
from mlcd.core.configuration import Configuration, Offer
from mlcd.core.measurement import Outcome
from mlcd.planners.serve.known_models import Kind
from mlcd.testing.services import random_world
from mlcd_bench.problems import Scenario, problems


def test_a_table_shows_what_a_figure_was_before_and_leaves_details_to_the_file():
    row = {"problems of": "all", "median": 1.05, "runs": 1_400, "details": {"a": 1}}
    before = [{"problems of": "all", "median": 1.21, "runs": 1_400}, {"problems of": "gone", "median": 9.0}]
    (table,) = tables([row], before)
    assert table.splitlines()[0] == "| problems of | median | runs |"
    assert table.splitlines()[2] == "| all | 1.21 -> 1.05 | 1,400 |"


def test_rows_of_other_columns_are_a_table_of_their_own():
    first, second = tables([{"a": "x", "b": None}, {"c": "y"}], [])
    assert "| x | - |" in first
    assert "| y |" in second


@pytest.mark.parametrize("law", made_decisions.LAWS)
def test_made_recordings_are_the_same_each_time_and_have_something_that_runs(law):
    first, again = made_decisions.made(law, 3), made_decisions.made(law, 3)
    assert first == again
    assert first.points != made_decisions.made(law, 4).points
    assert any(point.samples_per_s for point in first.points.values())


def test_the_floor_pays_one_whole_probe_and_certifies_by_its_slow_end():
    """One configuration: eight hours, a probe of ten minutes, so a deadline must be 8 h x e^0.09 + 10 min."""
    where = Configuration(Offer("only", 1.0, vcpus=8, memory_gb=32), 1)
    recording = Recording("one", 8 * 3_600.0, {where: Point(Outcome.OK, 1.0)})
    probe_h = recording.probe_time.seconds(1) / 3_600
    enough = exp(0.09) + probe_h / 8
    tight, loose = problems([recording], [Scenario.CHEAPEST_BY_DEADLINE], [enough - 1e-6, enough + 1e-6])
    assert decisions.floor(tight) is None
    assert decisions.floor(loose) == pytest.approx(1 + probe_h / 8)


def test_a_made_source_has_other_gpus_loads_speeds_and_sizes_and_the_same_best():
    world = random_world(Kind.LANGUAGE, 0)
    name, first = world.unseen.facts.name, dict(next(iter(world.unseen.cells)))
    numbers = {str(dict(knobs_of(each))["gpus"]): {"memory_gb": 80.0} for each in world.space.configurations}
    told = replace(world.recorded, resources={"gpus": numbers}, models=(world.unseen,))
    made = elsewhere(Source(told, {name: world.space}), Elsewhere((4.0,), memory=2.0, users=3, faster=5.0))
    (model,), cell = made.knowledge.models, world.unseen.cells[tuple(first.items())]
    machine = str(first["gpus"]).replace(" x ", " x New ")
    moved = model.cells[("gpus", machine), ("users", 3 * int(first["users"]))]
    assert moved.rate == pytest.approx(15 * cell.rate)
    assert moved.figures == pytest.approx({figure: s / 5 for figure, s in cell.figures.items()})
    assert model.facts.parameters == 4 * (world.unseen.facts.parameters or 1.0)
    assert made.knowledge.resources["gpus"][machine]["memory_gb"] == 160.0
    assert len(made.spaces[name]) == len(world.space)


def test_a_made_source_may_have_faster_kinds_of_gpus_and_another_dependence_on_users():
    world = random_world(Kind.LANGUAGE, 0)
    name = world.unseen.facts.name
    numbers = {str(dict(knobs_of(each))["gpus"]): {"memory_gb": 80.0} for each in world.space.configurations}
    told = replace(world.recorded, resources={"gpus": numbers}, models=(world.unseen,))
    made = elsewhere(Source(told, {name: world.space}), Elsewhere(kinds=(1.0, 4.0), sharing=0.5))
    kinds = sorted({machine.split(" x ")[-1] for machine in numbers})
    for knobs, cell in world.unseen.cells.items():
        machine, users = str(dict(knobs)["gpus"]), int(dict(knobs)["users"])
        moved = made.knowledge.models[0].cells[("gpus", machine.replace(" x ", " x New ")), ("users", users)]
        times = (1.0, 4.0)[kinds.index(machine.split(" x ")[-1]) % 2] * users**0.5
        assert moved.rate == pytest.approx(times * cell.rate)
        assert moved.figures == pytest.approx({figure: s / times for figure, s in cell.figures.items()})
