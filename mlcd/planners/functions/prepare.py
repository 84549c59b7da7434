"""A job on functions with everything it needs: sizes, prices, storages, the platform, and what is known of it."""

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
from mlcd.planners.functions import calibrations
from mlcd.planners.functions.beliefs.boundary import boundary
from mlcd.planners.functions.beliefs.epoch import EpochModel
from mlcd.planners.functions.beliefs.published import published
from mlcd.planners.functions.nouns import Calibration, FunctionsTask, Planned, Stage, on_functions
from mlcd.planners.functions.search import PlanOnFunctions
from mlcd.planners.functions.space import calibration_space, frozen, nothing_fits, usable
from mlcd.planners.functions.storages.local import available, reachable
from mlcd.planners.functions.tariff import load_tariff
from mlcd.planners.functions.workload import LONGEST_CALL_S, MB_PER_VCPU
from mlcd.planners.functions.workloads import facts

SIMULATED = "functions:simulated"
HERE = "functions"
MOST_HERE = 16
"""Functions at once on this machine: each is a process of its own."""


def prepared(job: Job) -> Job:
    """The job with its sizes, its prices and the limits of its platform; one line for what it cannot do."""
    task = on_functions(job)
    workload = task.workload
    if not (workload.data_mb and workload.model_mb):
        data_mb, model_mb = facts(workload.model, workload.data, workload.samples, job.folder)
        workload = replace(workload, data_mb=workload.data_mb or data_mb, model_mb=workload.model_mb or model_mb)
        task = replace(task, workload=workload)
    task = replace(task, tariff=load_tariff("aws", home() / "catalog", task.workload.model_mb))
    if job.on == HERE:
        task = _on_this_machine(task)
    if job.on != SIMULATED:
        task = replace(task, call_s=LONGEST_CALL_S)
    _check_limits(task)
    task = replace(task, storages=_storages(task, job.on))
    if task.tuning is None and job.target is None:
        raise UserError("what ends the training? Say --target-loss 0.66, or `target: loss <= 0.66` in `functions:`")
    return replace(job, ask=task, checkpoints=True)


def check_functions(job: Job) -> None:
    """What running it takes, and planning does not: Lithops, and a model and data that are there to be trained."""
    if job.on == SIMULATED:
        return
    if find_spec("lithops") is None:
        raise MissingExtra("running on functions", "lithops")
    workload = on_functions(job).workload
    facts(workload.model, workload.data, workload.samples, job.folder)


def _on_this_machine(task: FunctionsTask) -> FunctionsTask:
    """What this machine can hold: so many processes, and as much memory as its processors stand for on Lambda."""
    whole_mb = (os.cpu_count() or 1) * MB_PER_VCPU
    (fewest, most), (least_mb, most_mb) = task.functions, task.memory_mb
    if fewest > MOST_HERE:
        raise UserError(f"{fewest} functions: this machine runs at most {MOST_HERE} at once; use fewer, or a cloud's")
    if least_mb > whole_mb:
        raise UserError(f"{least_mb} MB stand for more than this machine's processors: at most {whole_mb} MB here")
    return replace(
        task,
        functions=(fewest, min(most, MOST_HERE)),
        memory_mb=(least_mb, min(most_mb, whole_mb)),
        concurrency=min(task.concurrency or MOST_HERE, MOST_HERE),
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
        raise UserError(f"batch {task.workload.batch}: more than the {task.workload.samples} samples that there are")
    if (why := nothing_fits(task)) is not None:
        raise UserError(why)


def _storages(task: FunctionsTask, on: str) -> tuple[str, ...]:
    """Those that hold the model and can be reached; one line if none is left."""
    tariff, model_mb = task.tariff, task.workload.model_mb
    if not usable(task) and tariff is not None:
        largest = max(tariff.storage(name).largest_mb for name in task.storages)
        holding = ",".join(rate.name for rate in tariff.storages if model_mb <= rate.largest_mb)
        raise UserError(
            f"the model has {model_mb:,g} MB, and {' or '.join(task.storages)} holds {largest:,g} MB at the most "
            f"in one object: {f'choose another with --storage {holding}' if holding else 'no storage holds more'}"
        )
    for name, url in task.endpoints.items():
        if name in usable(task) and on != SIMULATED:
            reachable(name, url)
    if on == SIMULATED:
        return usable(task)
    if on != HERE:
        named = tuple(name for name in usable(task) if name in task.endpoints)
        if not named:
            raise UserError(
                f"{on}: functions there reach no server of this machine; name the URL of a storage in `endpoints:`, "
                "as in `s3: s3://my-bucket`"
            )
        return named
    absent = {name: available(name) for name in usable(task) if name not in task.endpoints}
    kept = tuple(name for name in usable(task) if absent.get(name) is None)
    if not kept:
        raise UserError(f"no storage to meet at: {'; '.join(why for why in absent.values() if why)}")
    return kept


@dataclass(frozen=True)
class PlanAhead:
    """What would be planned, and what it is chosen from: the boundary of one epoch."""

    job: Job
    decision: Decision
    boundary: tuple[Planned, ...]


def plan_ahead(job: Job) -> PlanAhead:
    """The boundary and the plans of a job, from what is stored or published; nothing is run."""
    job = prepared(job)
    task = on_functions(job)
    stored = calibrations.load(calibrations.folder(), job.on, task.workload) if job.search.earlier else None
    if stored is not None and set(usable(task)) <= set(stored.links):
        calibration = replace(stored, source=f"stored, {stored.source}")
    else:
        calibration = published(task.workload)
    found = replace(History(), learned=calibrations.document(calibration))
    space = calibration_space(task)
    finish = PlanOnFunctions(job.search.method).answer(job, space, found)
    return PlanAhead(job, conclude(finish, job, space, found), boundary_of(job, calibration))


def boundary_of(job: Job, calibration: Calibration | None) -> tuple[Planned, ...]:
    """One epoch of the job on each allocation that no other beats in time and in cost; none where nothing is known."""
    if not isinstance(job.ask, FunctionsTask) or calibration is None:
        return ()
    points = boundary(EpochModel(job.ask.workload, frozen(job.ask), calibration), job.ask)
    pairs = enumerate(zip(points.seconds.tolist(), points.usd.tolist(), strict=True))
    return tuple(Planned(Stage(1, 1), points.allocation(i), seconds, usd) for i, (seconds, usd) in pairs)
