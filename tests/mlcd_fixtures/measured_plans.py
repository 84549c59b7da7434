"""A small made-up folder of measured training plans, with simple laws for time and memory."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

SIZES = {"tiny": (12, 768, 12), "small": (24, 1024, 16), "large": (24, 4096, 32)}
"""Layers, width and heads of each model."""
SEQ, VOCAB, GPUS = 1_024, 50_304, 8


def write_plans(folder: Path, models: Iterable[str] = SIZES) -> Path:
    """plans.csv: of each model twelve plans on 8 A100s; some of the large one run out of memory."""
    return write_rows(folder / "plans.csv", [_row(model, *plan) for model in models for plan in _plans()])


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write them, and return the folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path.parent


def read_rows(folder: Path) -> list[dict[str, str]]:
    """What was written."""
    with (folder / "plans.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _plans() -> Iterable[tuple[int, int, str]]:
    splits = [(1, "none"), (1, "zero3"), (2, "none"), (4, "none")]
    return ((tensor, micro_batch, sharding) for tensor, sharding in splits for micro_batch in (1, 4, 16))


def _row(model: str, tensor: int, micro_batch: int, sharding: str) -> dict[str, Any]:
    layers, hidden, heads = SIZES[model]
    params = 12 * layers * hidden**2 + VOCAB * hidden
    ranks, batch = GPUS // tensor, 256
    shared = tensor * (ranks if sharding == "zero3" else 1)
    needed_gb = (16 * params / shared + 34 * micro_batch * SEQ * hidden * layers / tensor) / 1e9
    ran = needed_gb < 80
    efficiency = 0.5 * micro_batch / (micro_batch + 0.5) / tensor**0.2
    step_s = 6 * params * batch * SEQ / (GPUS * 312e12 * efficiency) + 0.02 * (sharding == "zero3")
    return {
        "source": "made-up", "model": model, "params": params, "active_params": params, "layers": layers,
        "hidden": hidden, "heads": heads, "kv_heads": heads, "ffn": 4 * hidden, "vocab": VOCAB, "seq": SEQ,
        "gpu_type": "A100-80GB", "gpus": GPUS, "gpus_per_node": 8, "nodes": 1, "tp": tensor, "pp": 1, "dp": ranks,
        "cp": 1, "ep": 1, "sharding": sharding, "micro_batch": micro_batch,
        "accumulation": batch // ranks // micro_batch, "global_batch": batch, "checkpointing": "none",
        "adapter": "full", "trainable_params": params, "precision": "amp_bf16", "attention": "flash",
        "kernels": "none", "outcome": "ok" if ran else "out_of_memory",
        "iteration_s": round(step_s, 6) if ran else "", "peak_memory_gb": "",
        "peak_allocated_gb": round(needed_gb, 3) if ran else "", "usd_per_gpu_hour": 3.4309, "evidence": "measured",
    }  # fmt: skip
