"""Time and memory as functions of the cell, composed of Gaussian fields, and conditioning samples on measurements.

Time of one batch on a device (seconds), with q = 3:

    log t = 1/q log( e^{q F} + (e^A + e^{B + u})^q )

F  the host's floor: starting the operators            A  what the device takes for an empty batch
B  the device's time for a unit of work                u  log work of a cell (see `cells`)

Memory (GB):  log m = log( e^W + e^{V + log b} );  W for an empty batch, V for each request.

Each letter is a field z(c) = mu(c) + Phi(c) beta + e, with beta ~ N(0, I): a level, a level for each category, slopes
in the log amounts and the log batch, smooth bends over the log batch; e is white noise shared by groups of cells.

Conditioning is by randomised maximum likelihood: each prior sample is moved to the nearest fields (in the prior's
metric) that explain the measurements plus fresh noise (Oliver, He, Reynolds 1996). This is exact if the law is linear,
and close otherwise. The nearest fields are found by Gauss-Newton steps in the space of the measurements, so the linear
systems are only as large as the number of measurements.

Symbols   S    samples          n    measurements          f    fields          J    slopes of the law, S x f x n
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlcd.core.configuration import Floats
from mlcd.planners.serve.beliefs.cells import Cells, Indices

OCTAVE = float(np.log(2))
BEND_OCTAVES = 2.0
"""Length scale of bends, in doublings of the batch."""
MOST_OCTAVES = 13


@dataclass(frozen=True)
class Spread:
    """Prior standard deviations in the log: level, difference of categories, slopes by amount and batch, bends."""

    level: float
    category: float
    amount: float = 0.0
    batch: float = 0.0
    bend: float = 0.0

    def scaled(self, level: float, by: float) -> Spread:
        """With this level, and everything else scaled by a factor."""
        return Spread(level, self.category * by, self.amount * by, self.batch * by, self.bend * by)


@dataclass(frozen=True)
class Noise:
    """White noise shared by cells of one category with the same batch, the same amounts, or both."""

    sd: float
    batch: bool
    amounts: bool


@dataclass(frozen=True)
class Field:
    """The prior of a field without seen models (`mean`, `spread`), and the spread of its level given seen models."""

    mean: float
    spread: Spread
    level: float
    noises: tuple[Noise, ...] = ()


HOST = Field(
    np.log(2e-3), Spread(1.5, 0.2, amount=0.1, batch=0.05), 0.25, (Noise(0.2, False, True), Noise(0.15, True, True))
)
EMPTY = Field(np.log(4e-4), Spread(1.5, 0.7, amount=0.3), 0.5)
WORK = Field(
    np.log(1e-4), Spread(3.0, 1.0, amount=0.2, bend=0.25), 1.5, (Noise(0.03, True, False), Noise(0.03, True, True))
)
HELD = Field(np.log(0.1), Spread(1.5, 0.5), 0.1)
EACH = Field(np.log(0.01), Spread(3.0, 1.0, bend=0.3), 0.3, (Noise(0.05, True, False), Noise(0.01, True, True)))
TIME, MEMORY = (HOST, EMPTY, WORK), (HELD, EACH)
"""The priors of the fields F, A and B of time, and of W and V of memory."""


def basis(cells: Cells, spread: Spread) -> Floats:
    """Phi: a row for each cell."""
    categories = len(cells.axes.categories)
    apart = np.eye(categories)[cells.category]
    columns = [
        np.full((len(cells), 1), spread.level),
        spread.category * apart,
        spread.amount * cells.log_amounts,
        spread.batch * (cells.log_batch[:, None] - 3 * OCTAVE),
    ]
    if spread.bend:
        bends = spread.bend * _bends(cells.log_batch)
        columns += [bends, *(bends * apart[:, [i]] for i in range(categories))]
    return np.hstack(columns)


def _bends(log_batch: Floats) -> Floats:
    """Columns of a squared-exponential Gaussian process over the log batch."""
    knots = np.arange(-1, MOST_OCTAVES + 1, BEND_OCTAVES) * OCTAVE

    def kernel(a: Floats, b: Floats) -> Floats:
        return np.asarray(np.exp(-0.5 * ((a[:, None] - b[None, :]) / (BEND_OCTAVES * OCTAVE)) ** 2))

    values, at = np.unique(log_batch, return_inverse=True)
    root = np.linalg.cholesky(kernel(knots, knots) + 1e-6 * np.eye(len(knots)))
    return np.asarray(np.linalg.solve(root, kernel(knots, values)).T[at])


@dataclass(frozen=True)
class Prior:
    """The prior of a field over certain cells: mean, basis, and the (sd, group of each cell) of each noise."""

    mean: Floats
    phi: Floats
    noises: tuple[tuple[float, Indices], ...]

    def covariance(self, at: Indices) -> Floats:
        """The covariance between the cells at these indices."""
        total = self.phi[at] @ self.phi[at].T
        for sd, groups in self.noises:
            total += sd**2 * (groups[at][:, None] == groups[at])
        return np.asarray(total)

    def sample(self, count: int, rng: np.random.Generator | None) -> Samples:
        """Samples of the field; without an `rng`, copies of its mean."""

        def normal(columns: int) -> Floats:
            return np.zeros((count, columns)) if rng is None else rng.standard_normal((count, columns))

        noises = [sd * normal(int(groups.max(initial=-1)) + 1) for sd, groups in self.noises]
        return Samples(self, normal(self.phi.shape[1]), noises)


@dataclass(frozen=True)
class Samples:
    """Samples of a field, one per row: beta and the noise of every group. Values at cells are computed on demand."""

    prior: Prior
    beta: Floats
    noises: list[Floats]

    def at(self, cells: Indices) -> Floats:
        """The field at the cells of these indices, sample x cell."""
        values = self.prior.mean[cells] + self.beta @ self.prior.phi[cells].T
        for noise, (_, groups) in zip(self.noises, self.prior.noises, strict=True):
            values += noise[:, groups[cells]]
        return np.asarray(values)

    def pushed(self, push: Floats, at: Indices) -> Samples:
        """Moved by the prior's covariance with the cells at these indices times a push for each (sample x index)."""
        noises = []
        for noise, (sd, groups) in zip(self.noises, self.prior.noises, strict=True):
            met, place = np.unique(groups[at], return_inverse=True)
            moved = noise.copy()
            moved[:, met] += sd**2 * (push @ np.eye(len(met))[place])
            noises.append(moved)
        return Samples(self.prior, self.beta + push @ self.prior.phi[at], noises)


