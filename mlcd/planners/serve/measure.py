"""Measure a service under load: drop the warm-up, stop once the rate and the capped latencies are known.

A trial is a stress test, as in Falcon (section 5): throughput and latencies of a server that is kept busy. It ends
early when throughput is stable and every cap is clearly met or broken, and at once when a cap is clearly broken.

Latency quantiles have distribution-free confidence intervals, from order statistics. Of n independent requests, the
number B below the q-quantile x_q is binomial, so X_(k) >= x_q with probability 1 - P(B >= k). Simultaneous requests are
correlated: a batch is answered together, a stall delays all that wait. How much the share above the quantile varies
between windows shows how strongly (Kish's design effect); n is divided by it.

Symbols   X_(k)    the k-th smallest latency         D    design effect, 1 for independent requests
          m        windows of requests               a    one-sided error probability: that of Z standard errors
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

ALPHA = float(ndtr(-Z))
"""a: the probability that a one-sided Z-sigma bound is wrong."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A measured figure with its confidence interval."""

    low: float
    at: float
    high: float

    def widened(self, rel_error: float) -> Interval:
        """With both ends at least Z relative errors from the middle."""
        factor = math.exp(Z * rel_error)
        return Interval(min(self.low, self.at / factor), self.at, max(self.high, self.at * factor))

    def clear_of(self, limit: float) -> bool:
        """Whether a limit lies outside the interval."""
        return self.high <= limit or self.low > limit


def quantile(windows: Sequence[Floats], q: float) -> Interval:
    """A quantile over all requests of these windows; with too few requests, an end is 0 or infinite."""
    from scipy import stats  # slow to import, and rarely needed

    ordered = np.sort(np.concatenate(windows))
    n = len(ordered)
    at = float(ordered[max(0, math.ceil(n * q) - 1)])
    effective = max(1, int(n / _design_effect(windows, at)))
    below, above = (
        int(stats.binom.ppf(ALPHA, effective, q)),
        int(stats.binom.isf(ALPHA, effective, q)) + 1,
    )
    low = float(ordered[math.floor(below / effective * n) - 1]) if below >= 1 else 0.0
    high = float(ordered[math.ceil(above / effective * n) - 1]) if above <= effective else math.inf
    return Interval(min(low, at), at, max(high, at))


def _design_effect(windows: Sequence[Floats], threshold: float) -> float:
    """D: the variance of the share above a threshold, relative to that of independent requests."""
    sizes = np.array([len(window) for window in windows], dtype=float)
    above = np.array([np.count_nonzero(window > threshold) for window in windows], dtype=float)
    n, m = float(sizes.sum()), len(windows)
    share = float(above.sum()) / n
    if m < 2 or share == 0:
        return 1.0
    between = m / (m - 1) * float(((above - share * sizes) ** 2).sum())
    return max(1.0, between / (n * share * (1 - share)))


MOST_FAILING = 0.01
"""The largest share of failed requests with which a trial still counts."""


