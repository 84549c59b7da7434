"""A folder of measured training runs of language models: CSV files with a plan a row.

The columns are those of `COLUMNS`; others are ignored. Two values are inferred: the number of
experts of a mixture, from its parameters, and whether activations were checkpointed if that is unknown. Then full
checkpointing is assumed: a constant factor of a source's times, which learning from that source corrects.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from mlcd.catalog.gpus import gpu_named
from mlcd.core.csv_table import Line, read_table
from mlcd.core.errors import RecordingError, UnknownName
from mlcd.planners.modeling.architecture import Architecture
from mlcd.planners.train.nouns import Adapter, Checkpointing, Precision, Sharding, TrainingPlan
from mlcd.planners.train.plans.run_spec import MeasuredRun, RunSpec

SIZES = ("params", "active_params", "layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "seq")
MACHINES = ("gpu_type", "gpus", "gpus_per_node")
PLAN = ("tp", "pp", "cp", "ep", "sharding", "micro_batch", "global_batch", "checkpointing", "adapter",
        "trainable_params", "precision", "attention", "kernels")  # fmt: skip
RESULT = ("outcome", "iteration_s", "peak_memory_gb", "peak_allocated_gb", "usd_per_gpu_hour")
COLUMNS = ("source", "model", *SIZES, *MACHINES, *PLAN, *RESULT)
PRECISIONS = {
    "pure_bf16": Precision.PURE_BF16,
    "pure_fp16": Precision.PURE_FP16,
    "amp_bf16": Precision.BF16,
    "amp_fp16": Precision.FP16,
    "amp_fp8": Precision.FP8,
    "fp32": Precision.FP32,
    "pure_fp32": Precision.FP32,
    "amp_fp32": Precision.FP32,
}
UNKNOWN = "unknown"
LIKELY = 3.0
"""Parameters that differ from the model's sizes by more than this factor are a mistake, such as another unit."""

Word = TypeVar("Word", bound=StrEnum)


class Outcome(StrEnum):
    """How a run ended."""

    OK = "ok"
    OUT_OF_MEMORY = "out_of_memory"


@dataclass(frozen=True)
class PlanRow:
    """A run: row `row` of `file`, counted from 1 without its header. Memory in 10^9 bytes."""

    file: str
    row: int
    model: str
    source: str
    spec: RunSpec
    outcome: Outcome
    step_s: float | None
    allocated_gb: float | None
    reserved_gb: float | None
    usd_per_gpu_hour: float
    evidence: str

    @property
    def group(self) -> tuple[str, str, int, str]:
        """The problem that its plan belongs to: file, model, tokens of a sequence, adapter."""
        return (self.file, self.model, self.spec.sequence, self.spec.plan.adapter)

    @property
    def seen(self) -> MeasuredRun:
        """The same run, in the form from which priors are learned."""
        failed = self.outcome is Outcome.OUT_OF_MEMORY
        return MeasuredRun(self.model, self.source, self.spec, self.step_s, failed, self.allocated_gb, self.reserved_gb)


def read_plans(folder: Path) -> list[PlanRow]:
    """The rows of every CSV file of a folder, in the order of their names."""
    if not folder.is_dir():
        raise RecordingError(f"{folder}: no such folder; expected one with CSV files of measured plans")
    rows = [row for path in sorted(folder.glob("*.csv")) for row in _rows(path)]
    if not rows:
        raise RecordingError(f"{folder}: no measured plans; expected CSV files with a plan a row")
    return rows


def _rows(path: Path) -> Iterator[PlanRow]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise RecordingError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8'}") from error
    lines = read_table(text, name=str(path), columns=COLUMNS, complain=RecordingError)
    return (_row(line, path.name, row) for row, line in enumerate(lines, start=1))


