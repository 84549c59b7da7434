"""A recorded cloud on which every launch, probe or run, has its own conditions.

The recorded rate is the truth around which launches vary:

    rate(t) = recorded rate x the launch's own factor x boost(t) x decline(t) x noise

Noise is a gamma process, as in `mlcd.clouds.recorded`: a probe of full length has the assumed relative error, and
less time has more of it, by the inverse root. With autocorrelation it is log-normal, with the same scatter of a report.

Symbols   dt     seconds between two reports; dt0 those between two reports of a whole probe
          rho    correlation of the noise of two neighbouring reports that are dt0 apart
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from math import exp, sqrt

import numpy as np
from weather.conditions import ASSUMED_NOISE, BOOST_S, Weather

from mlcd.clouds.recording import Point, Recording
from mlcd.clouds.virtual import play
from mlcd.core.backend import Events, Launch, Provenance, Purpose
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Configuration, Floats
from mlcd.core.job import Job
from mlcd.core.measurement import Ended, Event, Outcome, Sample

PROBE_REPORTS = 30
BURST, APART_S = 10, 32.0
"""A long run reports in bursts of ten in five minutes, so that the rate of the last minutes can be measured."""
BURSTS = 40
"""Bursts over the expected time of a long run; a short run has them back to back."""


@dataclass(frozen=True)
class WeatheredCloud:
    """Replays a recording in the given weather. `factors`: the drawn factor of each launch, by its ordinal."""

    recording: Recording
    clock: VirtualClock
    weather: Weather
    seed: int = 0
    noise: float = ASSUMED_NOISE
    factors: dict[int, float] = field(default_factory=dict)

    provenance = Provenance.RECORDED

    def run(self, job: Job, launch: Launch) -> Events:
        """Replay one launch."""
        return play(self._events(launch, self.recording.points[launch.configuration]), job, launch, self.clock)

    def reclaim(self, label: str) -> None:
        """Nothing to do: a simulation has no machines."""

    def _events(self, launch: Launch, point: Point) -> Iterator[Event]:
        probe_s = self.recording.probe_time.seconds(launch.configuration.nodes)
        if point.samples_per_s is None:
            return iter([Ended(probe_s / 2, point.outcome, "as recorded")])
        rng = _launch_rng(self.seed, launch)
        own = self.factors[launch.ordinal] = exp(_own_log_factor(self.weather, rng))
        if launch.purpose is Purpose.PROBE:
            at_s = np.linspace(0.0, probe_s, PROBE_REPORTS + 1)
        else:
            needed_s = launch.samples / point.samples_per_s
            at_s = report_times(needed_s, 2 * needed_s if launch.lifetime_s is None else launch.lifetime_s)
        job_s = (launch.saved_samples + launch.samples) / point.samples_per_s
        steady = np.diff(expected_progress(self.weather, at_s, job_s)) * point.samples_per_s * own
        noise = self.noise * self._noise_of_type(launch.configuration)
        shown = noise_factors(rng, np.diff(at_s), probe_s, noise, self.weather.report_autocorrelation)
        done = np.concatenate(([0.0], np.cumsum(steady * shown)))
        return _reports(at_s, done, None if launch.purpose is Purpose.PROBE else launch.samples)

    def _noise_of_type(self, configuration: Configuration) -> float:
        """The factor of an instance type on the assumed noise, the same for all its launches."""
        if self.weather.noise_by_type is None:
            return 1.0
        least, most = self.weather.noise_by_type
        rng = np.random.default_rng([self.seed, zlib.crc32(configuration.offer.name.encode())])
        return float(least * (most / least) ** rng.random())


def report_times(needed_s: float, until_s: float) -> Floats:
    """When a run reports: in bursts, from its start to `until_s`, which is the last one."""
    every_s = max(BURST * APART_S, needed_s / BURSTS)
    starts = np.arange(0.0, until_s, every_s)
    at_s = (starts[:, None] + np.arange(BURST) * APART_S).ravel()
    return np.append(at_s[at_s < until_s], until_s)


def expected_progress(weather: Weather, at_s: Floats, job_s: float) -> Floats:
    """The integral of boost and decline up to these times. `job_s`: the job's time at the recorded rate."""
    within = np.minimum(at_s, job_s)
    lost = weather.decline * (within**2 / (2 * job_s) + (at_s - within))
    progress: Floats = at_s + weather.boost * np.minimum(at_s, BOOST_S) - lost
    return progress


def noise_factors(rng: np.random.Generator, dt: Floats, probe_s: float, noise: float, rho: float) -> Floats:
    """Factors on the expected progress between reports: positive, with mean 1."""
    dt0 = probe_s / PROBE_REPORTS
    if rho == 0:
        shape = dt / (noise**2 * probe_s)
        factors: Floats = rng.gamma(shape, 1 / shape)
        return factors
    reports = np.maximum(dt / dt0, 1.0)
    variance = noise**2 * PROBE_REPORTS * np.where(dt < dt0, dt0 / dt, _variance_of_mean(reports, rho))
    sigma = np.sqrt(np.log1p(variance))
    correlated: Floats = np.exp(sigma * _normal_ar1(rng, rho ** np.maximum(reports, 1.0)) - sigma**2 / 2)
    return correlated


def _variance_of_mean(n: Floats, rho: float) -> Floats:
    """The variance of the mean of n neighbours of an AR(1) process with variance 1."""
    variance: Floats = ((1 + rho) / (1 - rho) - 2 * rho * (1 - rho**n) / (n * (1 - rho) ** 2)) / n
    return variance


def _normal_ar1(rng: np.random.Generator, rhos: Floats) -> Floats:
    """Standard normal values, each correlated with the one before it by its own rho."""
    shocks = rng.standard_normal(len(rhos))
    values, last = np.empty(len(rhos)), 0.0
    for i, (rho, shock) in enumerate(zip(rhos.tolist(), shocks.tolist(), strict=True)):
        last = shock if i == 0 else rho * last + sqrt(1 - rho * rho) * shock
        values[i] = last
    return values


def _own_log_factor(weather: Weather, rng: np.random.Generator) -> float:
    """Of variance `between` squared; Student's t with 3 degrees of freedom has variance 3."""
    drawn = rng.standard_t(3) / sqrt(3) if weather.heavy_tails else rng.standard_normal()
    return float(weather.between * drawn)


def _launch_rng(seed: int, launch: Launch) -> np.random.Generator:
    """The random generator of one launch; not that of `Recorded`, to which a strategy may have been tuned."""
    name = zlib.crc32(launch.configuration.offer.name.encode())
    kind = 1 + (launch.purpose is Purpose.RUN)
    return np.random.default_rng([seed, name, launch.configuration.nodes, launch.ordinal, kind])


def _reports(at_s: Floats, done: Floats, work: float | None) -> Iterator[Event]:
    """Progress reports; with `work`, until it is done, and then the end."""
    if work is None or done[-1] < work:
        return (Sample(at, samples) for at, samples in zip(at_s.tolist(), done.tolist(), strict=True))
    last = int(np.searchsorted(done, work))
    share = (work - done[last - 1]) / (done[last] - done[last - 1])
    end_s = float(at_s[last - 1] + share * (at_s[last] - at_s[last - 1]))
    until = zip(at_s[:last].tolist(), done[:last].tolist(), strict=True)
    reports = (Sample(at, samples) for at, samples in until)
    return chain(reports, [Sample(end_s, work), Ended(end_s, Outcome.OK)])
