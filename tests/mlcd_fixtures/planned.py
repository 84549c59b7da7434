"""Small jobs that train a language model by a plan."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mlcd.core.configuration import Choice, Offer, Space
from mlcd.core.job import Hints, Job
from mlcd.planners.modeling.architecture import Architecture, architecture_of
from mlcd.planners.train.nouns import PlanKnob, PlannedTraining, TrainingPlan
from mlcd.planners.train.plans.run_spec import flops_of_sequence

LLAMA_8B = architecture_of({
    "hidden_size": 4_096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
    "intermediate_size": 14_336, "vocab_size": 128_256,
})  # fmt: skip
ONE_BILLION = architecture_of({
    "hidden_size": 2_048, "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8,
    "intermediate_size": 8_192, "vocab_size": 128_256, "tie_word_embeddings": True,
})  # fmt: skip
KNOBS = (
    PlanKnob("tensor", (1, 2, 4, 8), env="TP"),
    PlanKnob("pipeline", (1, 2, 4), env="PP"),
    PlanKnob("micro_batch", (1, 2, 4, 8, 16), argument="--micro-batch"),
    PlanKnob("sharding", ("none", "zero2", "zero3"), env="ZERO"),
    PlanKnob("checkpointing", ("none", "full"), env="CKPT"),
)
GPUS = {"A10G": (24.0, 31.2), "A100-80GB": (80.0, 19.5), "H100": (80.0, 67.0), "V100": (16.0, 15.7)}
"""Memory and fp32 TFLOPS of each."""


def planned_task(
    model: Architecture = LLAMA_8B, knobs: tuple[PlanKnob, ...] = KNOBS, **changes: Any
) -> PlannedTraining:
    task = PlannedTraining(model, 4_096, 256, knobs, TrainingPlan(global_batch=256))
    return replace(task, **changes)


def planned_job(task: PlannedTraining | None = None, samples: float = 73_243.0, **changes: Any) -> Job:
    task = task or planned_task()
    model = task.architecture
    hints = Hints(model.params_b * 1e9, flops_of_sequence(model, task.sequence, task.fixed.adapter), task.global_batch)
    return replace(Job("planned", samples, hints=hints, ask=task), **changes)


def nodes_of(gpu: str, gpus: int, usd: float = 10.0, cloud: str = "") -> Offer:
    memory_gb, tflops = GPUS[gpu]
    return Offer(f"{gpus}x{gpu}", usd, 8.0, 64.0, gpu, gpus, tflops, memory_gb, network_gbps=100.0, cloud=cloud)


def machines(*offers: Offer, nodes: tuple[int, ...] = (1, 2, 3, 4)) -> Space:
    return Space(tuple(Choice(offer, nodes) for offer in offers))
