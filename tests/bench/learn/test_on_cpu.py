"""The offline phase on a CPU: models are measured once, failures are reported, and it can be stopped."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

pytest.importorskip("onnx", reason="pip install mlcd[serve]")
pytest.importorskip("onnxruntime", reason="pip install mlcd[serve]")

from mlcd.core.errors import UnknownName, UserError
from mlcd.planners.serve.known_models import read_knowledge
from mlcd.planners.serve.nouns import Figure, KnobTable
from mlcd.planners.serve.operators.onnx_file import open_model
from mlcd.planners.serve.operators.onnx_profile import family
from mlcd.planners.serve.operators.onnx_session import example_feed, open_session
from mlcd_bench.learn import onnx_operators
from mlcd_bench.learn.cells_process import Stopped, measure_batches
from mlcd_bench.learn.on_cpu import CELL, Cells, Learning, describe
from mlcd_bench.learn.onnx_cells import cells
from mlcd_bench.learn.zoo import cnn, recurrent, transformer
from mlcd_bench.learn.zoo_models import ZOO, write_zoo

pytestmark = pytest.mark.night  # measures in small what takes hours


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    (folder / "tiny.onnx").write_bytes(cnn((4, 8), size=8).SerializeToString())
    (folder / "open.onnx").write_bytes(recurrent("GRU", 8, sequence=None).SerializeToString())
    return folder


def learning(folder: Path, told: list[str] | None = None, **changes) -> Learning:
    chosen = {"cells": Cells(("fp32",), (1,), (1, 2)), "shapes": {"sequence": 4}, "served": False, **changes}
    return Learning(folder, tell=(told if told is not None else []).append, **chosen)


def test_models_are_measured_into_a_knowledge_base_and_not_twice(models: Path, tmp_path: Path):
    describe(tmp_path, "2026-11-15", "a test")
    (tmp_path / "bad.onnx").write_text("no model")
    told: list[str] = []
    paths = [models / "tiny.onnx", models / "open.onnx", tmp_path / "bad.onnx"]
    assert learning(tmp_path, told).models(paths) == ["tiny", "open"]
    assert any("bad.onnx" in words and "left out" in words for words in told)
    knowledge = read_knowledge(tmp_path)
    tiny, free = knowledge.models
    assert (tiny.facts.family, tiny.facts.inputs, free.facts.inputs) == ("cnn", "image8", "tokens4")
    assert set(tiny.cells) == {(("precision", "fp32"), ("threads", 1), ("batch", batch)) for batch in (1, 2)}
    for cell in tiny.cells.values():
        assert 0 < cell.figures[Figure.P50] <= cell.figures[Figure.P95]
        assert cell.peak_gb is not None
        assert cell.peak_gb > 0.01
    assert [profile.batch for profile in tiny.facts.profiles] == [8, 64]
    before = (tmp_path / "points.csv").read_bytes(), (tmp_path / "operators.csv").read_bytes()
    again: list[str] = []
    learning(tmp_path, again).models(paths[:2])
    assert again == []
    assert ((tmp_path / "points.csv").read_bytes(), (tmp_path / "operators.csv").read_bytes()) == before


def test_models_are_measured_through_the_server(models: Path, tmp_path: Path):
    describe(tmp_path, "2026-11-15", "a test")
    one = Cells(("fp32",), (1,), (1,))
    assert learning(tmp_path, served=True, cells=one).models([models / "tiny.onnx"]) == ["tiny"]
    knowledge = read_knowledge(tmp_path)
    (cell,) = knowledge.models[0].cells.values()
    assert "load tests" in knowledge.source
    assert cell.rate > 0
    assert cell.peak_gb is not None
    assert cell.figures[Figure.P50] <= cell.figures[Figure.P95]


def test_it_continues_with_the_untried_batches(models: Path, tmp_path: Path):
    describe(tmp_path, "2026-11-15", "a test")
    learning(tmp_path, cells=Cells(("fp32",), (1,), (1,))).models([models / "tiny.onnx"])
    first = (tmp_path / "points.csv").read_text()
    learning(tmp_path).models([models / "tiny.onnx"])
    assert (tmp_path / "points.csv").read_text().startswith(first)
    assert len(read_knowledge(tmp_path).models[0].cells) == 2


def test_a_stop_records_no_failure(models: Path, tmp_path: Path):
    describe(tmp_path, "2026-11-15", "a test")
    with pytest.raises(Stopped):
        learning(tmp_path, stop=lambda: True).models([models / "tiny.onnx"])
    assert not (tmp_path / "failed.csv").exists()


def test_an_axis_without_a_size_is_reported_only_for_its_model(models: Path, tmp_path: Path):
    describe(tmp_path, "2026-11-15", "a test")
    ran = learning(tmp_path, shapes={}).models([models / "open.onnx", models / "tiny.onnx"])
    assert ran == ["tiny"]
    assert "--shape sequence=128" in (tmp_path / "failed.csv").read_text()


def test_a_process_that_ends_early_is_a_batch_that_did_not_run(tmp_path: Path):
    (tmp_path / "bad.onnx").write_text("no model")
    found = measure_batches(tmp_path / "bad.onnx", 1, (4, 1), {})
    assert [each.batch for each in found] == [1, 4]
    assert all("not an ONNX file" in each.reason and not each.rate for each in found)


def test_a_batch_that_a_model_refuses_does_not_keep_the_others_from_running(tmp_path: Path):
    path = tmp_path / "fixed.onnx"
    model = cnn((4,), size=8)
    for each in (*model.graph.input, *model.graph.output):
        each.type.tensor_type.shape.dim[0].dim_value = 2
    path.write_bytes(model.SerializeToString())
    found = {each.batch: each for each in measure_batches(path, 1, (1, 2), {})}
    assert "fixed at 2" in found[1].reason
    assert found[2].rate


def test_a_server_of_more_threads_than_cores_is_refused(tmp_path: Path):
    with pytest.raises(UserError, match="3 cores"):
        Cells.of(KnobTable({"threads": (1, 4)}), cores=3)


def test_knobs_that_no_cpu_has_are_refused():
    with pytest.raises(UnknownName, match="sm_share"):
        Cells.of(KnobTable({"sm_share": (100,)}))
    with pytest.raises(UnknownName, match="bf16"):
        Cells.of(KnobTable({"precision": ("bf16",)}))
    with pytest.raises(UserError, match="whole"):
        Cells.of(KnobTable({"batch": (1.5,)}))


def test_knobs_that_are_not_named_have_defaults():
    assert Cells.of(KnobTable({"batch": (1, 8), "memory_gb": (0.5,)})) == Cells(("fp32",), (1,), (1, 8))


def test_what_another_machine_measured_is_not_mixed_with_this_one(tmp_path: Path):
    describe(tmp_path, "2026-11-15", "a test")
    describe(tmp_path, "2026-11-16", "a test")
    about = tmp_path / "knowledge.json"
    about.write_text(about.read_text().replace('"source": "', '"source": "A fast one: '))
    with pytest.raises(UserError, match="another machine"):
        describe(tmp_path, "2026-11-16", "a test")


def test_every_single_operator_runs(tmp_path: Path):
    for path in onnx_operators.write_operators(tmp_path):
        model = open_model(path)
        answer = open_session(path).run(None, example_feed(model, 2))
        assert answer[0].size > 0, path.stem


def test_single_operators_become_curves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    describe(tmp_path, "2026-11-15", "a test")
    chosen = [each for each in onnx_operators.OPERATORS if each.name == "Softmax"]
    learning(tmp_path, cells=Cells(("fp32", "int8"), (1,), (1,))).operators(chosen)
    with (tmp_path / "operator_curves.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    cells_there = {tuple(row[name] for name in ("precision", "threads", "batch")) for row in rows}
    assert cells_there == {("fp32", "1", "1"), ("int8", "1", "1")}  # it has no int8 form, and runs as it is
    assert all(row["operator"] == "Softmax" and float(row["rate"]) > 0 for row in rows)


def test_memory_grows_with_the_batch(models: Path):
    found = list(cells(models / "tiny.onnx", 1, (2, 1), {}))
    assert [each["batch"] for each in found] == [1, 2]
    assert found[0]["peak_gb"] <= found[1]["peak_gb"]


def test_the_zoo_has_at_least_twenty_models_of_five_families(tmp_path: Path):
    paths = write_zoo(tmp_path)
    assert len(paths) == len(ZOO) >= 20
    families = [family(open_model(path)) for path in paths]
    assert {"cnn", "transformer", "rnn", "gan", "recsys"} == set(families)
    assert min(families.count(each) for each in set(families)) >= 3
    first = paths[0].read_bytes()
    assert write_zoo(tmp_path) == paths
    assert ZOO[paths[0].stem]().SerializeToString() == first


def test_the_cell_has_the_knobs_of_a_server():
    from mlcd.clouds.servers.settings import Settings

    assert Settings.of({"precision": "int8", "threads": 2, "batch": 4}).batch == 4
    assert CELL == ("precision", "threads", "batch")


def test_a_transformer_takes_as_many_tokens_as_are_asked_for(tmp_path: Path):
    path = tmp_path / "t.onnx"
    path.write_bytes(transformer(1, 16, sequence=None).SerializeToString())
    (found,) = cells(path, 1, (1,), {"sequence": 6})
    assert found["seconds"]
