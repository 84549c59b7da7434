"""Learning the memory prior from runs of many models."""

from __future__ import annotations

import numpy as np
from mlcd_fixtures.training_runs import run

from mlcd.catalog.gpus import gpu_named
from mlcd.planners.modeling.architecture import architecture_of
from mlcd.planners.train.nouns import Adapter, Checkpointing, Precision, TrainingPlan
from mlcd.planners.train.plans.memory_learning import learn_memory
from mlcd.planners.train.plans.memory_levels import sizes_of, tensors_gb
from mlcd.planners.train.plans.memory_prior import LEVELS
from mlcd.planners.train.plans.run_spec import MeasuredRun, RunSpec

MODELS = {
    f"m{hidden}": architecture_of(
        {
            "model_type": "llama", "hidden_size": hidden, "num_hidden_layers": 24, "num_attention_heads": 16,
            "intermediate_size": 3 * hidden, "vocab_size": 100_000,
        }
    )
    for hidden in (1024, 2048, 3072)
}  # fmt: skip


def run_spec_of(kernels: str) -> list[tuple[str, RunSpec]]:
    return [
        (name, run(lora(size, kept, kernels), architecture, gpu_named("H200")))
        for name, architecture in MODELS.items()
        for kept in (Checkpointing.NONE, Checkpointing.FULL)
        for size in (1, 4, 8)
    ]


def lora(size: int, kept: Checkpointing, kernels: str) -> TrainingPlan:
    precision = Precision.PURE_BF16
    return TrainingPlan(
        micro_batch=size, checkpointing=kept, adapter=Adapter.LORA, precision=precision, kernels=kernels
    )


def truth_gb(spec: RunSpec, **levels: float) -> float:
    return float(tensors_gb(np.array([levels.get(name, 0.0) for name in LEVELS])[None], sizes_of([spec]))[0])


def seen(name: str, spec: RunSpec, gb: float | None, failed: bool = False) -> MeasuredRun:
    return MeasuredRun(name, "a lab", spec, None if failed else 1.0, failed, gb)


def test_learning_recovers_the_levels_that_made_the_peaks() -> None:
    rows = [seen(name, spec, truth_gb(spec, logits=0.3, saved=-0.2)) for name, spec in run_spec_of("")]
    found = dict(zip(LEVELS, learn_memory(rows).of("")[0], strict=True))
    assert abs(found["logits"] - 0.3) < 0.08
    assert abs(found["saved"] + 0.2) < 0.08
    assert abs(found["state"]) < 0.02


def test_learning_separates_the_levels_of_different_kernels() -> None:
    rows = [
        seen(name, spec, truth_gb(spec, saved=level))
        for kernels, level in (("lean", -0.4), ("plain", 0.1))
        for name, spec in run_spec_of(kernels)
    ]
    prior, saved = learn_memory(rows), LEVELS.index("saved")
    assert prior.of("plain")[0][saved] - prior.of("lean")[0][saved] > 0.3
    assert prior.of("lean")[0][saved] < prior.of("another")[0][saved] < prior.of("plain")[0][saved]


def test_success_and_failure_without_a_peak_teach_too() -> None:
    close = [
        (name, spec)
        for name, spec in run_spec_of("")
        if spec.plan.checkpointing is Checkpointing.NONE and spec.plan.micro_batch == 8
    ]
    gpu = gpu_named("A100")
    tight = [(name, run(spec.plan, spec.architecture, gpu)) for name, spec in close]
    ran = learn_memory([seen(name, spec, None) for name, spec in tight])
    failed = learn_memory([seen(name, spec, None, failed=True) for name, spec in tight])
    saved = LEVELS.index("saved")
    assert ran.of("")[0][saved] < failed.of("")[0][saved]
