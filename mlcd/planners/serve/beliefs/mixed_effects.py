"""Linear regression for many models at once: what they share, and how each deviates.

    y_m = F_m (w + v_m) + e        w_j ~ N(0, s_j)        v_mj ~ N(0, o_j)        e ~ t(0, n)

A linear mixed model (Laird and Ware 1982) with one pair of variances for each group of features, all found by
expectation maximisation. A new model is believed to be w + v with v unknown, and its own trials condition that. What
the features do not tell has Student's tails: one load test that broke down must not speak for its neighbours. A t is a
normal whose precision is uncertain, so each row carries a trust and everything else stays in closed form (Lange et al.
1989).

Symbols   F    features, a row for each load test          w, v   weights that all share, and a model's own
          s, o variances of these, by group of features    n      variance of the rest
          b, S F'Ty / n and F'TF / n, with trusts T
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from mlcd.core.configuration import Floats

ROUNDS = 30
"""Of expectation maximisation. Few models say little of variances; more rounds move them by less than that."""
FAITH = 1.0
"""How many weights the first guess of a variance counts for."""
TAIL = 4.0
"""Degrees of freedom of what the features do not tell."""
TRUSTING = 8
"""Rounds in which a new model's trials are weighed against each other."""


@dataclass(frozen=True, slots=True)
class Group:
    """Features whose weights are alike in size; the first guess at their standard deviations, shared and own."""

    name: str
    shared: float
    own: float


@dataclass(frozen=True)
class Shown:
    """What a model has shown: features and value of each row, and how unsure each value is, as a variance.

    `at`: where each row stands among those that are to be drawn; -1 where it does not.
    """

    features: Floats
    values: Floats
    error: Floats
    at: NDArray[np.intp]


@dataclass(frozen=True)
class Weights:
    """A belief about a model's weights: normal. `noise`: the variance that they leave unexplained."""

    mean: Floats
    covariance: Floats
    noise: float

    def given(self, shown: Shown) -> Weights:
        """After what the model has shown.

        Trust starts from what was believed before: from full trust, one broken test would be explained away by
        weights, and its trust would never fall.
        """
        features, values = shown.features, shown.values
        if len(values) == 0:
            return self
        cross = self.covariance @ features.T
        mean, covariance, spread = self.mean, self.covariance, np.zeros(len(values))
        for _ in range(TRUSTING):
            trust = _trust((values - features @ mean) ** 2 + spread, self.noise + shown.error)
            gain = np.linalg.solve(features @ cross + np.diag(self.noise / trust + shown.error), cross.T).T
            mean = self.mean + gain @ (values - features @ self.mean)
            covariance = self.covariance - gain @ cross.T
            spread = _squares(features, covariance)
        return replace(self, mean=mean, covariance=(covariance + covariance.T) / 2)

    def log_chance(self, shown: Shown) -> float:
        """Log density of what was shown, up to a constant."""
        total = shown.features @ self.covariance @ shown.features.T + np.diag(self.noise + shown.error)
        return student(shown.values - shown.features @ self.mean, total)

    def draw(self, features: Floats, shown: Shown, count: int, rng: np.random.Generator) -> Floats:
        """Values that the model may show at each row of features; count x rows.

        Where it was shown already, only the error of showing it is left to chance.
        """
        weights = self.mean + rng.standard_normal((count, len(self.mean))) @ self._root.T
        told: Floats = weights @ features.T
        drawn: Floats = told + np.sqrt(self.noise) * rng.standard_normal(told.shape)
        here = shown.at >= 0
        at, error = shown.at[here], shown.error[here]
        off = shown.values[here] - told[:, at]
        rest = self.noise / _trust(off**2, self.noise + error)
        kept = rest / (rest + error)
        drawn[:, at] = told[:, at] + kept * off + np.sqrt(kept * error) * rng.standard_normal(off.shape)
        return drawn

    @cached_property
    def _root(self) -> Floats:
        size, turn = np.linalg.eigh(self.covariance)
        root: Floats = turn * np.sqrt(np.clip(size, 0.0, None))
        return root


@dataclass(frozen=True)
class _Variances:
    """Of weights, by group, and of the rest."""

    shared: Floats
    own: Floats
    noise: float


