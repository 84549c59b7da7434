"""Small made-up folders of recorded load tests, in the formats that `mlcd bench serve` reads."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

SECONDS = {"net_a": 1e-3, "net_b": 4e-3, "net_c": 2e-3}
"""That one sample takes on the whole device, by model."""


def write_device(folder: Path, missing: tuple[str, str, int, int] | None = None) -> Path:
    """points.csv, operators.csv and host.csv of three models on one GPU."""
    points, operators = [], []
    for model, each_s in SECONDS.items():
        for precision, faster in (("fp32", 1.0), ("bf16", 2.0)):
            for share in (50, 100):
                for batch in (1, 8, 64):
                    if (model, precision, share, batch) == missing:
                        continue
                    seconds = 2e-3 + batch * each_s / faster * 100 / share
                    points.append(
                        {
                            "model": model,
                            "family": "cnn",
                            "precision": precision,
                            "sm_share": share,
                            "batch": batch,
                            "rps": batch / seconds,
                            "peak_mb": 100 + 20 * batch / faster,
                            "weights_mb": 100,
                        }
                    )
        for batch in (8, 64):
            for operator, part in (("conv", 0.8), ("relu", 0.2)):
                operators.append(
                    {
                        "model": model,
                        "precision": "fp32",
                        "batch": batch,
                        "operator": operator,
                        "calls": 10,
                        "self_device_us": 0.25e6 * each_s * batch * part,
                        "device_mem_mb": 10 * batch * part,
                    }
                )
    hosts = [{"input": "image224", "cpu_cores": cores, "requests_per_s": 500 * cores} for cores in range(1, 6)]
    _write(folder / "points.csv", points)
    _write(folder / "operators.csv", operators)
    _write(folder / "host.csv", hosts)
    return folder


def write_instances(folder: Path) -> Path:
    """latency.csv and price.csv of two models, each on its own two machine types."""
    types = {"net_a": ("c5.large", "g4dn.xlarge"), "net_b": ("c5.2xlarge", "g4dn.xlarge")}
    rows = [
        {
            "instance_type": kind,
            "model": model,
            "batch_size": batch,
            "mean_ms": batch * (10 if kind.startswith("c5") else 2),
            "p50_ms": batch * (10 if kind.startswith("c5") else 2),
            "p95_ms": batch * (12 if kind.startswith("c5") else 3),
            "p99_ms": batch * (15 if kind.startswith("c5") else 4),
        }
        for model, kinds in types.items()
        for kind in kinds
        for batch in (10, 20)
    ]
    prices = {"c5.large": 0.1, "c5.2xlarge": 0.4, "g4dn.xlarge": 0.5}
    _write(folder / "latency.csv", rows)
    _write(folder / "price.csv", [{"instance_type": kind, "usd_per_hour": usd} for kind, usd in prices.items()])
    return folder


def write_language(folder: Path) -> Path:
    """load_tests.csv, llm_features.csv and gpu_features.csv of two language models; the big one does not fit a T4."""
    rows = [
        {
            "model": model,
            "gpu_type": gpu,
            "n_gpus": count,
            "num_users": users,
            "throughput_tok_per_s": 100 * users**0.5 * count,
            "ttft_p50_ms": 100,
            "ttft_p95_ms": 200,
            "itl_p50_ms": 40,
            "itl_p95_ms": 50,
            "e2e_p50_ms": 900,
            "e2e_p95_ms": 2_000,
            "price_usd_per_hour": usd,
        }
        for model, gpu, count, usd in (("small", "T4", 1, 0.5), ("small", "A100", 2, 8.0), ("big", "A100", 2, 8.0))
        for users in (1, 8)
    ]
    _write(folder / "load_tests.csv", rows)
    sizes = {"small": 3, "big": 20}
    _write(folder / "llm_features.csv", [{"model": m, "model_n_parameters": size} for m, size in sizes.items()])
    gpus = [("1 x T4", 1, 16, 300, 65), ("2 x A100", 2, 80, 1555, 312)]
    _write(
        folder / "gpu_features.csv",
        [
            {
                "gpu": gpu,
                "gpu_n_gpus": count,
                "gpu_memory_capacity_gb_total": memory,
                "gpu_memory_bandwidth": bandwidth,
                "gpu_tflops_tc_fp16": tflops,
            }
            for gpu, count, memory, bandwidth, tflops in gpus
        ],
    )
    return folder


MODELS = {
    "tiny": {"params_b": 8.0, "active_b": 8.0, "layers": 32, "hidden": 4096, "dense_hidden": 14336, "dense_layers": 32},
    "small": {"params_b": 32.0, "active_b": 32.0, "layers": 64, "hidden": 5120, "dense_hidden": 25600},
    "mixed": {"params_b": 30.5, "active_b": 3.3, "layers": 48, "hidden": 2048, "experts": 128, "experts_per_token": 8,
              "expert_hidden": 768},
}  # fmt: skip
"""Sizes of language models; what is left out is 0 or usual."""


def write_engines(folder: Path) -> Path:
    """points.csv, models.csv and systems.csv of three language models, each with deployments of its own.

    The first row is an older measurement of the second. tiny was measured with requests of two lengths.
    """
    usual = dict.fromkeys(("dense_hidden", "dense_layers", "experts", "experts_per_token", "shared_experts"), 0)
    usual |= {"expert_hidden": 0, "window": 0, "latent": 0, "heads": 32, "kv_heads": 8, "head_dim": 128}
    usual |= {"context": 32_768, "vocab": 128_256, "attention": "gqa", "note": ""}
    sizes = [{"model": model, "full_layers": each["layers"], **usual, **each} for model, each in MODELS.items()]
    systems = [
        {"system": "l4", "memory_gb": 22.5, "bandwidth_tb_s": 0.3, "tflops_bf16": 121, "tflops_fp8": 242},
        {"system": "h100_sxm", "memory_gb": 80, "bandwidth_tb_s": 3.35, "tflops_bf16": 989, "tflops_fp8": 1978},
    ]
    workloads = {"tiny": ((1024, 128), (2048, 512)), "small": ((1024, 128),), "mixed": ((1024, 128),)}
    deployments = {"tiny": (("l4", 1), ("h100_sxm", 1)), "small": (("h100_sxm", 1), ("h100_sxm", 2)),
                   "mixed": (("l4", 4), ("h100_sxm", 1), ("h100_sxm", 2))}  # fmt: skip
    points: list[dict[str, Any]] = []
    for model, lengths in workloads.items():
        for isl, osl in lengths:
            for system, gpus in deployments[model]:
                for concurrency in (1, 8, 64):
                    points.append(_engine_point(model, isl, osl, system, gpus, concurrency))
    _write(folder / "points.csv", [{**points[0], "ttft_ms": 9_999.0, "latest": 0}, *points])
    _write(folder / "models.csv", sizes)
    _write(folder / "systems.csv", systems)
    return folder


def _engine_point(model: str, isl: int, osl: int, system: str, gpus: int, concurrency: int) -> dict[str, Any]:
    """TPOT is the time to read the weights in 8 bits, and 1 % more for each request; TTFT grows with them."""
    bandwidth, usd = {"l4": (0.3e12, 0.8), "h100_sxm": (3.35e12, 6.88)}[system]
    tpot_s = 1e-3 + MODELS[model]["active_b"] * 1e9 / bandwidth / gpus * (1 + concurrency / 100)
    ttft_s = 0.02 + isl * 1e-5 * concurrency / gpus
    rate = concurrency * osl / (ttft_s + (osl - 1) * tpot_s) / gpus
    knobs = {"precision": "fp8", "mode": "agg", "gpus": gpus, "tp": gpus, "dp": 1, "ep": 1, "decode_workers": 1}
    prefill = {f"prefill_{name}": 0 for name in ("workers", "tp", "dp", "ep")}
    figures = {"ttft_ms": 1e3 * ttft_s, "tpot_ms": 1e3 * tpot_s, "tokens_per_s_per_gpu": rate, "usd_per_hour": usd}
    workload = {"model": model, "isl": isl, "osl": osl, "system": system, "engine": "vllm", "version": ""}
    return {**workload, **knobs, **prefill, "concurrency": concurrency, **figures, "latest": 1}


def _write(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    listed = list(rows)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(listed[0]))
        writer.writeheader()
        writer.writerows(listed)
