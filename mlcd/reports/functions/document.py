"""The parts of a JSON document that only functions have: plans, stages or epochs, calibration, Pareto boundary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from mlcd.core.decision import Decision
from mlcd.core.job import Job
from mlcd.core.measurement import Measurement
from mlcd.core.part import part_fields
from mlcd.planners.functions.nouns import (
    Allocation,
    Calibration,
    FunctionsTask,
    Planned,
    StagePlan,
    allocation_of,
    evidence_of,
    functions_task,
    plan_of,
)
from mlcd.planners.functions.workload import Tariff
from mlcd.reports.functions.rows import EpochRow, StageRow, best_trial, epoch_rows, fastest_first, knee, stage_rows
from mlcd.reports.functions.trials import MOST_TRIALS, trial_rows
from mlcd.reports.functions.words import chosen_plan, decision_sentence, plan_name
from mlcd.reports.run_document import tune
from mlcd.reports.run_document.core import SomeFunctions
from mlcd.reports.story import Story

Fields = dict[str, Any]


def functions_job(task: FunctionsTask) -> tune.FunctionsJob:
    """The workload, the allowed allocations, and the prices."""
    tuning, tariff = task.tuning, task.tariff
    return tune.FunctionsJob.model_validate(
        {
            "workload": task.workload,
            "phase": "training" if tuning is None else "tuning",
            "tuning": tuning and {**asdict(tuning), "stages": len(tuning.stages)},
            "limits": task,
            "prices": prices_of(tariff) if tariff is not None else None,
        }
    )


def prices_of(tariff: Tariff) -> tune.FunctionPrices:
    """Prices, with their date and source."""
    fields = {name: getattr(tariff, name) for name in tune.FunctionPrices.model_fields}
    return tune.FunctionPrices.model_validate({**fields, "storages": {rate.name: rate for rate in tariff.storages}})


def plan_document(job: Job, decision: Decision, boundary: Sequence[Planned] = ()) -> Fields:
    """The plan of a job that was not run, and the boundary that it was chosen from."""
    return {
        "job": job.name,
        "on": job.on,
        "method": job.search.method,
        **functions_job(functions_task(job)).model_dump(mode="json"),
        "feasible": decision.configuration is not None,
        "because": decision.because,
        "binding": decision.binding or None,
        "relaxations": [
            {
                "budget_usd": way.budget_usd,
                "deadline_s": way.deadline_s,
                **allocation_fields(allocation_of(way.configuration) if way.configuration is not None else None),
            }
            for way in decision.relaxations
        ],
        **tune.FunctionPlans(**plans_of(decision, job)).model_dump(mode="json"),
        "boundary": [each.model_dump() for each in boundary_of(boundary, chosen_plan(decision))],
    }


def plans_of(decision: Decision, job: Job) -> Fields:
    """The decision in words, every plan that keeps the limits, the chosen one first, and their calibration.

    Only the chosen plan can be certified.
    """
    calibration, chosen = plan_of(decision).calibration, chosen_plan(decision)
    return {
        "words": decision_sentence(decision, job),
        "plans": [_plan(plan, plan is chosen, decision) for plan in plan_of(decision).plans],
        "calibration": _calibration(calibration) if calibration is not None else None,
    }


def functions_run(story: Story, boundary: Sequence[Planned]) -> Fields:
    """The probes, and the measured stages of a tuning run or epochs of a training run."""
    account, decision, best = story.account, story.decision, best_trial(story.account)
    tuning = functions_task(story.job).tuning
    return {
        "probes": [{**_probe(probe.measurement), "because": probe.because} for probe in story.probes],
        "boundary": boundary_of(boundary, chosen_plan(decision) if decision is not None else None),
        "stages": [_stage(row) for row in stage_rows(account)] if tuning is not None else [],
        "epochs": [_epoch(row) for row in epoch_rows(account)] if tuning is None else [],
        "best": best and {"trial": best.trial, "loss": best.loss, "hyperparameters": best.hyperparameters},
        "trials": [
            part_fields(tune.TrialResult, row, losses=list(row.losses)) for row in trial_rows(account)[:MOST_TRIALS]
        ],
        "ended": account.ended.because if account.ended is not None else None,
    }


def boundary_of(points: Sequence[Planned], chosen: StagePlan | None) -> list[tune.EpochAllocation]:
    """The Pareto boundary: one epoch of one trial on each Pareto-optimal allocation, the fastest first."""
    bend, used = knee(points), {each.allocation for each in chosen.stages} if chosen is not None else set()
    return [
        tune.EpochAllocation(
            **part_fields(tune.EpochAllocation, p, **allocation_fields(p.allocation), label=str(p.allocation)),
            knee=p == bend,
            used=p.allocation in used,
        )
        for p in fastest_first(points)
    ]


def allocation_fields(allocation: Allocation | None) -> Fields:
    """The fields of an allocation: functions, memory and storage."""
    return {name: getattr(allocation, name, None) for name in SomeFunctions.model_fields}


def _plan(plan: StagePlan, is_chosen: bool, decision: Decision) -> Fields:
    calibration = plan_of(decision).calibration
    modelled = calibration is None or calibration.modelled
    return part_fields(
        tune.FunctionPlan,
        plan,
        name=plan_name(plan.method),
        chosen=is_chosen,
        certified=is_chosen and decision.certified,
        numbers="modelled" if modelled else "predicted",
        stages=[
            part_fields(tune.AllocatedStage, p, **asdict(p.stage), **allocation_fields(p.allocation), stage=i)
            for i, p in enumerate(plan.stages, 1)
        ],
    )


def _calibration(calibration: Calibration) -> Fields:
    return part_fields(
        tune.PlatformCalibration,
        calibration,
        numbers="modelled" if calibration.modelled else "measured",
        compute=_pairs(calibration.compute, "memory_mb", "s_per_mb"),
        start_s=calibration.start[0],
        start_s_per_function=calibration.start[1],
        storages={
            name: part_fields(tune.StorageSpeed, link, exchanges=_pairs(link.exchanges, "functions", "seconds"))
            for name, link in calibration.links.items()
        },
    )


def _probe(m: Measurement) -> Fields:
    """The measurements of a calibration probe, or of a sample."""
    result, losses = evidence_of(m).calibrated, [epoch.loss for epoch in evidence_of(m).epochs]
    calibrated = result and part_fields(
        tune.CalibrationResult, result, transfers=_pairs(result.transfers, "mb", "seconds")
    )
    return part_fields(
        tune.FunctionProbe, m, **allocation_fields(allocation_of(m.configuration)), calibrated=calibrated, losses=losses
    )


def _stage(row: StageRow) -> Fields:
    best, planned = row.best, row.planned
    return part_fields(
        tune.StageResult,
        row,
        **allocation_fields(row.allocation),
        stage=row.number,
        trials=row.stage.trials,
        trials_told=row.trials,
        epochs=row.stage.epochs,
        best_trial=best.trial if best is not None else None,
        best_loss=best.loss if best is not None else None,
        planned_s=planned.seconds if planned is not None else None,
        planned_usd=planned.usd if planned is not None else None,
        launches=[str(launch.outcome) for launch in row.launches],
    )


def _epoch(row: EpochRow) -> Fields:
    """A measured epoch, or a failed launch."""
    epoch = asdict(row.epoch) if row.epoch is not None else {"number": None, "loss": None, "detail": row.launch.detail}
    took = {"epoch": epoch.pop("number"), "seconds": row.seconds, "usd": row.usd}
    return {**epoch, **took, **allocation_fields(row.allocation), "outcome": str(row.launch.outcome)}


def _pairs(pairs: Sequence[tuple[float, float]], *names: str) -> list[Fields]:
    return [dict(zip(names, pair, strict=True)) for pair in pairs]
