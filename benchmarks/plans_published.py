"""The predictions of `mlcd plan` for models with a published training time, compared with it.

    nice -n 10 python benchmarks/plans_published.py

Each row is one machine, as published, and the best predicted plan. We measured none of these runs, and the priors were
not learned from them. Sources:

TinyLlama   github.com/jzhang38/TinyLlama (README): 22B tokens in 32 hours on 8 A100-40GB, bf16, fused kernels
NeMo        NeMo 24.12, performance summary: tokens/s for each of 8 H100 in FP8, by Megatron and Transformer Engine
NeMo ViT    NeMo user guide, ViT performance: samples/s on 8 A100-80GB and on 8 H100
DeiT        Touvron et al., 2021, section 5.6: 300 epochs of ImageNet in 53 hours on 8 V100-32GB, fp16
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import yaml

from mlcd.core.planner import planner_of
from mlcd.planners.jobfile.read import parse_job
from mlcd.planners.train.plans.outlook import PlanOutlook

LLAMA_8B = {"layers": 32, "hidden": 4096, "heads": 32, "kv_heads": 8, "ffn": 14336, "vocab": 128256}
LLAMA_7B = {"layers": 32, "hidden": 4096, "heads": 32, "ffn": 11008, "vocab": 32000}
LLAMA_70B = {"layers": 80, "hidden": 8192, "heads": 64, "kv_heads": 8, "ffn": 28672, "vocab": 32000}
TINY = {"layers": 22, "hidden": 2048, "heads": 32, "kv_heads": 4, "ffn": 5632, "vocab": 32000}
VIT_G = {"encoder": True, "layers": 40, "hidden": 1408, "heads": 16, "ffn": 6144}
VIT_B = {"encoder": True, "layers": 12, "hidden": 768, "heads": 12, "ffn": 3072}
KNOBS = {
    "tensor": "1..8",
    "pipeline": "1..8",
    "micro_batch": "1..64",
    "sharding": ["none", "zero2", "zero3"],
    "checkpointing": ["none", "full"],
}


class Published(NamedTuple):
    """One published training run, and its hours."""

    name: str
    model: dict[str, Any]
    work: dict[str, float]
    batch: int
    sequence: int
    machine: str
    hours: float | None
    precision: str = "bf16"
    adapter: str = "full"


def by_rate(samples: float, rate: float) -> float:
    """Hours of so many samples, or tokens, at this rate."""
    return samples / rate / 3_600


RUNS = (
    Published("TinyLlama 1.1B, 22B tokens", TINY, {"tokens": 22e9}, 1024, 2048, "p4d.24xlarge", 32.0),
    Published(
        "Llama 3 8B, 1B tokens", LLAMA_8B, {"tokens": 1e9}, 128, 8192, "p5.48xlarge", by_rate(1e9, 8 * 12_273), "fp8"
    ),
    Published("Llama 3 8B LoRA, 1B tokens", LLAMA_8B, {"tokens": 1e9}, 32, 4096, "p5.48xlarge", None, "bf16", "lora"),
    Published(
        "Llama 2 7B LoRA, 1B tokens", LLAMA_7B, {"tokens": 1e9}, 32, 4096, "p5.48xlarge", by_rate(1e9, 8 * 24_824),
        "fp8", "lora",
    ),
    Published(
        "Llama 2 70B LoRA, 1B tokens", LLAMA_70B, {"tokens": 1e9}, 32, 4096, "p5.48xlarge", by_rate(1e9, 8 * 2_621),
        "fp8", "lora",
    ),
    Published("ViT g/14, 400M images", VIT_G, {"samples": 400e6}, 4096, 257, "p4de.24xlarge", by_rate(400e6, 693)),
    Published("ViT g/14, 400M images", VIT_G, {"samples": 400e6}, 4096, 257, "p5.48xlarge", by_rate(400e6, 1_428)),
    Published("DeiT-B, 300 epochs", VIT_B, {"samples": 384e6}, 1024, 197, "p3dn.24xlarge", 53.0, "fp16"),
)  # fmt: skip


def main() -> None:
    """Print a row of the table for each."""
    print("| model | machine | published | `mlcd plan` | cost | plan | ratio |\n|---|---|---|---|---|---|---|")
    for run in RUNS:
        plan = {field: {"env": f"MLCD_{field.upper()}", "values": values} for field, values in KNOBS.items()}
        block = {
            "model": run.model,
            "work": run.work,
            "global_batch": run.batch,
            "sequence": run.sequence,
            "plan": {**plan, "precision": run.precision, "adapter": run.adapter},
            "search": {"nodes": 1, "instances": [run.machine]},
        }
        job = parse_job(yaml.safe_dump({"name": "published", "mlcd": block}), Path("published.yaml"))
        best = PlanOutlook(job, planner_of(job).place(job).space).by_gpu[0]
        low, hours, high = (seconds / 3_600 for seconds in best.seconds)
        words = str(best.configuration).partition(", ")[2]
        published, ratio = ("-", "-") if run.hours is None else (f"{run.hours:.1f} h", f"{hours / run.hours:.2f}")
        print(
            f"| {run.name} | {run.machine} | {published} | {hours:.1f} h ({low:.1f} to {high:.1f}) "
            f"| ${best.usd[1]:,.0f} | {words} | {ratio} |"
        )


if __name__ == "__main__":
    main()
