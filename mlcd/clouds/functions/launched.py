"""One launch on functions, from its first call to its end: a calibration, a sample, or epochs of trials."""

from __future__ import annotations

import math
import time
from collections import deque
from contextlib import closing, suppress
from dataclasses import dataclass

from mlcd.clouds.functions.ahead import READY, WAITS_S, Ahead, CallAhead, call_after_s
from mlcd.clouds.functions.calls import Caller
from mlcd.clouds.functions.meter import Meter
from mlcd.clouds.functions.models import Models
from mlcd.clouds.functions.orders import Order, Orders, Report, concluded
from mlcd.clouds.functions.tries import Function, Group, Lost, OrdersOf, Pace
from mlcd.clouds.functions.worker import calibrate, train_alone, train_epoch
from mlcd.core.backend import Events, Launch, Purpose
from mlcd.core.clock import Clock
from mlcd.core.errors import BackendError
from mlcd.core.measurement import Ended, Outcome, Sample
from mlcd.planners.functions.nouns import SAMPLE, Epoch, FunctionsTask, TrainEpochs, work_of
from mlcd.planners.functions.storages import connect

LOOK_EVERY_S = 0.01
APART_S = 1e-6
"""Between two reports: no two come at the same time."""


class _TimeOver(Exception):
    """The launch's lifetime is."""


class _MoneyOver(Exception):
    """What is left does not pay for what comes next."""


@dataclass
class _Trial:
    """A trial under way, and the epoch that it is at."""

    number: int
    epoch: int
    group: Group


