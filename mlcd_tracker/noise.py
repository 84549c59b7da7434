"""The gradient noise scale, from two norms a step: of the workers' own gradients, and of their mean.

Unbiased estimates: McCandlish et al., "An Empirical Model of Large-Batch Training", 2018, appendix A.1. The ratio
gamma: Tyagi and Sharma, "Scavenger", 2022, equation 2, divided by K as in the paper.

Symbols   K   workers, or parts of a batch    s    mean over k of |g_k|^2, g_k of B/K samples
          B   samples in a global batch       m    |mean over k of g_k|^2
          G   the true gradient               tr   trace of one sample's gradient covariance
          E[s] = |G|^2 + tr K/B, E[m] = |G|^2 + tr/B; so |G|^2 = (K m - s)/(K - 1), tr = B (s - m)/(K - 1)
          Bn = tr / |G|^2, in samples         gamma = s / (K m)

Both estimates are averaged with exponential weights and only then divided: the estimate of |G|^2 from a single step may
be zero or negative, and a mean of ratios is meaningless. The weights span all observations so far, at most SPAN, so the
unreliable start is forgotten while precision grows.

The error, one standard error of log Bn, comes from block means. Observations are kept as sums over blocks, which double
in length when there are too many, so blocks become longer than the correlation between neighbouring observations. Any
remaining autocorrelation of the blocks widens the error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

SPAN = 1_000
"""Span of the exponentially weighted averages, as of an EWMA of weight 2/(SPAN + 1)."""
BLOCKS = 32
LONGEST = 2 * SPAN // BLOCKS
LEAST = 32
"""Fewest observations of a stable estimate."""
STABLE_ERROR, STABLE_CHANGE = 0.2, 0.4
"""Stable: the standard error of log Bn, and |log| of its change from the older to the newer half, are at most these."""
SMALLEST, LARGEST = 1e-6, 1e12
"""Bounds of Bn in samples: workers with identical gradients have no noise, and the mean gradient may vanish."""
FAINTEST, LOUDEST = 1e-100, 1e100
"""Bounds of a squared norm: squares of float32 are within 1e-90 to 1e77; beyond these, results here leave float64."""
LOST = 2.0
"""Least error if the gradient cannot be distinguished from zero."""


@dataclass(frozen=True)
class Noise:
    """An estimate of the gradient noise."""

    scale: float
    """Bn = tr/|G|^2, in samples."""
    error: float
    """One standard error of log Bn."""
    stable: bool
    gamma: float
    """Scavenger's, divided by K."""


@dataclass(frozen=True)
class _Block:
    """Sums over consecutive observations, possibly multiplied by the weight of their age."""

    count: float = 0.0
    square: float = 0.0  # of |G|^2
    trace: float = 0.0
    parts: float = 0.0  # of s/K
    whole: float = 0.0  # of m

    def __add__(self, other: _Block) -> _Block:
        return _Block(
            self.count + other.count,
            self.square + other.square,
            self.trace + other.trace,
            self.parts + other.parts,
            self.whole + other.whole,
        )

    def times(self, weight: float) -> _Block:
        return _Block(
            weight * self.count, weight * self.square, weight * self.trace, weight * self.parts, weight * self.whole
        )


class NoiseScale:
    """Estimates the noise from one observation a step."""

    def __init__(self) -> None:
        self.count = 0
        self._closed: list[_Block] = []
        self._open = _Block()
        self._length = 1

    def observe(self, local: float, mean: float, batch: float, workers: float) -> bool:
        """Add s and m of one step, over so many samples and workers. False if unusable: overflow, or no gradient."""
        if not (FAINTEST <= local <= LOUDEST and 0 <= mean <= LOUDEST and workers > 1 and 0 < batch < math.inf):
            return False
        square = (workers * mean - local) / (workers - 1)
        trace = max(0.0, batch * (local - mean) / (workers - 1))  # below zero by rounding alone
        self._open += _Block(1, square, trace, local / workers, mean)
        self.count += 1
        if self._open.count >= self._length:
            self._close()
        return True

    def scale(self) -> float | None:
        """Bn in samples; None before there are two observations."""
        blocks = self._weighted()
        return None if len(blocks) < 2 else _scale(blocks)

    def read(self) -> Noise | None:
        """Bn with its error, whether it is stable, and gamma; None before there are two observations."""
        blocks = self._weighted()
        if len(blocks) < 2:
            return None
        total = _sum(blocks)
        error = _log_error(blocks)
        stable = self.count >= LEAST and error <= STABLE_ERROR and abs(self._log_change()) <= STABLE_CHANGE
        return Noise(_scale(blocks), error, stable, min(LARGEST, total.parts / max(total.whole, total.parts / LARGEST)))

    def _close(self) -> None:
        self._closed.append(self._open)
        self._open = _Block()
        if len(self._closed) < BLOCKS:
            return
        if self._length < LONGEST:
            self._closed = [a + b for a, b in zip(self._closed[::2], self._closed[1::2], strict=True)]
            self._length *= 2
        else:
            del self._closed[0]

    def _blocks(self) -> list[_Block]:
        return [*self._closed, self._open] if self._open.count else self._closed

    def _weighted(self) -> list[_Block]:
        """The blocks, oldest first, each with the weight of its age."""
        span, age, found = min(self.count, SPAN), 0.0, []
        for block in reversed(self._blocks()):
            found.append(block.times(math.exp(-2 * (age + block.count / 2) / span)))
            age += block.count
        return found[::-1]

    def _log_change(self) -> float:
        """Log of the ratio of Bn in the newer half of the blocks to that in the older half."""
        blocks = self._blocks()
        half = len(blocks) // 2
        return math.log(_scale(blocks[half:]) / _scale(blocks[:half]))


def _sum(blocks: Sequence[_Block]) -> _Block:
    return sum(blocks, _Block())


def _scale(blocks: Sequence[_Block]) -> float:
    """tr/|G|^2 of the sums. |G|^2 counts as at least half its standard error: that much could be hidden in noise."""
    total = _sum(blocks)
    if total.trace <= 0:
        return SMALLEST
    square = max(_clipped_square(blocks, total), total.trace / LARGEST)
    return max(SMALLEST, total.trace / square)


def _clipped_square(blocks: Sequence[_Block], total: _Block) -> float:
    mean = total.square / total.count
    error = _standard_error([block.square - block.count * mean for block in blocks])
    return max(total.square, error / 2)


def _log_error(blocks: Sequence[_Block]) -> float:
    """One standard error of log(tr/|G|^2), by the delta method over blocks."""
    total = _sum(blocks)
    square, trace = _clipped_square(blocks, total), total.trace
    if trace <= 0:
        return 0.0
    if square <= 0:
        return LOST
    mean = total.square / total.count
    error = _standard_error(
        [
            (block.trace - block.count * trace / total.count) / trace - (block.square - block.count * mean) / square
            for block in blocks
        ]
    )
    return error if total.square > 0 else max(error, LOST)


def _standard_error(deviations: Sequence[float]) -> float:
    """Standard error of a sum over blocks, from their deviations; wider if neighbours are correlated."""
    squares = sum(deviation**2 for deviation in deviations)
    if len(deviations) < 2 or squares == 0:
        return 0.0
    correlation = sum(a * b for a, b in pairwise(deviations)) / squares
    correlation = min(max(correlation, 0.0), 0.8)
    return math.sqrt(len(deviations) / (len(deviations) - 1) * squares * (1 + correlation) / (1 - correlation))
