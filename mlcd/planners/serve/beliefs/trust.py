"""How far the seen models are trusted: learnt from the trials of the new one.

A new model may be like the seen ones, differ from them more than they differ from each other, or have nothing in
common with them: another source, another family, machines that nobody ran on, or plainly wrong records. Each is a
belief about its weights (`mixed_effects`). Their chances are stated before the first trial, and Bayes' rule does the
rest (Bayesian model averaging; Hoeting et al. 1999). As none starts with the chance 1, nothing is certain before a
trial.

Two sources differ in a way that the models of one do not: engine, precision and how requests are counted move all that
is measured by one factor. That is a belief of its own: as learnt but for the level, which is open. Without it a first
trial far off is blamed on its machine, its load or bad luck, and says little of the other configurations.

Symbols   k    how much wider than learnt: k times the first guess at a model's own variances is added
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mlcd.core.configuration import Floats
from mlcd.planners.serve.beliefs.mixed_effects import Group, Shown, Weights, learn

Chances = tuple[tuple[float, float], ...]
"""k, and the chance of it; for beliefs from the seen models, and for those as if nobody had been seen."""
WIDER: Chances = ((0.0, 0.6), (1.0, 0.2), (4.0, 0.1))
STRANGE: Chances = ((0.0, 0.05), (4.0, 0.05))
"""Of a quantity in which models differ."""
SURE: tuple[Chances, Chances] = ((0.0, 0.95),), ((0.0, 0.05),)
"""Of one that hardly depends on the model: the seen ones tell it, unless their records are wrong."""
ELSEWHERE = 0.3
"""The chance of another source, beside those above (which come to 1): where the level of one is said to be open."""
NOISE_SPREAD = 0.7
"""Between sources, of the log of what is left unexplained, above what is usual: far above it records contradict
themselves from one load to the next."""


@dataclass(frozen=True)
class Trusted:
    """Beliefs about one model's weights, and the log chance of each."""

    beliefs: tuple[Weights, ...]
    log_chances: Floats

    def given(self, shown: Shown) -> Trusted:
        """After what the model has shown."""
        if not len(shown.values):
            return self
        logs = self.log_chances + np.array([each.log_chance(shown) for each in self.beliefs])
        return Trusted(tuple(each.given(shown) for each in self.beliefs), logs - logs.max())

    def log_chance(self, shown: Shown) -> float:
        """Log density of what was shown, up to a constant."""
        logs = self.log_chances + np.array([each.log_chance(shown) for each in self.beliefs])
        return float(np.logaddexp.reduce(logs) - np.logaddexp.reduce(self.log_chances))

    def draw(self, features: Floats, shown: Shown, count: int, rng: np.random.Generator) -> Floats:
        """Values that the model may show at each row of features; count x rows, a belief's share of the rows each."""
        chances = np.exp(self.log_chances - np.logaddexp.reduce(self.log_chances))
        shares = rng.multinomial(count, chances / chances.sum())
        drawn = [
            each.draw(features, shown, int(share), rng)
            for each, share in zip(self.beliefs, shares, strict=True)
            if share
        ]
        return np.vstack(drawn) if drawn else np.empty((0, len(features)))


def trusted(
    seen: Sequence[tuple[Floats, Floats]],
    groups: Sequence[Group],
    of: NDArray[np.intp],
    noise: float,
    chances: tuple[Chances, Chances] = (WIDER, STRANGE),
    guess: Floats | None = None,
    elsewhere: Floats | None = None,
) -> Trusted:
    """A new model's weights after the features and values of the seen ones; the first arguments are those of `learn`.

    `guess`: the middle of the weights as if nobody had been seen; zero if it is not given. `elsewhere`: the variances,
    by feature, that another source's weights have besides; None if sources differ no more than models do.
    """
    learnt, nothing = learn(seen, groups, of, noise), learn([], groups, of, noise)
    if guess is not None:
        learnt, nothing = _where_untold(learnt, seen, guess), replace(nothing, mean=guess)
    own = np.array([group.own for group in groups])[of] ** 2
    wider, strange = chances
    kept = sound(np.sqrt(learnt.noise), noise)
    parts = [(_wider(learnt, k * own), chance * kept) for k, chance in wider] if seen else []
    if seen and elsewhere is not None:
        parts.append((_wider(learnt, elsewhere), ELSEWHERE * kept))
    parts += [(_wider(nothing, k * own), chance) for k, chance in strange]
    return Trusted(tuple(belief for belief, _ in parts), np.log([chance for _, chance in parts]))


def sound(rest: float, usual: float) -> float:
    """The chance of records of which so much is left unexplained, as a standard deviation of the log."""
    excess = max(0.0, float(np.log(rest / usual))) / NOISE_SPREAD
    return float(np.exp(-0.5 * excess**2))


def _where_untold(learnt: Weights, seen: Sequence[tuple[Floats, Floats]], guess: Floats) -> Weights:
    """A feature that no seen model has, such as an accelerator, keeps its guess: none of them spoke against it."""
    told = np.any([np.any(features != 0, axis=0) for features, _ in seen], axis=0) if seen else False
    return replace(learnt, mean=np.where(told, learnt.mean, guess))


def _wider(belief: Weights, by: Floats) -> Weights:
    return replace(belief, covariance=belief.covariance + np.diag(by))
