"""mlcd export of a serving run, and what each kind of run refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from mlcd_fixtures.serving_runs import JOB, SERVICE, SPACE, serving_run

from mlcd.core.ledger import Ledger
from mlcd.planners.serve.nouns import Cap, Figure, knobs_of

Mlcd = Callable[..., Any]
WriteJob = Callable[..., Path]
FP32 = [c for c in SPACE.configurations if ("precision", "fp32") in knobs_of(c)][:6]


@pytest.fixture
def served(home: Path) -> Callable[..., str]:
    """Writes a serving run into the ledger of this test."""

    def write(**how: object) -> str:
        home.mkdir(exist_ok=True)
        ledger = Ledger(home / "ledger.db")
        run = serving_run(ledger, **how)  # type: ignore[arg-type]
        ledger.close()
        return run

    return write


def test_each_target_prints_its_file_and_says_what_is_not_in_it(mlcd: Mlcd, served: Callable[..., str]) -> None:
    served()
    for target, word in (
        ("kserve", "InferenceService"),
        ("triton", "max_batch_size"),
        ("mlserver", "mlserver start"),
        ("compose", "services:"),
    ):
        answer = mlcd("export", "last", "--to", target)
        assert answer.code == 0
        assert word in answer.out
        assert "not in the files: precision = int8 (" in answer.err
        assert "--to-dir DIR writes them all" in answer.err
        alone = mlcd("export", "last", "--to", target, "--file", "one.txt")
        assert "one of " in alone.out
        assert Path("one.txt").read_text() == answer.out


def test_a_folder_gets_all_files_and_the_model(mlcd: Mlcd, served: Callable[..., str], tmp_path: Path) -> None:
    model = tmp_path / "net.onnx"
    model.write_bytes(b"onnx")
    (tmp_path / "net.onnx.data").write_bytes(b"weights")
    served(job=replace(JOB, ask=replace(SERVICE, path=str(model))), places=FP32)
    answer = mlcd("export", "last", "--to", "compose", "--to-dir", "out/here")
    assert answer.code == 0
    folder = Path("out/here")
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    served_at = "model_repository/resnet50"
    assert found == {"docker-compose.yaml", "README.md", f"{served_at}/config.pbtxt", f"{served_at}/1/model.onnx",
                     f"{served_at}/1/net.onnx.data"}  # fmt: skip
    assert (folder / served_at / "1/model.onnx").read_bytes() == b"onnx"
    assert f"Copied {model}" in answer.out
    assert "docker compose up" in answer.out
    assert [line.partition(":")[0] for line in answer.err.splitlines()] == [
        "  -  NOT CERTIFIED on triton",
        "  -  memory 1.5 GB is an estimate, since triton was not measured",
        "  -  not in the files",
    ]


def test_a_model_that_is_not_here_or_of_another_precision_is_told(mlcd: Mlcd, served: Callable[..., str]) -> None:
    served(places=FP32)
    answer = mlcd("export", "last", "--to", "triton", "--to-dir", "out")
    assert "Put the model's file at out/resnet50/1/model.onnx: resnet50.onnx does not exist." in answer.out
    assert "tritonserver --model-repository=out" in answer.out
    served()
    assert (
        "at the chosen precision at out/resnet50/1/model.onnx"
        in mlcd("export", "last", "--to", "triton", "--to-dir", "out").out
    )


def test_the_document_has_the_files_and_the_knobs(mlcd: Mlcd, served: Callable[..., str]) -> None:
    run = served()
    document = mlcd("export", "last", "--to", "kserve", "-o", "json").document
    assert (document["run"], document["to"]) == (run, "kserve")
    assert document["knobs"] == mlcd("show", "last", "-o", "json").document["decision"]["configuration"]["knobs"]
    assert yaml.safe_load(document["files"][document["main"]])["kind"] == "InferenceService"
    assert [each["knob"] for each in document["not_expressed"]] == ["precision", "memory_gb"]
    assert any("int8 was not checked" in note for note in document["notes"])
    assert document["where"]["batch"] == "config.pbtxt: max_batch_size"


def test_each_kind_of_run_refuses_the_others_targets(
    mlcd: Mlcd, served: Callable[..., str], recorded_job: WriteJob
) -> None:
    run = served()
    complaint = mlcd("export", run, "--to", "skypilot").complaint
    assert f"run '{run}' serves a model: export it with --to kserve, triton, mlserver or compose" in complaint
    mlcd("train", recorded_job("budget: $40"), "--decide-only")
    for target in ("kserve", "triton", "mlserver", "compose"):
        assert "trains a job: export it with --to skypilot" in mlcd("export", "last", "--to", target).complaint


def test_a_run_that_chose_nothing_is_not_exported(mlcd: Mlcd, served: Callable[..., str]) -> None:
    served(job=replace(JOB, ask=replace(SERVICE, caps=(Cap(Figure.P95, 1e-6),))))
    assert (
        "has chosen no configuration; there is nothing to export" in mlcd("export", "last", "--to", "triton").complaint
    )


def test_what_cannot_be_written_is_one_line(mlcd: Mlcd, served: Callable[..., str], tmp_path: Path) -> None:
    served()
    both = mlcd("export", "last", "--to", "triton", "--file", "a", "--to-dir", "b").complaint
    assert "--file and --to-dir: choose one" in both
    assert "nope/x: cannot be written" in mlcd("export", "last", "--to", "triton", "--file", "nope/x").complaint
    (tmp_path / "taken").write_text("a file")
    assert "is a file" in mlcd("export", "last", "--to", "triton", "--to-dir", "taken").complaint
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "resnet50").write_text("a file where a folder has to be")
    assert "out/resnet50" in mlcd("export", "last", "--to", "triton", "--to-dir", "out").complaint


def test_a_task_is_one_file(mlcd: Mlcd, recorded_job: WriteJob) -> None:
    mlcd("train", recorded_job("budget: $40"), "--decide-only")
    assert "is a single file" in mlcd("export", "last", "--to", "skypilot", "--to-dir", "out").complaint


def test_a_serving_run_is_listed_shown_and_reported_like_any_other(mlcd: Mlcd, served: Callable[..., str]) -> None:
    run = served()
    assert run in mlcd("runs").out
    assert "a million requests; certified" in mlcd("show", "last").out
    assert mlcd("ledger", "last").code == 0
    assert mlcd("report", "last").code == 0
    assert "A million requests" in Path(f"{run}.html").read_text()
