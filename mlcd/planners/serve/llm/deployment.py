"""How a language model is deployed: a configuration's knobs by name, with what is usual where one is not set.

One worker is an engine on tp x pp x dp GPUs. Aggregated (`agg`), workers do both prefill and decode. Split (`disagg`),
prefill workers read the prompts and decode workers, which tp, pp, dp and ep are about, write the answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mlcd.core.configuration import Configuration
from mlcd.planners.serve.nouns import Knob, Knobs, knobs_of

AGG, DISAGG = "agg", "disagg"
SWEEP = "sweep"
"""The knob that lists the requests at once which a trial tries, as in '1 4 16', where deployments differ in that."""
WORDS = {"gpu": "", "engine": "", "precision": "bf16", "mode": AGG, "kv_cache": "auto", "eager": ""}
COUNTS = (
    "gpus", "tp", "pp", "dp", "ep", "decode_workers", "prefill_workers", "prefill_tp", "prefill_dp", "prefill_ep",
    "batched_tokens", "sequences", "concurrency", "threads",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Deployment:
    """The knobs of a deployment. `gpu`: its type, empty on a CPU, which has `threads` instead.

    `tp`, `pp`, `dp`, `ep`: tensor, pipeline, attention-data and expert parallelism of a worker. `batched_tokens`,
    `sequences`: the most in one step, 0 for the engine's own default. `concurrency`: 0 where a trial sweeps it.
    `sweep`: over which numbers, where the deployment says it. `rest`: knobs that no law knows.
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
        """Whether prefill has workers of its own."""
        return self.mode == DISAGG

    @property
    def worker_gpus(self) -> int:
        """GPUs of a worker that decodes."""
        return self.tp * self.pp * self.dp

    @property
    def prefill_gpus(self) -> int:
        """GPUs of a worker that prefills, where these are others."""
        return self.prefill_tp * self.prefill_dp


def deployment_of(configuration: Configuration, engine: str = "") -> Deployment:
    """That a configuration's knobs make. `engine`: the job's own, where it is no knob."""
    return deployment(knobs_of(configuration), engine)


def deployment(knobs: Knobs, engine: str = "") -> Deployment:
    """From knobs. GPUs that nothing else says the use of share the layers (tensor parallelism)."""
    set_ = dict(knobs)
    values: dict[str, Knob] = {name: str(set_.get(name, usual)) for name, usual in WORDS.items()}
    values |= {name: int(set_[name]) for name in COUNTS if name in set_}
    if "kv_cache_gb" in set_:
        values["kv_cache_gb"] = float(set_["kv_cache_gb"])
    values["engine"] = values["engine"] or engine
    known = {*WORDS, *COUNTS, "kv_cache_gb", SWEEP}
    rest = tuple((name, value) for name, value in knobs if name not in known)
    sweep = tuple(map(int, str(set_.get(SWEEP, "")).split()))
    return Deployment(**_parallelism(values), sweep=sweep, rest=rest)  # type: ignore[arg-type]


def _parallelism(values: Mapping[str, Knob]) -> dict[str, Knob]:
    """With the number of GPUs, the parallelism and the number of workers agreeing, where one of them was left out."""
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
