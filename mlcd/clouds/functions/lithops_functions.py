"""Real functions, through Lithops: calibrations, and epochs of one trial or of many.

Every epoch of a trial is one group of calls (`tries.py`), whose model counts once all of them have ended well
(`models.py`). Trials run side by side, as many as the configuration has functions for, the others after them. On this
machine functions are processes, which share its CPUs as their memory says (`throttle.py`); a watchman ends them should
MLCD be killed. On another platform they end by their own timeout, which is the launch's lifetime at the most.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from uuid import uuid4

from mlcd.clouds.functions.ahead import Ahead
from mlcd.clouds.functions.calls import LOCALHOST, Caller
from mlcd.clouds.functions.dataset import store
from mlcd.clouds.functions.launched import Launched, epoch_group
from mlcd.clouds.functions.meter import Meter
from mlcd.clouds.functions.models import Models
from mlcd.clouds.functions.orders import Faults, Orders, no_faults
from mlcd.clouds.functions.tries import Lost, Pace
from mlcd.clouds.launches import Launches, before_ordering
from mlcd.clouds.local import teardown
from mlcd.clouds.local.watchman import Watchman
from mlcd.core.backend import Events, Launch, Provenance
from mlcd.core.clock import Clock
from mlcd.core.errors import BackendError, MlcdError
from mlcd.core.job import Job
from mlcd.planners.functions.nouns import CALIBRATION_STEPS, Allocation, FunctionsTask, work_of
from mlcd.planners.functions.storages.storage import PATIENCE_S

TEARDOWN_S = 1.0
"""Kept at the end of a lifetime to be gone in time."""
AHEAD = ".ahead"
"""Functions that are called for the next launch have a folder of their own, beside that of the one that calls them."""


@dataclass
class LithopsFunctions:
    """Runs jobs on functions. `home`: where launches are kept; `endpoints`: where each storage is reached.

    `platform`: this machine, or one of those that Lithops knows (aws_lambda, gcp_functions, ...), as the user's own
    Lithops configuration describes it. `pace`: how long epochs took so far. `asks_s`: for how long a storage that
    does not answer is asked again. `ahead`: functions that were called for the launch to come.
    """

    home: Path
    clock: Clock
    endpoints: Mapping[str, str]
    platform: str = LOCALHOST
    faults: Faults = no_faults
    pace: Pace = field(default_factory=Pace)
    asks_s: float = PATIENCE_S
    ahead: Ahead | None = None

    provenance = Provenance.LIVE

    @property
    def launches(self) -> Launches:
        """What was ever launched here."""
        return Launches(self.home / "launches")

    def run(self, job: Job, launch: Launch) -> Events:
        """Call functions, and tell what they report."""
        started_s, allocation = self.clock.elapsed_s(), _allocation(launch)
        ahead = self._taken_over(launch)
        taken = {"took_over": ahead.caller.folder.name} if ahead is not None else {}
        folder = self.launches.open(launch, platform=self.platform, **taken)
        with ExitStack() as stack:
            if self.platform == LOCALHOST:
                stack.enter_context(Watchman(folder, launch.lifetime_s))
            stack.callback(teardown.tear_down, folder)
            if ahead is not None:
                stack.push(ahead.ending)
                caller, orders = ahead.caller, ahead.orders
            else:
                with before_ordering():  # no function is called before its data is there
                    caller = self._caller(stack, folder, allocation, launch.configuration.nodes)
                    orders = self._orders(job, launch.label, allocation, caller)
            lasts_s = math.inf if launch.lifetime_s is None else launch.lifetime_s - TEARDOWN_S
            done = work.done if (work := work_of(launch)) is not None else 0
            models = Models(self.home / "functions" / _run_of(launch), caller.bucket, done)
            meter = _meter(job, launch)
            call_ahead = partial(self._call_ahead, job, launch)
            yield from Launched(
                launch, caller, orders, models, self.pace, meter, self.clock, started_s, lasts_s, call_ahead, ahead
            ).events()

    def reclaim(self, label: str) -> float | None:
        """End what a crash left of a launch; what it was up for is on disk."""
        folder = self.launches.find(label)
        if folder is None:
            return None
        took_over = self.launches.order(folder).get("took_over", "")
        for other in (took_over, f"{label}{AHEAD}"):
            if other and (beside := self.launches.find(other)) is not None:
                teardown.tear_down(beside)
        return teardown.tear_down(folder)

    def leftovers(self) -> set[str]:
        """Launches of which any process is left on this machine."""
        left = teardown.marks()
        return {folder.name for folder in self.launches.folders() if teardown.mark_of(folder) in left}

    def close(self) -> None:
        """End functions that nobody has taken over."""
        if self.ahead is not None:
            self.ahead.ending.close()
            self.ahead = None

    def _caller(self, stack: ExitStack, folder: Path, allocation: Allocation, at_once: int) -> Caller:
        """Calls of one launch; they end with the stack."""
        at_once = max(at_once, allocation.functions)
        caller = Caller(self.home, folder, self.platform, allocation.memory_mb, at_once, teardown.mark_of(folder))
        stack.callback(caller.close)
        return caller

    def _orders(self, job: Job, label: str, allocation: Allocation, caller: Caller) -> Orders:
        workload = _serverless(job).workload
        try:
            stored = store(caller.bucket, workload.data, workload.samples, job.folder)
        except MlcdError:
            raise
        except Exception as error:  # whatever a cloud's own client raises
            why = f"{type(error).__name__}: {error}".splitlines()[0]
            raise BackendError(f"functions:{self.platform}: the data cannot be stored: {why}") from error
        url, here = self.endpoints[allocation.storage], self.platform == LOCALHOST
        name = f"{label}-{uuid4().hex[:8]}"
        return Orders(job, allocation, stored, url, name, here, self.asks_s, self.faults)

    def _call_ahead(
        self, job: Job, launch: Launch, trial: int, epoch: int, meter: Meter, waits_s: float
    ) -> Ahead | None:
        """Call the functions of the allocation that comes next."""
        then = work.then if (work := work_of(launch)) is not None else None
        if then is None:
            return None
        folder = self.launches.open(replace(launch, label=f"{launch.label}{AHEAD}"), platform=self.platform)
        with ExitStack() as stack:
            if self.platform == LOCALHOST:
                stack.enter_context(Watchman(folder, None))
            stack.callback(teardown.tear_down, folder)
            caller = self._caller(stack, folder, then, then.functions)
            orders = self._orders(job, launch.label, then, caller)
            models = Models(self.home / "functions" / _run_of(launch), caller.bucket)
            gate = f"mlcd/models/{orders.name}/gate"
            stack.callback(models.drop, gate)
            group = epoch_group(caller, orders, models, self.pace, meter, trial, epoch, gate, waits_s)
            try:
                group.start(math.inf, share=1.0)
            except (BackendError, Lost):
                return None
            self.ahead = Ahead(_run_of(launch), trial, epoch, caller, orders, group, gate, stack.pop_all())
        return self.ahead

    def _taken_over(self, launch: Launch) -> Ahead | None:
        """Functions that wait for this very launch; those that wait for another are ended."""
        ahead, work = self.ahead, work_of(launch)
        if ahead is None:
            return None
        wanted = work is not None and (_run_of(launch), work.trials, work.done + 1, _allocation(launch)) == (
            ahead.run,
            (ahead.trial,),
            ahead.epoch,
            ahead.orders.allocation,
        )
        if not wanted or ahead.group.call is None:
            self.close()
            return None
        self.ahead = None
        return ahead


def _run_of(launch: Launch) -> str:
    """The run that a launch belongs to: its label without the last number."""
    return launch.label.rpartition("-")[0] or launch.label


def _allocation(launch: Launch) -> Allocation:
    if not isinstance(launch.configuration.setting, Allocation):
        raise BackendError(f"{launch.configuration} says nothing of functions")
    return launch.configuration.setting


def _serverless(job: Job) -> FunctionsTask:
    if not isinstance(job.ask, FunctionsTask):
        raise BackendError(f"'{job.name}' is not a job on functions")
    return job.ask


def _meter(job: Job, launch: Launch) -> Meter:
    serverless = _serverless(job)
    allocation = _allocation(launch)
    steps = serverless.workload.iterations(allocation.functions) if launch.work is not None else CALIBRATION_STEPS
    return Meter(serverless.tariff, allocation, steps, launch.most_usd)
