"""Measure a training job: drop the warm-up, sample while the rate is unstable, stop once it is known.

Yi et al. (IPDPS 2020, section IV): 'Profiler monitors the training throughput across iterations and
extends the profiling time when large discrepancy is observed'.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import Self

from mlcd.core.backend import Backend, CanRejoin, Events, Launch, Progress, Purpose, ReportsBilledTime, ReportsSavedWork
from mlcd.core.job import Job
from mlcd.core.measurement import TOLERANCE, Ended, Event, Measurement, Mismatch, Outcome, Sample, Z, largest
from mlcd.core.strategy import Look, Watch
from mlcd.core.units import counted
from mlcd.planners.profilers import rates
from mlcd.planners.scale.nouns import MeasureNoise, Noise, ScalingTask

WINDOW_REPORTS = 32
"""Most reports in the window over which a run's recent rate is computed."""
CHANGED = 4.0
"""Standard errors of a significant change of rate. A run is checked so often that three would occur by chance."""

UNREPORTED_S = 120.0
"""How long machines may go on working while they are torn down."""

NO_NOISE = "it reports no gradient noise: use a NoiseMeter of mlcd_tracker, or keep the batch (`--batch 128`)"
TOO_SHORT = "the job ended by itself (exit code 0) before its rate could be measured"
TOO_SELDOM = "let it report more often, or give it more work"
NOT_A_NUMBER = "its metric is not a number: the training has diverged; try a lower learning rate or a smaller batch"


