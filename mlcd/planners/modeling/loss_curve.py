"""When a loss will reach its target, from the epochs seen so far.

Every shape of `Shapes` is fitted by robust least squares (Huber, reweighted) and counts by its likelihood:
a Bayesian average over a fixed grid, so nothing has to converge, and a refit after each epoch takes milliseconds. How
much more the later epochs weigh is averaged over as well: p is large where a shape fits the end of the curve, not its
beginning. Residuals that hang together count as fewer (n_eff). What is not known is drawn: the shape, its a and b, the
noise that may carry an epoch below the target early, and what no shape foresees. The draws are the same for each target
and each call, so the same losses give the same answer, and a lower target never comes earlier.

Optimus (Peng et al., EuroSys 2018) and SLAQ (Zhang et al., SoCC 2017) fit single shapes; the average is Domhan et al.'s
(IJCAI 2015), without their sampler. A learning rate that is cut makes a cliff that no smooth curve foresees; how far
off that is, and on which curves: benchmarks/loss_curves.py.

Symbols   y_i = a + b g(i) + noise / sqrt(w_i)     loss after epoch i of n        w_i = (i / n)^p
          rho  autocorrelation of the residuals    n_eff = n (1 - rho) / (1 + rho)
          a  what the loss tends to                b > 0  how far it falls      c  in which time     d  how bent
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
"""c: from a quarter of an epoch to some ten thousand."""
LONGEST = 4.0
"""A curve that bends in more than so many times what was seen cannot be told from a straight line."""
EXPONENTS = {
    "power": (0.125, 0.25, 0.5, 0.75, 1.0, 1.5),
    "logarithm": (1.0,),
    "weibull": (0.25, 0.4, 0.55, 0.7, 0.85, 1.0, 1.25, 1.5, 2.0, 3.0),
    "mmf": (0.25, 0.35, 0.5, 0.7, 0.85, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0),
}
"""d, by shape. Above 1 a curve falls slowly first, as networks do that have to find a feature before they learn it."""
NAMES = tuple(EXPONENTS)
_VALUES: Mapping[str, Callable[[Floats, Floats], Floats]] = {
    "power": lambda time, d: (1 + time) ** -d,
    "logarithm": lambda time, d: -np.log1p(time),
    "weibull": lambda time, d: np.exp(-(time**d)),
    "mmf": lambda time, d: 1 / (1 + time**d),
}
FEWEST = 4
"""Losses: a, b and the shape are three unknowns already."""
LATER = (0.0, 2.0, 4.0, 8.0)
"""p."""
HUBER = 1.345
"""Standard deviations from which on a residual counts by its size, not by its square."""
REWEIGHTED = 4
QUIETEST = 3e-4
"""Of the whole fall: noise is never taken to be less, or a curve without any would be trusted blindly."""
MOST_RELATED, LEAST_EFFECTIVE = 0.9, 3.0
"""The largest rho and the smallest n_eff."""
MOST_POINTS = 64
"""Longer curves are cut into so many pieces, of which the medians are fitted."""
FINER, REFINED = 0.25, 12
"""The grid is made finer, up to so many octaves, around so many of the likeliest shapes."""
DRAWS = 400
COVERED = 0.8
"""Of an interval: how often the target is to be reached within it."""
MIDDLE = 0.45
"""The quantile that is expected. Below one half: whoever sets a target has reason to think that it can be reached."""
UNFORESEEN = 0.2
"""The rest of the way is longer or shorter by so much (standard deviation of its log) than any of the shapes says."""
FURTHEST, LOOKS = 50.0, 96
"""A target is looked for up to so many times the epochs seen, at so many places."""
_ROWS = np.arange(DRAWS)
_QUANTILES = (_ROWS + 0.5) / DRAWS


@dataclass(frozen=True)
class Shapes:
    """The shapes that a loss may fall in, each as a + b g(e), on a fixed grid of what bends g.

        power      (1 + e/c)^-d           inverse power; d = 1 is the 1/(b e + c) + a of Optimus and SLAQ
        logarithm  -log(1 + e/c)          the power's limit for small d; it has no floor
        weibull    exp(-(e/c)^d)          d = 1 is the exponential
        mmf        1 / (1 + (e/c)^d)      Morgan-Mercer-Flodin

    Of the eleven that Domhan et al. put together, these are the ones that only fall and are linear in a and b: whatever
    c and d are, a and b are then a matter of least squares, and no fit can fail to converge. Here many g at once: for
    each the place of its name in `NAMES`, its c and d, and how much it counts beforehand.
    """

    kind: Places
    scale: Floats
    exponent: Floats
    prior: Floats

    def __len__(self) -> int:
        return len(self.kind)

    def at(self, epochs: Floats) -> Floats:
        """g of each shape (rows) after so many epochs (columns)."""
        values = np.empty((len(self), len(epochs)))
        for i, name in enumerate(NAMES):
            rows = self.kind == i
            values[rows] = _VALUES[name](epochs / self.scale[rows, None], self.exponent[rows, None])
        return values

    def finer(self, rows: Places, step: float) -> Shapes:
        """With each of these replaced by some around it, whose c and d are up to so many octaves apart."""
        octaves = step * np.array([(c, d) for c in (-1.0, -0.5, 0.0, 0.5, 1.0) for d in (-0.5, 0.0, 0.5)])
        around = self.taken(np.repeat(rows, len(octaves)))
        scale, exponent = 2 ** np.tile(octaves, (len(rows), 1)).T
        others = self.taken(np.setdiff1d(np.arange(len(self)), rows))
        return Shapes(
            np.concatenate([others.kind, around.kind]),
            np.concatenate([others.scale, around.scale * scale]),
            np.concatenate([others.exponent, around.exponent * exponent]),
            np.concatenate([others.prior, around.prior / len(octaves)]),
        )

    @property
    def bottomless(self) -> Mask:
        """Which of them fall for ever."""
        return np.asarray(self.kind == NAMES.index("logarithm"))

    def taken(self, rows: Places) -> Shapes:
        """These of them."""
        return Shapes(self.kind[rows], self.scale[rows], self.exponent[rows], self.prior[rows])


def shapes(epochs_seen: float) -> Shapes:
    """All that can be told apart after so many epochs. Every name counts as much, however many there are of it."""
    scales = SCALES[LONGEST * epochs_seen >= SCALES]
    grid = [(i, c, d) for i, name in enumerate(NAMES) for d in EXPONENTS[name] for c in scales]
    numbers, scale, exponent = np.array(grid).T
    kind = numbers.astype(np.intp)
    return Shapes(kind, scale, exponent, 1 / (len(NAMES) * np.bincount(kind)[kind]))


@dataclass(frozen=True, slots=True)
class EpochsTo:
    """Epochs from the beginning to a target: what is expected, and the ends of its interval; inf where never."""

    expected: float
    low: float
    high: float


@dataclass(frozen=True)
class LossCurve:
    """Curves that the loss may follow: for each draw its shape, its a and b, and its noise.

    `luck`: how unlikely an epoch below the target may be until it happens. `stretch`: of the rest of the way.
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
        """The loss that it tends to; -inf where it is taken to fall for ever."""
        bottom = np.where(self.drawn.bottomless & (self.b > 0), -math.inf, self.a)
        return float(np.median(bottom))

    def epochs_to(self, target: float) -> EpochsTo:
        """When the loss of an epoch is first at or below the target; of a target behind us, when it was."""
        reached = next((i + 1.0 for i, loss in enumerate(self.losses) if loss <= target), None)
        if reached is not None:
            return EpochsTo(reached, reached, reached)
        epochs = self.draws_to(target)
        places = [min(int(q * DRAWS), DRAWS - 1) for q in (MIDDLE, (1 - COVERED) / 2, (1 + COVERED) / 2)]
        return EpochsTo(*(float(epochs[place]) for place in places))

    def draws_to(self, target: float) -> Floats:
        """The same for each draw, rising; inf where it never gets there. The target is still ahead.

        That is when a draw's noise has carried it below the target as likely as its luck says.
        """
        seen = len(self.losses)
        ahead = np.concatenate([[0.0], np.geomspace(1.0, FURTHEST * seen, LOOKS)])
        above = self.a[:, None] + self.b[:, None] * self.drawn.at(seen + ahead[1:]) - target
        # Each look stands for the epochs since the last: the log of the chance that none of them was below.
        each = np.diff(ahead) * np.maximum(log_ndtr(above / self.noise[:, None]), -50.0)
        missed = np.concatenate([np.zeros((DRAWS, 1)), np.cumsum(each, axis=1)], axis=1)
        wanted = np.log(self.luck)
        last = np.minimum((missed > wanted[:, None]).sum(axis=1), LOOKS)  # the look at which it has happened
        low, high = missed[_ROWS, last - 1], missed[_ROWS, last]
        share = (low - wanted) / np.maximum(low - high, 1e-300)
        epochs = np.where(high <= wanted, ahead[last - 1] + share * (ahead[last] - ahead[last - 1]), math.inf)
        return np.sort(seen + np.maximum(1.0, epochs * self.stretch))


