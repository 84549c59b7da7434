"""Forecast of the epoch at which a loss reaches its target, from the epochs so far.

Every shape in `Shapes` is fitted by robust least squares (Huber, reweighted), and weighted by its likelihood: Bayesian
model averaging over a fixed grid. Nothing has to converge, and a refit after each epoch takes milliseconds. The average
also covers p, the weight of later epochs, since a shape may fit the end of a curve but not its beginning. Correlated
residuals count as fewer (n_eff). The uncertainty is sampled: the shape, its a and b, the noise that may bring an epoch
below the target early, and an error for what no shape predicts. The random numbers are fixed, so the same losses give
the same answer, and a lower target is never reached earlier.

Optimus (Peng et al., EuroSys 2018) and SLAQ (Zhang et al., SoCC 2017) fit single shapes; the average is that of Domhan
et al. (IJCAI 2015), without their sampler. A cut of the learning rate makes a cliff that no smooth curve predicts; the
resulting errors, and on which curves: benchmarks/loss_curves.py.

Symbols   y_i = a + b g(i) + noise / sqrt(w_i)     loss after epoch i of n        w_i = (i / n)^p
          rho  autocorrelation of the residuals    n_eff = n (1 - rho) / (1 + rho)
          a  limit of the loss      b > 0  how far it falls      c  time scale in epochs      d  exponent
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import huber, log_ndtr, ndtri

from mlcd.core.configuration import Floats, Mask

Places = NDArray[np.intp]

SCALES = 2.0 ** np.arange(-2.0, 14.0, 0.5)
"""c: from a quarter of an epoch to about ten thousand."""
LONGEST = 4.0
"""Largest c over the number of epochs so far: a slower curve still looks like a straight line."""
EXPONENTS = {
    "power": (0.125, 0.25, 0.5, 0.75, 1.0, 1.5),
    "logarithm": (1.0,),
    "weibull": (0.25, 0.4, 0.55, 0.7, 0.85, 1.0, 1.25, 1.5, 2.0, 3.0),
    "mmf": (0.25, 0.35, 0.5, 0.7, 0.85, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0),
}
"""d, by shape. Above 1, a curve falls slowly at first, like that of a network that must find a feature first."""
NAMES = tuple(EXPONENTS)
_VALUES: Mapping[str, Callable[[Floats, Floats], Floats]] = {
    "power": lambda time, d: (1 + time) ** -d,
    "logarithm": lambda time, d: -np.log1p(time),
    "weibull": lambda time, d: np.exp(-(time**d)),
    "mmf": lambda time, d: 1 / (1 + time**d),
}
FEWEST = 4
"""Fewest losses for a forecast: a, b and the shape are already three unknowns."""
LATER = (0.0, 2.0, 4.0, 8.0)
"""Values of p."""
HUBER = 1.345
"""Standard deviations beyond which a residual counts linearly, not squared."""
REWEIGHTED = 4
QUIETEST = 3e-4
"""Least noise, as a share of the whole fall; otherwise a curve without noise would be trusted blindly."""
MOST_RELATED, LEAST_EFFECTIVE = 0.9, 3.0
"""The largest rho and the smallest n_eff."""
MOST_POINTS = 64
"""Longer curves are cut into so many pieces, of which the medians are fitted."""
FINER, REFINED = 0.25, 12
"""The grid is refined by up to FINER octaves around the REFINED likeliest shapes."""
DRAWS = 400
COVERED = 0.8
"""Coverage of the interval."""
MIDDLE = 0.45
"""Quantile of the point forecast. Below one half, because a user sets a target with reason to think it reachable."""
UNFORESEEN = 0.2
"""Standard deviation of the log of the remaining epochs, for what no shape predicts."""
FURTHEST, LOOKS = 50.0, 96
"""A target is searched for up to FURTHEST times the epochs so far, at LOOKS points."""
_ROWS = np.arange(DRAWS)
_QUANTILES = (_ROWS + 0.5) / DRAWS


@dataclass(frozen=True)
class Shapes:
    """Shapes of loss curves, each a + b g(e), on a fixed grid of the parameters c and d of g.

        power      (1 + e/c)^-d           inverse power; d = 1 is the 1/(b e + c) + a of Optimus and SLAQ
        logarithm  -log(1 + e/c)          the power's limit for small d; it has no floor
        weibull    exp(-(e/c)^d)          d = 1 is the exponential
        mmf        1 / (1 + (e/c)^d)      Morgan-Mercer-Flodin

    Of the eleven shapes of Domhan et al., these only fall and are linear in a and b: for given c and d, a and b follow
    from least squares, so no fit can fail to converge. An instance holds many g: for each the index of its name in
    `NAMES`, c, d and the prior weight.
    """

    kind: Places
    scale: Floats
    exponent: Floats
    prior: Floats

    def __len__(self) -> int:
        return len(self.kind)

    def at(self, epochs: Floats) -> Floats:
        """g of each shape (rows) after these epochs (columns)."""
        values = np.empty((len(self), len(epochs)))
        for i, name in enumerate(NAMES):
            rows = self.kind == i
            values[rows] = _VALUES[name](epochs / self.scale[rows, None], self.exponent[rows, None])
        return values

    def refined_around(self, rows: Places, step: float) -> Shapes:
        """With each of these replaced by neighbours, whose c and d differ by up to `step` octaves."""
        octaves = step * np.array([(c, d) for c in (-1.0, -0.5, 0.0, 0.5, 1.0) for d in (-0.5, 0.0, 0.5)])
        around = self.subset(np.repeat(rows, len(octaves)))
        scale, exponent = 2 ** np.tile(octaves, (len(rows), 1)).T
        others = self.subset(np.setdiff1d(np.arange(len(self)), rows))
        return Shapes(
            np.concatenate([others.kind, around.kind]),
            np.concatenate([others.scale, around.scale * scale]),
            np.concatenate([others.exponent, around.exponent * exponent]),
            np.concatenate([others.prior, around.prior / len(octaves)]),
        )

    @property
    def is_unbounded(self) -> Mask:
        """Which of them fall without limit."""
        return np.asarray(self.kind == NAMES.index("logarithm"))

    def subset(self, rows: Places) -> Shapes:
        """The shapes in these rows."""
        return Shapes(self.kind[rows], self.scale[rows], self.exponent[rows], self.prior[rows])


def shapes(epochs_seen: float) -> Shapes:
    """All shapes that can be distinguished after so many epochs. Every name has the same total prior weight."""
    scales = SCALES[LONGEST * epochs_seen >= SCALES]
    grid = [(i, c, d) for i, name in enumerate(NAMES) for d in EXPONENTS[name] for c in scales]
    numbers, scale, exponent = np.array(grid).T
    kind = numbers.astype(np.intp)
    return Shapes(kind, scale, exponent, 1 / (len(NAMES) * np.bincount(kind)[kind]))


@dataclass(frozen=True, slots=True)
class EpochsTo:
    """Epochs from the start to a target: point forecast and interval; inf for never."""

    expected: float
    low: float
    high: float


@dataclass(frozen=True)
class LossCurve:
    """Samples of the curve that the loss may follow: shape, a, b and noise of each.

    `luck`: uniform random number that decides when noise brings an epoch below the target. `stretch`: factor on the
    remaining epochs.
    """

    losses: tuple[float, ...]
    drawn: Shapes
    a: Floats
    b: Floats
    noise: Floats
    luck: Floats
    stretch: Floats

    @property
    def floor(self) -> float:
        """The limit of the loss; -inf if it is expected to fall without limit."""
        bottom = np.where(self.drawn.is_unbounded & (self.b > 0), -math.inf, self.a)
        return float(np.median(bottom))

    def epochs_to(self, target: float) -> EpochsTo:
        """When an epoch's loss is first at or below the target; of a target already reached, when it was."""
        reached = next((i + 1.0 for i, loss in enumerate(self.losses) if loss <= target), None)
        if reached is not None:
            return EpochsTo(reached, reached, reached)
        epochs = self.draws_to(target)
        places = [min(int(q * DRAWS), DRAWS - 1) for q in (MIDDLE, (1 - COVERED) / 2, (1 + COVERED) / 2)]
        return EpochsTo(*(float(epochs[place]) for place in places))

    def draws_to(self, target: float) -> Floats:
        """The same for each sample, in ascending order; inf for never. The target must not have been reached yet.

        It is reached when the probability that no epoch was below it has fallen to the sample's `luck`.
        """
        seen = len(self.losses)
        ahead = np.concatenate([[0.0], np.geomspace(1.0, FURTHEST * seen, LOOKS)])
        above = self.a[:, None] + self.b[:, None] * self.drawn.at(seen + ahead[1:]) - target
        # Log probability that none of the epochs since the last point was below the target.
        each = np.diff(ahead) * np.maximum(log_ndtr(above / self.noise[:, None]), -50.0)
        missed = np.concatenate([np.zeros((DRAWS, 1)), np.cumsum(each, axis=1)], axis=1)
        wanted = np.log(self.luck)
        last = np.minimum((missed > wanted[:, None]).sum(axis=1), LOOKS)  # the first point after it was reached
        low, high = missed[_ROWS, last - 1], missed[_ROWS, last]
        share = (low - wanted) / np.maximum(low - high, 1e-300)
        epochs = np.where(high <= wanted, ahead[last - 1] + share * (ahead[last] - ahead[last - 1]), math.inf)
        return np.sort(seen + np.maximum(1.0, epochs * self.stretch))


