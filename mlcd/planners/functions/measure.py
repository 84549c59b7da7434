"""Measure a launch on functions: collect its epochs or its calibration, and add up their costs.

Functions are billed by use. A complete launch costs the sum of its epochs. The last attempts of an incomplete one have
not reported their use, so it counts with the most that it can have cost in that time, with the epochs that can have
started. After a process was killed, the backend may be able to find out the real use.
"""

from __future__ import annotations

import math
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Self

from mlcd.core.backend import Backend, Launch, Progress, Purpose, ReportsUsage, Usage
from mlcd.core.job import Job
from mlcd.core.measurement import Ended, Measurement, Outcome, Sample
from mlcd.core.strategy import Look, Watch
from mlcd.planners.functions.nouns import (
    MOST_ATTEMPTS,
    Allocation,
    ByUse,
    Calibrated,
    Epoch,
    FunctionsEvidence,
    TrainEpochs,
    evidence_of,
    functions_task,
    work_of,
)

ENDING_S = 2.0
"""How long functions may still be billed after they were told to stop."""


@dataclass
class _Reports:
    """What a launch has reported so far."""

    epochs: list[Epoch] = field(default_factory=list)
    calibrated: Calibrated | None = None
    last: Sample | None = None

    def add(self, sample: Sample) -> None:
        self.last = sample
        if isinstance(sample.evidence, Epoch):
            self.epochs.append(sample.evidence)
        elif isinstance(sample.evidence, Calibrated):
            self.calibrated = sample.evidence

    @property
    def loss(self) -> float | None:
        """The best trial's loss after its last epoch; losses that are not numbers are ignored."""
        last = {epoch.trial: epoch.loss for epoch in self.epochs}
        return min((loss for loss in last.values() if math.isfinite(loss)), default=None)

    def startup_s(self, seconds: float) -> float:
        """Seconds until the first functions had started; the whole launch if none did."""
        first = self.epochs[0] if self.epochs else self.calibrated
        return first.start_s if first is not None else seconds


@dataclass(frozen=True)
class FunctionsProfiler:
    """Runs a launch on functions, and makes its measurement. `progress` is called with every report."""

    backend: Backend
    progress: Progress = lambda job, launch, sample: None

    def with_listener(self, progress: Progress) -> Self:
        """The same profiler with another `progress`."""
        return replace(self, progress=progress)

    def measure(self, job: Job, launch: Launch, look: Look | None = None, watch: Watch | None = None) -> Measurement:
        """Launch, collect reports, tear down, and return the measurement. `look` is ignored: calibrations are short."""
        reports, ended = _Reports(), None
        with closing(self.backend.run(job, launch)) as events:
            for event in events:
                if isinstance(event, Ended):
                    ended = event
                    break
                reports.add(event)
                self.progress(job, launch, event)
                if not isinstance(event.evidence, Epoch) or watch is None:
                    continue
                if (why := watch(_so_far(launch, reports, event))) is not None:
                    ended = Ended(event.elapsed_s, why)
                    break
        # Functions without an end ran until their lifetime was over.
        seconds = ended.elapsed_s if ended is not None else launch.lifetime_s
        if seconds is None:
            seconds = reports.last.elapsed_s if reports.last is not None else 0.0
        return _conclude(job, launch, reports, ended, seconds)

    def reclaim(self, label: str) -> float | None:
        """Tear down what is left of a launch after a crash."""
        return self.backend.reclaim(label)

    def usage(self, job: Job, label: str) -> Usage | None:
        """What a launch used before a crash, if the backend can find out."""
        return self.backend.usage(job, label) if isinstance(self.backend, ReportsUsage) else None


def _so_far(launch: Launch, reports: _Reports, now: Sample) -> Measurement:
    """The measurement so far, for a watch: cheap, since it is made after each of thousands of epochs."""
    return Measurement(
        launch.configuration,
        Outcome.OK,
        now.elapsed_s,
        launch.bill_usd(now.elapsed_s),
        samples_done=now.samples,
        metric=now.evidence.loss if isinstance(now.evidence, Epoch) else None,
        evidence=FunctionsEvidence(tuple(reports.epochs)),
    )