@dataclass(frozen=True)
class TrainingProfiler:
    """Run a launch on a backend and make a measurement of it.

    `noise_floor`: least relative error. A probe of minutes cannot see differences between launches or drift over hours.
    `settles_s`: time that slow fluctuations take to average out; shorter measurements get a higher floor. `tight`: a
    probe ends once its interval, Z standard errors, is within this share of the rate; None for probes of full length.
    `warm_up`: whether to drop the first reports if they differ. `stated_noise`: known relative error of a whole probe,
    if any; a shorter one has more, by the inverse root of its share. `window_s`: window of the rate that shows whether
    a run has slowed down. `progress`: called with every report.
    """

    backend: Backend
    noise_floor: float = 0.01
    tight: float | None = 0.05
    warm_up: bool = True
    stated_noise: float = 0.0
    settles_s: float = 0.0
    window_s: float = 300.0
    progress: Progress = lambda job, launch, sample: None

    def with_listener(self, progress: Progress) -> Self:
        """A copy that calls `progress` with every report."""
        return replace(self, progress=progress)

    def measure(self, job: Job, launch: Launch, look: Look | None = None, watch: Watch | None = None) -> Measurement:
        """Launch, watch until the rate is known or the launch ends, tear down, and return the measurement."""
        return self._watched(job, launch, self.backend.run(job, launch), look, watch)

    def still_runs(self, label: str) -> bool:
        """Whether a launch that another process started is still running and can be rejoined."""
        return isinstance(self.backend, CanRejoin) and self.backend.still_runs(label)

    def rejoin(self, job: Job, launch: Launch, watch: Watch | None = None) -> Measurement:
        """Go on watching a launch that is still running."""
        if not isinstance(self.backend, CanRejoin):
            raise ValueError(f"launch {launch.label} cannot be rejoined")
        return self._watched(job, launch, self.backend.rejoin(job, launch), None, watch)

    def _watched(self, job: Job, launch: Launch, events: Events, look: Look | None, watch: Watch | None) -> Measurement:
        """Watch until the rate is known or the launch ends, tear down, and return the measurement."""
        reports: list[Sample] = []
        ended: Ended | None = None
        by_itself, remark = False, ""
        with closing(events):
            for event in events:
                if isinstance(event, Ended):
                    ended, by_itself = event, event.outcome is Outcome.OK
                    break
                event = _without_useless_saves(job, event)
                if not event.stalled:
                    remark = remark or event.remark
                    self._keep(launch, reports, event)
                    self.progress(job, launch, event)
                    if (ended := _end_by_report(job, launch, event)) is not None:
                        break
                if launch.purpose is Purpose.RUN:
                    why = watch(self._so_far(job, launch, reports, event)) if watch is not None else None
                elif look is not None and rates.is_due(look, launch, event):
                    glance, why = self._conclude(job, launch, reports, None, event.elapsed_s), None
                    if glance.ok:  # look only once, when there is a rate
                        why = None if look.should_continue(glance) else Outcome.OK
                        look = None
                else:
                    why = Outcome.OK if self._is_rate_known(launch, reports) else None
                if why is not None:
                    ended = Ended(event.elapsed_s, why)
                    if isinstance(job.ask, ScalingTask) or (why is Outcome.SWITCHED and job.checkpoints):
                        ended = _ask_to_save(events, reports, ended)
                    break
        # A launch that nothing ended ran until its lifetime was over.
        seconds = ended.elapsed_s if ended is not None else launch.lifetime_s
        if seconds is None:
            seconds = reports[-1].elapsed_s if reports else 0.0
        mismatch = _mismatch(job, launch, reports, by_itself and not remark)
        if by_itself and launch.purpose is Purpose.PROBE and not self._has_rate(reports):
            ended = _too_short(reports, seconds, mismatch)
        measured = self._conclude(job, launch, reports, ended, seconds)
        return replace(measured, mismatch=mismatch, detail=measured.detail or remark)

    def reclaim(self, label: str) -> float | None:
        """Tear down what a crash left of a launch; how long it ran, if known."""
        return self.backend.reclaim(label)

    def billed_s(self, launch: Launch) -> float | None:
        """The seconds that the cloud reports as billed, if it does."""
        return self.backend.billed_s(launch) if isinstance(self.backend, ReportsBilledTime) else None

    def saved(self, label: str) -> float:
        """Samples saved by a launch whose end was not observed."""
        return self.backend.saved(label) if isinstance(self.backend, ReportsSavedWork) else 0.0

    def _keep(self, launch: Launch, reports: list[Sample], sample: Sample) -> None:
        """Add a report; in a long run, only as many as the watch can use."""
        apart_s = min(self.window_s / WINDOW_REPORTS, sample.elapsed_s / rates.MOST_INTERVALS)
        if launch.purpose is Purpose.RUN and len(reports) > 1 and sample.elapsed_s - reports[-2].elapsed_s < apart_s:
            reports[-1] = sample
        else:
            reports.append(sample)

    def _is_rate_known(self, launch: Launch, reports: list[Sample]) -> bool:
        if self.tight is None or len(reports) <= rates.FEWEST:
            return False
        if isinstance(launch.work, MeasureNoise) and self._waits_for_noise(launch, reports[-1]):
            return False
        steady = self._steady(reports)
        return len(steady) > rates.FEWEST and Z * self._rel_error(launch, steady, reports[-1].elapsed_s) <= self.tight

    def _waits_for_noise(self, launch: Launch, last: Sample) -> bool:
        """Whether to wait for stable noise, at most half of the probe's time: noise may rise during all of training."""
        if isinstance(last.evidence, Noise) and last.evidence.stable:
            return False
        return launch.lifetime_s is None or last.elapsed_s < launch.lifetime_s / 2

    def _so_far(self, job: Job, launch: Launch, reports: list[Sample], now: Sample) -> Measurement:
        """A run so far, with its rate over the last `window_s`; without a rate before that, and while it is stalled."""
        so_far = Measurement(
            launch.configuration,
            Outcome.OK,
            now.elapsed_s,
            launch.bill_usd(now.elapsed_s),
            samples_done=now.samples,
            detail=now.remark,
            saved_samples=launch.saved_samples + max(sample.saved for sample in reports),
            metric=rates.last_metric(job, reports),
            evidence=now.evidence,
        )
        if now.stalled or now.elapsed_s - reports[0].elapsed_s < self.window_s:
            return so_far
        rate, error = self._recent_rate(launch, reports)
        return so_far if rate is None else replace(so_far, samples_per_s=rate, rel_error=error)

    def _recent_rate(self, launch: Launch, reports: list[Sample]) -> tuple[float | None, float]:
        """The rate of the last `window_s` and its error.

        The last half of the run is used instead if its rate agrees, because its error is smaller, or if the window has
        too few reports.
        """
        now_s, first_s = reports[-1].elapsed_s, reports[0].elapsed_s
        rate, error = self._rate_since(launch, reports, now_s - self.window_s)
        longer, longer_error = self._rate_since(launch, reports, min(now_s - self.window_s, (now_s + first_s) / 2))
        if rate is None:
            return longer, longer_error
        if longer is None or longer_error >= error:
            return rate, error
        agree = abs(math.log(longer / rate)) <= CHANGED * math.hypot(error, longer_error)
        return (longer, longer_error) if agree else (rate, error)

    def _rate_since(self, launch: Launch, reports: list[Sample], since_s: float) -> tuple[float | None, float]:
        window = reports[bisect_left(reports, since_s, key=lambda sample: sample.elapsed_s) :]
        if len(window) <= rates.FEWEST or rates.overall_rate(window) <= 0:
            return None, math.inf
        return rates.overall_rate(window), self._rel_error(launch, window, reports[-1].elapsed_s)

    def _conclude(
        self, job: Job, launch: Launch, reports: list[Sample], ended: Ended | None, seconds: float
    ) -> Measurement:
        so_far = Measurement(
            launch.configuration,
            ended.outcome if ended is not None else Outcome.OK,
            seconds,
            launch.bill_usd(seconds),
            startup_s=reports[0].elapsed_s if reports else seconds,
            samples_done=max(reports[-1].samples, reports[-1].saved) if reports else 0.0,
            detail=ended.detail if ended is not None else "",
            saved_samples=launch.saved_samples + max((sample.saved for sample in reports), default=0.0),
            log=ended.log if ended is not None else "",
            metric=rates.last_metric(
                job, reports if ended is not None and ended.outcome is Outcome.OK else rates.saved_reports(job, reports)
            ),
            evidence=next((sample.evidence for sample in reversed(reports) if sample.evidence is not None), None),
            looks=rates.metric_evaluations(reports),
            memory=largest(*(sample.memory for sample in reports)),
        )
        if launch.purpose is Purpose.RUN and ended is None:
            detail = f"{so_far.samples_done:,.0f} of {launch.samples:,.0f} samples done when the limit was reached"
            so_far = replace(so_far, outcome=Outcome.AT_THE_LIMIT, detail=detail)
        if so_far.outcome in (Outcome.SLOWED, Outcome.SWITCHED, Outcome.AT_THE_LIMIT) and reports:
            # The recent rate is used if the limit is raised and the run resumed.
            lately = self._so_far(job, launch, reports, reports[-1])
            return replace(so_far, samples_per_s=lately.samples_per_s, rel_error=lately.rel_error)
        if so_far.outcome is not Outcome.OK:
            return so_far
        if launch.purpose is Purpose.RUN:
            return self._finished(launch, so_far, reports)
        steady = self._steady(reports) if len(reports) > 2 else reports
        if len(steady) <= 2:  # a single interval has no scatter, and so no error
            detail = f"only {counted(len(reports), 'report')} of progress in {seconds:.0f} s"
            return replace(so_far, outcome=Outcome.TIMED_OUT, detail=detail)
        if isinstance(launch.work, MeasureNoise) and not isinstance(so_far.evidence, Noise):
            log = f"{counted(len(reports), 'report')}, none with noise="
            return replace(so_far, outcome=Outcome.FAILED, detail=NO_NOISE, log=log)
        rate = rates.overall_rate(steady)
        if rate <= 0:
            return replace(so_far, outcome=Outcome.TIMED_OUT, detail="the job made no progress")
        return replace(so_far, samples_per_s=rate, rel_error=self._rel_error(launch, steady, seconds))

    def _finished(self, launch: Launch, so_far: Measurement, reports: list[Sample]) -> Measurement:
        """A finished run with its overall rate: for a whole run the warm-up counts, too."""
        even = rates.evenly_spaced(reports) if len(reports) > 2 else reports
        if len(even) <= 2 or rates.overall_rate(even) <= 0:
            return so_far  # too short for a rate, but it finished
        return replace(
            so_far, samples_per_s=rates.overall_rate(even), rel_error=self._rel_error(launch, even, so_far.seconds)
        )

    def _has_rate(self, reports: list[Sample]) -> bool:
        steady = self._steady(reports) if len(reports) > 2 else reports
        return len(steady) > 2 and rates.overall_rate(steady) > 0

    def _steady(self, reports: list[Sample]) -> list[Sample]:
        """Evenly spaced reports without the warm-up."""
        even = rates.evenly_spaced(reports)
        return even[rates.warm_up_length(rates.rates_between(even)) :] if self.warm_up else even

    def _rel_error(self, launch: Launch, steady: list[Sample], seconds: float) -> float:
        error = rates.Floor(self.noise_floor, self.stated_noise, self.settles_s).rel_error(launch, steady, seconds)
        if launch.purpose is Purpose.RUN or not self.warm_up:
            return error
        return max(error, rates.decline(rates.rates_between(steady)))