def fit(losses: Sequence[float]) -> LossCurve | None:
    """The curves that these losses of all epochs may follow; None for fewer than four, or if one is not finite."""
    if len(losses) < FEWEST or not np.isfinite(losses).all():
        return None
    epochs, y = _thinned(np.asarray(losses, float))
    grid = shapes(float(epochs[-1]))
    fitted = _fit_all(grid, epochs, y)
    refined = grid.refined_around(fitted.likeliest, FINER)
    return _draw(tuple(map(float, losses)), refined, _fit_all(refined, epochs, y))


@dataclass(frozen=True)
class _Fits:
    """Fits of every shape for each p in turn: a and b, weights of the epochs, noise, and posterior weight (`counts`).

    `wider`: factor on the errors of a and b for correlated residuals.
    """

    g: Floats
    a: Floats
    b: Floats
    weights: Floats
    noise: Floats
    counts: Floats
    wider: float

    @property
    def likeliest(self) -> Places:
        """The shapes with the largest posterior weight, summed over p."""
        shares = self.counts.reshape(len(LATER), -1).sum(axis=0)
        return np.argsort(-shares, kind="stable")[:REFINED]


def _fit_all(grid: Shapes, epochs: Floats, y: Floats) -> _Fits:
    g, n = grid.at(epochs), len(y)
    quiet = QUIETEST * max(float(np.ptp(y)), 1e-9 * float(np.abs(y).max()), 1e-100)
    prior = np.log(grid.prior)
    each = [_fit(g, y, (epochs / epochs[-1]) ** p, quiet) for p in LATER]
    a, b, weights, noise, likelihood = (np.concatenate(part) for part in list(zip(*each, strict=True))[:5])
    likelihood += np.tile(prior, len(LATER))
    if (b > 0).any():  # exclude shapes that would have to rise
        likelihood[b == 0] = -math.inf
    related = each[int(np.argmax(likelihood)) // len(grid)][5]
    effective = max(n * (1 - related) / (1 + related), LEAST_EFFECTIVE)
    counts = np.exp(effective / n * (likelihood - likelihood.max()))
    return _Fits(g, a, b, weights, noise, counts / counts.sum(), math.sqrt(n / effective))


def _fit(g: Floats, y: Floats, w: Floats, quiet: float) -> tuple[Floats, Floats, Floats, Floats, Floats, float]:
    """a, b, weights, noise and log likelihood of each shape; and the autocorrelation of the best one's residuals."""
    robust, n = np.ones_like(g), len(y)
    for _ in range(REWEIGHTED):
        a, b = _least_squares(g, y, w * robust)
        residuals = np.sqrt(w) * (y - a[:, None] - b[:, None] * g)
        # Half of the residuals lie within 0.67 standard deviations; two degrees of freedom go to a and b.
        scale = np.maximum(1.4826 * math.sqrt(n / (n - 2)) * np.median(np.abs(residuals), axis=1), quiet)
        robust = HUBER / np.maximum(np.abs(residuals) / scale[:, None], HUBER)
    best = int(np.argmin(scale))
    noise = scale[best]
    misfit = 2 * huber(HUBER, residuals / noise).sum(axis=1) + 2 * (quiet / noise) ** 2
    likelihood = -n / 2 * np.log(misfit / n) - n * math.log(noise) + np.log(w).sum() / 2
    calm = residuals[best] * np.sqrt(robust[best])
    related = float(calm[1:] @ calm[:-1]) / max(float(calm @ calm), 1e-300)
    return a, b, w * robust, np.full(len(a), noise), likelihood, min(max(related, 0.0), MOST_RELATED)


def _least_squares(g: Floats, y: Floats, w: Floats) -> tuple[Floats, Floats]:
    """The best a and b >= 0 of each shape."""
    total = w.sum(axis=1)
    mean_g, mean_y = (w * g).sum(axis=1) / total, (w * y).sum(axis=1) / total
    centred = g - mean_g[:, None]
    b = np.maximum(0.0, (w * centred * y).sum(axis=1) / np.maximum((w * centred**2).sum(axis=1), 1e-300))
    return mean_y - b * mean_g, b


def _draw(losses: tuple[float, ...], grid: Shapes, fitted: _Fits) -> LossCurve:
    """Sample shapes by weight, with a and b from their least-squares distribution."""
    chosen = np.searchsorted(np.cumsum(fitted.counts), _QUANTILES).clip(max=len(fitted.counts) - 1)
    shape = chosen % len(grid)
    a, b, w, noise = (each[chosen] for each in (fitted.a, fitted.b, fitted.weights, fitted.noise))
    g, total = fitted.g[shape], w.sum(axis=1)
    mean = (w * g).sum(axis=1) / total
    spread = (w * (g - mean[:, None]) ** 2).sum(axis=1)
    shuffled = np.random.default_rng(0).permuted(np.tile(_QUANTILES, (4, 1)), axis=1)
    level, slope, stretch = ndtri(shuffled[:3])
    off = fitted.wider * noise
    drawn_b = np.abs(b + off * slope / np.sqrt(np.maximum(spread, 1e-300))) * (b > 0)
    drawn_a = a + (b - drawn_b) * mean + off * level / np.sqrt(total)
    return LossCurve(losses, grid.subset(shape), drawn_a, drawn_b, noise, shuffled[3], np.exp(UNFORESEEN * stretch))


def _thinned(y: Floats) -> tuple[Floats, Floats]:
    epochs = np.arange(1.0, len(y) + 1)
    if len(y) <= MOST_POINTS:
        return epochs, y
    pieces = np.array_split(np.arange(len(y)), MOST_POINTS)
    return np.array([epochs[p].mean() for p in pieces]), np.array([np.median(y[p]) for p in pieces])
