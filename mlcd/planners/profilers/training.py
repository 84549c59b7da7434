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
"""That a run's window holds at the most."""
CHANGED = 4.0
"""Standard errors: a run is looked at so often that three are passed by chance."""

UNHEARD_S = 120.0
"""How long machines may work on while they are torn down."""

NO_NOISE = "it reports no gradient noise: use a NoiseMeter of mlcd_tracker, or keep the batch (`--batch 128`)"
TOO_SHORT = "the job ended by itself (exit code 0) before its rate could be measured"
TOO_SELDOM = "let it report more often, or give it more work"
NOT_A_NUMBER = "its metric is not a number: the training has diverged; try a lower learning rate or a smaller batch"


@dataclass(frozen=True)
class TrainingProfiler:
    """Runs a launch on a backend and concludes.

    `noise_floor`: relative error that is assumed at the least. A probe of minutes cannot see what differs
    between launches or drifts over hours. `settles_s`: what comes and goes more slowly than reports do takes about so
    long to average out; the floor of a measurement that was short beside it is the higher. `tight`: a probe ends once
    its interval, Z standard errors, is within this share of the rate; None takes every probe to its full time.
    `warm_up`: whether the first reports may be off and are to be dropped. `stated_noise`: the relative error that a
    whole probe is known to have, if it is; a shorter one has more, by the inverse root of its share. `window_s`: over
    how long a run's rate is looked at to see whether it has slowed down. `progress` is told every report.
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
        """With somebody who hears every report."""
        return replace(self, progress=progress)

    def measure(self, job: Job, launch: Launch, look: Look | None = None, watch: Watch | None = None) -> Measurement:
        """Launch, watch until it is known or over, tear down, conclude."""
        return self._watched(job, launch, self.backend.run(job, launch), look, watch)

    def still_runs(self, label: str) -> bool:
        """Whether a launch that another process has begun can be gone on with."""
        return isinstance(self.backend, CanRejoin) and self.backend.still_runs(label)

    def rejoin(self, job: Job, launch: Launch, watch: Watch | None = None) -> Measurement:
        """Go on watching a launch that still runs."""
        if not isinstance(self.backend, CanRejoin):
            raise ValueError(f"launch {launch.label} cannot be joined again")
        return self._watched(job, launch, self.backend.rejoin(job, launch), None, watch)

    def _watched(self, job: Job, launch: Launch, events: Events, look: Look | None, watch: Watch | None) -> Measurement:
        """Watch until it is known or over, tear down, conclude."""
        seen: list[Sample] = []
        ended: Ended | None = None
        by_itself, remark = False, ""
        with closing(events):
            for event in events:
                if isinstance(event, Ended):
                    ended, by_itself = event, event.outcome is Outcome.OK
                    break
                event = _believed(job, event)
                if not event.stalled:
                    remark = remark or event.remark
                    self._keep(launch, seen, event)
                    self.progress(job, launch, event)
                    if (ended := _own_end(job, launch, event)) is not None:
                        break
                if launch.purpose is Purpose.RUN:
                    why = watch(self._lately(job, launch, seen, event)) if watch is not None else None
                elif look is not None and rates.is_due(look, launch, event):
                    glance, why = self._conclude(job, launch, seen, None, event.elapsed_s), None
                    if glance.ok:  # one look is enough, once there is something to see
                        why = None if look.should_continue(glance) else Outcome.OK
                        look = None
                else:
                    why = Outcome.OK if self._known(launch, seen) else None
                if why is not None:
                    ended = Ended(event.elapsed_s, why)
                    if isinstance(job.ask, ScalingTask) or (why is Outcome.SWITCHED and job.checkpoints):
                        ended = _hear_out(events, seen, ended)
                    break
        # Machines that nobody ended went on until they stopped by themselves.
        seconds = ended.elapsed_s if ended is not None else launch.lifetime_s
        if seconds is None:
            seconds = seen[-1].elapsed_s if seen else 0.0
        mismatch = _mismatch(job, launch, seen, by_itself and not remark)
        if by_itself and launch.purpose is Purpose.PROBE and not self._has_rate(seen):
            ended = _too_short(seen, seconds, mismatch)
        measured = self._conclude(job, launch, seen, ended, seconds)
        return replace(measured, mismatch=mismatch, detail=measured.detail or remark)

    def reclaim(self, label: str) -> float | None:
        """Tear down what a crash left of a launch."""
        return self.backend.reclaim(label)

    def billed_s(self, launch: Launch) -> float | None:
        """The seconds that the cloud says it bills."""
        return self.backend.billed_s(launch) if isinstance(self.backend, ReportsBilledTime) else None

    def saved(self, label: str) -> float:
        """What a launch has saved whose end nobody saw."""
        return self.backend.saved(label) if isinstance(self.backend, ReportsSavedWork) else 0.0

    def _keep(self, launch: Launch, seen: list[Sample], sample: Sample) -> None:
        """Add a report; of a long run, only as many as its watch can use."""
        apart_s = min(self.window_s / WINDOW_REPORTS, sample.elapsed_s / rates.MOST_INTERVALS)
        if launch.purpose is Purpose.RUN and len(seen) > 1 and sample.elapsed_s - seen[-2].elapsed_s < apart_s:
            seen[-1] = sample
        else:
            seen.append(sample)

    def _known(self, launch: Launch, seen: list[Sample]) -> bool:
        if self.tight is None or len(seen) <= rates.FEWEST:
            return False
        if isinstance(launch.work, MeasureNoise) and self._waits_for_noise(launch, seen[-1]):
            return False
        steady = self._steady(seen)
        return len(steady) > rates.FEWEST and Z * self._rel_error(launch, steady, seen[-1].elapsed_s) <= self.tight

    def _waits_for_noise(self, launch: Launch, last: Sample) -> bool:
        """Until it is stable, or half of the probe's time is over: noise may rise for as long as a job trains."""
        if isinstance(last.evidence, Noise) and last.evidence.stable:
            return False
        return launch.lifetime_s is None or last.elapsed_s < launch.lifetime_s / 2

    def _lately(self, job: Job, launch: Launch, seen: list[Sample], now: Sample) -> Measurement:
        """A run so far, with the rate of its last `window_s`; without one in its first, and while it is stalled."""
        so_far = Measurement(
            launch.configuration,
            Outcome.OK,
            now.elapsed_s,
            launch.bill_usd(now.elapsed_s),
            samples_done=now.samples,
            detail=now.remark,
            saved_samples=launch.saved_samples + max(sample.saved for sample in seen),
            metric=rates.last_metric(job, seen),
            evidence=now.evidence,
        )
        if now.stalled or now.elapsed_s - seen[0].elapsed_s < self.window_s:
            return so_far
        rate, error = self._recent_rate(launch, seen)
        return so_far if rate is None else replace(so_far, samples_per_s=rate, rel_error=error)

    def _recent_rate(self, launch: Launch, seen: list[Sample]) -> tuple[float | None, float]:
        """The rate of the last `window_s` and its error; of the last half of the run where that shows the same.

        Of that half, too, where the window holds too few reports: a job that reports seldom is watched all the same.
        """
        now_s, first_s = seen[-1].elapsed_s, seen[0].elapsed_s
        rate, error = self._rate_since(launch, seen, now_s - self.window_s)
        longer, longer_error = self._rate_since(launch, seen, min(now_s - self.window_s, (now_s + first_s) / 2))
        if rate is None:
            return longer, longer_error
        if longer is None or longer_error >= error:
            return rate, error
        agree = abs(math.log(longer / rate)) <= CHANGED * math.hypot(error, longer_error)
        return (longer, longer_error) if agree else (rate, error)

    def _rate_since(self, launch: Launch, seen: list[Sample], since_s: float) -> tuple[float | None, float]:
        window = seen[bisect_left(seen, since_s, key=lambda sample: sample.elapsed_s) :]
        if len(window) <= rates.FEWEST or rates.overall_rate(window) <= 0:
            return None, math.inf
        return rates.overall_rate(window), self._rel_error(launch, window, seen[-1].elapsed_s)

    def _conclude(
        self, job: Job, launch: Launch, seen: list[Sample], ended: Ended | None, seconds: float
    ) -> Measurement:
        so_far = Measurement(
            launch.configuration,
            ended.outcome if ended is not None else Outcome.OK,
            seconds,
            launch.bill_usd(seconds),
            startup_s=seen[0].elapsed_s if seen else seconds,
            samples_done=max(seen[-1].samples, seen[-1].saved) if seen else 0.0,
            detail=ended.detail if ended is not None else "",
            saved_samples=launch.saved_samples + max((sample.saved for sample in seen), default=0.0),
            log=ended.log if ended is not None else "",
            metric=rates.last_metric(
                job, seen if ended is not None and ended.outcome is Outcome.OK else rates.kept(job, seen)
            ),
            evidence=next((sample.evidence for sample in reversed(seen) if sample.evidence is not None), None),
            looks=rates.looks(seen),
            memory=largest(*(sample.memory for sample in seen)),
        )
        if launch.purpose is Purpose.RUN and ended is None:
            detail = f"{so_far.samples_done:,.0f} of {launch.samples:,.0f} samples done when the limit was reached"
            so_far = replace(so_far, outcome=Outcome.AT_THE_LIMIT, detail=detail)
        if so_far.outcome in (Outcome.SLOWED, Outcome.SWITCHED, Outcome.AT_THE_LIMIT) and seen:
            # Should the limit be raised, this is what is known of its rate.
            lately = self._lately(job, launch, seen, seen[-1])
            return replace(so_far, samples_per_s=lately.samples_per_s, rel_error=lately.rel_error)
        if so_far.outcome is not Outcome.OK:
            return so_far
        if launch.purpose is Purpose.RUN:
            return self._averaged(launch, so_far, seen)
        steady = self._steady(seen) if len(seen) > 2 else seen
        if len(steady) <= 2:  # a single interval has no scatter, and so no error
            detail = f"only {counted(len(seen), 'report')} of progress in {seconds:.0f} s"
            return replace(so_far, outcome=Outcome.TIMED_OUT, detail=detail)
        if isinstance(launch.work, MeasureNoise) and not isinstance(so_far.evidence, Noise):
            return replace(
                so_far, outcome=Outcome.FAILED, detail=NO_NOISE, log=f"{counted(len(seen), 'report')}, none with noise="
            )
        rate = rates.overall_rate(steady)
        if rate <= 0:
            return replace(so_far, outcome=Outcome.TIMED_OUT, detail="the job made no progress")
        return replace(so_far, samples_per_s=rate, rel_error=self._rel_error(launch, steady, seconds))

    def _averaged(self, launch: Launch, so_far: Measurement, seen: list[Sample]) -> Measurement:
        """A run that has ended, with the rate of all of it: what came first was no warm-up, but work that was done."""
        even = rates.evenly_spaced(seen) if len(seen) > 2 else seen
        if len(even) <= 2 or rates.overall_rate(even) <= 0:
            return so_far  # over before there was anything to tell; it has ended well all the same
        return replace(
            so_far, samples_per_s=rates.overall_rate(even), rel_error=self._rel_error(launch, even, so_far.seconds)
        )

    def _has_rate(self, seen: list[Sample]) -> bool:
        steady = self._steady(seen) if len(seen) > 2 else seen
        return len(steady) > 2 and rates.overall_rate(steady) > 0

    def _steady(self, seen: list[Sample]) -> list[Sample]:
        """Reports about equally far apart, without the warm-up."""
        even = rates.evenly_spaced(seen)
        return even[rates.warm_up_length(rates.rates_between(even)) :] if self.warm_up else even

    def _rel_error(self, launch: Launch, steady: list[Sample], seconds: float) -> float:
        error = rates.Floor(self.noise_floor, self.stated_noise, self.settles_s).rel_error(launch, steady, seconds)
        if launch.purpose is Purpose.RUN or not self.warm_up:
            return error
        return max(error, rates.decline(rates.rates_between(steady)))


