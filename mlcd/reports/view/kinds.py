"""What only some runs have to show: the trials of a service, the plans and the epochs of a run on functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mlcd.core.measurement import Measurement
from mlcd.planners.functions.nouns import FunctionsTask, Planned, StagePlan, plan_of
from mlcd.planners.serve.nouns import Figure, Served, ServingTask, knobs_of, serving_task
from mlcd.planners.serve.promise import certifies, keeps
from mlcd.reports.functions.boundary import knee, ordered
from mlcd.reports.functions.document import planned_document
from mlcd.reports.functions.rows import EpochRow, StageRow, run_rows
from mlcd.reports.functions.words import chosen_plan, plan_name
from mlcd.reports.serve.words import UNITS, broken_words, usd_per_million
from mlcd.reports.story import Story, Tried


def serving(story: Story) -> dict[str, Any] | None:
    """Of a run that serves a model: its operators, its trials, what is asked of it."""
    service = serving_task(story.job)
    if service is None:
        return None
    return {
        "model": service.model.name,
        "operators": operators(service),
        "trials": [_trial(story, service, trial) for trial in story.probes],
        "caps": [{"figure": str(c.figure), "at_most_ms": 1_000 * c.at_most_s, "words": str(c)} for c in service.caps],
        "min_rate": service.min_rate,
        "unit": UNITS[service.counted],
        "counted": str(service.counted),
    }


def operators(service: ServingTask) -> list[dict[str, Any]]:
    """The operators of one pass of the model, the longest first; none where nobody looked."""
    if not service.model.profiles:
        return []
    profile = service.model.profiles[0]
    ranked = sorted(profile.operators, key=lambda each: -each.seconds)
    return [{"kind": each.name, "count": each.calls, "share": profile.shares[each.name]} for each in ranked]


def functions(story: Story, boundary: Sequence[Planned]) -> dict[str, Any] | None:
    """Of a run on functions: its plan beside others, what an epoch takes where, and what was done."""
    if not isinstance(story.job.ask, FunctionsTask):
        return None
    decision = story.decision
    chosen = chosen_plan(decision) if decision is not None else None
    plans = plan_of(decision).plans if decision is not None else ()
    even = next((plan for plan in plans if plan.method == "fixed"), None)
    return {
        "tuning": story.job.ask.tuning is not None,
        "plans": [_plan(plan, chosen) for plan in plans],
        "even_split": None if even is None else {"seconds": even.seconds, "usd": even.usd},
        "boundary": _boundary(boundary, chosen),
        "done": [_done(row) for row in run_rows(story.account)],
    }


def _trial(story: Story, service: ServingTask, trial: Tried) -> dict[str, Any]:
    m, judged = trial.measurement, story.together(trial)
    return {
        "number": trial.number,
        "label": str(m.configuration),
        "knobs": dict(knobs_of(m.configuration)),
        "rate": m.samples_per_s,
        "low": m.slow_samples_per_s if m.ok else None,
        "high": m.fast_samples_per_s if m.ok else None,
        **{f"{figure}_ms": _ms(m, figure) for figure in Figure},
        "usd_per_hour": m.configuration.usd_per_hour,
        "usd_per_million": usd_per_million(m) if m.ok else None,
        "peak_gb": m.evidence.peak_gb if isinstance(m.evidence, Served) else None,
        "keeps": keeps(story.job, judged) if m.ok else None,
        "certified": certifies(story.job, judged) if m.ok else None,
        "breaks": broken_words(judged if m.ok else m, service),
        "chosen": trial is story.chosen,
        "outcome": str(m.outcome),
        "usd": m.usd,
        "seconds": m.seconds,
        "because": trial.because,
        "detail": m.detail,
    }


def _ms(m: Measurement, figure: Figure) -> float | None:
    seconds = m.evidence.figures.get(figure) if isinstance(m.evidence, Served) else None
    return 1_000 * seconds if seconds is not None and math.isfinite(seconds) else None


def _plan(plan: StagePlan, chosen: StagePlan | None) -> dict[str, Any]:
    return {
        "name": plan_name(plan.method),
        "method": plan.method,
        "chosen": plan is chosen,
        "seconds": plan.seconds,
        "usd": plan.usd,
        "stages": [{"stage": i, **planned_document(each)} for i, each in enumerate(plan.stages, 1)],
    }


def _boundary(points: Sequence[Planned], chosen: StagePlan | None) -> list[dict[str, Any]]:
    used = {each.allocation for each in chosen.stages} if chosen is not None else set()
    bend = knee(points)
    return [
        {
            "seconds": p.seconds,
            "usd": p.usd,
            "label": str(p.allocation),
            "storage": p.allocation.storage,
            "knee": p == bend,
            "used": p.allocation in used,
        }
        for p in ordered(points)
    ]


def _done(row: StageRow | EpochRow) -> dict[str, Any]:
    if isinstance(row, StageRow):
        number, loss = {"stage": row.number, "epoch": None}, row.best.loss if row.best is not None else None
    else:
        epoch = row.epoch
        number = {"stage": None, "epoch": epoch.number if epoch is not None else None}
        loss = epoch.loss if epoch is not None else None
    return {
        **number,
        "label": str(row.allocation or ""),
        "seconds": row.seconds,
        "usd": row.usd,
        "loss": loss if loss is not None and math.isfinite(loss) else None,
    }
