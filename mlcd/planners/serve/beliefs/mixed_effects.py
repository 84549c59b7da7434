"""Mixed-effects regression over many models, and a mixture of beliefs about how far seen models predict a new one.

    y_m = F_m (w + v_m) + e        w_j ~ N(0, s_j)        v_mj ~ N(0, o_j)        e ~ t(0, n)

A linear mixed model (Laird and Ware 1982) with a pair of variances for each group of features, estimated by expectation
maximisation. A new model has the weights w + v with v unknown, conditioned on its own trials. Residuals have Student's
tails, so that one load test in which the server collapsed does not influence its neighbours. A t is a normal with
uncertain precision: each row has a trust, and everything else stays in closed form (Lange et al. 1989).

A new model may be like the seen ones, differ from them more than they do from each other, or have nothing in common
with them (another source or family, new machines, wrong records). Each case is a belief about its weights with a prior
probability, and Bayes' rule updates these (Bayesian model averaging; Hoeting et al. 1999). None is 1, so nothing is
certain before a trial.

Sources differ in a way that models of one source do not: engine, precision and counting change all measurements by one
factor. That is a belief of its own: as learned, but with an unknown level. Without it, a first trial far off would be
attributed to its machine, its load or noise, and would say little about other configurations.

Symbols   F    features, a row for each load test          w, v   shared weights, and a model's own
          s, o their variances, by group of features       n      residual variance
          b, S F'Ty / n and F'TF / n, with trusts T
          k    widening: k times the first guess at a model's own variances is added
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from mlcd.core.configuration import Floats
from mlcd.planners.serve.beliefs.draws import shares

SeenRows = Sequence[tuple[Floats, Floats]]
"""Features and values of each seen model."""
ROUNDS = 30
"""Rounds of expectation maximisation; more change the variances by less than their uncertainty."""
PRIOR_COUNT = 1.0
"""The number of weights that the first guess of a variance counts for."""
TAIL = 4.0
"""Degrees of freedom of the residuals."""
TRUST_ROUNDS = 8
"""Iterations to find the trust of a new model's trials."""


@dataclass(frozen=True, slots=True)
class Group:
    """Features whose weights have a common variance; first guesses of their standard deviations, shared and own."""

    name: str
    shared: float
    own: float


@dataclass(frozen=True)
class ObservedRows:
    """Measurements of a model: features, value and error variance of each row.

    `at`: the index of each row among the rows to be drawn; -1 if it is not among them.
    """

    features: Floats
    values: Floats
    error: Floats
    at: NDArray[np.intp]


@dataclass(frozen=True)
class Weights:
    """A normal belief about a model's weights. `noise`: the residual variance."""

    mean: Floats
    covariance: Floats
    noise: float

    def given(self, shown: ObservedRows) -> Weights:
        """The belief conditioned on measurements.

        The iteration for trust starts from the prior prediction: from full trust, one broken test would be fitted by
        the weights, and its trust would never fall.
        """
        features, values = shown.features, shown.values
        if len(values) == 0:
            return self
        cross = self.covariance @ features.T
        mean, covariance, spread = self.mean, self.covariance, np.zeros(len(values))
        for _ in range(TRUST_ROUNDS):
            trust = _trust((values - features @ mean) ** 2 + spread, self.noise + shown.error)
            gain = np.linalg.solve(features @ cross + np.diag(self.noise / trust + shown.error), cross.T).T
            mean = self.mean + gain @ (values - features @ self.mean)
            covariance = self.covariance - gain @ cross.T
            spread = _squares(features, covariance)
        return replace(self, mean=mean, covariance=(covariance + covariance.T) / 2)

    def log_chance(self, shown: ObservedRows) -> float:
        """Log density of measurements, up to a constant."""
        total = shown.features @ self.covariance @ shown.features.T + np.diag(self.noise + shown.error)
        return student(shown.values - shown.features @ self.mean, total)

    def draw(self, features: Floats, shown: ObservedRows, count: int, rng: np.random.Generator) -> Floats:
        """Samples of the values at each row of features; count x rows. Measured rows vary only by their error."""
        weights = self.mean + rng.standard_normal((count, len(self.mean))) @ self._root.T
        means: Floats = weights @ features.T
        drawn: Floats = means + np.sqrt(self.noise) * rng.standard_normal(means.shape)
        in_space = shown.at >= 0
        at, error = shown.at[in_space], shown.error[in_space]
        off = shown.values[in_space] - means[:, at]
        rest = self.noise / _trust(off**2, self.noise + error)
        kept = rest / (rest + error)
        drawn[:, at] = means[:, at] + kept * off + np.sqrt(kept * error) * rng.standard_normal(off.shape)
        return drawn

    @cached_property
    def _root(self) -> Floats:
        size, turn = np.linalg.eigh(self.covariance)
        return np.asarray(turn * np.sqrt(np.clip(size, 0.0, None)))