def _believed(job: Job, event: Sample) -> Sample:
    """Of a job that does not go on from its checkpoints, no later launch finds what it says is saved."""
    if job.checkpoints or not event.saved:
        return event
    return replace(event, samples=max(event.samples, event.saved), saved=0.0)


def _own_end(job: Job, launch: Launch, event: Sample) -> Ended | None:
    """A job that has gone wrong, or has reached its target and saved what did: there is nothing more to wait for."""
    if event.remark and launch.purpose is Purpose.PROBE:  # the job itself is let go on: its end is what counts
        return Ended(event.elapsed_s, Outcome.FAILED, event.remark, f"at {event.samples:,.0f} samples")
    if event.metric is None:
        return None
    if math.isnan(event.metric):
        return Ended(event.elapsed_s, Outcome.FAILED, NOT_A_NUMBER, "metric=nan")
    if job.target is None or not job.target.reached(event.metric):
        return None
    return Ended(event.elapsed_s, Outcome.OK) if event.saved >= event.samples or not job.checkpoints else None


def _mismatch(job: Job, launch: Launch, seen: list[Sample], by_itself: bool) -> Mismatch | None:
    """Whether what the job reported is not what its work states; what came after its last report is not known.

    `by_itself`: it ended so, and its reports were understood. A job that has reached its target has done what it was
    for, however soon.
    """
    stated = launch.saved_samples + launch.samples
    reported = launch.saved_samples + (max(seen[-1].samples, seen[-1].saved) if seen else 0.0)
    if reported > (1 + TOLERANCE) * stated:
        return Mismatch(reported, stated)
    metric = rates.last_metric(job, seen)
    if not by_itself or (job.target is not None and metric is not None and job.target.reached(metric)):
        return None
    apart = max((after.samples - before.samples for before, after in itertools.pairwise(seen)), default=0.0)
    done = reported + apart + _saved_unheard(launch, seen)
    return Mismatch(reported, stated) if done < (1 - TOLERANCE) * stated else None


