"""Real functions through Lithops: calibrations, and epochs of one or many trials.

Every epoch of a trial is one group of calls (`groups.py`); its model is committed when all of them have succeeded
(`bucket.py`). Trials run in parallel, as many as the configuration has functions for; the others wait. On this machine
functions are processes with a share of its CPUs according to their memory (`throttle.py`), and a watchdog ends them if
MLCD is killed. On another platform they end by their own timeout, at most the launch's lifetime.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from uuid import uuid4

from mlcd.clouds.functions.bucket import Models, store
from mlcd.clouds.functions.calls import LOCALHOST, Caller
from mlcd.clouds.functions.function_launch import FunctionLaunch, epoch_group
from mlcd.clouds.functions.groups import Durations, GroupFailed, Prewarmed
from mlcd.clouds.functions.meter import Meter
from mlcd.clouds.functions.orders import Faults, Orders, no_faults
from mlcd.clouds.launches import Launches, before_ordering
from mlcd.clouds.local import teardown
from mlcd.clouds.local.watchdog import Watchdog
from mlcd.core.backend import Events, Launch, Provenance
from mlcd.core.clock import Clock
from mlcd.core.errors import BackendError, MlcdError
from mlcd.core.job import Job
from mlcd.planners.functions.nouns import Allocation, on_functions, work_of
from mlcd.planners.functions.space import allocated
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
    `prewarmed`: functions that were called for the next launch.
    """

    home: Path
    clock: Clock
    endpoints: Mapping[str, str]
    platform: str = LOCALHOST
    faults: Faults = no_faults
    durations: Durations = field(default_factory=Durations)
    retry_s: float = RETRY_S
    prewarmed: Prewarmed | None = None

    provenance = Provenance.LIVE

    @property
    def launches(self) -> Launches:
        """All launches of this state folder."""
        return Launches(self.home / "launches")

    def run(self, job: Job, launch: Launch) -> Events:
        """Call functions and yield what they report."""
        started_s, allocation = self.clock.elapsed_s(), allocated(launch.configuration)
        prewarmed = self._taken_over(launch)
        taken = {"took_over": prewarmed.caller.folder.name} if prewarmed is not None else {}
        folder = self.launches.open(launch, platform=self.platform, **taken)
        with ExitStack() as stack:
            if self.platform == LOCALHOST:
                stack.enter_context(Watchdog(folder, launch.lifetime_s))
            stack.callback(teardown.tear_down, folder)
            if prewarmed is not None:
                stack.push(prewarmed.ending)
                caller, orders = prewarmed.caller, prewarmed.orders
            else:
                with before_ordering():  # the data are stored before any function is called
                    caller = self._caller(stack, folder, allocation, launch.configuration.nodes)
                    orders = self._orders(job, launch.label, allocation, caller)
            lasts_s = math.inf if launch.lifetime_s is None else launch.lifetime_s - TEARDOWN_S
            done = work.done if (work := work_of(launch)) is not None else 0
            models = Models(self.home / "functions" / _run_of(launch), caller.bucket, done)
            meter = _meter(job, launch)
            prewarm = partial(self._prewarm, job, launch)
            yield from FunctionLaunch(
                launch,
                caller,
                orders,
                models,
                self.durations,
                meter,
                self.clock,
                started_s,
                lasts_s,
                prewarm,
                prewarmed,
            ).events()

    def reclaim(self, label: str) -> float | None:
        """End what a crash left of a launch; return the seconds that it was up."""
        folder = self.launches.find(label)
        if folder is None:
            return None
        took_over = self.launches.order(folder).get("took_over", "")
        for other in (took_over, f"{label}{PREWARMED_SUFFIX}"):
            if other and (beside := self.launches.find(other)) is not None:
                teardown.tear_down(beside)
        return teardown.tear_down(folder)

    def leftovers(self) -> set[str]:
        """Launches that still have processes on this machine."""
        left = teardown.marks()
        return {folder.name for folder in self.launches.folders() if teardown.mark_of(folder) in left}

    def close(self) -> None:
        """End prewarmed functions that no launch has taken over."""
        if self.prewarmed is not None:
            self.prewarmed.ending.close()
            self.prewarmed = None

    def _caller(self, stack: ExitStack, folder: Path, allocation: Allocation, at_once: int) -> Caller:
        """A caller for one launch, which closes with the stack."""
        at_once = max(at_once, allocation.functions)
        caller = Caller(self.home, folder, self.platform, allocation.memory_mb, at_once, teardown.mark_of(folder))
        stack.callback(caller.close)
        return caller

    def _orders(self, job: Job, label: str, allocation: Allocation, caller: Caller) -> Orders:
        workload = on_functions(job).workload
        try:
            stored = store(caller.bucket, workload.data, workload.samples, job.folder)
        except MlcdError:
            raise
        except Exception as error:  # the clouds' clients raise many types
            why = f"{type(error).__name__}: {error}".splitlines()[0]
            raise BackendError(f"functions:{self.platform}: the data cannot be stored: {why}") from error
        url, is_local = self.endpoints[allocation.storage], self.platform == LOCALHOST
        name = f"{label}-{uuid4().hex[:8]}"
        return Orders(job, allocation, stored, url, name, is_local, self.retry_s, self.faults)

    def _prewarm(
        self, job: Job, launch: Launch, trial: int, epoch: int, meter: Meter, waits_s: float
    ) -> Prewarmed | None:
        """Call the functions of the next allocation."""
        then = work.then if (work := work_of(launch)) is not None else None
        if then is None:
            return None
        folder = self.launches.open(replace(launch, label=f"{launch.label}{PREWARMED_SUFFIX}"), platform=self.platform)
        with ExitStack() as stack:
            if self.platform == LOCALHOST:
                stack.enter_context(Watchdog(folder, None))
            stack.callback(teardown.tear_down, folder)
            caller = self._caller(stack, folder, then, then.functions)
            orders = self._orders(job, launch.label, then, caller)
            models = Models(self.home / "functions" / _run_of(launch), caller.bucket)
            gate = f"mlcd/memory/models/{orders.name}/gate"
            stack.callback(models.delete, gate)
            group = epoch_group(caller, orders, models, self.durations, meter, trial, epoch, gate, waits_s)
            try:
                group.start(math.inf, share=1.0)
            except (BackendError, GroupFailed):
                return None
            self.prewarmed = Prewarmed(_run_of(launch), trial, epoch, caller, orders, group, gate, stack.pop_all())
        return self.prewarmed

    def _taken_over(self, launch: Launch) -> Prewarmed | None:
        """Prewarmed functions for this launch; those for another one are ended."""
        prewarmed, work = self.prewarmed, work_of(launch)
        if prewarmed is None:
            return None
        where, run = allocated(launch.configuration), _run_of(launch)
        asked = (run, work.trials, work.done + 1, where) if work is not None else None
        wanted = asked == (prewarmed.run, (prewarmed.trial,), prewarmed.epoch, prewarmed.orders.allocation)
        if not wanted or prewarmed.group.call is None:
            self.close()
            return None
        self.prewarmed = None
        return prewarmed


def _run_of(launch: Launch) -> str:
    """The run of a launch: its label without the last number."""
    return launch.label.rpartition("-")[0] or launch.label


def _meter(job: Job, launch: Launch) -> Meter:
    task = on_functions(job)
    allocation = allocated(launch.configuration)
    steps = task.workload.iterations(allocation.functions) if launch.work is not None else CALIBRATION_STEPS
    return Meter(task.tariff, allocation, steps, launch.most_usd)
