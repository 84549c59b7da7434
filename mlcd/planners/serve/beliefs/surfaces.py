"""Surfaces over cells made of fields, each a Gaussian prior with few constants, and how they bend to measurements.

Time of one batch on a device (seconds), with q = 3:

    log t = 1/q log( e^{q F} + (e^A + e^{B + u})^q )

F  the host's floor: starting the operators            A  what the device takes for an empty batch
B  the device's time for a unit of work                u  log work of a cell (see `cells`)

Memory that it holds (GB):  log m = log( e^W + e^{V + log b} );  W what it holds for an empty batch, V for each request.

z(c) = mu(c) + Phi(c) beta + e, with beta ~ N(0, I): a level, a level for each category, slopes in the log amounts and
the log batch, smooth bends over the log batch; e is white noise that cells of a group share.

Randomised maximum likelihood: each sample of the prior is moved to the nearest fields (in the prior's own metric) that
explain the measurements, which are disturbed by their noise, a fresh one for each sample (Oliver, He, Reynolds 1996):
exact where the law is linear, and close where it is not. The nearest fields are found by Gauss-Newton steps in the
space of the measurements, so that only as many equations are solved as there are measurements.

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
"""Over so many doublings of the batch a bend is one."""
MOST_OCTAVES = 13


@dataclass(frozen=True)
class Spread:
    """Standard deviations, in the log: of the level, of categories apart, by amount, by batch, and of bends."""

    level: float
    category: float
    amount: float = 0.0
    batch: float = 0.0
    bend: float = 0.0

    def scaled(self, level: float, by: float) -> Spread:
        """With this level, and everything else so many times as wide."""
        return Spread(level, self.category * by, self.amount * by, self.batch * by, self.bend * by)


@dataclass(frozen=True)
class Noise:
    """White noise that is the same in cells of one category with the same batch, the same amounts, or both."""

    sd: float
    batch: bool
    amounts: bool


@dataclass(frozen=True)
class Field:
    """What is believed of a field before any model was seen (`mean`, `spread`), and its level's spread afterwards."""

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
    """Columns that make a squared-exponential Gaussian process over the log batch."""
    knots = np.arange(-1, MOST_OCTAVES + 1, BEND_OCTAVES) * OCTAVE

    def kernel(a: Floats, b: Floats) -> Floats:
        return np.asarray(np.exp(-0.5 * ((a[:, None] - b[None, :]) / (BEND_OCTAVES * OCTAVE)) ** 2))

    values, at = np.unique(log_batch, return_inverse=True)
    root = np.linalg.cholesky(kernel(knots, knots) + 1e-6 * np.eye(len(knots)))
    return np.asarray(np.linalg.solve(root, kernel(knots, values)).T[at])


@dataclass(frozen=True)
class Prior:
    """A field over certain cells: its mean, its basis, and of each noise the spread and every cell's group."""

    mean: Floats
    phi: Floats
    noises: tuple[tuple[float, Indices], ...]

    def covariance(self, at: Indices) -> Floats:
        """Between the cells at these places."""
        total = self.phi[at] @ self.phi[at].T
        for sd, groups in self.noises:
            total += sd**2 * (groups[at][:, None] == groups[at])
        return np.asarray(total)

    def sample(self, count: int, rng: np.random.Generator | None) -> Samples:
        """So many samples of the field; without an `rng`, so many times its mean."""

        def normal(columns: int) -> Floats:
            return np.zeros((count, columns)) if rng is None else rng.standard_normal((count, columns))

        noises = [sd * normal(int(groups.max(initial=-1)) + 1) for sd, groups in self.noises]
        return Samples(self, normal(self.phi.shape[1]), noises)


@dataclass(frozen=True)
class Samples:
    """Samples of a field: beta, and the noise of every group, one a row. Cells are worked out when asked for."""

    prior: Prior
    beta: Floats
    noises: list[Floats]

    def at(self, cells: Indices) -> Floats:
        """The field at the cells of these places, sample x cell."""
        values = self.prior.mean[cells] + self.beta @ self.prior.phi[cells].T
        for noise, (_, groups) in zip(self.noises, self.prior.noises, strict=True):
            values += noise[:, groups[cells]]
        return np.asarray(values)

    def pushed(self, push: Floats, at: Indices) -> Samples:
        """Moved by the prior's covariance with the cells at these places, times a push for each (sample x place)."""
        noises = []
        for noise, (sd, groups) in zip(self.noises, self.prior.noises, strict=True):
            met, place = np.unique(groups[at], return_inverse=True)
            moved = noise.copy()
            moved[:, met] += sd**2 * (push @ np.eye(len(met))[place])
            noises.append(moved)
        return Samples(self.prior, self.beta + push @ self.prior.phi[at], noises)


def prior(field: Field, cells: Cells, spread: Spread | None = None, more: Sequence[Floats] = ()) -> Prior:
    """A field before any model was seen; or with another spread, and more columns to its basis."""
    phi = np.hstack([*more, basis(cells, spread or field.spread)])
    noises = tuple((noise.sd, cells.groups(noise.batch, noise.amounts)) for noise in field.noises)
    return Prior(np.full(len(cells), float(field.mean)), phi, noises)


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
"""What an empty batch takes, and each unit of work, by the last two fields. Of time it is what a profile tells: the
device alone; the host's floor, the first field, plays no part. Of memory the work is the log batch."""
BATCH_TIME = Law(_batch_value, _batch_slopes)
"""What a trial tells: the slower of host and device."""


@dataclass(frozen=True)
class Observations:
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


def conditioned(
    fields: Sequence[Samples],
    law: Law,
    work: Floats,
    seen: Observations,
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
    covariances: Sequence[Floats], start: Floats, law: Law, work: Floats, values: Floats, seen: Observations, steps: int
) -> Floats:
    """What to push the fields by at the measured cells, S x f x n: the covariance times it is how far they move."""
    z, push = start, np.zeros_like(start)
    variances = np.broadcast_to(seen.sd, values.shape) ** 2
    pulls = np.broadcast_to(seen.bound == 0, values.shape)
    for step in range(steps):
        predicted, slopes = _predicted(z, law, work, seen)
        missed = values - predicted
        # A bound pulls once it is broken, and from then on: let go when it is met, it would be broken again.
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
    """What the fields say of each measurement, and the slopes of that."""
    fields = list(np.moveaxis(z, 1, 0))
    predicted = law.value(fields, work)
    slopes = law.slopes(fields, work, predicted)
    if seen.alone.any():
        alone = DEVICE_TIME.value(fields, work)
        slopes = np.where(seen.alone, DEVICE_TIME.slopes(fields, work, alone), slopes)
        predicted = np.where(seen.alone, alone, predicted)
    return predicted, slopes