@dataclass(frozen=True)
class _Variances:
    """Variances of shared and own weights, by group, and of the residuals."""

    shared: Floats
    own: Floats
    noise: float


def learn(seen: SeenRows, groups: Sequence[Group], of: NDArray[np.intp], noise: float) -> Weights:
    """The belief about a new model's weights, learned from the features and values of the seen ones.

    `of`: the group of each feature. `noise`: a first guess at the standard deviation of the residuals.
    """
    shared, own = np.array([group.shared for group in groups]), np.array([group.own for group in groups])
    first = now = _Variances(shared**2, own**2, noise**2)
    trusts = [np.ones(len(values)) for _, values in seen]
    for _ in range(ROUNDS if seen else 0):
        now, trusts = _improved(seen, trusts, of, first, now)
    _, mean, covariance = _posterior(seen, trusts, of, now)
    return Weights(mean, covariance + np.diag(now.own[of]), now.noise)


def _posterior(
    seen: SeenRows, trusts: Sequence[Floats], of: NDArray[np.intp], now: _Variances
) -> tuple[list[tuple[Floats, Floats, Floats]], Floats, Floats]:
    """For each model b, S and the covariance of its own weights given w; and the mean and covariance of w."""
    own, precision, pull = np.diag(1 / now.own[of]), np.diag(1 / now.shared[of]), np.zeros(len(of))
    models = []
    for (features, values), trust in zip(seen, trusts, strict=True):
        weighed = features.T * (trust / now.noise)
        b, s = weighed @ values, weighed @ features
        spread = np.linalg.inv(own + s).astype(float, copy=False)
        unexplained = s @ spread  # the model's own weights are unknown
        precision += s - unexplained @ s
        pull += b - unexplained @ b
        models.append((b, s, spread))
    covariance = np.linalg.inv(precision)
    return models, covariance @ pull, (covariance + covariance.T) / 2


def _improved(
    seen: SeenRows, trusts: Sequence[Floats], of: NDArray[np.intp], first: _Variances, now: _Variances
) -> tuple[_Variances, list[Floats]]:
    """One round: expected squares of weights and residuals give the next variances and trusts."""
    models, mean, covariance = _posterior(seen, trusts, of, now)
    own_squares, rest, rows, fresh = np.zeros(len(of)), 0.0, 0, []
    for (features, values), trust, (b, s, spread) in zip(seen, trusts, models, strict=True):
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
        (np.bincount(of, shared_squares, len(count)) + PRIOR_COUNT * first.shared) / (count + PRIOR_COUNT),
        (np.bincount(of, own_squares, len(count)) + PRIOR_COUNT * first.own) / (count * len(seen) + PRIOR_COUNT),
        (rest + PRIOR_COUNT * first.noise) / (rows + PRIOR_COUNT),
    ), fresh


def _squares(rows: Floats, covariance: Floats) -> Floats:
    """The variance of each row's prediction, given the covariance of the weights."""
    return np.asarray(np.sum((rows @ covariance) * rows, axis=1))


def student(off: Floats, covariance: Floats) -> float:
    """Log density of deviations, up to a constant: of each one given those before it, with Student's tails."""
    root = np.linalg.cholesky(covariance)
    off = solve_triangular(root, off, lower=True)
    return float(-np.sum(0.5 * (TAIL + 1) * np.log1p(off**2 / TAIL) + np.log(np.diag(root))))


def _trust(squares: Floats, variance: Floats | float) -> Floats:
    """The expected precision of each row given its squared deviation, relative to its nominal precision."""
    return (TAIL + 1) / (TAIL + squares / variance)