def prior(field: Field, cells: Cells, spread: Spread | None = None, more: Sequence[Floats] = ()) -> Prior:
    """The prior of a field; `spread` and additional basis columns `more` come from seen models."""
    phi = np.hstack([*more, basis(cells, spread or field.spread)])
    noises = tuple((noise.sd, cells.groups(noise.batch, noise.amounts)) for noise in field.noises)
    return Prior(np.full(len(cells), float(field.mean)), phi, noises)


SHARPNESS = 3.0
"""q: the sharpness of the maximum of host and device time."""
STEPS, SPLIT_STEPS = 8, 12
"""Gauss-Newton steps: to condition a model with prior knowledge, and to split a seen model without any."""
LONGEST_STEP = 2.5
"""Steps that change the log of a field by more than this (twelvefold) are shortened."""

Fields = Sequence[Floats]
"""Each S x n."""


class Law(NamedTuple):
    """A surface as a function of its fields: `value`: (fields, log work n) -> log value, S x n; `slopes`: S x f x n."""

    value: Callable[[Fields, Floats], Floats]
    slopes: Callable[[Fields, Floats, Floats], Floats]


def _sum_value(z: Fields, work: Floats) -> Floats:
    return np.asarray(np.logaddexp(z[-2], z[-1] + work))


def _sum_slopes(z: Fields, work: Floats, value: Floats) -> Floats:
    share = np.exp(z[-2] - value)
    no_part = [np.zeros_like(share)] * (len(z) - 2)
    return np.stack([*no_part, share, 1 - share], axis=1)