@dataclass
class Launched:
    """Calls functions for a launch and tells what they report. `lasts_s` after its start, it is over."""

    launch: Launch
    caller: Caller
    orders: Orders
    models: Models
    pace: Pace
    meter: Meter
    clock: Clock
    started_s: float
    lasts_s: float
    call_ahead: CallAhead | None = None
    """Where another allocation is known to come."""
    taken_over: Ahead | None = None
    samples: float = 0.0
    told_s: float = 0.0
    waiting: Ahead | None = None

    def events(self) -> Events:
        """What happens, until all is done, or the time or the money is over."""
        work = work_of(self.launch)
        try:
            if self.launch.purpose is Purpose.RUN:
                yield from self._train(work or TrainEpochs(1))
            elif work is not None and work.sample_of is not None:
                yield from self._train_sample(work, work.sample_of)
            else:
                yield from self._calibrate()
            yield Ended(self._now_s(), Outcome.OK)
        except _TimeOver:
            return
        except _MoneyOver:
            left = "what is left of the budget does not pay for the next epoch"
            yield Ended(self._now_s(), Outcome.AT_THE_LIMIT, left)
        except Lost as lost:
            if lost.outcome is Outcome.LAUNCH_FAILED and not self.samples:  # the platform took no call at all
                raise BackendError(str(lost)) from lost
            if self._now_s() < self.lasts_s:  # what its deadline ended has not failed
                yield Ended(self._now_s(), lost.outcome, str(lost), lost.log)
        except BackendError as error:
            yield Ended(self._now_s(), Outcome.FAILED, str(error))
        finally:
            self.caller.close()
            self._forget()

    def _train(self, work: TrainEpochs) -> Events:
        """Trials side by side, each epoch by epoch."""
        waiting, running = deque(work.trials), list[_Trial]()
        at_once = max(1, self.launch.configuration.nodes // self.orders.allocation.functions)
        while waiting or running:
            while waiting and len(running) < at_once:
                running.append(self._trial(waiting.popleft(), work.done + 1))
            self._start_all([trial.group for trial in running])
            self._look_ahead(work, running)
            for trial in list(running):
                if (reports := trial.group.look()) is not None:
                    running.remove(trial)
                    yield self._ended(trial, reports)
                    if trial.epoch < work.done + work.epochs:
                        running.append(self._trial(trial.number, trial.epoch + 1))
            self._wait()

    def _look_ahead(self, work: TrainEpochs, running: list[_Trial]) -> None:
        """Call the functions of the epoch after this launch, once it is time for them."""
        if self.call_ahead is None or work.then is None or len(running) != 1:
            return
        (trial,) = running
        after_s = call_after_s(self.pace, self.orders.allocation, work.then)
        running_s = time.time() - trial.group.called_at + trial.group.head_start_s
        if trial.epoch < work.done + work.epochs or running_s < after_s:
            return
        epoch_s = self.pace.expected_s("train_epoch", self.orders.allocation) or 0.0
        steps = self._serverless.workload.iterations(work.then.functions)
        theirs = Meter(self._serverless.tariff, work.then, steps)
        waits_s = self.meter.keep_for(READY, theirs, WAITS_S + epoch_s, 2 * (epoch_s - after_s))
        if waits_s is not None:
            self.waiting = self.call_ahead(trial.number, trial.epoch + 1, theirs, waits_s)
        self.call_ahead = None

    def _trial(self, trial: int, epoch: int) -> _Trial:
        if (ahead := self.taken_over) is not None and (ahead.trial, ahead.epoch) == (trial, epoch):
            self.taken_over = None
            if ahead.take_over(self.meter, self.models.find(trial, epoch - 1)):
                return _Trial(trial, epoch, ahead.group)
            raise _MoneyOver
        orders, models = self.orders, self.models
        return _Trial(trial, epoch, epoch_group(self.caller, orders, models, self.pace, self.meter, trial, epoch))

    def _ended(self, trial: _Trial, reports: list[Report]) -> Sample:
        """Commit the model, and tell what the epoch was. Its parts are those of the function that was up last."""
        group, seconds = trial.group, time.time() - trial.group.began_at
        self.models.commit(trial.number, trial.epoch, self.orders.model(trial.number, trial.epoch, group.attempt))
        last = max(reports, key=lambda report: float(report["up_at"]))
        start_s = max(0.0, last["up_at"] - group.called_at)
        if start_s > 0:  # those that were called ahead have been starting before
            self.pace.note(READY, self.orders.allocation, start_s + last["load_s"])
        usd, used_s = self._of_those_ahead()
        loss = math.fsum(report["loss"] for report in reports) / sum(report["judged"] for report in reports)
        epoch = Epoch(
            trial.number,
            trial.epoch,
            seconds,
            self.meter.usd(group.bill, seconds) + usd,
            _told(loss),
            start_s=start_s,
            load_s=last["load_s"],
            compute_s=last["compute_s"],
            sync_s=last["sync_s"],
            function_s=group.bill.function_s + used_s,
            requests=group.bill.requests,
            retries=group.attempt,
        )
        return self._sample(epoch, self._serverless.workload.samples)

    def _of_those_ahead(self) -> tuple[float, float]:
        """What functions that wait for the next launch have cost this one, and the time that they are billed for."""
        if self.waiting is None:
            return 0.0, 0.0
        used = self.waiting.used()
        return self.waiting.group.meter.functions_usd(used), used.function_s

    def _train_sample(self, work: TrainEpochs, functions: int) -> Events:
        """All epochs are one call, and share what it costs."""
        trial, workload = work.trials[0], self._serverless.workload.sampled(SAMPLE, functions)
        group = self._group(
            train_alone,
            lambda attempt, until, requests: self.orders.sample(trial, functions, work.epochs, until),
            "the sample",
        )
        (report,) = self._reports(group)
        count, seconds = len(report["epochs"]), time.time() - group.began_at
        usd, used_s = self.meter.usd(group.bill, seconds) / count, group.bill.function_s / count
        for number, (loss, took_s) in enumerate(report["epochs"], 1):
            epoch = Epoch(trial, number, took_s, usd, _told(loss), compute_s=took_s, function_s=used_s)
            yield self._sample(epoch, workload.samples)

    def _calibrate(self) -> Events:
        group = self._group(calibrate, self.orders.calibration, "the calibration")
        reports = self._reports(group)
        found = concluded(self.orders.allocation, self._serverless.workload, reports, group.called_at)
        self.samples += sum(report["rows"] for report in reports)
        yield Sample(self._tell_s(), self.samples, evidence=found)

    def _reports(self, group: Group) -> list[Report]:
        """Of the only group that there is, once it has ended."""
        while (reports := group.look()) is None:
            self._start_all([group])
            self._wait()
        return reports

    def _start_all(self, groups: list[Group]) -> None:
        """Begin what is to begin, as far as it can be paid for; what cannot waits for what runs to cost less."""
        idle = [group for group in groups if group.call is None]
        until = time.time() + self.lasts_s - self._now_s()
        paid = [group.start(until, share=1 / (len(idle) - number)) for number, group in enumerate(idle)]
        if not any(paid) and len(idle) == len(groups):
            raise _MoneyOver

    def _group(self, function: Function, orders: OrdersOf, name: str) -> Group:
        return Group(self.caller, function, orders, name, self.orders.allocation, self.pace, self.meter)

    def _forget(self) -> None:
        """Remove what is left where the functions met; a place that is gone has kept nothing."""
        storage, url = self.orders.allocation.storage, self.orders.url
        with suppress(BackendError), closing(connect(storage, url, patience_s=0.0)) as place:
            place.clear(f"{self.orders.name}/")

    def _sample(self, epoch: Epoch, samples: int) -> Sample:
        self.samples += samples
        return Sample(self._tell_s(), self.samples, saved=self.samples, metric=epoch.loss, evidence=epoch)

    def _tell_s(self) -> float:
        """Now, and after what was told before."""
        self.told_s = max(self._now_s(), self.told_s + APART_S)
        return self.told_s

    def _wait(self) -> None:
        if self._now_s() >= self.lasts_s:
            raise _TimeOver
        self.clock.wait(LOOK_EVERY_S)

    def _now_s(self) -> float:
        return self.clock.elapsed_s() - self.started_s

    @property
    def _serverless(self) -> FunctionsTask:
        assert isinstance(self.orders.job.ask, FunctionsTask)
        return self.orders.job.ask


def epoch_group(
    caller: Caller,
    orders: Orders,
    models: Models,
    pace: Pace,
    meter: Meter,
    trial: int,
    epoch: int,
    gate: str = "",
    waits_s: float = 0.0,
) -> Group:
    """The functions of an epoch. With a gate, those of the first attempt are told there what to go on from."""
    waits_until = time.time() + waits_s

    def told(attempt: int, until: float, requests: int | None) -> list[Order]:
        if gate and attempt == 0:
            return orders.waiting(trial, epoch, gate, waits_until, attempt, until, requests)
        return orders.epoch(trial, epoch, models.find(trial, epoch - 1), attempt, until, requests)

    return Group(
        caller,
        train_epoch,
        told,
        f"epoch {epoch} of trial {trial}",
        orders.allocation,
        pace,
        meter,
        _disagreement,
        lambda attempt: models.drop(orders.model(trial, epoch, attempt)),
        waits_s,
    )


def _told(loss: float) -> float:
    """A loss that is no number any more is told as infinite."""
    return loss if math.isfinite(loss) else math.inf


def _disagreement(reports: list[Report]) -> str:
    """All functions took the same steps, so all must have come to the same model."""
    models = {report["model"] for report in reports}
    return "" if len(models) == 1 else f"{len(reports)} functions ended with {len(models)} different models"
