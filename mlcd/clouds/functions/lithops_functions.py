"""Real functions through Lithops: calibrations, and epochs of one or many trials.

Every epoch of a trial is one group of calls (`groups.py`); its model is committed when all of them have succeeded
(`bucket.py`). Trials run in parallel, as many as the configuration has functions for; the others wait. On this machine
functions are processes with a share of its CPUs according to their memory (`throttle.py`), and a watchdog ends them if
MLCD is killed. On another platform they end by their own timeout, at most the launch's lifetime.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from uuid import uuid4

from mlcd.clouds.functions.bucket import Models, store
from mlcd.clouds.functions.call import deadline_in
from mlcd.clouds.functions.caller import LOCALHOST, Caller, CallRefused, open_bucket
from mlcd.clouds.functions.function_launch import FunctionLaunch
from mlcd.clouds.functions.groups import Durations, GroupFailed, Prewarmed, Workers
from mlcd.clouds.functions.journal import Journal
from mlcd.clouds.functions.meter import Meter
from mlcd.clouds.functions.orders import Faults, Orders
from mlcd.clouds.functions.usage_recovery import USED, CallsOfFolder, RecoveredUsage, UsageRecovery, stored_usage
from mlcd.clouds.launches import Launches, before_ordering
from mlcd.clouds.local import teardown
from mlcd.clouds.local.reclaim import reclaim
from mlcd.clouds.local.teardown import Watchdog
from mlcd.core.backend import Events, Launch, Provenance, Usage
from mlcd.core.clock import Clock
from mlcd.core.errors import BackendError, MlcdError
from mlcd.core.job import Job
from mlcd.planners.functions.nouns import Allocation, functions_task, work_of
from mlcd.planners.functions.space import allocation_at, tariff_of
from mlcd.planners.functions.storages.storage import RETRY_S
from mlcd.planners.functions.workload import CALIBRATION_STEPS

TEARDOWN_S = 1.0
"""Reserved at the end of a lifetime for teardown."""
PREWARMED_SUFFIX = ".ahead"
"""Suffix of the folder of prewarmed functions, beside that of the launch that calls them."""


@dataclass
class LithopsFunctions:
    """Runs jobs on functions. `home`: holds launches; `endpoints`: the URL of each storage.

    `platform`: this machine, or a platform of the user's Lithops configuration (aws_lambda, gcp_functions, ...).
    `durations`: of epochs so far. `retry_s`: how long requests to a storage that does not answer are retried.
    `prewarmed`: functions that were called for the next launch. `recovery`: finds out the usage of a killed launch.
    """

    home: Path
    clock: Clock
    endpoints: Mapping[str, str]
    platform: str = LOCALHOST
    faults: Faults = lambda epoch, rank, attempt: None
    durations: Durations = field(default_factory=Durations)
    retry_s: float = RETRY_S
    prewarmed: Prewarmed | None = None
    recovery: UsageRecovery | None = None

    provenance = Provenance.LIVE

    @property
    def launches(self) -> Launches:
        """All launches of this state folder."""
        return Launches(self.home / "launches")

    def run(self, job: Job, launch: Launch) -> Events:
        """Call functions and yield what they report."""
        started_s, allocation, task = self.clock.elapsed_s(), allocation_at(launch.configuration), functions_task(job)
        prewarmed = self._matching_prewarmed(launch)
        orphaned = self.orphaned_prewarmed(_run_of(launch)) if prewarmed is None else None
        taken = prewarmed.group.workers.caller.folder if prewarmed is not None else orphaned
        folder = self._open(launch, took_over=taken.name if taken is not None else "")
        with ExitStack() as stack:
            if self.platform == LOCALHOST:
                stack.enter_context(Watchdog(folder, launch.lifetime_s))
            stack.callback(teardown.tear_down, folder)
            done = work.done if (work := work_of(launch)) is not None else 0
            if prewarmed is not None:
                stack.push(prewarmed.ending)
                workers = prewarmed.group.workers
                workers = replace(workers, models=replace(workers.models, done=done))
            else:
                with before_ordering():  # the data are stored before any function is called
                    workers = self._workers(stack, folder, job, launch, allocation, done)
            orphan_usd = self.orphan_usd(job, orphaned)
            if orphaned is not None:
                stack.callback(teardown.tear_down, orphaned)
            if self.platform != LOCALHOST:
                with suppress(CallRefused):  # it is tried again with the first call, which reports the failure
                    workers.caller.deploy()
                started_s = (
                    self.clock.elapsed_s()
                )  # deployment time does not count: it may exceed a probe's two minutes
            steps = task.workload.iterations(allocation.functions) if work is not None else CALIBRATION_STEPS
            meter = Meter(tariff_of(task), allocation, steps, launch.most_usd)
            lasts_s = math.inf if launch.lifetime_s is None else launch.lifetime_s - TEARDOWN_S
            prewarm = partial(self._prewarm, job, launch)
            function_launch = FunctionLaunch(
                launch, workers, meter, self.clock, started_s, lasts_s, prewarm, prewarmed, orphan_usd
            )
            yield from function_launch.events()

    def reclaim(self, label: str) -> float | None:
        """Tear down what is left of a launch after a crash; return the seconds that it ran.

        On a cloud its functions continue: it ran until they ended or, if that is unknown, until their deadline.
        """
        folder = self.launches.find(label)
        if folder is None:
            return None
        took_over = self.launches.order(folder).get("took_over", "")
        taken = self.launches.find(took_over) if took_over else None
        ahead = self._prewarmed_by(folder)
        beside = [each for each in (taken, ahead) if each is not None]
        for other in beside:
            teardown.tear_down(other)
        if self.platform == LOCALHOST:
            seconds = reclaim(folder)
            self._recover(folder, taken, ahead)
            return seconds
        used = self._recover(folder, taken, ahead)
        deadlines = [until for each in (folder, *beside) if (until := deadline_in(each)) is not None]
        ended_at = used.ended_at if used is not None else max(deadlines, default=None)
        if ended_at is not None and not (folder / "ended").exists():
            teardown.record_end(folder, ended_at)
        return reclaim(folder)

    def usage(self, job: Job, label: str) -> Usage | None:
        """What a reclaimed launch has used; None if its records are lost."""
        folder = self.launches.find(label)
        used = stored_usage(folder) if folder is not None else None
        return Usage(used.usd(tariff_of(functions_task(job))), used.known) if used is not None else None

    def _prewarmed_by(self, folder: Path) -> Path | None:
        """The folder of the functions that this launch has prewarmed, not those of an earlier launch of its name."""
        ahead = self.launches.find(f"{folder.name}{PREWARMED_SUFFIX}")
        is_newer = ahead is not None and teardown.started_at(ahead) >= teardown.started_at(folder)
        return ahead if is_newer else None

    def orphaned_prewarmed(self, run: str) -> Path | None:
        """On a cloud: prewarmed functions of this run that a killed process left, and that no launch has taken over.

        No launch of the run was open then, so nothing has paid for them yet.
        """
        if self.platform == LOCALHOST:
            return None
        folders = (order.parent for order in self.launches.root.glob(f"{run}-*{PREWARMED_SUFFIX}/order.json"))
        return next((each for each in folders if not (each / "ended").exists()), None)

    def orphan_usd(self, job: Job, left: Path | None) -> float:
        """The unpaid cost of orphaned functions, in this folder; they are told to end."""
        used = self._recovery.used(left, [CallsOfFolder(Journal(left), taken_over=True)]) if left is not None else None
        return used.usd(tariff_of(functions_task(job))) if used is not None else 0.0

    @property
    def _recovery(self) -> UsageRecovery:
        return self.recovery or UsageRecovery(partial(open_bucket, self.home), self.clock.wait)

    def _recover(self, folder: Path, taken: Path | None, ahead: Path | None) -> RecoveredUsage | None:
        """What a launch has used: its own functions, those that it took over, and those that it prewarmed."""
        folders, is_local = [each for each in (folder, taken, ahead) if each is not None], self.platform == LOCALHOST
        ends = [teardown.ended_at(each) if is_local else None for each in folders]
        shares = [CallsOfFolder(Journal(each), each == taken, end) for each, end in zip(folders, ends, strict=True)]
        return self._recovery.used(folder, shares)

    def leftovers(self) -> set[str]:
        """Launches that still have processes on this machine."""
        left = teardown.marks()
        return {folder.name for folder in self.launches.folders() if teardown.mark_of(folder) in left}

    def close(self) -> None:
        """End prewarmed functions that no launch has taken over."""
        if self.prewarmed is not None:
            self.prewarmed.ending.close()
            self.prewarmed = None

    def _open(self, launch: Launch, **facts: object) -> Path:
        """The folder of a new launch, without records of an earlier launch of that name."""
        folder = self.launches.open(launch, platform=self.platform, **facts)
        (folder / USED).unlink(missing_ok=True)
        Journal(folder).begin()
        return folder

    def _workers(
        self, stack: ExitStack, folder: Path, job: Job, launch: Launch, allocation: Allocation, done: int = 0
    ) -> Workers:
        """The functions of one launch, whose caller closes with the stack."""
        workload, is_local = functions_task(job).workload, self.platform == LOCALHOST
        nodes = launch.configuration.nodes if allocation == launch.configuration.setting else 0
        at_once = max(nodes, allocation.functions)
        caller = Caller(self.home, folder, self.platform, allocation.memory_mb, at_once, teardown.mark_of(folder))
        stack.callback(caller.close)
        try:
            stored = store(caller.bucket, workload.data, workload.samples, job.folder)
            if not is_local:
                caller.ship(job.folder if ":" in workload.model + workload.data else "")
        except MlcdError:
            raise
        except Exception as error:  # the clouds' clients raise many types
            why = f"{type(error).__name__}: {error}".splitlines()[0]
            raise BackendError(f"functions:{self.platform}: the data cannot be stored: {why}") from error
        url, name = self.endpoints[allocation.storage], f"{launch.label}-{uuid4().hex[:8]}"
        orders = Orders(job, allocation, stored, url, name, is_local, self.retry_s, self.faults)
        models = Models(self.home / "functions" / _run_of(launch), caller.bucket, done)
        return Workers(caller, orders, models, self.durations)

    def _prewarm(
        self, job: Job, launch: Launch, trial: int, epoch: int, meter: Meter, waits_s: float
    ) -> Prewarmed | None:
        """Call the functions of the next allocation."""
        then = work.then if (work := work_of(launch)) is not None else None
        if then is None:
            return None
        folder = self._open(replace(launch, label=f"{launch.label}{PREWARMED_SUFFIX}"))
        with ExitStack() as stack:
            if self.platform == LOCALHOST:
                stack.enter_context(Watchdog(folder, None))
            stack.callback(teardown.tear_down, folder)
            workers = self._workers(stack, folder, job, launch, then)
            gate = f"mlcd/models/{workers.orders.name}/gate"
            group = workers.epoch(meter, trial, epoch, gate, waits_s)
            try:
                group.start(math.inf, share=1.0)
            except (BackendError, GroupFailed):
                return None
            ending = stack.pop_all()
            self.prewarmed = Prewarmed(_run_of(launch), trial, epoch, group, gate, ending)
            ending.callback(self.prewarmed.dismiss)
        return self.prewarmed

    def _matching_prewarmed(self, launch: Launch) -> Prewarmed | None:
        """The prewarmed functions if they are for this launch; otherwise they are ended."""
        prewarmed, work = self.prewarmed, work_of(launch)
        if prewarmed is None:
            return None
        run, where, called = (
            _run_of(launch),
            allocation_at(launch.configuration),
            prewarmed.group.workers.orders.allocation,
        )
        wanted = (run, work.trials, work.done + 1, where) if work is not None else None
        if wanted != (prewarmed.run, (prewarmed.trial,), prewarmed.epoch, called) or prewarmed.group.call is None:
            self.close()
            return None
        self.prewarmed = None
        return prewarmed


def _run_of(launch: Launch) -> str:
    """The run of a launch: its label without the last number."""
    return launch.label.rpartition("-")[0] or launch.label
