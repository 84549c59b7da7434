"""A job on functions as plain data: its plans, its stages or epochs, its calibration, the boundary."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from mlcd.core.decision import Decision
from mlcd.core.job import Job
from mlcd.core.ledger import Account
from mlcd.core.measurement import Measurement
from mlcd.planners.functions.nouns import (
    Allocation,
    Calibrated,
    Calibration,
    Epoch,
    FunctionsTask,
    Planned,
    StagePlan,
    Tariff,
    allocation_of,
    evidence_of,
    plan_of,
)
from mlcd.reports.functions.boundary import knee, ordered
from mlcd.reports.functions.rows import EpochRow, StageRow, best_trial, epoch_rows, stage_rows
from mlcd.reports.functions.words import chosen_plan, decision_sentence, functions_of


def serverless_document(serverless: FunctionsTask) -> dict[str, Any]:
    """What is trained, between which ends it may be allocated, and what that costs."""
    tuning, tariff = serverless.tuning, serverless.tariff
    return {
        "workload": asdict(serverless.workload),
        "phase": "training" if tuning is None else "tuning",
        "tuning": None
        if tuning is None
        else {
            "trials": tuning.trials,
            "eta": tuning.eta,
            "epochs_per_stage": tuning.epochs_per_stage,
            "stages": len(tuning.stages),
            "space": {name: list(ends) for name, ends in tuning.space.items()},
        },
        "limits": {
            "functions": list(serverless.functions),
            "memory_mb": list(serverless.memory_mb),
            "storages": list(serverless.storages),
            "concurrency": serverless.concurrency,
            "memory_at_once_mb": serverless.memory_at_once_mb,
        },
        "prices": tariff_document(tariff) if tariff is not None else None,
    }


def tariff_document(tariff: Tariff) -> dict[str, Any]:
    """Prices, with their date and where they are from."""
    return {
        "cloud": tariff.cloud,
        "region": tariff.region,
        "date": tariff.date,
        "source": tariff.source,
        "usd_per_gb_s": tariff.usd_per_gb_s,
        "usd_per_call": tariff.usd_per_call,
        "storages": {
            rate.name: {
                "usd_per_request": rate.usd_per_request,
                "usd_per_minute": rate.usd_per_minute,
                "largest_mb": _number(rate.largest_mb),
            }
            for rate in tariff.storages
        },
    }


def plan_document(job: Job, decision: Decision, boundary: Sequence[Planned] = ()) -> dict[str, Any]:
    """What would be done, and what it is chosen from; nothing was run for it."""
    return {
        "job": job.name,
        "on": job.on,
        "method": job.search.method,
        **serverless_document(functions_of(job)),
        "feasible": decision.configuration is not None,
        "because": decision.because,
        "binding": decision.binding or None,
        "relaxations": [
            {
                "budget_usd": way.budget_usd,
                "deadline_s": way.deadline_s,
                **allocation_document(allocation_of(way.configuration) if way.configuration is not None else None),
            }
            for way in decision.relaxations
        ],
        **planned_documents(decision, job),
        "boundary": boundary_document(boundary),
    }


def plans_document(decision: Decision) -> list[dict[str, Any]]:
    """Every plan that keeps the limits, the chosen one first: only what will be run can be certified."""
    chosen = chosen_plan(decision)
    calibration = plan_of(decision).calibration
    modelled = calibration is None or calibration.modelled
    return [
        method_document(plan, chosen=plan is chosen, certified=plan is chosen and decision.certified, modelled=modelled)
        for plan in plan_of(decision).plans
    ]


def method_document(
    plan: StagePlan, *, chosen: bool = False, certified: bool = False, modelled: bool = False
) -> dict[str, Any]:
    """The plan of one method, stage by stage. `numbers`: whether the model was calibrated by measuring."""
    return {
        "method": plan.method,
        "chosen": chosen,
        "certified": certified,
        "numbers": "modelled" if modelled else "predicted",
        "seconds": plan.seconds,
        "usd": plan.usd,
        "stages": [{"stage": i, **planned_document(each)} for i, each in enumerate(plan.stages, 1)],
    }


def planned_document(planned: Planned) -> dict[str, Any]:
    """A stage with its allocation, or a point of the boundary."""
    stage = {"trials": planned.stage.trials, "epochs": planned.stage.epochs}
    return {**stage, **allocation_document(planned.allocation), "seconds": planned.seconds, "usd": planned.usd}


def boundary_document(points: Sequence[Planned]) -> list[dict[str, Any]]:
    """The boundary: one epoch of one trial on each allocation that nothing beats, the fastest first."""
    bend = knee(points)
    return [
        {**allocation_document(p.allocation), "seconds": p.seconds, "usd": p.usd, "knee": p == bend}
        for p in ordered(points)
    ]


def calibration_document(calibration: Calibration) -> dict[str, Any]:
    """What is known of the platform, and whether it was measured."""
    return {
        "numbers": "modelled" if calibration.modelled else "measured",
        "source": calibration.source,
        "rel_error": calibration.rel_error,
        "compute": [{"memory_mb": memory, "s_per_mb": s_per_mb} for memory, s_per_mb in calibration.compute],
        "load_mb_per_s": calibration.load_mb_per_s,
        "start_s": calibration.start[0],
        "start_s_per_function": calibration.start[1],
        "storages": {
            name: {
                "latency_s": link.latency_s,
                "mb_per_s": link.mb_per_s,
                "exchanges": [{"functions": functions, "seconds": seconds} for functions, seconds in link.exchanges],
            }
            for name, link in calibration.links.items()
        },
    }


def planned_documents(decision: Decision, job: Job) -> dict[str, Any]:
    """What only a decision about functions has: its words, all plans, and what they rest on."""
    calibration = plan_of(decision).calibration
    return {
        "words": decision_sentence(decision, job),
        "plans": plans_document(decision),
        "calibration": calibration_document(calibration) if calibration is not None else None,
    }


def ran_document(account: Account) -> dict[str, Any]:
    """Each stage of a tuning run, or each epoch of a training run, as it went."""
    if functions_of(account.job).tuning is None:
        return {"stages": [], "epochs": [epoch_document(row) for row in epoch_rows(account)], "best": None}
    found = best_trial(account)
    best = {"trial": found.trial, "loss": _number(found.loss), "hyperparameters": found.drawn} if found else None
    return {"stages": [stage_document(row) for row in stage_rows(account)], "epochs": [], "best": best}


def stage_document(row: StageRow) -> dict[str, Any]:
    """A stage as it went, beside its plan."""
    best, planned = row.best, row.planned
    return {
        "stage": row.number,
        "trials": row.stage.trials,
        "trials_told": row.trials,
        "kept": row.kept,
        "epochs": row.stage.epochs,
        **allocation_document(row.allocation),
        "best_trial": best.trial if best is not None else None,
        "best_loss": _number(best.loss) if best is not None else None,
        "seconds": row.seconds,
        "usd": row.usd,
        "planned_s": planned.seconds if planned is not None else None,
        "planned_usd": planned.usd if planned is not None else None,
        "retries": row.retries,
        "launches": [str(launch.outcome) for launch in row.launches],
    }


def epoch_document(row: EpochRow) -> dict[str, Any]:
    """An epoch as it went, or a launch that broke."""
    place = allocation_document(row.allocation)
    if row.epoch is None:
        broke = {"epoch": None, "loss": None, "seconds": row.seconds, "usd": row.usd}
        return {**broke, **place, "outcome": str(row.launch.outcome), "detail": row.launch.detail}
    return {**_epoch(row.epoch), **place, "outcome": str(row.launch.outcome), "detail": row.epoch.detail}


def probe_document(m: Measurement) -> dict[str, Any]:
    """What a calibration probe, or a sample, has measured."""
    shown = evidence_of(m)
    return {
        **allocation_document(allocation_of(m.configuration)),
        "outcome": str(m.outcome),
        "seconds": m.seconds,
        "usd": m.usd,
        "calibrated": _calibrated(shown.calibrated) if shown.calibrated is not None else None,
        "losses": [_number(epoch.loss) for epoch in shown.epochs],
        "detail": m.detail,
    }


def allocation_document(allocation: Allocation | None) -> dict[str, Any]:
    """Functions, memory and storage."""
    return asdict(allocation) if allocation is not None else dict.fromkeys(("functions", "memory_mb", "storage"))


def _epoch(epoch: Epoch) -> dict[str, Any]:
    told = asdict(epoch)
    told["epoch"], told["loss"] = told.pop("number"), _number(epoch.loss)
    return told


def _calibrated(found: Calibrated) -> dict[str, Any]:
    return {
        "s_per_mb": found.s_per_mb,
        "load_mb_per_s": found.load_mb_per_s,
        "start_s": found.start_s,
        "sync_s": found.sync_s,
        "transfers": [{"mb": mb, "seconds": seconds} for mb, seconds in found.transfers],
    }


def _number(value: float) -> float | None:
    """JSON has no infinity and no NaN."""
    return value if math.isfinite(value) else None
