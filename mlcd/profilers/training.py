"""Measure a training job: drop the warm-up, sample while the rate is unstable, stop once it is known.

Yi et al. (IPDPS 2020, section IV): 'Profiler monitors the training throughput across iterations and
extends the profiling time when large discrepancy is observed'.

Symbols   r_i    samples a second in the i-th interval between two reports
          N      intervals kept after the warm-up
          t_N    Student's quantile with N - 1 degrees, at the confidence of Z normal standard errors
"""

from __future__ import annotations

import math
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy import stats

from mlcd.backend import Backend, Launch, Purpose
from mlcd.configuration import Floats
from mlcd.job import Job
from mlcd.measurement import Ended, Measurement, Outcome, Sample, Z
from mlcd.strategy import Look

FEWEST = 8
"""Intervals below which no rate is trusted: Student's quantile is still below 1.6 times the normal one."""


@dataclass(frozen=True)
class TrainingProfiler:
    """Runs a launch on a backend and concludes.

    `noise_floor`: relative error that is assumed at the least. A probe of minutes cannot see what differs
    between launches or drifts over hours. `tight`: a probe ends once its interval, Z standard errors, is within
    this share of the rate; None takes every probe to its full time. `warm_up`: whether the first reports may be
    off and are to be dropped. `stated_noise`: the relative error that a whole probe is known to have, if it is;
    a shorter one has more, by the inverse root of its share.
    """

    backend: Backend
    noise_floor: float = 0.01
    tight: float | None = 0.05
    warm_up: bool = True
    stated_noise: float = 0.0

    def measure(self, job: Job, launch: Launch, look: Look | None = None) -> Measurement:
        """Launch, watch until it is known or over, tear down, conclude."""
        seen: list[Sample] = []
        ended: Ended | None = None
        cut = False
        with closing(self.backend.run(job, launch)) as events:
            for event in events:
                if isinstance(event, Ended):
                    ended = event
                    break
                seen.append(event)
                if launch.purpose is Purpose.PROBE and self._known(launch, seen):
                    cut = True
                    break
                if look is not None and launch.lifetime_s and event.elapsed_s >= look.share * launch.lifetime_s - 1e-6:
                    glance, asked = self._conclude(launch, seen, None, event.elapsed_s), look
                    look = None  # one look is enough
                    if glance.ok and not asked.goes_on(glance):
                        cut = True
                        break
        if ended is not None:
            seconds = ended.elapsed_s
        elif cut or launch.lifetime_s is None:
            seconds = seen[-1].elapsed_s if seen else 0.0
        else:
            seconds = launch.lifetime_s  # the machines went on until they stopped by themselves
        saved = launch.saved_samples + max((sample.saved for sample in seen), default=0.0)
        return replace(self._conclude(launch, seen, ended, seconds), saved_samples=saved)

    def reclaim(self, label: str) -> float | None:
        """Tear down what a crash left of a launch."""
        return self.backend.reclaim(label)

    def _known(self, launch: Launch, seen: list[Sample]) -> bool:
        if self.tight is None or len(seen) <= FEWEST:
            return False
        rates = self._steady(seen)
        return len(rates) >= FEWEST and Z * self._rel_error(launch, rates, seen[-1].elapsed_s) <= self.tight

    def _conclude(self, launch: Launch, seen: list[Sample], ended: Ended | None, seconds: float) -> Measurement:
        configuration = launch.configuration
        usd = configuration.usd(seconds)
        done = seen[-1].samples if seen else 0.0
        startup_s = seen[0].elapsed_s if seen else seconds
        if ended is not None and ended.outcome is not Outcome.OK:
            return Measurement(configuration, ended.outcome, seconds, usd, samples_done=done, detail=ended.detail, log=ended.log)
        if launch.purpose is Purpose.RUN and ended is None:
            detail = f"{done:,.0f} of {launch.samples:,.0f} samples done when the limit was reached"
            return Measurement(configuration, Outcome.AT_THE_LIMIT, seconds, usd, samples_done=done, detail=detail)
        if len(seen) <= 2:
            detail = f"only {len(seen)} reports of progress in {seconds:.0f} s"
            return Measurement(configuration, Outcome.TIMED_OUT, seconds, usd, samples_done=done, detail=detail)
        rates = self._steady(seen)
        rate = float(rates.mean())
        if rate <= 0:
            return Measurement(configuration, Outcome.TIMED_OUT, seconds, usd, detail="the job made no progress")
        return Measurement(
            configuration, Outcome.OK, seconds, usd, rate, self._rel_error(launch, rates, seconds), startup_s, done
        )

    def _steady(self, seen: list[Sample]) -> Floats:
        """Rates between reports, without the warm-up."""
        at_s = np.array([sample.elapsed_s for sample in seen])
        samples = np.array([sample.samples for sample in seen])
        rates: Floats = np.diff(samples) / np.diff(at_s)
        return rates[warm_up_length(rates) :] if self.warm_up else rates

    def _rel_error(self, launch: Launch, rates: Floats, seconds: float) -> float:
        """One effective standard error of the log rate: Z of these are Student's interval, or Z floors."""
        n = len(rates)
        scatter = float(rates.std(ddof=1) / rates.mean()) if n > 1 and rates.mean() > 0 else math.inf
        share = min(1.0, seconds / launch.lifetime_s) if launch.purpose is Purpose.PROBE and launch.lifetime_s else 1.0
        stated = self.stated_noise / math.sqrt(share)
        return max(self.noise_floor, stated, scatter / math.sqrt(n) * _student(n - 1) / Z)


def warm_up_length(rates: Floats) -> int:
    """How many first intervals to drop: the cut, in the first half, that leaves the smallest standard error.

    The marginal standard error rule (White, Simulation 69, 1997).
    """
    n = len(rates)
    if n < 4:
        return 0
    cuts = range(n // 2 + 1)
    errors = [float(rates[cut:].var()) / (n - cut) for cut in cuts]
    return int(np.argmin(errors))


@lru_cache
def _student(degrees: int) -> float:
    return float(stats.t.isf(stats.norm.sf(Z), degrees)) if degrees > 0 else math.inf
