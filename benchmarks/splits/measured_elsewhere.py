"""Recordings made from four public sources of measurements, all held out.

A configuration is a machine type and a number of nodes, and has the best rate of any plan that was measured there. Each
job is sized to take eight hours at the best, as the shared recordings are. Configurations without a measurement are
left out.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from mlcd.clouds.recording import Point, Recording
from mlcd.core.configuration import Configuration, Offer
from mlcd.core.measurement import Outcome

BEST_HOURS = 8.0
FEWEST = 6
"""Fewest configurations of a recording."""

Rates = dict[Configuration, float]


def measured_elsewhere(shared: Path) -> dict[str, list[Recording]]:
    """The recordings of each source."""
    data = shared / "data"
    sources = {
        "training of MPT (mosaic)": _mosaic(data / "llm_train"),
        "inference on EC2 types (Ribbon)": _ribbon(data / "serve" / "ribbon", data / "catalog"),
        "language models by GPUs (LLM-Pilot)": _llm_pilot(data / "serve" / "llm_pilot"),
        "language models by GPUs (silicon)": _llm_silicon(data / "serve" / "llm_silicon"),
    }
    return {source: [_recording(*job) for job in jobs if len(job[1]) >= FEWEST] for source, jobs in sources.items()}


def _recording(name: str, rates: Rates) -> Recording:
    points = {where: Point(Outcome.OK, rate) for where, rate in sorted(rates.items(), key=lambda each: str(each[0]))}
    return Recording(name, max(rates.values()) * BEST_HOURS * 3_600, points)


def _mosaic(folder: Path) -> Iterator[tuple[str, Rates]]:
    """Nodes of 8 GPUs: p4d, p4de and p5 at list prices. Sequences of 2,048 tokens: the only ones on many nodes."""
    facts = {  # price, vCPUs, memory and network by the EC2 catalog; dense bf16 peak
        "A100-40GB": ("p4d.24xlarge", 21.957642, 96, 1_152, 312.0, 400),
        "A100-80GB": ("p4de.24xlarge", 27.44705, 96, 1_152, 312.0, 400),
        "H100-80GB": ("p5.48xlarge", 55.04, 192, 2_048, 989.5, 3_200),
    }
    jobs: defaultdict[str, Rates] = defaultdict(dict)
    for row in _rows(folder / "mosaic.csv"):
        if row["evidence"] == "measured" and row["outcome"] == "ok" and row["seq"] == "2048":
            name, usd, vcpus, memory, tflops, network = facts[row["gpu_type"]]
            gpu = row["gpu_type"].partition("-")[0]
            offer = Offer(name, usd, vcpus, memory, gpu, 8, tflops, network)
            rate = float(row["tokens_per_s_per_gpu"]) * int(row["gpus"])
            _keep_best(jobs[row["model"]], Configuration(offer, int(row["nodes"])), rate)
    yield from jobs.items()


def _ribbon(folder: Path, catalog: Path) -> Iterator[tuple[str, Rates]]:
    """One node of each type: answers a second with the batch that gives the most."""
    prices = {row["instance_type"]: float(row["usd_per_hour"]) for row in _rows(folder / "price.csv")}
    specs = {row["instance_type"]: row for row in _rows(catalog / "ec2_specs.csv")}
    jobs: defaultdict[str, Rates] = defaultdict(dict)
    for row in _rows(folder / "latency.csv"):
        name, about = row["instance_type"], specs[row["instance_type"]]
        t4 = about["gpu_name"] == "T4"
        offer = Offer(
            name,
            prices[name],
            vcpus=float(about["vcpus"]),
            memory_gb=float(about["memory_mib"]) / 1_024,
            accelerator="T4" if t4 else "",
            accelerators=int(t4),
            tflops_per_accelerator=8.1 if t4 else 0.0,
            network_gbps=float(about["peak_net_gbps"]),
        )
        rate = float(row["batch_size"]) / float(row["mean_ms"]) * 1_000
        _keep_best(jobs[f"ribbon-{row['model']}"], Configuration(offer, 1), rate)
    yield from jobs.items()


def _llm_pilot(folder: Path) -> Iterator[tuple[str, Rates]]:
    """Tokens a second with as many users as give the most. A GPU is a node; where two cost not twice one, a type."""
    features = {row["gpu"].split(" x ")[-1]: row for row in _rows(folder / "gpu_features.csv")}
    tests = list(_rows(folder / "load_tests.csv"))
    prices: defaultdict[str, set[float]] = defaultdict(set)
    for row in tests:
        prices[row["gpu_type"]].add(round(float(row["price_usd_per_hour"]) / int(row["n_gpus"]), 3))
    jobs: defaultdict[str, Rates] = defaultdict(dict)
    for row in tests:
        gpu, count, usd = row["gpu_type"], int(row["n_gpus"]), float(row["price_usd_per_hour"])
        about = features[gpu]
        tflops, memory = float(about["gpu_tflops_cuda_fp32"]), float(about["gpu_memory_capacity_gb"])
        one_price = len(prices[gpu]) == 1
        each = 1 if one_price else count
        name, price = (gpu, min(prices[gpu])) if one_price else (f"{gpu}-x{count}", usd)
        offer = Offer(name, price, 8.0 * each, memory * each, gpu, each, tflops, 25)
        rate = float(row["throughput_tok_per_s"])
        _keep_best(jobs[row["model"].split("/")[-1]], Configuration(offer, 1 if not one_price else count), rate)
    yield from jobs.items()


def _llm_silicon(folder: Path) -> Iterator[tuple[str, Rates]]:
    """Tokens a second of the best engine, precision and plan. A GPU is a node."""
    systems = {row["system"]: row for row in _rows(folder / "systems.csv")}
    jobs: defaultdict[str, Rates] = defaultdict(dict)
    for row in _rows(folder / "points.csv"):
        if row["latest"] == "1":
            about = systems[row["system"]]
            memory, network = float(about["memory_gb"]), 8 * float(about["network_gb_s"])
            gpu = row["system"].split("_")[0].upper()
            offer = Offer(
                row["system"], float(about["usd_per_hour"]), 24.0, memory, gpu, 1, float(about["tflops_bf16"]), network
            )
            rate = float(row["tokens_per_s_per_gpu"]) * int(row["gpus"])
            name = f"{row['model']}-{row['isl']}-{row['osl']}"
            _keep_best(jobs[name], Configuration(offer, int(row["gpus"])), rate)
    yield from jobs.items()


def _keep_best(rates: Rates, where: Configuration, rate: float) -> None:
    rates[where] = max(rate, rates.get(where, 0.0))


def _rows(file: Path) -> Iterator[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as handle:
        yield from csv.DictReader(handle)