def _without_useless_saves(job: Job, event: Sample) -> Sample:
    """Ignore what a job reports as saved if the job does not resume from checkpoints."""
    if job.checkpoints or not event.saved:
        return event
    return replace(event, samples=max(event.samples, event.saved), saved=0.0)


def _end_by_report(job: Job, launch: Launch, event: Sample) -> Ended | None:
    """The end of a launch that a report implies: the training diverged, or the target was reached and saved."""
    if event.remark and launch.purpose is Purpose.PROBE:  # a run goes on: what counts is how it ends
        return Ended(event.elapsed_s, Outcome.FAILED, event.remark, f"at {event.samples:,.0f} samples")
    if event.metric is None:
        return None
    if math.isnan(event.metric):
        return Ended(event.elapsed_s, Outcome.FAILED, NOT_A_NUMBER, "metric=nan")
    if job.target is None or not job.target.reached(event.metric):
        return None
    return Ended(event.elapsed_s, Outcome.OK) if event.saved >= event.samples or not job.checkpoints else None


def _mismatch(job: Job, launch: Launch, reports: list[Sample], by_itself: bool) -> Mismatch | None:
    """Whether the job reported more or less work than its `work` states.

    `by_itself`: it ended by itself, and its reports were understood; only then is less work a mismatch. Work after the
    last report is estimated. A job that reached its target has done enough, however early.
    """
    stated = launch.saved_samples + launch.samples
    reported = launch.saved_samples + (max(reports[-1].samples, reports[-1].saved) if reports else 0.0)
    if reported > (1 + TOLERANCE) * stated:
        return Mismatch(reported, stated)
    metric = rates.last_metric(job, reports)
    if not by_itself or (job.target is not None and metric is not None and job.target.reached(metric)):
        return None
    apart = max((after.samples - before.samples for before, after in itertools.pairwise(reports)), default=0.0)
    done = reported + apart + _saved_after_last_report(launch, reports)
    return Mismatch(reported, stated) if done < (1 - TOLERANCE) * stated else None