def learn(
    seen: Sequence[tuple[Floats, Floats]], groups: Sequence[Group], of: NDArray[np.intp], noise: float
) -> Weights:
    """A new model's weights after the features and values of the seen ones. `of`: the group of each feature.

    `noise`: a first guess at the standard deviation of the rest.
    """
    shared, own = np.array([group.shared for group in groups]), np.array([group.own for group in groups])
    first = now = _Variances(shared**2, own**2, noise**2)
    trusts = [np.ones(len(values)) for _, values in seen]
    for _ in range(ROUNDS if seen else 0):
        now, trusts = _improved(seen, trusts, of, first, now)
    sums = [_sums(*each, now.noise) for each in zip(seen, trusts, strict=True)]
    mean, covariance = _shared_weights(sums, _spreads(sums, now, of), now, of)
    return Weights(mean, covariance + np.diag(now.own[of]), now.noise)


def _sums(seen: tuple[Floats, Floats], trust: Floats, noise: float) -> tuple[Floats, Floats]:
    """b and S of one model."""
    features, values = seen
    weighed = features.T * (trust / noise)
    return weighed @ values, weighed @ features


def _spreads(sums: Sequence[tuple[Floats, Floats]], now: _Variances, of: NDArray[np.intp]) -> list[Floats]:
    """The covariance of each model's own weights, were w known."""
    prior = np.diag(1 / now.own[of])
    return [np.linalg.inv(prior + s).astype(float, copy=False) for _, s in sums]


def _shared_weights(
    sums: Sequence[tuple[Floats, Floats]], spreads: Sequence[Floats], now: _Variances, of: NDArray[np.intp]
) -> tuple[Floats, Floats]:
    """Mean and covariance of w, every model's own weights left open."""
    precision, pull = np.diag(1 / now.shared[of]), np.zeros(len(of))
    for (b, s), spread in zip(sums, spreads, strict=True):
        open_to_own = s @ spread
        precision += s - open_to_own @ s
        pull += b - open_to_own @ b
    covariance = np.linalg.inv(precision)
    return covariance @ pull, (covariance + covariance.T) / 2


def _improved(
    seen: Sequence[tuple[Floats, Floats]],
    trusts: Sequence[Floats],
    of: NDArray[np.intp],
    first: _Variances,
    now: _Variances,
) -> tuple[_Variances, list[Floats]]:
    """One round: the expected squares of all weights, and of the rest, are the next variances and trusts."""
    sums = [_sums(each, trust, now.noise) for each, trust in zip(seen, trusts, strict=True)]
    spreads = _spreads(sums, now, of)
    mean, covariance = _shared_weights(sums, spreads, now, of)
    own_squares, rest, rows, fresh = np.zeros(len(of)), 0.0, 0, []
    for (features, values), trust, (b, s), spread in zip(seen, trusts, sums, spreads, strict=True):
        pulled = spread @ s
        deviation = spread @ (b - s @ mean)
        own_squares += deviation**2 + np.diag(spread) + _squares(pulled, covariance)
        left = np.eye(len(of)) - pulled
        both = spread + left @ covariance @ left.T
        squares = (values - features @ (mean + deviation)) ** 2 + _squares(features, both)
        rest, rows = rest + float(trust @ squares), rows + len(values)
        fresh.append(_trust(squares, now.noise))
    count = np.bincount(of, minlength=len(first.own))
    shared_squares = mean**2 + np.diag(covariance)
    return _Variances(
        (np.bincount(of, shared_squares, len(count)) + FAITH * first.shared) / (count + FAITH),
        (np.bincount(of, own_squares, len(count)) + FAITH * first.own) / (count * len(seen) + FAITH),
        (rest + FAITH * first.noise) / (rows + FAITH),
    ), fresh


def _squares(rows: Floats, covariance: Floats) -> Floats:
    """The variance of each row times weights of that covariance."""
    squares: Floats = np.sum((rows @ covariance) * rows, axis=1)
    return squares


def student(off: Floats, covariance: Floats) -> float:
    """Log density of deviations, up to a constant: of each after those before it, with Student's tails."""
    root = np.linalg.cholesky(covariance)
    off = solve_triangular(root, off, lower=True)
    return float(-np.sum(0.5 * (TAIL + 1) * np.log1p(off**2 / TAIL) + np.log(np.diag(root))))


def _trust(squares: Floats, variance: Floats | float) -> Floats:
    """The expected precision of each row, in units of its usual one, after its deviation."""
    trust: Floats = (TAIL + 1) / (TAIL + squares / variance)
    return trust
