"""Linear regression for many models at once: what they share, how each deviates, and how far that is belief_mixture.

    y_m = F_m (w + v_m) + e        w_j ~ N(0, s_j)        v_mj ~ N(0, o_j)        e ~ t(0, n)

A linear mixed model (Laird and Ware 1982) with one pair of variances for each group of features, all found by
expectation maximisation. A new model is believed to be w + v with v unknown, and its own trials condition that. What
the features do not tell has Student's tails: one load test that broke down must not speak for its neighbours. A t is a
normal whose precision is uncertain, so each row carries a trust and everything else stays in closed form (Lange et al.
1989).

A new model may be like the seen ones, differ from them more than they differ from each other, or have nothing in
common with them: another source, another family, machines that nobody ran on, or plainly wrong records. Each is a
belief about its weights. Their chances are stated before the first trial, and Bayes' rule does the rest (Bayesian model
averaging; Hoeting et al. 1999). As none starts with the chance 1, nothing is certain before a trial.

Two sources differ in a way that the models of one do not: engine, precision and how requests are counted move all that
is measured by one factor. That is a belief of its own: as learnt but for the level, which is open. Without it a first
trial far off is blamed on its machine, its load or bad luck, and says little of the other configurations.

Symbols   F    features, a row for each load test          w, v   weights that all share, and a model's own
          s, o variances of these, by group of features    n      variance of the rest
          b, S F'Ty / n and F'TF / n, with trusts T
          k    how much wider than learnt: k times the first guess at a model's own variances is added
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
class ObservedRows:
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

    def given(self, shown: ObservedRows) -> Weights:
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

    def log_chance(self, shown: ObservedRows) -> float:
        """Log density of what was shown, up to a constant."""
        total = shown.features @ self.covariance @ shown.features.T + np.diag(self.noise + shown.error)
        return student(shown.values - shown.features @ self.mean, total)

    def draw(self, features: Floats, shown: ObservedRows, count: int, rng: np.random.Generator) -> Floats:
        """Values that the model may show at each row of features; count x rows.

        Where it was shown already, only the error of showing it is left to chance.
        """
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
    """Of weights, by group, and of the rest."""

    shared: Floats
    own: Floats
    noise: float


def learn(seen: SeenRows, groups: Sequence[Group], of: NDArray[np.intp], noise: float) -> Weights:
    """A new model's weights after the features and values of the seen ones. `of`: the group of each feature.

    `noise`: a first guess at the standard deviation of the rest.
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
    """Of each model b, S and the covariance of its own weights, were w known; mean and covariance of w itself."""
    own, precision, pull = np.diag(1 / now.own[of]), np.diag(1 / now.shared[of]), np.zeros(len(of))
    models = []
    for (features, values), trust in zip(seen, trusts, strict=True):
        weighed = features.T * (trust / now.noise)
        b, s = weighed @ values, weighed @ features
        spread = np.linalg.inv(own + s).astype(float, copy=False)
        left_open = s @ spread  # its own weights are not known
        precision += s - left_open @ s
        pull += b - left_open @ b
        models.append((b, s, spread))
    covariance = np.linalg.inv(precision)
    return models, covariance @ pull, (covariance + covariance.T) / 2


def _improved(
    seen: SeenRows, trusts: Sequence[Floats], of: NDArray[np.intp], first: _Variances, now: _Variances
) -> tuple[_Variances, list[Floats]]:
    """One round: the expected squares of all weights, and of the rest, are the next variances and trusts."""
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
        (np.bincount(of, shared_squares, len(count)) + FAITH * first.shared) / (count + FAITH),
        (np.bincount(of, own_squares, len(count)) + FAITH * first.own) / (count * len(seen) + FAITH),
        (rest + FAITH * first.noise) / (rows + FAITH),
    ), fresh


def _squares(rows: Floats, covariance: Floats) -> Floats:
    """The variance of each row times weights of that covariance."""
    return np.asarray(np.sum((rows @ covariance) * rows, axis=1))


def student(off: Floats, covariance: Floats) -> float:
    """Log density of deviations, up to a constant: of each after those before it, with Student's tails."""
    root = np.linalg.cholesky(covariance)
    off = solve_triangular(root, off, lower=True)
    return float(-np.sum(0.5 * (TAIL + 1) * np.log1p(off**2 / TAIL) + np.log(np.diag(root))))