@dataclass
class _Observations:
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
        """Successful requests if each was timed; otherwise the total that the rate counts."""
        timed = sum(len(each) for each in self.latencies_s)
        return timed or math.ceil(self.reports[-1].samples if self.reports else 0.0)

    @property
    def requests(self) -> int:
        return self.answered + self.failures

    def since(self, first: Sample) -> list[Floats]:
        """The latencies of the windows after this report."""
        pairs = zip(self.reports, self.latencies_s, strict=True)
        return [each for report, each in pairs if report.elapsed_s > first.elapsed_s and len(each)]

    def stated(self, first: Sample) -> dict[Figure, float]:
        """Recorded figures of the windows after this report, weighted by the answers of each window."""
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
    """Runs a trial on a backend and turns its reports into a measurement.

    `noise_floor`, `stated_noise`: see `rates.Floor`. `tight`: a trial ends once the Z-sigma interval of its rate is
    within this share of it, and every capped figure is either as precise or clear of its cap; None runs every trial for
    its full time. `warm_up`: whether to drop the first reports as warm-up. `progress`: is called with every report.
    """

    backend: Backend
    noise_floor: float = 0.01
    tight: float | None = 0.05
    warm_up: bool = True
    stated_noise: float = 0.0
    progress: Progress = lambda job, launch, sample: None

    def with_listener(self, progress: Progress) -> Self:
        """The same profiler with another progress callback."""
        return replace(self, progress=progress)

    def measure(self, job: Job, launch: Launch, look: Look | None = None, watch: Watch | None = None) -> Measurement:
        """Launch, load, tear down, conclude. `watch` is not used: it is for runs of a decision."""
        observed, ended = _Observations(), None
        with closing(self.backend.run(job, launch)) as events:
            for event in events:
                if isinstance(event, Ended):
                    ended = event
                    break
                observed.add(event)
                self.progress(job, launch, event)
                if look is not None and rates.is_due(look, launch, event):
                    glance = self._conclude(launch, observed, None, event.elapsed_s)
                    if glance.ok:  # one look is enough, once there is a measurement
                        ended = None if look.should_continue(glance) else Ended(event.elapsed_s, Outcome.OK)
                        look = None
                else:
                    ended = self._enough(job, launch, observed)
                if ended is not None:
                    break
        # Without an end event, the server ran until its lifetime was over.
        seconds = ended.elapsed_s if ended is not None else launch.lifetime_s
        if seconds is None:
            seconds = observed.reports[-1].elapsed_s if observed.reports else 0.0
        return self._conclude(launch, observed, ended, seconds)

    def reclaim(self, label: str) -> float | None:
        """Tear down what a crashed process left of a trial."""
        return self.backend.reclaim(label)

    def billed_s(self, launch: Launch) -> float | None:
        """The seconds that the cloud bills, if it states them."""
        return self.backend.billed_s(launch) if isinstance(self.backend, ReportsBilledTime) else None

    def _enough(self, job: Job, launch: Launch, observed: _Observations) -> Ended | None:
        """How the trial ends if more load would not change its result; None if it goes on."""
        if self.tight is None or len(observed.reports) <= rates.FEWEST:
            return None
        now_s = observed.reports[-1].elapsed_s
        if _is_failing(observed):
            return Ended(now_s, Outcome.OK)
        steady = self._steady(observed)
        rel_error = self._rel_error(launch, steady, now_s)
        caps = job.ask.caps if isinstance(job.ask, ServingTask) else ()
        figures = self._figures(observed, steady[0], rel_error) if caps else {}
        capped = [(cap, figures[cap.figure]) for cap in caps if cap.figure in figures]
        for cap, figure in capped:
            if figure.low > cap.at_most_s:
                return Ended(now_s, Outcome.OK, f"ended early: {cap} is clearly broken")
        if len(steady) <= rates.FEWEST or Z * rel_error > self.tight or len(capped) < len(caps):
            return None
        precise = 1 + self.tight
        clear = all(each.clear_of(cap.at_most_s) or each.high <= each.at * precise for cap, each in capped)
        return Ended(now_s, Outcome.OK) if clear else None

    def _conclude(self, launch: Launch, observed: _Observations, ended: Ended | None, seconds: float) -> Measurement:
        reports, ended = observed.reports, ended or Ended(seconds, Outcome.OK)
        served = Served({}, {}, observed.requests, observed.failures, observed.peak_gb, server=observed.server)
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
        if observed.failures > MOST_FAILING * observed.requests:
            return _failed(so_far, observed)
        timed_out = partial(replace, so_far, outcome=Outcome.TIMED_OUT)
        if observed.answered == 0:
            return timed_out(detail=f"no request was answered in {seconds:.0f} s")
        if len(reports) <= 2:
            return timed_out(detail=f"only {counted(len(reports), 'report')} of the load in {seconds:.0f} s")
        steady = self._steady(observed)
        rate = rates.overall_rate(steady)
        if rate <= 0:
            return timed_out(detail="the server stopped answering")
        rel_error = self._rel_error(launch, steady, seconds)
        figures = self._figures(observed, steady[0], rel_error)
        measured, high = {f: each.at for f, each in figures.items()}, {f: each.high for f, each in figures.items()}
        served = replace(served, figures=measured, high=high)
        return replace(so_far, samples_per_s=rate, rel_error=rel_error, evidence=served)

    def _steady(self, observed: _Observations) -> list[Sample]:
        """Evenly spaced reports without the warm-up, which is at least the first report, when connections are made."""
        even = rates.evenly_spaced(observed.reports)
        if not self.warm_up or len(even) <= rates.FEWEST:
            return even
        return even[max(1, rates.warm_up_length(rates.rates_between(even))) :]

    def _rel_error(self, launch: Launch, steady: list[Sample], seconds: float) -> float:
        return rates.Floor(self.noise_floor, self.stated_noise, settles_s=0.0).rel_error(launch, steady, seconds)

    def _figures(self, observed: _Observations, first: Sample, rel_error: float) -> dict[Figure, Interval]:
        """Percentiles of single requests, widened by the noise floor since launches differ, too.

        Without single requests: the recorded figures, with the relative error of the rate.
        """
        if windows := observed.since(first):
            return {figure: quantile(windows, q).widened(self.noise_floor) for figure, q in QUANTILES.items()}
        return {figure: Interval(at, at, at).widened(rel_error) for figure, at in observed.stated(first).items()}


def _is_failing(observed: _Observations) -> bool:
    """Whether significantly more requests fail than `MOST_FAILING`."""
    from scipy import stats  # slow to import, and few commands come here

    return (
        observed.failures > 0 and float(stats.binom.sf(observed.failures - 1, observed.requests, MOST_FAILING)) <= ALPHA
    )


def _failed(so_far: Measurement, observed: _Observations) -> Measurement:
    why = f": {observed.error}" if observed.error else ""
    if observed.answered == 0:  # with `log`, an equal failure elsewhere shows that the configuration is not to blame
        return replace(so_far, outcome=Outcome.FAILED, detail=f"every request failed{why}", log=observed.error)
    detail = f"{observed.failures:,} of {observed.requests:,} requests failed{why}"
    return replace(so_far, outcome=Outcome.FAILED, detail=detail)
