"""How far a new model's steps may be from what is expected, by what kind of code runs them.

    variance = s x what is believed of every model        log s = sum_w share_w a_w        a_w ~ N(0, UNLIKE^2)

w is a word of the kernels, or the form of the layers' code. Each model that was seen tells how far it was from what the
others say of it: z^2, squared errors in units of what is believed. Its runs are as much as so many independent ones:
few, as they err together. The most likely a_w minimise

    sum over runs of looks / (2 runs of the model) (log s + z^2 / s) + sum_w a_w^2 / (2 UNLIKE^2)

Code that nobody has seen is like all other: a_w = 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from mlcd.core.configuration import Floats
from mlcd.planners.train.plans.effects import form_of, kernel_words
from mlcd.planners.train.plans.facts import Facts

UNLIKE = 0.5
"""By how much, in the log of a variance, one kind of code is apart from another."""


@dataclass(frozen=True)
class Judged:
    """The runs of a model that the others had told of. `squared`: z^2; `looks`: how many independent runs they are."""

    runs: Sequence[Facts]
    squared: Floats
    looks: float


def learn_spreads(models: Sequence[Judged]) -> dict[str, float]:
    """a_w by word."""
    shares = [_shares_of(facts) for model in models for facts in model.runs]
    words = list(dict.fromkeys(word for each in shares for word in each))
    table = np.array([[each.get(word, 0.0) for word in words] for each in shares])
    squared = np.concatenate([model.squared for model in models])
    weights = np.concatenate([np.full(len(model.runs), model.looks / len(model.runs)) for model in models])

    def unlikely(logs: Floats) -> tuple[float, Floats]:
        scale = table @ logs
        left = squared * np.exp(-scale)
        value = 0.5 * float(weights @ (scale + left)) + 0.5 * float((logs**2).sum()) / UNLIKE**2
        return value, table.T @ (0.5 * weights * (1 - left)) + logs / UNLIKE**2

    found = minimize(unlikely, np.zeros(len(words)), jac=True, method="L-BFGS-B").x
    return dict(zip(words, map(float, found), strict=True))


def unit_of(runs: Sequence[Facts], spreads: Mapping[str, float]) -> float:
    """The square root of s: of a job, whose plans are run by one code, one number."""
    logs = [sum(share * spreads.get(word, 0.0) for word, share in _shares_of(facts).items()) for facts in runs]
    return float(np.exp(0.5 * np.mean(logs)))


def _shares_of(facts: Facts) -> dict[str, float]:
    """The words of a run's code, and the share that each has."""
    words = kernel_words(facts)
    return {**{f"kernels {word}": 1 / len(words) for word in words}, f"form {form_of(facts)}": 1.0}
