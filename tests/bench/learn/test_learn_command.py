"""mlcd learn: models to knowledge, and one line for each mistake."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("onnx", reason="pip install mlcd[serve]")
pytest.importorskip("onnxruntime", reason="pip install mlcd[serve]")

from mlcd.planners.serve.known_models import read_knowledge
from mlcd_bench.learn.zoo import cnn

Mlcd = Callable[..., Any]
KNOBS = "knobs:\n  precision: [fp32]\n  threads: [1]\n  batch: [1, 2]\nprice: {threads: 0.04}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of models, and a file of knobs."""
    (tmp_path / "knobs.yaml").write_text(KNOBS)
    (tmp_path / "nets").mkdir()
    (tmp_path / "nets" / "tiny.onnx").write_bytes(cnn((4,), size=8).SerializeToString())
    return tmp_path / "nets"


def test_models_become_knowledge_in_the_state_folder(mlcd: Mlcd, folder: Path, home: Path):
    answer = mlcd("learn", "--models", folder, "--knobs", "knobs.yaml", "--no-operators", "--by", "passes")
    assert answer.code == 0
    assert "tiny, fp32, 1 thread: 2 batches" in answer.err
    assert ": 1 model; use it" in answer.out
    knowledge = read_knowledge(home / "knowledge" / "nets")
    assert [len(model.cells) for model in knowledge.models] == [2]
    assert "mlcd learn --models" in knowledge.source
    again = mlcd("learn", "--models", folder, "--knobs", "knobs.yaml", "--no-operators", "--by", "passes")
    assert (again.code, again.err) == (0, "")


def test_the_zoo_is_written_where_one_says(mlcd: Mlcd, tmp_path: Path):
    answer = mlcd("learn", "--zoo", tmp_path / "zoo")
    assert answer.code == 0
    assert len(list((tmp_path / "zoo").glob("*.onnx"))) >= 20


def test_nothing_to_measure_is_one_line(mlcd: Mlcd, folder: Path, tmp_path: Path):
    assert "--models DIR" in mlcd("learn").complaint
    assert "--knobs FILE" in mlcd("learn", "--models", folder).complaint
    (tmp_path / "empty").mkdir()
    assert "--zoo" in mlcd("learn", "--models", tmp_path / "empty", "--knobs", "knobs.yaml").complaint
    assert "no such file" in mlcd("learn", "--models", folder, "--knobs", "none.yaml").complaint
    assert "sequence=128" in mlcd("learn", "--models", folder, "--shape", "sequence").complaint


def test_knobs_that_cannot_be_varied_here_are_one_line(mlcd: Mlcd, folder: Path, tmp_path: Path):
    (tmp_path / "knobs.yaml").write_text(KNOBS.replace("[1]", "[1, 4096]"))
    assert "threads 4096" in mlcd("learn", "--models", folder, "--knobs", "knobs.yaml").complaint
    (tmp_path / "knobs.yaml").write_text(KNOBS.replace("precision: [fp32]", "gpus: [1]"))
    assert "gpus" in mlcd("learn", "--models", folder, "--knobs", "knobs.yaml").complaint


def test_a_folder_without_any_usable_model_ends_with_one_line(mlcd: Mlcd, folder: Path):
    (folder / "tiny.onnx").write_text("no model")
    answer = mlcd("learn", "--models", folder, "--knobs", "knobs.yaml", "--no-operators", "--by", "passes")
    assert "no model could be measured" in answer.last_words
    assert "not an ONNX file" in answer.err