def _trust(squares: Floats, variance: Floats | float) -> Floats:
    """The expected precision of each row, in units of its usual one, after its deviation."""
    return (TAIL + 1) / (TAIL + squares / variance)


Chances = tuple[tuple[float, float], ...]
"""k, and the chance of it; for beliefs learnt from the seen models, and for the prior beliefs."""
WIDER: Chances = ((0.0, 0.6), (1.0, 0.2), (4.0, 0.1))
STRANGE: Chances = ((0.0, 0.05), (4.0, 0.05))
"""Of a quantity in which models differ."""
SURE: tuple[Chances, Chances] = ((0.0, 0.95),), ((0.0, 0.05),)
"""Of one that depends little on the model: the seen ones predict it, unless their records are wrong."""
ELSEWHERE = 0.3
"""The chance of another source, beside those above (which come to 1): where the level of one is said to be open."""
NOISE_SPREAD = 0.7
"""Between sources, of the log of what is left unexplained, above what is usual: far above it records contradict
themselves from one load to the next."""


@dataclass(frozen=True)
class BeliefMixture:
    """Beliefs about one model's weights, and the log chance of each."""

    beliefs: tuple[Weights, ...]
    log_chances: Floats

    def given(self, shown: ObservedRows) -> BeliefMixture:
        """After what the model has shown."""
        if not len(shown.values):
            return self
        logs = self.log_chances + np.array([each.log_chance(shown) for each in self.beliefs])
        return BeliefMixture(tuple(each.given(shown) for each in self.beliefs), logs - logs.max())

    def log_chance(self, shown: ObservedRows) -> float:
        """Log density of what was shown, up to a constant."""
        logs = self.log_chances + np.array([each.log_chance(shown) for each in self.beliefs])
        return float(np.logaddexp.reduce(logs) - np.logaddexp.reduce(self.log_chances))

    def draw(self, features: Floats, shown: ObservedRows, count: int, rng: np.random.Generator) -> Floats:
        """Values that the model may show at each row of features; count x rows, a belief's share of the rows each."""
        by_share = zip(self.beliefs, shares(self.log_chances, count, rng), strict=True)
        drawn = [each.draw(features, shown, share, rng) for each, share in by_share if share]
        return np.vstack(drawn) if drawn else np.empty((0, len(features)))


def belief_mixture(
    seen: SeenRows,
    groups: Sequence[Group],
    of: NDArray[np.intp],
    noise: float,
    chances: tuple[Chances, Chances] = (WIDER, STRANGE),
    guess: Floats | None = None,
    elsewhere: Floats | None = None,
) -> BeliefMixture:
    """A new model's weights after the features and values of the seen ones; `groups`, `of` and `noise` as for `learn`.

    `guess`: the middle of the weights as if nobody had been seen; zero if it is not given. `elsewhere`: the variances,
    by feature, that another source's weights have besides; None if sources differ no more than models do.
    """
    learnt, nothing = learn(seen, groups, of, noise), learn([], groups, of, noise)
    if guess is not None:
        learnt, nothing = _where_untold(learnt, seen, guess), replace(nothing, mean=guess)
    own = np.array([group.own for group in groups])[of] ** 2
    wider, strange = chances
    kept = chance_records_are_sound(np.sqrt(learnt.noise), noise)
    parts = [(_wider(learnt, k * own), chance * kept) for k, chance in wider] if seen else []
    if seen and elsewhere is not None:
        parts.append((_wider(learnt, elsewhere), ELSEWHERE * kept))
    parts += [(_wider(nothing, k * own), chance) for k, chance in strange]
    return BeliefMixture(tuple(belief for belief, _ in parts), np.log([chance for _, chance in parts]))


def chance_records_are_sound(rest: float, usual: float) -> float:
    """The chance of records of which so much is left unexplained, as a standard deviation of the log."""
    excess = max(0.0, float(np.log(rest / usual))) / NOISE_SPREAD
    return float(np.exp(-0.5 * excess**2))


def _where_untold(learnt: Weights, seen: SeenRows, guess: Floats) -> Weights:
    """A feature that no seen model has, such as an accelerator, keeps its guess: none of them spoke against it."""
    has_feature = np.any([np.any(features != 0, axis=0) for features, _ in seen], axis=0) if seen else False
    return replace(learnt, mean=np.where(has_feature, learnt.mean, guess))


def _wider(belief: Weights, by: Floats) -> Weights:
    return replace(belief, covariance=belief.covariance + np.diag(by))
