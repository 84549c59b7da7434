"""A folder of measured plans: read as it says, and what is wrong with it said in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlcd_fixtures.measured_plans import read_rows, write_plans, write_rows

from mlcd.core.errors import RecordingError
from mlcd.planners.train.nouns import Checkpointing, Precision, Sharding
from mlcd_bench.plans.folder import COLUMNS, read_plans


def one(folder: Path, **changed: object) -> Path:
    """A folder with the first row, of which something is changed."""
    row = read_rows(write_plans(folder / "whole"))[0]
    return write_rows(folder / "one" / "plans.csv", [{**row, **changed}])


def test_each_row_is_read_correctly(tmp_path: Path) -> None:
    folder = write_plans(tmp_path)
    rows, plans = read_rows(folder), read_plans(folder)
    assert [plan.row for plan in plans] == list(range(1, len(rows) + 1))
    for written, read in zip(rows, plans, strict=True):
        spec = read.spec
        assert (read.file, read.model, read.source) == ("plans.csv", written["model"], "made-up")
        assert (read.outcome, read.usd_per_gpu_hour) == (written["outcome"], float(written["usd_per_gpu_hour"]))
        assert read.step_s == (float(written["iteration_s"]) if written["iteration_s"] else None)
        assert (spec.gpus, spec.sequence, spec.global_batch) == (8, int(written["seq"]), 256)
        assert (spec.plan.tensor, spec.plan.micro_batch) == (int(written["tp"]), int(written["micro_batch"]))
        assert spec.plan.sharding == Sharding(written["sharding"])
        assert spec.architecture.params_b == pytest.approx(float(written["params"]) / 1e9)
        assert spec.gpu.memory_gb == 80
        assert (spec.data_parallel, spec.accumulation) == (int(written["dp"]), int(written["accumulation"]))
        assert read.seen.out_of_memory is (written["outcome"] == "out_of_memory")
        assert read.seen.allocated_gb == read.allocated_gb


@pytest.mark.parametrize("gpu", ["A100-40GB", "A100-80GB", "H100-80GB", "H100-96GB", "H200-141GB"])
def test_a_gpu_has_at_most_the_memory_that_its_name_says(tmp_path: Path, gpu: str) -> None:
    (plan,) = read_plans(one(tmp_path, gpu_type=gpu))
    said = int(gpu.split("-")[1].removesuffix("GB"))
    assert said - 2 < plan.spec.gpu.memory_gb <= said


@pytest.mark.parametrize(
    ("written", "precision"),
    [("pure_bf16", Precision.PURE_BF16), ("amp_bf16", Precision.BF16), ("amp_fp8", Precision.FP8)],
)
def test_precisions_have_our_names(tmp_path: Path, written: str, precision: Precision) -> None:
    (plan,) = read_plans(one(tmp_path, precision=written))
    assert plan.spec.plan.precision is precision


def test_unknown_checkpointing_is_taken_for_full(tmp_path: Path) -> None:
    (plan,) = read_plans(one(tmp_path, checkpointing="unknown"))
    assert plan.spec.plan.checkpointing is Checkpointing.FULL


def test_the_experts_of_a_mixture_follow_from_its_parameters(tmp_path: Path) -> None:
    mixtral = {"params": 46_702_800_000, "active_params": 12_880_000_000, "layers": 32, "hidden": 4096, "heads": 32,
               "kv_heads": 8, "ffn": 14_336, "vocab": 32_000}  # fmt: skip
    (plan,) = read_plans(one(tmp_path, **mixtral))
    assert (plan.spec.architecture.experts, plan.spec.architecture.experts_per_token) == (8, 2)


@pytest.mark.parametrize("missing", ["model", "trainable_params", "outcome", "usd_per_gpu_hour"])
def test_a_missing_column_is_reported(tmp_path: Path, missing: str) -> None:
    row = {name: cell for name, cell in read_rows(write_plans(tmp_path / "whole"))[0].items() if name != missing}
    folder = write_rows(tmp_path / "less" / "plans.csv", [row])
    with pytest.raises(RecordingError, match=f"plans.csv:1: missing column {missing};"):
        read_plans(folder)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"tp": "0"}, "tp '0': must be more than zero"),
        ({"micro_batch": "1.5"}, "micro_batch '1.5': expected a whole number"),
        ({"sharding": "zero9"}, "sharding 'zero9': expected one of none, zero2, zero3"),
        ({"precision": "int3"}, "precision 'int3': expected one of pure_bf16"),
        ({"gpu_type": "H999"}, "gpu_type: .*H999"),
        ({"outcome": "ok", "iteration_s": ""}, "iteration_s ''"),
        ({"params": "0.085"}, "params '0.085': the model's sizes amount to some"),
    ],
)
def test_a_bad_cell_is_reported_with_its_line(tmp_path: Path, changed: dict[str, str], said: str) -> None:
    with pytest.raises(RecordingError, match=f"plans.csv:2: {said}"):
        read_plans(one(tmp_path, **changed))


def test_a_folder_without_plans_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="no such folder"):
        read_plans(tmp_path / "nowhere")
    with pytest.raises(RecordingError, match="no measured plans"):
        read_plans(tmp_path)
    (tmp_path / "empty.csv").write_text(",".join(COLUMNS) + "\n")
    with pytest.raises(RecordingError, match="no measured plans"):
        read_plans(tmp_path)