def _row(line: Line, file: str, row: int) -> PlanRow:
    outcome = _one_of(line, "outcome", Outcome)
    return PlanRow(
        file=file,
        row=row,
        model=line.text("model"),
        source=line.text("source"),
        spec=_run_spec(line),
        outcome=outcome,
        step_s=line.number("iteration_s", above_zero=True) if outcome is Outcome.OK else None,
        allocated_gb=line.optional_number("peak_allocated_gb") or None,
        reserved_gb=line.optional_number("peak_memory_gb") or None,
        usd_per_gpu_hour=line.number("usd_per_gpu_hour", above_zero=True),
        evidence=line.cells.get("evidence", ""),
    )


def _run_spec(line: Line) -> RunSpec:
    try:
        gpu = gpu_named(line.text("gpu_type"))
    except UnknownName as error:
        raise line.error(f"gpu_type: {error}") from None
    return RunSpec(
        architecture=_architecture(line),
        sequence=_positive(line, "seq"),
        global_batch=_positive(line, "global_batch"),
        gpu=gpu,
        gpus=_positive(line, "gpus"),
        gpus_per_node=_positive(line, "gpus_per_node"),
        plan=_plan(line),
        trainable=line.number("trainable_params", above_zero=True),
    )


def _plan(line: Line) -> TrainingPlan:
    checkpointing = line.text("checkpointing") != UNKNOWN
    kernels = line.cells["kernels"]
    return TrainingPlan(
        tensor=_positive(line, "tp"),
        pipeline=_positive(line, "pp"),
        micro_batch=_positive(line, "micro_batch"),
        sharding=_one_of(line, "sharding", Sharding),
        checkpointing=_one_of(line, "checkpointing", Checkpointing) if checkpointing else Checkpointing.FULL,
        adapter=_one_of(line, "adapter", Adapter),
        precision=_precision(line),
        context=_positive(line, "cp"),
        expert=_positive(line, "ep"),
        attention=line.text("attention"),
        kernels="" if kernels == "none" else kernels,
    )


def _precision(line: Line) -> Precision:
    written = line.text("precision")
    if written not in PRECISIONS:
        raise line.error(f"precision '{written}': expected one of {', '.join(PRECISIONS)}")
    return PRECISIONS[written]


def _one_of(line: Line, column: str, words: type[Word]) -> Word:
    written = line.text(column)
    try:
        return words(written)
    except ValueError:
        raise line.error(f"{column} '{written}': expected one of {', '.join(words)}") from None


def _positive(line: Line, column: str) -> int:
    line.number(column, above_zero=True)
    return line.count(column)


def _architecture(line: Line) -> Architecture:
    """The model's sizes. The row's number of parameters counts, unless it is impossible for these sizes."""
    params, active = (line.number(each, above_zero=True) for each in ("params", "active_params"))
    sizes = {each: _positive(line, each) for each in SIZES[2:8]}
    hidden, layers, ffn = sizes["hidden"], sizes["layers"], sizes["ffn"]
    head_dim = max(1, hidden // sizes["heads"])
    attention = layers * 2 * hidden * head_dim * (sizes["heads"] + sizes["kv_heads"])
    rest, expert = sizes["vocab"] * hidden + attention, 3 * layers * hidden * ffn
    mixture = active < 0.99 * params
    used = max(1, round((active - rest) / expert)) if mixture else 0
    experts = used + max(1, round((params - active) / expert)) if mixture else 0
    counted = rest + max(1, experts) * expert
    if not 1 / LIKELY < params / counted < LIKELY:
        raise line.error(f"params '{line.cells['params']}': the model's sizes amount to some {counted:.3g}")
    return Architecture(
        params_b=params / 1e9,
        active_b=active / 1e9,
        layers=layers,
        hidden=hidden,
        heads=sizes["heads"],
        kv_heads=sizes["kv_heads"],
        head_dim=head_dim,
        vocab=sizes["vocab"],
        dense_hidden=0 if mixture else ffn,
        dense_layers=0 if mixture else layers,
        experts=experts,
        experts_per_token=used,
        expert_hidden=ffn if mixture else 0,
        full_layers=layers,
    )
