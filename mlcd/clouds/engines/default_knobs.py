"""The knobs of an engine on this machine, and their prices, if there is no file of knobs.

On GPUs: number of GPUs, tensor parallelism, precision, tokens and sequences per step. Without GPUs: cores, precision,
tokens and sequences per step, KV cache size, and whether the model is compiled.
"""

from __future__ import annotations

import os

from mlcd.catalog.gpus import known_gpus
from mlcd.clouds.local.gpus import UsableGpus, short_name
from mlcd.core.errors import UserError
from mlcd.planners.serve.nouns import Knob, KnobTable
from mlcd.planners.serve.space import USD_PER_CORE_HOUR, USD_PER_GB_HOUR

FP8_GPUS = ("H100", "H200", "H20", "GH200", "B200", "B300", "GB200", "L4", "L40S", "L40")
"""GPUs with fp8 arithmetic."""
BATCHED_TOKENS, SEQUENCES = (2_048, 8_192, 16_384), (64, 256, 1_024)
CPU_BATCHED_TOKENS, CPU_SEQUENCES = (512, 2_048), (16, 64)


def default_knob_table(engine: str, found: UsableGpus, usd_per_gpu_hour: float | None) -> KnobTable:
    """The knobs of this machine."""
    return _on_gpus(found, usd_per_gpu_hour) if found.gpus else _on_cpu(engine)


def memory_gb() -> float:
    """The memory of this machine, in 1e9 bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9


def _on_gpus(found: UsableGpus, usd: float | None) -> KnobTable:
    if usd is None:
        raise UserError(f"{found.kinds}: the price of a GPU is missing: --price 2.50, or --knobs FILE with `price:`")
    name, count = short_name(found.gpus[0].name), len(found.gpus)
    gpus = tuple(2**i for i in range(count.bit_length()) if 2**i <= count)
    kind: dict[str, tuple[Knob, ...]] = {"gpu": (name,)} if name.lower() in known_gpus() else {}
    knobs: dict[str, tuple[Knob, ...]] = {
        **kind,
        "gpus": gpus,
        "tp": gpus,
        "precision": ("bf16", "fp8") if name in FP8_GPUS else ("bf16",),
        "batched_tokens": BATCHED_TOKENS,
        "sequences": SEQUENCES,
    }
    return KnobTable(knobs, {"gpus": usd}, gpus="gpus")


def _on_cpu(engine: str) -> KnobTable:
    cores, gb = os.cpu_count() or 1, memory_gb()
    threads = tuple(sorted({min(2**i, cores) for i in range(8)}))
    knobs: dict[str, tuple[Knob, ...]] = {
        "threads": threads,
        "precision": ("bf16", "fp32"),
        "batched_tokens": CPU_BATCHED_TOKENS,
        "sequences": CPU_SEQUENCES,
        "kv_cache_gb": tuple(each for each in (1, 4, 16) if each <= gb / 2) or (1,),
        "eager": ("eager", "compiled"),
    }
    if engine == "llama.cpp":  # its file determines the precision, and it allocates what it needs
        knobs = {name: knobs[name] for name in ("threads", "batched_tokens", "sequences")}
    prices = {"threads": USD_PER_CORE_HOUR, "kv_cache_gb": USD_PER_GB_HOUR}
    return KnobTable(knobs, {name: usd for name, usd in prices.items() if name in knobs}, cores="threads")
