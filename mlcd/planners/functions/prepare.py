"""Prepare a job on functions: sizes, prices, platform limits, reachable storages; and plan it without running."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from importlib.util import find_spec

from mlcd.core.decision import Decision
from mlcd.core.drive import conclude
from mlcd.core.errors import MissingExtra, UserError
from mlcd.core.history import History
from mlcd.core.home import home
from mlcd.core.job import Job
from mlcd.planners.functions import stored_calibrations
from mlcd.planners.functions.epoch_model.boundary import boundary
from mlcd.planners.functions.epoch_model.epoch import EpochModel
from mlcd.planners.functions.epoch_model.published import published
from mlcd.planners.functions.nouns import Calibration, FunctionsTask, Planned, Stage, functions_task
from mlcd.planners.functions.search import CalibrateAndPlan
from mlcd.planners.functions.space import calibration_space, tariff_of, usable_storages, why_nothing_fits
from mlcd.planners.functions.storages.local import available, reachable
from mlcd.planners.functions.tariff import load_tariff
from mlcd.planners.functions.workload import LONGEST_CALL_S, MB_PER_VCPU
from mlcd.planners.functions.workloads import sizes_mb

SIMULATED = "functions:simulated"
THIS_MACHINE = "functions"
MOST_ON_THIS_MACHINE = 16
"""Functions at once on this machine: each is a process."""


def prepared(job: Job) -> Job:
    """The job with its sizes, its prices and the limits of its platform; a `UserError` if it is impossible."""
    task = functions_task(job)
    workload = task.workload
    if not (workload.data_mb and workload.model_mb):
        data_mb, model_mb = sizes_mb(workload.model, workload.data, workload.samples, job.folder)
        workload = replace(workload, data_mb=workload.data_mb or data_mb, model_mb=workload.model_mb or model_mb)
        task = replace(task, workload=workload)
    task = replace(task, tariff=load_tariff("aws", home() / "catalog", task.workload.model_mb))
    if job.on == THIS_MACHINE:
        task = _limited_to_this_machine(task)
    if job.on != SIMULATED:
        task = replace(task, call_s=LONGEST_CALL_S)
    _check_limits(task)
    task = replace(task, storages=_reachable_storages(task, job.on))
    if task.tuning is None and job.target is None:
        raise UserError("what ends the training? Say --target-loss 0.66, or `target: loss <= 0.66` in `functions:`")
    return replace(job, ask=task, checkpoints=True)


def check_can_run(job: Job) -> None:
    """Raise an error if the job can be planned but not run: Lithops, or the class of model or data, is missing."""
    if job.on == SIMULATED:
        return
    if find_spec("lithops") is None:
        raise MissingExtra("running on functions", "lithops")
    workload = functions_task(job).workload
    sizes_mb(workload.model, workload.data, workload.samples, job.folder)


def _limited_to_this_machine(task: FunctionsTask) -> FunctionsTask:
    """The task within this machine's limits: processes, and the memory that its CPUs stand for on Lambda."""
    whole_mb = (os.cpu_count() or 1) * MB_PER_VCPU
    (fewest, most), (least_mb, most_mb) = task.functions, task.memory_mb
    if fewest > MOST_ON_THIS_MACHINE:
        raise UserError(
            f"{fewest} functions: this machine runs at most {MOST_ON_THIS_MACHINE} at once; use fewer, or a cloud"
        )
    if least_mb > whole_mb:
        raise UserError(f"{least_mb} MB need more CPUs than this machine has: use at most {whole_mb} MB")
    return replace(
        task,
        functions=(fewest, min(most, MOST_ON_THIS_MACHINE)),
        memory_mb=(least_mb, min(most_mb, whole_mb)),
        concurrency=min(task.concurrency or MOST_ON_THIS_MACHINE, MOST_ON_THIS_MACHINE),
        memory_at_once_mb=whole_mb,
    )


def _check_limits(task: FunctionsTask) -> None:
    fewest = task.functions[0]
    if task.concurrency is not None and fewest > task.concurrency:
        raise UserError(
            f"{fewest} functions are more than the account runs at once, {task.concurrency}: use fewer, "
            "or ask the cloud for more and say so with --concurrency"
        )
    if task.workload.batch > task.workload.samples:
        raise UserError(f"batch {task.workload.batch}: the data have only {task.workload.samples} samples")
    if (why := why_nothing_fits(task)) is not None:
        raise UserError(why)


def _reachable_storages(task: FunctionsTask, on: str) -> tuple[str, ...]:
    """The storages that can hold the model and can be reached; a `UserError` if none is left."""
    tariff, model_mb = task.tariff, task.workload.model_mb
    if not usable_storages(task) and tariff is not None:
        largest = max(tariff.storage(name).largest_mb for name in task.storages)
        holding = ",".join(rate.name for rate in tariff.storages if model_mb <= rate.largest_mb)
        raise UserError(
            f"the model has {model_mb:,g} MB, and an object of {' or '.join(task.storages)} at most {largest:,g} MB: "
            f"{f'choose another with --storage {holding}' if holding else 'no storage holds more'}"
        )
    for name, url in task.endpoints.items():
        if name in usable_storages(task) and on != SIMULATED:
            reachable(name, url)
    if on == SIMULATED:
        return usable_storages(task)
    if on != THIS_MACHINE:
        named = tuple(name for name in usable_storages(task) if name in task.endpoints)
        if not named:
            raise UserError(
                f"{on}: its functions cannot reach servers of this machine; name the URL of a storage in "
                "`endpoints:`, as in `s3: s3://my-bucket`"
            )
        return named
    absent = {name: available(name) for name in usable_storages(task) if name not in task.endpoints}
    kept = tuple(name for name in usable_storages(task) if absent.get(name) is None)
    if not kept:
        raise UserError(f"no storage is available: {'; '.join(why for why in absent.values() if why)}")
    return kept


@dataclass(frozen=True)
class PlanAhead:
    """The plan of a job that was not run, and the Pareto boundary of one epoch that it was chosen from."""

    job: Job
    decision: Decision
    boundary: tuple[Planned, ...]


def plan_ahead(job: Job) -> PlanAhead:
    """Plan a job from a stored or published calibration, without running anything."""
    job = prepared(job)
    task = functions_task(job)
    stored = (
        stored_calibrations.load(stored_calibrations.folder(), job.on, task.workload) if job.search.earlier else None
    )
    if stored is not None and set(usable_storages(task)) <= set(stored.links):
        calibration = replace(stored, source=f"stored, {stored.source}")
    else:
        calibration = published(task.workload)
    history = replace(History(), learned=stored_calibrations.document(calibration))
    space = calibration_space(task)
    finish = CalibrateAndPlan(job.search.method).answer(job, space, history)
    return PlanAhead(job, conclude(finish, job, space, history), boundary_of(job, calibration))


def boundary_of(job: Job, calibration: Calibration | None) -> tuple[Planned, ...]:
    """One epoch of the job on each Pareto-optimal allocation; empty without a calibration."""
    if not isinstance(job.ask, FunctionsTask) or calibration is None:
        return ()
    points = boundary(EpochModel(job.ask.workload, tariff_of(job.ask), calibration), job.ask)
    pairs = enumerate(zip(points.seconds.tolist(), points.usd.tolist(), strict=True))
    return tuple(Planned(Stage(1, 1), points.allocation(i), seconds, usd) for i, (seconds, usd) in pairs)