Chances = tuple[tuple[float, float], ...]
"""(k, prior probability) of beliefs."""
LEARNED: Chances = ((0.0, 0.6), (1.0, 0.2), (4.0, 0.1))
UNLEARNED: Chances = ((0.0, 0.05), (4.0, 0.05))
"""For a quantity in which models differ: beliefs learned from the seen models, and beliefs without them."""
MODEL_INDEPENDENT: tuple[Chances, Chances] = ((0.0, 0.95),), ((0.0, 0.05),)
"""The same for a quantity that hardly depends on the model, so that seen ones predict it unless records are wrong."""
OTHER_SOURCE = 0.3
"""Prior weight of another source, in addition to those above (which sum to 1), if `other_source` is given."""
NOISE_SPREAD = 0.7
"""Standard deviation, between sources, of the log of the residuals. Far larger residuals mean contradictory records."""


@dataclass(frozen=True)
class BeliefMixture:
    """Beliefs about one model's weights, and the log probability of each."""

    beliefs: tuple[Weights, ...]
    log_chances: Floats

    def given(self, shown: ObservedRows) -> BeliefMixture:
        """The mixture conditioned on measurements."""
        if not len(shown.values):
            return self
        logs = self.log_chances + np.array([each.log_chance(shown) for each in self.beliefs])
        return BeliefMixture(tuple(each.given(shown) for each in self.beliefs), logs - logs.max())

    def log_chance(self, shown: ObservedRows) -> float:
        """Log density of measurements, up to a constant."""
        logs = self.log_chances + np.array([each.log_chance(shown) for each in self.beliefs])
        return float(np.logaddexp.reduce(logs) - np.logaddexp.reduce(self.log_chances))

    def draw(self, features: Floats, shown: ObservedRows, count: int, rng: np.random.Generator) -> Floats:
        """Samples of the values at each row of features; count x rows. Each belief contributes its share of samples."""
        by_share = zip(self.beliefs, shares(self.log_chances, count, rng), strict=True)
        drawn = [each.draw(features, shown, share, rng) for each, share in by_share if share]
        return np.vstack(drawn) if drawn else np.empty((0, len(features)))


def belief_mixture(
    seen: SeenRows,
    groups: Sequence[Group],
    of: NDArray[np.intp],
    noise: float,
    chances: tuple[Chances, Chances] = (LEARNED, UNLEARNED),
    guess: Floats | None = None,
    other_source: Floats | None = None,
) -> BeliefMixture:
    """The beliefs about a new model's weights; `groups`, `of` and `noise` as for `learn`.

    `guess`: prior mean of the weights without seen models; default zero. `other_source`: additional variances, by
    feature, of another source's weights; None if sources differ no more than models do.
    """
    learnt, unlearnt = learn(seen, groups, of, noise), learn([], groups, of, noise)
    if guess is not None:
        learnt, unlearnt = _with_guess_for_unseen_features(learnt, seen, guess), replace(unlearnt, mean=guess)
    own = np.array([group.own for group in groups])[of] ** 2
    learned_chances, unlearned_chances = chances
    kept = chance_records_are_sound(np.sqrt(learnt.noise), noise)
    parts = [(_wider(learnt, k * own), chance * kept) for k, chance in learned_chances] if seen else []
    if seen and other_source is not None:
        parts.append((_wider(learnt, other_source), OTHER_SOURCE * kept))
    parts += [(_wider(unlearnt, k * own), chance) for k, chance in unlearned_chances]
    return BeliefMixture(tuple(belief for belief, _ in parts), np.log([chance for _, chance in parts]))


def chance_records_are_sound(rest: float, usual: float) -> float:
    """The probability that records with such residuals (`rest`, a standard deviation of the log) are trustworthy."""
    excess = max(0.0, float(np.log(rest / usual))) / NOISE_SPREAD
    return float(np.exp(-0.5 * excess**2))


def _with_guess_for_unseen_features(learnt: Weights, seen: SeenRows, guess: Floats) -> Weights:
    """A feature that no seen model has, such as an accelerator, keeps its guess, since there is no evidence on it."""
    has_feature = np.any([np.any(features != 0, axis=0) for features, _ in seen], axis=0) if seen else False
    return replace(learnt, mean=np.where(has_feature, learnt.mean, guess))


def _wider(belief: Weights, by: Floats) -> Weights:
    return replace(belief, covariance=belief.covariance + np.diag(by))
