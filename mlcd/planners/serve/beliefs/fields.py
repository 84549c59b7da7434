"""Fields over cells: quantities of a model that vary smoothly with the knobs, each a Gaussian prior with few constants.

Time of one batch on a device (seconds), with q = 3:

    log t = 1/q log( e^{q F} + (e^A + e^{B + u})^q )

F  the host's floor: starting the operators            A  what the device takes for an empty batch
B  the device's time for a unit of work                u  log work of a cell (see `cells`)

Memory that it holds (GB):  log m = log( e^W + e^{V + log b} );  W what it holds for an empty batch, V for each request.

z(c) = mu(c) + Phi(c) beta + e, with beta ~ N(0, I): a level, a level for each category, slopes in the log amounts and
the log batch, smooth bends over the log batch; e is white noise that cells of a group share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

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


def basis(cells: Cells, spread: Spread, categories: int) -> Floats:
    """Phi: a row for each cell."""
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
        found = self.phi[at] @ self.phi[at].T
        for sd, groups in self.noises:
            found += sd**2 * (groups[at][:, None] == groups[at])
        return np.asarray(found)

    def sample(self, count: int, rng: np.random.Generator) -> Samples:
        """So many samples of the field."""
        noises = [sd * rng.standard_normal((count, _count(groups))) for sd, groups in self.noises]
        return Samples(self, rng.standard_normal((count, self.phi.shape[1])), noises)

    def means(self, count: int) -> Samples:
        """The mean, so many times over."""
        noises = [np.zeros((count, _count(groups))) for _, groups in self.noises]
        return Samples(self, np.zeros((count, self.phi.shape[1])), noises)

    def moved(self, mean: Floats) -> Prior:
        """The same about another mean."""
        return replace(self, mean=mean)


@dataclass(frozen=True)
class Samples:
    """Samples of a field: beta, and the noise of every group, one a row. Cells are worked out when asked for."""

    prior: Prior
    beta: Floats
    noises: list[Floats]

    def at(self, cells: Indices) -> Floats:
        """The field at the cells of these places, sample x cell."""
        found = self.prior.mean[cells] + self.beta @ self.prior.phi[cells].T
        for noise, (_, groups) in zip(self.noises, self.prior.noises, strict=True):
            found += noise[:, groups[cells]]
        return np.asarray(found)

    def pushed(self, push: Floats, at: Indices) -> Samples:
        """Moved by the prior's covariance with the cells at these places, times a push for each (sample x place)."""
        noises = []
        for noise, (sd, groups) in zip(self.noises, self.prior.noises, strict=True):
            met, place = np.unique(groups[at], return_inverse=True)
            moved = noise.copy()
            moved[:, met] += sd**2 * (push @ np.eye(len(met))[place])
            noises.append(moved)
        return Samples(self.prior, self.beta + push @ self.prior.phi[at], noises)


def _count(groups: Indices) -> int:
    return int(groups.max(initial=-1)) + 1


def prior(
    field: Field, cells: Cells, categories: int, spread: Spread | None = None, more: Sequence[Floats] = ()
) -> Prior:
    """A field as nobody has seen it; or with another spread, and more columns to its basis."""
    phi = np.hstack([*more, basis(cells, spread or field.spread, categories)])
    noises = tuple((noise.sd, cells.groups(noise.batch, noise.amounts)) for noise in field.noises)
    return Prior(np.full(len(cells), float(field.mean)), phi, noises)