def _saved_unheard(launch: Launch, seen: list[Sample]) -> float:
    """The most that the launch before this one may have saved after its last report, while it was being ended."""
    took_s = seen[-1].elapsed_s - seen[0].elapsed_s if seen else 0.0
    if not launch.saved_samples or took_s <= 0.0:
        return 0.0
    return UNHEARD_S * (seen[-1].samples - seen[0].samples) / took_s


def _too_short(seen: list[Sample], seconds: float, mismatch: Mismatch | None) -> Ended:
    """A probe whose job was over before its rate was known. Elsewhere it may take longer, but will do no more."""
    reports = f"{counted(len(seen), 'report')} of progress in {seconds:.0f} s"
    if mismatch is None:
        return Ended(seconds, Outcome.FAILED, f"{TOO_SHORT}, {reports}: {TOO_SELDOM}")
    advice = f"after {mismatch.share} of its `work`: either `work` or what it reports is wrong"
    return Ended(seconds, Outcome.FAILED, f"{TOO_SHORT}, {advice}", log=reports)


def _hear_out(events: Events, seen: list[Sample], ended: Ended) -> Ended:
    """Ask the job to save and leave, and wait until it has. Its last report tells what it has saved; no rate does."""
    with suppress(StopIteration):
        event: Event | None = events.send(True)
        while isinstance(event, Sample):
            seen[-1] = replace(seen[-1], saved=event.saved, metric=event.metric, evidence=event.evidence)
            ended = replace(ended, elapsed_s=event.elapsed_s)
            event = next(events)
        if isinstance(event, Ended):
            if event.outcome is not Outcome.OK:
                return event
            ended = replace(ended, elapsed_s=event.elapsed_s)
    return ended
