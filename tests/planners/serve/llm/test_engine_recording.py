"""A folder of recorded engines: each workload has exactly the deployments that were measured."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mlcd_fixtures.recorded_services import write_device, write_engines

from mlcd.core.errors import RecordingError, UnknownName
from mlcd.planners.serve.known_models import Kind
from mlcd.planners.serve.llm.recording import EngineFolder, load_tests, read_engines
from mlcd.planners.serve.nouns import Figure, knobs_of
from mlcd.planners.serve.recordings import ServingFolder, read_folder


def test_a_folder_is_known_by_its_header(tmp_path: Path) -> None:
    assert isinstance(read_folder(write_engines(tmp_path / "engines")), EngineFolder)
    assert isinstance(read_folder(write_device(tmp_path / "device")), ServingFolder)


def test_a_model_has_a_workload_for_each_length_of_requests(tmp_path: Path) -> None:
    folder = read_engines(write_engines(tmp_path))
    assert folder.knowledge.kind is Kind.ENGINES
    assert folder.models == ("tiny", "small", "mixed")
    assert [each.facts.title for each in folder.workloads("tiny")] == ["tiny@1024/128", "tiny@2048/512"]
    assert folder.model("mixed").facts.architecture.experts == 128
    assert not any(each.facts.name == "tiny" for each in folder.knowledge.without("tiny").models)


def test_every_latest_row_is_a_configuration_of_its_own_workload(tmp_path: Path) -> None:
    folder = read_engines(write_engines(tmp_path))
    with (tmp_path / "points.csv").open() as file:
        rows = list(csv.DictReader(file))
    seen = set()
    for model in folder.knowledge.models:
        for configuration in folder.space(model.facts.title).configurations:
            cell = folder.knowledge.composed(model, configuration)
            row, knobs = rows[cell.row - 1], dict(knobs_of(configuration))
            assert row["latest"] == "1"
            assert (row["system"], int(row["gpus"]), int(row["concurrency"])) == (
                knobs["gpu"],
                knobs["gpus"],
                knobs["concurrency"],
            )
            assert cell.figures[Figure.TTFT_P50] == pytest.approx(float(row["ttft_ms"]) / 1e3)
            assert cell.figures[Figure.TPOT_P50] == pytest.approx(float(row["tpot_ms"]) / 1e3)
            assert cell.rate == pytest.approx(float(row["tokens_per_s_per_gpu"]) * int(row["gpus"]))
            assert configuration.usd_per_hour == pytest.approx(float(row["usd_per_hour"]) * int(row["gpus"]))
            seen.add(cell.row)
    assert seen == {i for i, row in enumerate(rows, start=1) if row["latest"] == "1"}


def test_a_sweep_has_every_level_of_its_deployment(tmp_path: Path) -> None:
    points = read_engines(write_engines(tmp_path))
    sweeps = points.swept()
    space = sweeps.space("small")
    assert len(space) == len(points.space("small")) / 3
    assert {dict(knobs_of(each))["sweep"] for each in space.configurations} == {"1 8 64"}
    cell = sweeps.knowledge.composed(sweeps.model("small"), space.configurations[0])
    assert cell.rate == max(level.rate for level in cell.levels.values())
    tests = [dict(load_tests(folder.model("small"))) for folder in (points, sweeps)]
    assert {frozenset(knobs) for knobs in tests[0]} == {frozenset(knobs) for knobs in tests[1]}


def test_a_recorded_workload_is_served_under_caps_on_its_tokens(mlcd: Callable[..., Any], tmp_path: Path) -> None:
    on = f"recorded:{write_engines(tmp_path / 'recorded')}"
    words = ("--on", on, "--ttft-p50", "1s", "--tpot-p50", "30ms", "--trials", "6", "-o", "json")
    chosen = mlcd("serve", "tiny@1024/128", *words).document["decision"]["configuration"]
    assert {"h100_sxm", "64"} <= set(re.findall(r"\w+", str(chosen))), "an L4 is too slow with 64 at once"
    assert mlcd("serve", "tiny", *words).code == 2


@pytest.mark.parametrize(
    ("written", "error", "said"),
    [("tiny", RecordingError, "name one of tiny@1024/128, tiny@2048/512"), ("tinny", UnknownName, "tiny")],
)
def test_an_ambiguous_name_is_one_line(tmp_path: Path, written: str, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        read_engines(write_engines(tmp_path)).model(written)


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("models.csv", "small", "smal", "small has no sizes"),
        ("systems.csv", "l4", "l5", "l4 has no numbers"),
        ("points.csv", ",64,", ",8,", "already measured with these settings"),
        ("points.csv", "vllm", "", "engine is empty"),
        ("points.csv", "tpot_ms", "tpot_ms,", "missing column|cells, but"),
    ],
)
def test_a_mistake_in_a_file_is_one_line(tmp_path: Path, file: str, old: str, new: str, said: str) -> None:
    path = write_engines(tmp_path) / file
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(RecordingError, match=said):
        read_engines(tmp_path)
