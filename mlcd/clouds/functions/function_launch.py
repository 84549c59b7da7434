"""One launch on functions, from its first call to its end: a calibration, a sample, or epochs of trials."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial

from mlcd.clouds.functions.groups import READY, WAITS_S, Group, GroupFailed, Prewarmed, Workers, prewarm_after_s
from mlcd.clouds.functions.meter import Meter
from mlcd.clouds.functions.orders import Report, calibration_of
from mlcd.clouds.functions.worker import calibrate, train_alone
from mlcd.core.backend import Events, Launch, Purpose
from mlcd.core.clock import Clock
from mlcd.core.errors import BackendError
from mlcd.core.measurement import Ended, Outcome, Sample
from mlcd.planners.functions.nouns import SAMPLE_SHARE, Epoch, TrainEpochs, work_of
from mlcd.planners.functions.storages import connect

POLL_S = 0.01
MIN_REPORT_GAP_S = 1e-6
"""Smallest gap between two reports: no two have the same time."""


class _OutOfTime(Exception):
    """The launch's lifetime is over."""


class _OutOfBudget(Exception):
    """The remaining budget does not cover the next attempt."""


@dataclass
class _Trial:
    """A running trial, and its current epoch."""

    number: int
    epoch: int
    group: Group


@dataclass
class FunctionLaunch:
    """Calls the functions of a launch and yields what they report. It ends `lasts_s` after its start."""

    launch: Launch
    workers: Workers
    meter: Meter
    clock: Clock
    started_s: float
    lasts_s: float
    prewarm: Callable[[int, int, Meter, float], Prewarmed | None] | None = None
    """Calls the functions of the next allocation, given (trial, epoch, their own meter, most seconds to wait). None if
    the call failed, which is no error: the next epoch only starts later."""
    taken_over: Prewarmed | None = None
    orphan_usd: float = 0.0
    """The cost of functions that a killed process had prewarmed, and that no launch took over."""
    samples: float = 0.0
    last_report_s: float = 0.0
    prewarmed: Prewarmed | None = None

    def __post_init__(self) -> None:
        self.meter.add_cost("left behind", self.orphan_usd)

    def events(self) -> Events:
        """The events, until the work is done or the time or the budget is over."""
        work = work_of(self.launch)
        try:
            if self.launch.purpose is Purpose.RUN:
                yield from self._train(work or TrainEpochs(1))
            elif work is not None and work.sample_of is not None:
                yield from self._train_sample(work, work.sample_of)
            else:
                yield from self._calibrate()
            yield Ended(self._now_s(), Outcome.OK)
        except _OutOfTime:
            return
        except _OutOfBudget:
            why = "what is left of the budget does not pay for the next epoch"
            yield Ended(self._now_s(), Outcome.AT_THE_LIMIT, why)
        except GroupFailed as failure:
            if failure.outcome is Outcome.LAUNCH_FAILED and not self.samples:  # the platform accepted no call at all
                raise BackendError(str(failure)) from failure
            if self._now_s() < self.lasts_s:  # an end at the deadline is no failure
                yield Ended(self._now_s(), failure.outcome, str(failure), failure.log)
        except BackendError as error:
            yield Ended(self._now_s(), Outcome.FAILED, str(error))
        finally:
            self.workers.caller.close()
            self._clear_storage()

    def _train(self, work: TrainEpochs) -> Events:
        """Train trials in parallel, each epoch by epoch."""
        waiting, running = deque(work.trials), list[_Trial]()
        at_once = max(1, self.launch.configuration.nodes // self.workers.orders.allocation.functions)
        while waiting or running:
            while waiting and len(running) < at_once:
                running.append(self._trial(waiting.popleft(), work.done + 1))
            self._start_all([trial.group for trial in running])
            self._prewarm_next(work, running)
            for trial in list(running):
                if (reports := trial.group.poll()) is not None:
                    running.remove(trial)
                    yield self._ended(trial, reports)
                    if trial.epoch < work.done + work.epochs:
                        running.append(self._trial(trial.number, trial.epoch + 1))
            self._wait()

    def _prewarm_next(self, work: TrainEpochs, running: list[_Trial]) -> None:
        """Call the functions of the next launch's first epoch when their time has come."""
        if self.prewarm is None or work.then is None or len(running) != 1:
            return
        (trial,) = running
        after_s = prewarm_after_s(self.workers.durations, self.workers.orders.allocation, work.then)
        running_s = time.time() - trial.group.called_at + trial.group.head_start_s
        if trial.epoch < work.done + work.epochs or running_s < after_s:
            return
        epoch_s, task = trial.group.expected_s or 0.0, self.workers.orders.task
        next_meter = Meter(self.meter.tariff, work.then, task.workload.iterations(work.then.functions))
        waits_s = self.meter.reserve_for(READY, next_meter, WAITS_S + epoch_s, 2 * (epoch_s - after_s))
        if waits_s is not None:
            self.prewarmed = self.prewarm(trial.number, trial.epoch + 1, next_meter, waits_s)
        self.prewarm = None

    def _trial(self, trial: int, epoch: int) -> _Trial:
        if (prewarmed := self.taken_over) is not None and (prewarmed.trial, prewarmed.epoch) == (trial, epoch):
            self.taken_over = None
            if prewarmed.take_over(self.meter, self.workers.models.find(trial, epoch - 1)):
                return _Trial(trial, epoch, prewarmed.group)
            raise _OutOfBudget
        return _Trial(trial, epoch, self.workers.epoch(self.meter, trial, epoch))

    def _ended(self, trial: _Trial, reports: list[Report]) -> Sample:
        """Commit the model and report the epoch. The parts of its time are those of the last function to start."""
        group, seconds = trial.group, time.time() - trial.group.began_at
        where = trial.number, trial.epoch
        self.workers.models.commit(*where, self.workers.orders.model(*where, group.attempt))
        last = max(reports, key=lambda report: float(report["up_at"]))
        start_s = max(0.0, last["up_at"] - group.called_at)
        if start_s > 0:  # prewarmed functions had started before the call
            self.workers.durations.record(READY, self.workers.orders.allocation, start_s + last["load_s"])
        usd, used_s = self._other_costs()
        loss = math.fsum(report["loss"] for report in reports) / sum(report["evaluated"] for report in reports)
        usd += self.meter.usd(group.bill, seconds)
        parts = start_s, last["load_s"], last["compute_s"], last["sync_s"]
        epoch = Epoch(*where, seconds, usd, _finite_or_infinite(loss), *parts)
        used_s += group.bill.function_s
        epoch = replace(epoch, function_s=used_s, requests=group.bill.requests, retries=group.attempt)
        return self._sample(epoch, self.workers.orders.task.workload.samples)

    def _other_costs(self) -> tuple[float, float]:
        """The cost of orphaned and prewarmed functions, and the billed seconds of the latter."""
        left_usd, self.orphan_usd = self.orphan_usd, 0.0
        if self.prewarmed is None:
            return left_usd, 0.0
        used = self.prewarmed.used()
        return left_usd + self.prewarmed.group.meter.functions_usd(used), used.function_s

    def _train_sample(self, work: TrainEpochs, functions: int) -> Events:
        """Train a sample of the data. All epochs are one call, and share its cost."""
        trial, orders = work.trials[0], self.workers.orders
        order = partial(orders.sample, trial, functions, work.epochs)
        group = Group(self.workers, train_alone, order, "the sample", self.meter)
        (report,) = self._reports(group)
        count, seconds = len(report["epochs"]), time.time() - group.began_at
        usd, used_s = self.meter.usd(group.bill, seconds) / count, group.bill.function_s / count
        for number, (loss, took_s) in enumerate(report["epochs"], 1):
            epoch = Epoch(trial, number, took_s, usd, _finite_or_infinite(loss), compute_s=took_s, function_s=used_s)
            yield self._sample(epoch, orders.task.workload.sampled(SAMPLE_SHARE, functions).samples)

    def _calibrate(self) -> Events:
        orders = self.workers.orders
        group = Group(self.workers, calibrate, orders.calibration, "the calibration", self.meter)
        reports = self._reports(group)
        calibrated = calibration_of(orders.allocation, orders.task.workload, reports, group.called_at)
        self.samples += sum(report["rows"] for report in reports)
        calibrated = replace(calibrated, usd=self.meter.usd(group.bill, time.time() - group.began_at))
        yield Sample(self._report_s(), self.samples, evidence=calibrated)

    def _reports(self, group: Group) -> list[Report]:
        """Wait for a single group and return its reports."""
        while (reports := group.poll()) is None:
            self._start_all([group])
            self._wait()
        return reports

    def _start_all(self, groups: list[Group]) -> None:
        """Start all idle groups that the budget covers. The others wait until running ones return unused money."""
        idle = [group for group in groups if group.call is None]
        until = time.time() + self.lasts_s - self._now_s()
        paid = [group.start(until, share=1 / (len(idle) - number)) for number, group in enumerate(idle)]
        if not any(paid) and len(idle) == len(groups):
            raise _OutOfBudget

    def _clear_storage(self) -> None:
        """Delete the functions' objects in the storage; an unreachable storage is ignored."""
        storage, url = self.workers.orders.allocation.storage, self.workers.orders.url
        with suppress(BackendError), closing(connect(storage, url, retry_s=0.0)) as storage_client:
            storage_client.clear(f"{self.workers.orders.name}/")

    def _sample(self, epoch: Epoch, samples: int) -> Sample:
        self.samples += samples
        return Sample(self._report_s(), self.samples, saved=self.samples, metric=epoch.loss, evidence=epoch)

    def _report_s(self) -> float:
        """The current time, but later than that of the last report."""
        self.last_report_s = max(self._now_s(), self.last_report_s + MIN_REPORT_GAP_S)
        return self.last_report_s

    def _wait(self) -> None:
        if self._now_s() >= self.lasts_s:
            raise _OutOfTime
        self.clock.wait(POLL_S)

    def _now_s(self) -> float:
        return self.clock.elapsed_s() - self.started_s


def _finite_or_infinite(loss: float) -> float:
    """A loss that is not a number becomes infinite."""
    return loss if math.isfinite(loss) else math.inf
