"""The roofline model alone: textbook times of prefill and decode, with nothing fitted or learned.

Symbols   b    requests at once in a worker         W(b)   bytes of weights that a step of b tokens reads
          K    bytes of keys and values of a request that is half answered
          n    GPUs of a worker                     g      one GPU

    TPOT = (W(b) + b K) / (n bandwidth_g)        TTFT = 2 active parameters x tokens in / (n peak_g)

Williams, Waterman and Patterson, 'Roofline', CACM 2009.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mlcd.catalog.gpus import Gpu, gpu_named
from mlcd.core.configuration import Configuration, Floats, Space
from mlcd.core.errors import UserError
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.strategy import Probe, Step
from mlcd.planners.modeling.architecture import Architecture
from mlcd.planners.serve.known_models import Cell, Knowledge
from mlcd.planners.serve.llm.deployment import Deployment, deployment_of
from mlcd.planners.serve.llm.nouns import LanguageModel
from mlcd.planners.serve.llm.weights import kv_bytes, weight_bytes_read
from mlcd.planners.serve.nouns import QUANTILES, Figure, service_of
from mlcd.planners.serve.service_level import objective_value
from mlcd_bench.baselines.serve.candidates import over, untried
from mlcd_bench.baselines.serve.popular import best_then_cheapest


@dataclass(frozen=True)
class Roofline:
    """The order by the formula, best first; it learns nothing from its trials."""

    knowledge: Knowledge
    seed: int = 0

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """The best untried configuration expected to keep the caps; else the one expected to miss them least."""
        open_ = untried(job, space, history)
        if (end := over(job, history, open_)) is not None:
            return end
        cells = [forecast(self.knowledge, job, configuration) for configuration in space.configurations]
        pick = best_then_cheapest(scores(job, space, cells), space, open_)
        return Probe(space.configurations[pick], "the best untried configuration by the roofline")


def scores(job: Job, space: Space, cells: Sequence[Cell]) -> Floats:
    """The value of each configuration by its forecast; if that breaks a cap, minus the excess."""
    caps = service_of(job).caps
    values = []
    for cell, usd_per_hour in zip(cells, space.usd_per_hour, strict=True):
        kept = cell.within(caps)
        if kept is not None:
            values.append(objective_value(job, float(usd_per_hour), kept.rate))
            continue
        levels = cell.levels.values() or (cell,)
        values.append(-min(max(level.figures[cap.figure] / cap.at_most_s for cap in caps) for level in levels))
    return np.array(values)


def forecast(knowledge: Knowledge, job: Job, configuration: Configuration) -> Cell:
    """The forecast of a configuration, at its concurrency or at each concurrency of a sweep."""
    model = service_of(job).language
    if model is None or model.architecture is None:
        raise UserError(f"roofline needs the sizes of a language model, and those of {job.name} are unknown")
    deployment = deployment_of(configuration, model.engine.name)
    gpu = gpu_named(deployment.gpu, knowledge.resources.get("gpu"))
    if deployment.concurrency:
        return _level(model, model.architecture, deployment, gpu, deployment.concurrency)
    sweep = deployment.sweep or model.sweep
    return Cell(0.0, {}, levels={at: _level(model, model.architecture, deployment, gpu, at) for at in sweep})


def _level(model: LanguageModel, sizes: Architecture, deployment: Deployment, gpu: Gpu, concurrency: int) -> Cell:
    prompts, gpus, users = model.prompts, deployment.worker_gpus, concurrency / deployment.decode_workers
    half_answered = prompts.input_tokens + prompts.output_tokens / 2
    read = weight_bytes_read(sizes, deployment.precision, users)
    read += users * kv_bytes(sizes, deployment.kv_cache, half_answered)
    tpot_s = read / (gpus * 1e9 * gpu.bandwidth_gb_s)
    prefill_gpus = deployment.prefill_gpus if deployment.split else gpus
    flops = 2e9 * sizes.active_b * prompts.input_tokens
    ttft_s = flops / (prefill_gpus * 1e12 * gpu.tflops(deployment.precision))
    answer_s = ttft_s + (prompts.output_tokens - 1) * tpot_s
    return Cell(concurrency * prompts.output_tokens / answer_s, figures_of(ttft_s, tpot_s, answer_s))


def figures_of(ttft_s: float, tpot_s: float, answer_s: float) -> dict[Figure, float]:
    """All figures of a forecast. It has no spread, so all quantiles are equal."""
    answer, ttft = dict.fromkeys(QUANTILES, answer_s), dict.fromkeys((Figure.TTFT_P50, Figure.TTFT_P95), ttft_s)
    between = (Figure.TPOT_P50, Figure.TPOT_P95, Figure.ITL_P50, Figure.ITL_P95)
    return answer | ttft | dict.fromkeys(between, tpot_s)