def _batch_value(z: Fields, work: Floats) -> Floats:
    return np.asarray(np.logaddexp(SHARPNESS * z[0], SHARPNESS * _sum_value(z, work)) / SHARPNESS)


def _batch_slopes(z: Fields, work: Floats, value: Floats) -> Floats:
    share = np.exp(SHARPNESS * (z[0] - value))
    slopes = (1 - share)[:, None, :] * _sum_slopes(z, work, _sum_value(z, work))
    slopes[:, 0] = share
    return np.asarray(slopes)


DEVICE_TIME = MEMORY_HELD = Law(_sum_value, _sum_slopes)
"""Empty batch plus work, from the last two fields. For time this is what a profile measures: the device only, without
the host's floor (the first field). For memory the work is the log batch."""
BATCH_TIME = Law(_batch_value, _batch_slopes)
"""What a trial measures: the slower of host and device."""


@dataclass(frozen=True)
class Observations:
    """Measurements of a surface, in the log.

    `at`: the cells. `values`, `sd`: S x n, or n if equal for all samples. `bound`: -1: upper bound, 1: lower bound, 0:
    exact. `device_only`: whether the device alone was measured (a profile).
    """

    at: Indices
    values: Floats
    sd: Floats
    bound: NDArray[np.int_]
    device_only: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.at)


def conditioned(
    fields: Sequence[Samples],
    law: Law,
    work: Floats,
    seen: Observations,
    rng: np.random.Generator | None = None,
    steps: int = STEPS,
) -> list[Samples]:
    """Move the samples so that they explain the observations; without an `rng` no noise is added."""
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
    """The log value at the first `cells` cells, sample x cell."""
    places = np.arange(cells)
    return law.value([each.at(places) for each in fields], work[:cells])


def _nearest(
    covariances: Sequence[Floats], start: Floats, law: Law, work: Floats, values: Floats, seen: Observations, steps: int
) -> Floats:
    """The push of the fields at the measured cells, S x f x n; the fields move by the covariance times it."""
    z, push = start, np.zeros_like(start)
    variances = np.broadcast_to(seen.sd, values.shape) ** 2
    pulls = np.broadcast_to(seen.bound == 0, values.shape)
    for step in range(steps):
        predicted, slopes = _predicted(z, law, work, seen)
        missed = values - predicted
        # A bound counts as a measurement once it is violated, and from then on: released, it would be violated again.
        pulls = pulls | (seen.bound * missed > 0)
        slopes = np.where(pulls[:, None, :], slopes, 0.0)
        wanted = np.where(pulls, missed, 0.0) + (slopes * (z - start)).sum(axis=1)
        system = np.zeros((len(z), len(work), len(work)))
        for i, within in enumerate(covariances):
            system += slopes[:, i, :, None] * within * slopes[:, i, None, :]
        system[:, np.arange(len(work)), np.arange(len(work))] += variances
        push = slopes * np.linalg.solve(system, wanted[..., None])[:, None, :, 0]
        moved = start + np.stack([push[:, i] @ within for i, within in enumerate(covariances)], axis=1)
        z = z + np.clip(moved - z, -LONGEST_STEP, LONGEST_STEP) if step < steps - 1 else moved
    return push


def _predicted(z: Floats, law: Law, work: Floats, seen: Observations) -> tuple[Floats, Floats]:
    """The prediction of each measurement from the fields, and its slopes."""
    fields = list(np.moveaxis(z, 1, 0))
    predicted = law.value(fields, work)
    slopes = law.slopes(fields, work, predicted)
    if seen.device_only.any():
        alone = DEVICE_TIME.value(fields, work)
        slopes = np.where(seen.device_only, DEVICE_TIME.slopes(fields, work, alone), slopes)
        predicted = np.where(seen.device_only, alone, predicted)
    return predicted, slopes