def _conclude(job: Job, launch: Launch, reports: _Reports, ended: Ended | None, seconds: float) -> Measurement:
    """The measurement of a launch. A loss that is not a number is kept: the strategy handles it."""
    work = work_of(launch)
    so_far = Measurement(
        launch.configuration,
        ended.outcome if ended is not None else Outcome.AT_THE_LIMIT,
        seconds,
        launch.bill_usd(seconds),
        startup_s=reports.startup_s(seconds),
        samples_done=reports.last.samples if reports.last is not None else 0.0,
        detail=ended.detail if ended is not None else "",
        saved_samples=_saved_samples(job, launch, reports),
        log=ended.log if ended is not None else "",
        metric=reports.loss,
        evidence=FunctionsEvidence(tuple(reports.epochs), reports.calibrated, work),
    )
    if work is None:
        return _calibration(so_far)
    wanted, done = len(work.trials) * work.epochs, len(_epochs_done(work, reports))
    if done == wanted:
        usd = math.fsum(epoch.usd for epoch in reports.epochs)
        return replace(so_far, outcome=Outcome.OK, usd=usd, metered=True)
    so_far = replace(so_far, usd=_most_usd(launch, reports, seconds, wanted))
    if ended is None:
        return replace(so_far, detail=f"{done:,} of {wanted:,} epochs done when the limit was reached")
    return so_far


def _most_usd(launch: Launch, reports: _Reports, seconds: float, wanted: int) -> float:
    """The most that an incomplete launch can have cost: all functions all the time, and every attempt that started."""
    configuration, most_usd = launch.configuration, launch.bill_usd(seconds)
    work, setting, billing = work_of(launch), configuration.setting, configuration.billing
    if work is None or work.then is not None or not (isinstance(setting, Allocation) and isinstance(billing, ByUse)):
        return most_usd
    running = configuration.nodes // setting.functions
    attempts = sum(1 + epoch.retries for epoch in reports.epochs) + running * MOST_ATTEMPTS
    held_usd = configuration.usd_per_hour * (seconds + ENDING_S) / 3_600
    return min(most_usd, held_usd + attempts * billing.once_usd / wanted)


def _calibration(so_far: Measurement) -> Measurement:
    """The measurement of a calibration probe: it is good once it has reported, however it ended."""
    if (calibrated := evidence_of(so_far).calibrated) is not None:
        so_far = replace(so_far, outcome=Outcome.OK)
        return so_far if calibrated.usd is None else replace(so_far, usd=calibrated.usd, metered=True)
    if so_far.outcome is Outcome.AT_THE_LIMIT:
        detail = f"the calibration was not finished in {so_far.seconds:.0f} s"
        return replace(so_far, outcome=Outcome.TIMED_OUT, detail=detail)
    if so_far.outcome is Outcome.OK:
        return replace(so_far, outcome=Outcome.FAILED, detail="the calibration reported no result")
    return so_far


def _epochs_done(work: TrainEpochs, reports: _Reports) -> set[tuple[int, int]]:
    """The launch's completed epochs, as (trial, number)."""
    trials, first, last = set(work.trials), work.done + 1, work.done + work.epochs
    return {(e.trial, e.number) for e in reports.epochs if e.trial in trials and first <= e.number <= last}


def _saved_samples(job: Job, launch: Launch, reports: _Reports) -> float:
    """The saved work of a training run; none for trials of a tuning job, and for a sample of the data."""
    work, task = work_of(launch), functions_task(job)
    if launch.purpose is Purpose.PROBE or work is None or task.tuning:
        return 0.0
    epochs = max((number for _, number in _epochs_done(work, reports)), default=work.done)
    return epochs * (job.dataset_samples or float(task.workload.samples))
