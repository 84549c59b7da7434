"""Small random clouds for tests, with arbitrary (also non-concave) speeds and failures."""

from collections.abc import Sequence
from math import sqrt

import numpy as np
from scipy.special import ndtri

from mlcd.clouds.recorded import REPORTS, Recorded
from mlcd.clouds.recording import Point, Recording
from mlcd.clouds.virtual import gamma_factors
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Configuration, Floats, Offer, ProbeTime
from mlcd.core.job import CONFIDENCE, Goal, Job, Objective
from mlcd.core.measurement import Outcome
from mlcd.core.place import Cloud
from mlcd.planners.profilers.training import TrainingProfiler

Rates = Sequence[float | None]
"""The rates of a type on 1, 2, 3 ... nodes; None if it fails."""


def small_recording(
    rates: Sequence[Rates],
    usd_per_hour: Sequence[float],
    work_samples: float = 1e6,
    probe_s: float = 600.0,
    failure: Outcome = Outcome.OUT_OF_MEMORY,
) -> Recording:
    """A recording with these rates: a row for each type, a column for each node count."""
    points: dict[Configuration, Point] = {}
    for number, (row, price) in enumerate(zip(rates, usd_per_hour, strict=True)):
        # Specifications grow with the price, roughly as in real catalogs.
        offer = Offer(f"type-{number}", price, vcpus=4 * (number + 1), memory_gb=16, network_gbps=10)
        for nodes, rate in enumerate(row, start=1):
            outcome = failure if rate is None else Outcome.OK
            points[Configuration(offer, nodes)] = Point(outcome, rate)
    return Recording("small", work_samples, points, ProbeTime(probe_s, probe_s / 10))


def random_recording(rng: np.random.Generator) -> Recording:
    """Up to four types on up to six nodes, rates over four decades, a fifth of them failing; minutes to days."""
    types = int(rng.integers(1, 5))
    rates: list[list[float | None]] = []
    for _ in range(types):
        sizes = int(rng.integers(1, 7))
        row = 10 ** rng.uniform(-1, 3, sizes)
        rates.append([None if rng.random() < 0.2 else float(rate) for rate in row])
    if not any(rate is not None for row in rates for rate in row):
        rates[0][0] = 1.0
    prices = [float(price) for price in 10 ** rng.uniform(-1, 1.5, types)]
    fastest = max(rate for row in rates for rate in row if rate is not None)
    return small_recording(rates, prices, fastest * 10 ** float(rng.uniform(2.5, 5.5)), float(rng.uniform(60, 1_200)))


def random_goal(rng: np.random.Generator, recording: Recording) -> Goal:
    """An objective under no, one or two limits, from hopeless to generous."""
    rates = {c: point.samples_per_s for c, point in recording.points.items() if point.samples_per_s is not None}
    takes_s = {configuration: recording.work_samples / rate for configuration, rate in rates.items()}
    seconds, usd = min(takes_s.values()), min(configuration.usd(each) for configuration, each in takes_s.items())
    objective = Objective.FASTEST if rng.random() < 0.5 else Objective.CHEAPEST
    factors = 10 ** rng.uniform(-0.3, 1.0, 2)
    budget = usd * float(factors[0]) if rng.random() < 0.6 else None
    deadline = seconds * float(factors[1]) if rng.random() < 0.6 else None
    return Goal(objective, budget, deadline)


def job_on(recording: Recording, goal: Goal | None = None) -> Job:
    """The recorded job, with a goal."""
    return Job(recording.name, recording.work_samples, goal or Goal())


def bounded_cloud(recording: Recording, noise: float, seed: int) -> Cloud:
    """A recorded cloud whose noise is bounded by its stated level."""
    clock = VirtualClock()
    backend = BoundedNoise(recording, clock, noise, seed)
    profiler = TrainingProfiler(backend, 0.0 if noise else 0.01, tight=None, warm_up=False, stated_noise=noise)
    return Cloud(recording.space, backend, profiler, clock)


class BoundedNoise(Recorded):
    """A recorded cloud whose noise never exceeds a certificate's margin for the error of a whole probe.

    The bound is the normal quantile of the confidence, in standard errors.
    """

    def factors(self, rng: np.random.Generator) -> Floats:
        """The recorded cloud's noise, with its mean clipped to the bound."""
        factors = gamma_factors(rng, self.noise * sqrt(REPORTS), REPORTS)
        mean = float(factors.mean())
        # Slightly inside, because the profiler's mean may differ in the last digit.
        bound = np.exp(ndtri(CONFIDENCE) * self.noise * (1 - 1e-9))
        bounded: Floats = factors * (min(max(mean, 1 / bound), bound) / mean)
        return bounded
