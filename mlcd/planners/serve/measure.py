"""Measure a service under load: drop the warm-up, stop once the rate and the latencies that matter are known.

A trial is a stress test, as in Falcon (section 5): answers a second and latencies of a server that is kept busy. It
ends early where throughput is flat and every cap is clearly kept or broken, or at once where a cap is clearly broken.

Quantiles of latencies have distribution-free confidence intervals, from order statistics. Of n independent requests,
the number B below the q-quantile x_q is binomial, so X_(k) >= x_q with probability 1 - P(B >= k). Requests at the same
moment are correlated: a batch is answered at once, a stall delays all that wait. The variance of the share above the
quantile between windows shows by how much (Kish's design effect); n is divided by it.

Symbols   X_(k)    the k-th smallest latency         D    design effect, 1 for independent requests
          m        windows of requests               a    error probability of one end: that of Z normal standard errors
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Self

import numpy as np
from scipy.special import ndtr

from mlcd.core.backend import Backend, Launch, Progress, ReportsBilledTime
from mlcd.core.configuration import Floats
from mlcd.core.job import Job
from mlcd.core.measurement import Ended, Measurement, Outcome, Sample, Z
from mlcd.core.strategy import Look, Watch
from mlcd.core.units import counted
from mlcd.planners.profilers import rates
from mlcd.planners.serve.nouns import QUANTILES, Figure, Served, ServingTask, Window

WRONG = float(ndtr(-Z))
"""The error probability a of one end of an interval: a one-sided Z-sigma bound."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A measured figure with its confidence interval."""

    low: float
    at: float
    high: float

    def widened(self, rel_error: float) -> Interval:
        """With ends at least Z relative errors away."""
        away = math.exp(Z * rel_error)
        return Interval(min(self.low, self.at / away), self.at, max(self.high, self.at * away))

    def clear_of(self, limit: float) -> bool:
        """Whether a limit is outside of the interval."""
        return self.high <= limit or self.low > limit


def quantile(windows: Sequence[Floats], q: float) -> Interval:
    """The quantile of all requests of these windows; with too few requests, an end is 0 or infinite."""
    from scipy import stats  # slow to import, and rarely needed

    ordered = np.sort(np.concatenate(windows))
    n = len(ordered)
    at = float(ordered[max(0, math.ceil(n * q) - 1)])
    effective = max(1, int(n / _design_effect(windows, at)))
    below, above = int(stats.binom.ppf(WRONG, effective, q)), int(stats.binom.isf(WRONG, effective, q)) + 1
    low = float(ordered[math.floor(below / effective * n) - 1]) if below >= 1 else 0.0
    high = float(ordered[math.ceil(above / effective * n) - 1]) if above <= effective else math.inf
    return Interval(min(low, at), at, max(high, at))


def _design_effect(windows: Sequence[Floats], threshold: float) -> float:
    """The variance of the share above a threshold, relative to that of independent requests."""
    sizes = np.array([len(window) for window in windows], dtype=float)
    above = np.array([np.count_nonzero(window > threshold) for window in windows], dtype=float)
    n, m = float(sizes.sum()), len(windows)
    share = float(above.sum()) / n
    if m < 2 or share == 0:
        return 1.0
    between = m / (m - 1) * float(((above - share * sizes) ** 2).sum())
    return max(1.0, between / (n * share * (1 - share)))


MOST_FAILING = 0.01
"""Of its requests, that a server may fail and still count as serving."""