def fit(losses: Sequence[float]) -> LossCurve | None:
    """The curves that these losses of all epochs may follow; None for fewer than four, or if one is no number."""
    if len(losses) < FEWEST or not np.isfinite(losses).all():
        return None
    epochs, y = _thinned(np.asarray(losses, float))
    grid = shapes(float(epochs[-1]))
    fitted = _fit_all(grid, epochs, y)
    finer = grid.finer(fitted.likeliest, FINER)
    return _draw(tuple(map(float, losses)), finer, _fit_all(finer, epochs, y))


@dataclass(frozen=True)
class _Fits:
    """Every shape at each p, one p after the other: its a and b, the weights of each epoch, the noise, how it counts.

    `wider`: residuals that hang together tell less than their number says, so a and b are less sure.
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
        """The shapes that count most, whatever their p."""
        shares = self.counts.reshape(len(LATER), -1).sum(axis=0)
        return np.argsort(-shares, kind="stable")[:REFINED]


def _fit_all(grid: Shapes, epochs: Floats, y: Floats) -> _Fits:
    g, n = grid.at(epochs), len(y)
    quiet = QUIETEST * max(float(np.ptp(y)), 1e-9 * float(np.abs(y).max()), 1e-100)
    prior = np.log(grid.prior)
    each = [_fit(g, y, (epochs / epochs[-1]) ** p, quiet) for p in LATER]
    a, b, weights, noise, likelihood = (np.concatenate(part) for part in list(zip(*each, strict=True))[:5])
    likelihood += np.tile(prior, len(LATER))
    if (b > 0).any():  # a shape that would have to rise says nothing
        likelihood[b == 0] = -math.inf
    related = each[int(np.argmax(likelihood)) // len(grid)][5]
    effective = max(n * (1 - related) / (1 + related), LEAST_EFFECTIVE)
    counts = np.exp(effective / n * (likelihood - likelihood.max()))
    return _Fits(g, a, b, weights, noise, counts / counts.sum(), math.sqrt(n / effective))


def _fit(g: Floats, y: Floats, w: Floats, quiet: float) -> tuple[Floats, Floats, Floats, Floats, Floats, float]:
    """Of each shape its a, b, weights, noise and log likelihood; and how the best one's residuals hang together."""
    robust, n = np.ones_like(g), len(y)
    for _ in range(REWEIGHTED):
        a, b = _least_squares(g, y, w * robust)
        residuals = np.sqrt(w) * (y - a[:, None] - b[:, None] * g)
        # Half of the residuals lie within 0.67 standard deviations; two are spent on a and b.
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
    """Shapes as often as they count, with a and b from what least squares leave open."""
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
    return LossCurve(losses, grid.taken(shape), drawn_a, drawn_b, noise, shuffled[3], np.exp(UNFORESEEN * stretch))


def _thinned(y: Floats) -> tuple[Floats, Floats]:
    epochs = np.arange(1.0, len(y) + 1)
    if len(y) <= MOST_POINTS:
        return epochs, y
    pieces = np.array_split(np.arange(len(y)), MOST_POINTS)
    return np.array([epochs[p].mean() for p in pieces]), np.array([np.median(y[p]) for p in pieces])
