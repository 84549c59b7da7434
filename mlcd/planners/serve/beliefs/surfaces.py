"""Surfaces made of fields, and how they bend to what was measured: randomised maximum likelihood.

Each sample of the prior is moved to the nearest fields (in the prior's own metric) that explain the measurements, which
are disturbed by their noise, a fresh one for each sample (Oliver, He, Reynolds 1996): exact where the law is linear,
and close where it is not. The nearest fields are found by Gauss-Newton steps in the space of the measurements, so that
only as many equations are solved as there are measurements.

Symbols   S    samples          n    measurements          f    fields          J    slopes of the law, S x f x n
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlcd.core.configuration import Floats
from mlcd.planners.serve.beliefs.cells import Indices
from mlcd.planners.serve.beliefs.fields import Samples

SHARPNESS = 3.0
"""q: how sharply the slower of host and device wins."""
STEPS, SPLIT_STEPS = 8, 12
"""Of Gauss-Newton: for a model of which much is known, and to split one of which nothing is."""
LONGEST_STEP = 2.5
"""In the log: a step that changes a field more than twelvefold is shortened."""

Fields = Sequence[Floats]
"""Each S x n."""


class Law(NamedTuple):
    """A surface from its fields: `value` is (fields, log work n) -> log value, S x n; `slopes`, S x f x n."""

    value: Callable[[Fields, Floats], Floats]
    slopes: Callable[[Fields, Floats, Floats], Floats]


def _device_value(z: Fields, work: Floats) -> Floats:
    return np.asarray(np.logaddexp(z[1], z[2] + work))


def _device_slopes(z: Fields, work: Floats, value: Floats) -> Floats:
    share = np.exp(z[1] - value)
    return np.stack([np.zeros_like(share), share, 1 - share], axis=1)


def _batch_value(z: Fields, work: Floats) -> Floats:
    return np.asarray(np.logaddexp(SHARPNESS * z[0], SHARPNESS * _device_value(z, work)) / SHARPNESS)


def _batch_slopes(z: Fields, work: Floats, value: Floats) -> Floats:
    share = np.exp(SHARPNESS * (z[0] - value))
    slopes = (1 - share)[:, None, :] * _device_slopes(z, work, _device_value(z, work))
    slopes[:, 0] = share
    return np.asarray(slopes)


def _memory_value(z: Fields, log_batch: Floats) -> Floats:
    return np.asarray(np.logaddexp(z[0], z[1] + log_batch))


def _memory_slopes(z: Fields, log_batch: Floats, value: Floats) -> Floats:
    share = np.exp(z[0] - value)
    return np.stack([share, 1 - share], axis=1)


DEVICE_TIME = Law(_device_value, _device_slopes)
"""What a profile tells: the device alone. The host's floor, the first field, plays no part."""
BATCH_TIME = Law(_batch_value, _batch_slopes)
"""What a trial tells: the slower of host and device."""
MEMORY_HELD = Law(_memory_value, _memory_slopes)
"""What a model holds, and each request; the log batch is its work."""


@dataclass(frozen=True)
class Seen:
    """Measurements of a surface, in the log.

    `at`: the cells. `values`, `sd`: S x n, or n for all samples alike. `bound`: -1 where the truth is at most the
    value, 1 where it is at least that, 0 where it was measured. `alone`: where the device alone was seen.
    """

    at: Indices
    values: Floats
    sd: Floats
    bound: NDArray[np.int_]
    alone: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.at)


def bent(
    fields: Sequence[Samples],
    law: Law,
    work: Floats,
    seen: Seen,
    rng: np.random.Generator | None = None,
    steps: int = STEPS,
) -> list[Samples]:
    """The samples moved so that they explain what was seen; without an `rng` nothing is disturbed."""
    if not len(seen):
        return list(fields)
    start = [each.at(seen.at) for each in fields]
    values = np.broadcast_to(seen.values, start[0].shape).copy()
    if rng is not None:
        noise = seen.sd * rng.standard_normal(values.shape)
        values += np.where(seen.bound == 0, noise, seen.bound * np.abs(noise))
    covariances = [each.prior.covariance(seen.at) for each in fields]
    push = _nearest(covariances, np.stack(start, axis=1), law, work[seen.at], values, seen, steps)
    return [each.pushed(push[:, i], seen.at) for i, each in enumerate(fields)]


def surface(fields: Sequence[Samples], law: Law, work: Floats, cells: int) -> Floats:
    """The log value at the first so many cells, sample x cell."""
    places = np.arange(cells)
    return law.value([each.at(places) for each in fields], work[:cells])


def _nearest(
    covariances: Sequence[Floats], start: Floats, law: Law, work: Floats, values: Floats, seen: Seen, steps: int
) -> Floats:
    """What to push the fields by at the measured cells, S x f x n: the covariance times it is how far they move."""
    z, push = start, np.zeros_like(start)
    variances = np.broadcast_to(seen.sd, values.shape) ** 2
    pulls = np.broadcast_to(seen.bound == 0, values.shape)
    for step in range(steps):
        told, slopes = _told(z, law, work, seen)
        missed = values - told
        # A bound pulls once it is broken, and from then on: let go when it is met, it would be broken again.
        pulls = pulls | (seen.bound * missed > 0)
        slopes = np.where(pulls[:, None, :], slopes, 0.0)
        wanted = np.where(pulls, missed, 0.0) + (slopes * (z - start)).sum(axis=1)
        system = np.zeros((len(z), len(work), len(work)))
        for i, within in enumerate(covariances):
            system += slopes[:, i, :, None] * within * slopes[:, i, None, :]
        system[:, np.arange(len(work)), np.arange(len(work))] += variances
        push = slopes * np.linalg.solve(system, wanted[..., None])[:, None, :, 0]
        there = start + np.stack([push[:, i] @ within for i, within in enumerate(covariances)], axis=1)
        z = z + np.clip(there - z, -LONGEST_STEP, LONGEST_STEP) if step < steps - 1 else there
    return push


def _told(z: Floats, law: Law, work: Floats, seen: Seen) -> tuple[Floats, Floats]:
    """What the fields say of each measurement, and the slopes of that."""
    fields = list(np.moveaxis(z, 1, 0))
    told = law.value(fields, work)
    slopes = law.slopes(fields, work, told)
    if seen.alone.any():
        alone = DEVICE_TIME.value(fields, work)
        slopes = np.where(seen.alone, DEVICE_TIME.slopes(fields, work, alone), slopes)
        told = np.where(seen.alone, alone, told)
    return told, slopes