@dataclass
class _Seen:
    """What a trial has reported so far."""

    reports: list[Sample] = field(default_factory=list)
    latencies_s: list[Floats] = field(default_factory=list)
    failures: int = 0
    peak_gb: float | None = None
    error: str = ""
    server: str = ""

    def add(self, sample: Sample) -> None:
        window = sample.evidence if isinstance(sample.evidence, Window) else Window()
        self.reports.append(sample)
        self.latencies_s.append(np.array(window.latencies_s, dtype=float))
        self.failures += window.failures
        self.error = self.error or window.error
        self.server = self.server or window.server
        if window.peak_gb is not None:
            self.peak_gb = max(self.peak_gb or 0.0, window.peak_gb)

    @property
    def answered(self) -> int:
        """Requests, where each was timed; otherwise what the rate counts."""
        timed = sum(len(each) for each in self.latencies_s)
        return timed or math.ceil(self.reports[-1].samples if self.reports else 0.0)

    @property
    def requests(self) -> int:
        return self.answered + self.failures

    def since(self, first: Sample) -> list[Floats]:
        """Latencies of the windows after a report."""
        pairs = zip(self.reports, self.latencies_s, strict=True)
        return [each for report, each in pairs if report.elapsed_s > first.elapsed_s and len(each)]

    def stated(self, first: Sample) -> dict[Figure, float]:
        """Figures that a recording states of the windows after a report, a window counting by its answers."""
        windows: list[tuple[float, Mapping[Figure, float]]] = []
        for before, report in pairwise(self.reports):
            window = report.evidence
            if report.elapsed_s > first.elapsed_s and isinstance(window, Window) and window.stated:
                windows.append((report.samples - before.samples, window.stated))
        answered = math.fsum(weight for weight, _ in windows)
        if answered <= 0:
            return {}
        figures = windows[0][1]
        return {each: math.fsum(n * stated[each] for n, stated in windows) / answered for each in figures}


