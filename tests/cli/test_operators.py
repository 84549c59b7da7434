"""mlcd operators, for a person and for a program, and with input that is wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mlcd_bench.learn import zoo

onnx = pytest.importorskip("onnx", reason="pip install 'mlcd[serve]'")
pytest.importorskip("onnxruntime", reason="pip install 'mlcd[serve]'")

Mlcd = Callable[..., Any]


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    path = tmp_path / "encoder.onnx"
    onnx.save(zoo.transformer(sequence=None), str(path))
    return path


@pytest.fixture
def vision(tmp_path: Path) -> Path:
    path = tmp_path / "vision.onnx"
    onnx.save(zoo.cnn(), str(path))
    return path


def test_the_table_marks_the_key_operators_and_a_line_sums_up(mlcd: Mlcd, vision: Path) -> None:
    answer = mlcd("operators", vision)
    assert answer.code == 0
    rows = {line.split()[0]: line.split() for line in answer.out.splitlines()}
    assert rows["Conv"][1] == "KEY"
    assert rows["Gemm"][1] == "1"
    assert "Key operators: Conv." in answer.out.splitlines()[-1]
    assert answer.err == ""


def test_a_program_reads_shares_that_sum_to_one(mlcd: Mlcd, encoder: Path) -> None:
    told = mlcd("operators", encoder, "--shape", "sequence=16", "--batch", 4, "-o", "json").document
    assert (told["model"], told["family"], told["input_kind"], told["batch"]) == (
        "encoder",
        "transformer",
        "tokens16",
        4,
    )
    for share in ("share_of_time", "share_of_memory"):
        assert sum(each[share] for each in told["operators"]) == pytest.approx(1)
    assert {each["name"] for each in told["operators"] if each["key"]} == set(told["key_operators"])
    assert told["inputs"] == [{"name": "tokens", "dtype": "int64", "shape": ["batch", "sequence"]}]


def test_the_threshold_decides_what_is_key(mlcd: Mlcd, vision: Path) -> None:
    most = mlcd("operators", vision, "--threshold", "0.0001%", "-o", "json").document
    assert {"Conv", "Gemm"} <= set(most["key_operators"])
    assert most["threshold"] == pytest.approx(1e-6)


def test_a_model_of_a_fixed_batch_is_run_at_it(mlcd: Mlcd, tmp_path: Path) -> None:
    model = zoo.cnn((4,), size=8)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 3
    onnx.save(model, str(tmp_path / "fixed.onnx"))
    assert mlcd("operators", "fixed.onnx", "-o", "json").document["batch"] == 3
    assert "its batch is fixed at 3" in mlcd("operators", "fixed.onnx", "--batch", 4).complaint


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "axis 'sequence' of its input 'tokens' is free; give its size, such as --shape sequence=128"),
        (("--shape", "sequnce=3"), "unknown axis 'sequnce': did you mean 'sequence'?"),
        (("--shape", "sequence"), "expected an axis and its size, such as sequence=128"),
        (("--shape", "sequence=0"), "expected an axis and its size"),
        (("--shape", "sequence=4", "--threshold", "7"), "'7': expected a share above 0 and up to 1"),
        (("--shape", "sequence=4", "--batch", "0"), "0 is not in the range"),
    ],
)
def test_wrong_options_are_one_line(mlcd: Mlcd, encoder: Path, options: tuple[str, ...], words: str) -> None:
    assert words in mlcd("operators", encoder, *options).complaint


def test_wrong_files_are_one_line(mlcd: Mlcd, vision: Path, tmp_path: Path) -> None:
    (tmp_path / "text.onnx").write_text("not a model\n")
    assert "text.onnx: is not an ONNX file" in mlcd("operators", "text.onnx").complaint
    (tmp_path / "cut.onnx").write_bytes(vision.read_bytes()[:5_000])
    assert "cut.onnx: is truncated: 5,000 bytes" in mlcd("operators", "cut.onnx").complaint
    with (tmp_path / "large.onnx").open("wb") as file:
        file.truncate(3 << 30)
    assert "large.onnx: 3.2 GB, but one ONNX file holds at most 2.1 GB" in mlcd("operators", "large.onnx").complaint
    onnx.save(zoo.cnn(), "apart.onnx", save_as_external_data=True, location="apart.bin", size_threshold=0)
    (tmp_path / "apart.bin").unlink()
    assert "its weights are in 'apart.bin', which does not exist" in mlcd("operators", "apart.onnx").complaint
    assert "no such file" in mlcd("operators", "none.onnx").complaint


def test_an_operator_that_onnx_runtime_does_not_know_is_one_line(mlcd_process: Mlcd, tmp_path: Path) -> None:
    """In a process of its own, where the runtime's own log would show."""
    model = zoo.cnn()
    model.graph.node[1].op_type = "Frobnicate"
    onnx.save(model, str(tmp_path / "odd.onnx"))
    assert "No Op registered for Frobnicate" in mlcd_process("operators", "odd.onnx").complaint