def _saved_after_last_report(launch: Launch, reports: list[Sample]) -> float:
    """Most work that the previous launch may have saved after its last report, while it was torn down."""
    took_s = reports[-1].elapsed_s - reports[0].elapsed_s if reports else 0.0
    if not launch.saved_samples or took_s <= 0.0:
        return 0.0
    return UNREPORTED_S * (reports[-1].samples - reports[0].samples) / took_s


def _too_short(reports: list[Sample], seconds: float, mismatch: Mismatch | None) -> Ended:
    """The failure of a probe whose job ended before its rate was known. Other machines would not change that."""
    summary = f"{counted(len(reports), 'report')} of progress in {seconds:.0f} s"
    if mismatch is None:
        return Ended(seconds, Outcome.FAILED, f"{TOO_SHORT}, {summary}: {TOO_SELDOM}")
    advice = f"after {mismatch.share} of its `work`: either `work` or what it reports is wrong"
    return Ended(seconds, Outcome.FAILED, f"{TOO_SHORT}, {advice}", log=summary)


def _ask_to_save(events: Events, reports: list[Sample], ended: Ended) -> Ended:
    """Ask the job to save and leave, and wait for it. Its last report tells what is saved; its rate is not used."""
    with suppress(StopIteration):
        event: Event | None = events.send(True)
        while isinstance(event, Sample):
            reports[-1] = replace(reports[-1], saved=event.saved, metric=event.metric, evidence=event.evidence)
            ended = replace(ended, elapsed_s=event.elapsed_s)
            event = next(events)
        if isinstance(event, Ended):
            if event.outcome is not Outcome.OK:
                return event
            ended = replace(ended, elapsed_s=event.elapsed_s)
    return ended
