"""NVIDIA's aiconfigurator: deployments in the order of its own estimates (`pip install 'mlcd[aiconfigurator]'`).

It composes measured kernel times of each GPU. It knows the models whose configs it ships; a recorded model is matched
by name. Configurations that it cannot estimate come last. An estimate takes a second or two, so each is cached.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from math import inf

from mlcd.core.configuration import Configuration, Space
from mlcd.core.errors import UserError
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.strategy import Probe, Step
from mlcd.planners.modeling.architecture import Architecture
from mlcd.planners.serve.known_models import Cell, Knowledge
from mlcd.planners.serve.llm.deployment import Deployment, deployment_of
from mlcd.planners.serve.llm.nouns import Prompts
from mlcd.planners.serve.nouns import Figure, service_of
from mlcd_bench.baselines.serve.candidates import over, untried
from mlcd_bench.baselines.serve.popular import best_then_cheapest
from mlcd_bench.baselines.serve.roofline import figures_of, scores

NAME = "aiconfigurator"
KEPT = 4_096
MODES = {"bf16": "bfloat16", "fp8": "fp8", "fp4": "nvfp4"}
EXPERT_MODES = {**MODES, "fp8": "fp8_block"}
"""Its names of precisions, of dense models and of those with experts."""
UNKNOWN = Cell(1e-9, dict.fromkeys(Figure, inf))
"""Score of a configuration that it cannot estimate."""


def is_installed() -> bool:
    """Whether its package is installed."""
    return find_spec(NAME) is not None


def not_installed() -> UserError:
    """The error that says how to install it."""
    return UserError(f"{NAME} is not installed: pip install 'mlcd[{NAME}]'")


@dataclass(frozen=True)
class Aiconfigurator:
    """The order of its estimates, best first; it learns nothing from its trials."""

    knowledge: Knowledge
    seed: int = 0

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """The best untried configuration expected to keep the caps; else the one expected to miss them least."""
        if not is_installed():
            raise not_installed()
        open_ = untried(job, space, history)
        if (end := over(job, history, open_)) is not None:
            return end
        cells = [_forecast(job, configuration) for configuration in space.configurations]
        pick = best_then_cheapest(scores(job, space, cells), space, open_)
        return Probe(space.configurations[pick], f"the best untried configuration by {NAME}")


def _forecast(job: Job, configuration: Configuration) -> Cell:
    task = service_of(job)
    if task.language is None or task.language.architecture is None:
        raise UserError(f"{NAME} needs the sizes of a language model, and those of {job.name} are unknown")
    sizes = task.language.architecture
    deployment, prompts = deployment_of(configuration, task.language.engine.name), task.language.prompts
    if deployment.concurrency:
        return _level(task.model.name, sizes, deployment, prompts, deployment.concurrency)
    sweep = deployment.sweep or task.language.sweep
    return Cell(0.0, {}, levels={at: _level(task.model.name, sizes, deployment, prompts, at) for at in sweep})


@lru_cache(KEPT)
def _level(model: str, sizes: Architecture, deployment: Deployment, prompts: Prompts, concurrency: int) -> Cell:
    """Its estimate for this concurrency of the whole deployment."""
    logging.getLogger(NAME).setLevel(logging.ERROR)  # it logs each table that it reads
    logging.getLogger(f"{NAME}_core").setLevel(logging.ERROR)
    from aiconfigurator.cli.api import cli_estimate  # type: ignore[import-not-found]

    in_worker = max(1, round(concurrency / deployment.decode_workers / deployment.dp))
    try:
        estimate = cli_estimate(
            _path(model),
            deployment.gpu,
            backend_name=deployment.engine,
            isl=prompts.input_tokens,
            osl=prompts.output_tokens,
            database_mode="HYBRID",
            **_precision(sizes, deployment.precision),
            **(_split(deployment, in_worker) if deployment.split else _whole(deployment, in_worker)),
        )
    except Exception:  # anything that it does not support, from a kernel to a precision
        return UNKNOWN
    ttft_s, tpot_s = float(estimate.ttft) / 1_000, float(estimate.tpot) / 1_000
    answer_s = ttft_s + (prompts.output_tokens - 1) * tpot_s
    return Cell(concurrency * prompts.output_tokens / answer_s, figures_of(ttft_s, tpot_s, answer_s))


def _precision(sizes: Architecture, precision: str) -> dict[str, object]:
    """Its precision arguments: none for a model that is published in a precision of its own."""
    if sizes.expert_bits:
        return {}
    if not sizes.experts:
        return {"gemm_quant_mode": MODES.get(precision)}
    return {"gemm_quant_mode": EXPERT_MODES.get(precision), "moe_quant_mode": EXPERT_MODES.get(precision)}


def _whole(deployment: Deployment, batch: int) -> dict[str, object]:
    return {
        "batch_size": batch,
        "tp_size": deployment.tp,
        "pp_size": deployment.pp,
        "attention_dp_size": deployment.dp,
        "moe_ep_size": deployment.ep,
    }


def _split(deployment: Deployment, batch: int) -> dict[str, object]:
    return {
        "mode": "disagg",
        "decode_batch_size": batch,
        "decode_num_workers": deployment.decode_workers,
        "decode_tp_size": deployment.tp,
        "decode_attention_dp_size": deployment.dp,
        "decode_moe_ep_size": deployment.ep,
        "prefill_batch_size": 1,
        "prefill_num_workers": deployment.prefill_workers,
        "prefill_tp_size": deployment.prefill_tp,
        "prefill_attention_dp_size": deployment.prefill_dp,
        "prefill_moe_ep_size": deployment.prefill_ep,
    }


@lru_cache(KEPT)
def _path(model: str) -> str:
    """The full name of a model whose config it ships."""
    from importlib.resources import files

    named = (each.name for each in (files(f"{NAME}_core") / "model_configs").iterdir())
    paths = sorted(each.removesuffix("_config.json").replace("--", "/") for each in named)
    own = model.lower()
    return next((path for path in paths if path.partition("/")[2].lower().removeprefix("meta-") == own), model)
