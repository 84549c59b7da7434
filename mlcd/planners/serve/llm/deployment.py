"""How a language model is deployed: the knobs of a configuration by name, with defaults for those that are not set.

A worker is an engine on tp x pp x dp GPUs. In mode `agg`, workers do prefill and decode. In mode `disagg`, prefill
workers process the prompts and decode workers generate the answers; tp, pp, dp and ep are those of decode workers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mlcd.core.configuration import Configuration
from mlcd.planners.serve.nouns import Knob, Knobs, knobs_of

AGG, DISAGG = "agg", "disagg"
SWEEP = "sweep"
"""The knob that lists the concurrencies of a trial, as in '1 4 16', if deployments differ in that."""
WORDS = {"gpu": "", "engine": "", "precision": "bf16", "mode": AGG, "kv_cache": "auto", "eager": ""}
COUNTS = (
    "gpus", "tp", "pp", "dp", "ep", "decode_workers", "prefill_workers", "prefill_tp", "prefill_dp", "prefill_ep",
    "batched_tokens", "sequences", "concurrency", "threads",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Deployment:
    """The knobs of a deployment. `gpu`: its type; empty on a CPU, which has `threads` instead.

    `tp`, `pp`, `dp`, `ep`: tensor, pipeline, attention-data and expert parallelism of a worker. `batched_tokens`,
    `sequences`: limits of one step; 0 for the engine's default. `concurrency`: 0 if a trial sweeps it; `sweep`: its
    values, if the deployment defines them. `rest`: all other knobs.
    """

    gpu: str = ""
    gpus: int = 1
    engine: str = ""
    precision: str = "bf16"
    mode: str = AGG
    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int = 1
    decode_workers: int = 1
    prefill_workers: int = 0
    prefill_tp: int = 0
    prefill_dp: int = 0
    prefill_ep: int = 0
    kv_cache: str = "auto"
    batched_tokens: int = 0
    sequences: int = 0
    concurrency: int = 0
    threads: int = 0
    kv_cache_gb: float = 0.0
    eager: str = ""
    sweep: tuple[int, ...] = ()
    rest: Knobs = ()

    @property
    def split(self) -> bool:
        """Whether prefill and decode have separate workers."""
        return self.mode == DISAGG

    @property
    def worker_gpus(self) -> int:
        """GPUs of a decode worker."""
        return self.tp * self.pp * self.dp

    @property
    def prefill_gpus(self) -> int:
        """GPUs of a prefill worker, in mode `disagg`."""
        return self.prefill_tp * self.prefill_dp


def deployment_of(configuration: Configuration, engine: str = "") -> Deployment:
    """The deployment of a configuration. `engine`: the job's engine, unless it is a knob."""
    return deployment(knobs_of(configuration), engine)


def deployment(knobs: Knobs, engine: str = "") -> Deployment:
    """The deployment of these knobs. GPUs without a stated use are used for tensor parallelism."""
    set_ = dict(knobs)
    values: dict[str, Knob] = {name: str(set_.get(name, default)) for name, default in WORDS.items()}
    values |= {name: int(set_[name]) for name in COUNTS if name in set_}
    if "kv_cache_gb" in set_:
        values["kv_cache_gb"] = float(set_["kv_cache_gb"])
    values["engine"] = values["engine"] or engine
    known = {*WORDS, *COUNTS, "kv_cache_gb", SWEEP}
    rest = tuple((name, value) for name, value in knobs if name not in known)
    sweep = tuple(map(int, str(set_.get(SWEEP, "")).split()))
    return Deployment(**_parallelism(values), sweep=sweep, rest=rest)  # type: ignore[arg-type]


def _parallelism(values: Mapping[str, Knob]) -> dict[str, Knob]:
    """Fill in whichever of GPUs, parallelism and workers was left out, so that they agree."""
    found = {"pp": 1, "dp": 1, **values}
    if found["mode"] == DISAGG:
        found = {"prefill_workers": 1, "decode_workers": 1, "tp": 1, **found}
        found = {"prefill_tp": found["tp"], "prefill_dp": 1, "prefill_ep": 1, **found}
        decode = int(found["tp"]) * int(found["pp"]) * int(found["dp"]) * int(found["decode_workers"])
        prefill = int(found["prefill_tp"]) * int(found["prefill_dp"]) * int(found["prefill_workers"])
        return {"gpus": decode + prefill, **found}
    others = int(found["pp"]) * int(found["dp"])
    gpus = int(found.get("gpus", others * int(found.get("tp", 1)) * int(found.get("decode_workers", 1))))
    tp = int(found.get("tp", max(1, gpus // (others * int(found.get("decode_workers", 1))))))
    workers = int(found.get("decode_workers", max(1, gpus // (others * tp))))
    return {**found, "gpus": gpus, "tp": tp, "decode_workers": workers}
