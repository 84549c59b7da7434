"""Runs of `mlcd serve` for a language model with made-up numbers: sweeps of concurrency on an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mlcd.core.configuration import Configuration, ProbeTime, Space
from mlcd.core.job import Goal, Job, Objective
from mlcd.core.ledger import Account, Ledger
from mlcd.core.measurement import Measurement, Outcome
from mlcd.planners.serve.llm.nouns import Engine, LanguageModel, Prompts
from mlcd.planners.serve.model_facts import ModelFacts
from mlcd.planners.serve.nouns import Cap, Counted, Figure, Knob, KnobTable, Level, Served, ServingTask, knobs_of
from mlcd.planners.serve.space import serving_space
from mlcd_fixtures.serving_runs import JOB, serving_run

PROMPTS = Prompts(input_tokens=500, output_tokens=200)
VLLM = LanguageModel(Engine("vllm", version="0.32.0"), prompts=PROMPTS, sweep=(1, 2, 4, 8, 16, 32))
CAPS = (Cap(Figure.TTFT_P95, 1.0), Cap(Figure.TPOT_P95, 0.030))
KNOBS: Mapping[str, tuple[Knob, ...]] = {
    "gpu": ("h100_sxm",),
    "gpus": (1, 2),
    "tp": (1, 2),
    "precision": ("bf16", "fp8"),
    "sequences": (128,),
}
TABLE = KnobTable(KNOBS, {"gpus": 3.0})
TASK = ServingTask(ModelFacts("org/Tiny-1B"), CAPS, counted=Counted.TOKENS, table=TABLE, language=VLLM)
CHAT = replace(JOB, name="tiny", goal=Goal(Objective.PER_DOLLAR, budget_usd=50.0), ask=TASK)


def chat_job(knobs: Mapping[str, tuple[Knob, ...]] = KNOBS, path: str = "", **engine: str) -> Job:
    """Serve with these knobs, on an engine that is told so."""
    language = replace(VLLM, engine=replace(VLLM.engine, **engine))
    table = KnobTable(knobs, {"gpus": 3.0}) if "gpus" in knobs else KnobTable(knobs, base_usd=0.1)
    return replace(CHAT, ask=replace(TASK, table=table, language=language, path=path))


def chat_space(job: Job = CHAT) -> Space:
    """Every setting of its knobs."""
    task = job.ask
    assert isinstance(task, ServingTask)
    assert task.table is not None
    return serving_space(task.table, ProbeTime(60.0, 0.0))


def show_sweep(place: Configuration) -> Measurement:
    """Made up: more at once, more tokens, each later; the faster the more GPUs are used."""
    knobs = dict(knobs_of(place))
    fast = float(knobs.get("tp", 1)) ** 0.7 * (1.4 if knobs.get("precision") == "fp8" else 1.0)
    levels = tuple(_level(concurrency, fast) for concurrency in VLLM.sweep)
    best = max((level for level in levels if level.high[Figure.TPOT_P95] <= 0.03), key=lambda each: each.rate)
    served = Served(best.figures, best.high, requests=900, levels=levels)
    return Measurement(place, Outcome.OK, 50.0, place.usd(50.0), best.rate, 0.01, 20.0, 12_000, evidence=served)


def _level(concurrency: int, fast: float) -> Level:
    tpot, ttft = (0.008 + 0.0006 * concurrency) / fast, (0.08 + 0.004 * concurrency) / fast
    figures = {Figure.TTFT_P95: 1.3 * ttft, Figure.TPOT_P95: 1.05 * tpot}
    rate = concurrency * PROMPTS.output_tokens / (ttft + (PROMPTS.output_tokens - 1) * tpot)
    return Level(concurrency, rate, 0.01, figures, {figure: 1.04 * at for figure, at in figures.items()})


def chat_run(ledger: Ledger, job: Job = CHAT, places: Sequence[Configuration] | None = None, **how: Any) -> str:
    """A run that tries these deployments, or all of them, and decides; its name."""
    space = chat_space(job)
    return serving_run(ledger, job, space, places or space.configurations, show_sweep, **how)


def chat_account(job: Job = CHAT, **how: Any) -> Account:
    """The account of such a run."""
    ledger = Ledger(None)
    account = ledger.account(chat_run(ledger, job, **how))
    ledger.close()
    return account