@dataclass(frozen=True)
class ServingProfiler:
    """Runs a trial on a backend and concludes.

    `noise_floor`, `stated_noise`: see Floor. `tight`: a trial ends once the interval of its rate, Z
    standard errors, is within this share of it, and so are the figures that caps are about, unless their caps are
    clearly kept or broken; None takes every trial to its full time. `warm_up`: whether the first reports may be off and
    are to be dropped. `progress` is told every report.
    """

    backend: Backend
    noise_floor: float = 0.01
    tight: float | None = 0.05
    warm_up: bool = True
    stated_noise: float = 0.0
    progress: Progress = lambda job, launch, sample: None

    def with_listener(self, progress: Progress) -> Self:
        """With somebody who hears every report."""
        return replace(self, progress=progress)

    def measure(self, job: Job, launch: Launch, look: Look | None = None, watch: Watch | None = None) -> Measurement:
        """Launch, load, tear down, conclude. Trials are all that a service launches, so no watch is asked."""
        seen, ended = _Seen(), None
        with closing(self.backend.run(job, launch)) as events:
            for event in events:
                if isinstance(event, Ended):
                    ended = event
                    break
                seen.add(event)
                self.progress(job, launch, event)
                if look is not None and rates.is_due(look, launch, event):
                    glance = self._conclude(launch, seen, None, event.elapsed_s)
                    if glance.ok:  # one look is enough, once there is something to see
                        ended = None if look.should_continue(glance) else Ended(event.elapsed_s, Outcome.OK)
                        look = None
                else:
                    ended = self._enough(job, launch, seen)
                if ended is not None:
                    break
        # A server that nobody ended went on until it stopped by itself.
        seconds = ended.elapsed_s if ended is not None else launch.lifetime_s
        if seconds is None:
            seconds = seen.reports[-1].elapsed_s if seen.reports else 0.0
        return self._conclude(launch, seen, ended, seconds)

    def reclaim(self, label: str) -> float | None:
        """Tear down what a crash left of a trial."""
        return self.backend.reclaim(label)

    def billed_s(self, launch: Launch) -> float | None:
        """The seconds that the cloud says it bills."""
        return self.backend.billed_s(launch) if isinstance(self.backend, ReportsBilledTime) else None

    def _enough(self, job: Job, launch: Launch, seen: _Seen) -> Ended | None:
        """How a trial ends that has nothing more to tell; None if it goes on."""
        if self.tight is None or len(seen.reports) <= rates.FEWEST:
            return None
        now_s = seen.reports[-1].elapsed_s
        if _is_failing(seen):
            return Ended(now_s, Outcome.OK)
        steady = self._steady(seen)
        rel_error = self._rel_error(launch, steady, now_s)
        caps = job.ask.caps if isinstance(job.ask, ServingTask) else ()
        figures = self._figures(seen, steady[0], rel_error) if caps else {}
        seen_of = [(cap, figures[cap.figure]) for cap in caps if cap.figure in figures]
        for cap, figure in seen_of:
            if figure.low > cap.at_most_s:
                return Ended(now_s, Outcome.OK, f"ended early: {cap} is clearly broken")
        if len(steady) <= rates.FEWEST or Z * rel_error > self.tight or len(seen_of) < len(caps):
            return None
        sharp = 1 + self.tight
        clear = all(each.clear_of(cap.at_most_s) or each.high <= each.at * sharp for cap, each in seen_of)
        return Ended(now_s, Outcome.OK) if clear else None

    def _conclude(self, launch: Launch, seen: _Seen, ended: Ended | None, seconds: float) -> Measurement:
        reports, ended = seen.reports, ended or Ended(seconds, Outcome.OK)
        served = Served({}, {}, seen.requests, seen.failures, seen.peak_gb, server=seen.server)
        so_far = Measurement(
            launch.configuration,
            ended.outcome,
            seconds,
            launch.configuration.usd(seconds),
            startup_s=reports[0].elapsed_s if reports else seconds,
            samples_done=reports[-1].samples if reports else 0.0,
            detail=ended.detail,
            log=ended.log,
            evidence=served if reports else None,
        )
        if so_far.outcome is not Outcome.OK:
            return so_far
        if seen.failures > MOST_FAILING * seen.requests:
            return _failed(so_far, seen)
        timed_out = partial(replace, so_far, outcome=Outcome.TIMED_OUT)
        if seen.answered == 0:
            return timed_out(detail=f"no request was answered in {seconds:.0f} s")
        if len(reports) <= 2:
            return timed_out(detail=f"only {counted(len(reports), 'report')} of the load in {seconds:.0f} s")
        steady = self._steady(seen)
        rate = rates.overall_rate(steady)
        if rate <= 0:
            return timed_out(detail="the server stopped answering")
        rel_error = self._rel_error(launch, steady, seconds)
        figures = self._figures(seen, steady[0], rel_error)
        measured, high = {f: each.at for f, each in figures.items()}, {f: each.high for f, each in figures.items()}
        served = replace(served, figures=measured, high=high)
        return replace(so_far, samples_per_s=rate, rel_error=rel_error, evidence=served)

    def _steady(self, seen: _Seen) -> list[Sample]:
        """Reports about equally far apart, without the warm-up: at the least the first, when connections are made."""
        even = rates.evenly_spaced(seen.reports)
        if not self.warm_up or len(even) <= rates.FEWEST:
            return even
        return even[max(1, rates.warm_up_length(rates.rates_between(even))) :]

    def _rel_error(self, launch: Launch, steady: list[Sample], seconds: float) -> float:
        return rates.Floor(self.noise_floor, self.stated_noise, settles_s=0.0).rel_error(launch, steady, seconds)

    def _figures(self, seen: _Seen, first: Sample, rel_error: float) -> dict[Figure, Interval]:
        """From single requests where there are any: they differ between launches by the floor too, not only by chance.

        A recording's own figures are as sure as its rate.
        """
        if windows := seen.since(first):
            return {figure: quantile(windows, q).widened(self.noise_floor) for figure, q in QUANTILES.items()}
        return {figure: Interval(at, at, at).widened(rel_error) for figure, at in seen.stated(first).items()}


def _is_failing(seen: _Seen) -> bool:
    """Whether more requests fail than may, and chance does not explain it."""
    from scipy import stats  # slow to import, and few commands come here

    return seen.failures > 0 and float(stats.binom.sf(seen.failures - 1, seen.requests, MOST_FAILING)) <= WRONG


def _failed(so_far: Measurement, seen: _Seen) -> Measurement:
    why = f": {seen.error}" if seen.error else ""
    if seen.answered == 0:  # the same everywhere, it is no matter of the configuration: the log says so
        return replace(so_far, outcome=Outcome.FAILED, detail=f"every request failed{why}", log=seen.error)
    detail = f"{seen.failures:,} of {seen.requests:,} requests failed{why}"
    return replace(so_far, outcome=Outcome.FAILED, detail=detail)
