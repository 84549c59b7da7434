"""How alike two models are, and what their facts say of their size, before any trial.

Models are alike that spend their time in the same operators: Hellinger distance d between the shares of time, and
kappa = exp(-d^2 / 2 l^2). A new model's fields are kriged from those of the seen ones, kappa being what two models have
in common, delta what each has for itself, and K and k the kappas among the seen ones and to the new one:

    w = (K + delta I)^-1 k          novelty v = 1 - k'w / (1 + delta), 1 for a model like no other

delta is chosen for each field by how well the seen models foretell each other: large where likeness tells nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mlcd.core.configuration import Floats
from mlcd.planners.serve.nouns import ModelFacts

LENGTH = 0.35
"""l."""
OWN, OWN_SPREAD = 0.1, 1.5
"""delta, before anybody was seen: its middle, and one standard deviation of its log."""
CHOICES = OWN * 2.0 ** np.arange(-2, 8)


@dataclass(frozen=True)
class Likeness:
    """Of a model to the seen ones (`common`, k) and of those `between` themselves (K); `near`: k, of sum 1."""

    common: Floats
    between: Floats
    near: Floats

    def ignored(self) -> Likeness:
        """As if the model were like none of them."""
        count = len(self.common)
        return replace(self, common=np.zeros(count), near=np.full(count, 1 / max(count, 1)))

    def krige(self, deviations: Floats) -> tuple[Floats, float]:
        """w and v for a field, from how far each seen model is off the mean of all (model x cell)."""
        own = max(CHOICES, key=lambda each: _evidence(each, self.between, deviations))
        weights = np.linalg.solve(self.between + own * np.eye(len(self.common)), self.common)
        return weights, float(1 - self.common @ weights / (1 + own))


def likeness(facts: ModelFacts, seen: Sequence[ModelFacts]) -> Likeness:
    """Of a model to each that was seen. Without a profile of it, nothing is near and everything equally far."""
    mine, theirs = time_shares(facts), [time_shares(each) for each in seen]
    common = np.array([_kappa(mine, each) for each in theirs])
    between = np.array([[_kappa(a, b) for b in theirs] for a in theirs]).reshape(len(seen), len(seen))
    np.fill_diagonal(between, 1.0)
    near = common / common.sum() if common.sum() > 0 else np.full(len(seen), 1 / max(len(seen), 1))
    return Likeness(common, between, near)


def _evidence(own: float, between: Floats, deviations: Floats) -> float:
    """Log likelihood of a delta, the cells of a model counting as one, and the scale as whatever fits best."""
    count = len(between)
    correlation = (between + own * np.eye(count)) / (1 + own)
    scale = float((deviations * np.linalg.solve(correlation, deviations)).sum(axis=0).mean()) / count
    fit = count * math.log(max(scale, 1e-12)) + float(np.linalg.slogdet(correlation)[1])
    return -0.5 * fit - 0.5 * (math.log(own / OWN) / OWN_SPREAD) ** 2


def time_shares(facts: ModelFacts) -> Mapping[str, float]:
    """Of each operator in the time of all profiles, each profile counting the same."""
    found: dict[str, float] = {}
    for profile in facts.profiles:
        for name, share in profile.shares.items():
            found[name] = found.get(name, 0.0) + max(share, 0.0) / len(facts.profiles)
    return found


def _kappa(a: Mapping[str, float], b: Mapping[str, float]) -> float:
    if not a or not b:
        return 0.0
    alike = sum(math.sqrt(a[name] * b[name]) for name in a if name in b)
    return math.exp(-0.5 * max(0.0, 1 - alike) / LENGTH**2)


def log_calls(facts: ModelFacts) -> float | None:
    """The log of the operators that one pass starts: the host's floor grows with them."""
    calls = [profile.calls for profile in facts.profiles if profile.calls > 0]
    return math.log(min(calls)) if calls else None


def log_weights_gb(facts: ModelFacts, least_gb: float) -> float | None:
    """The log of what its weights hold, beside the little that even an empty model does."""
    return math.log(facts.weights_mb / 1_024 + least_gb) if facts.weights_mb is not None else None


def log_largest_gb(facts: ModelFacts) -> float | None:
    """The log of the largest tensor that an operator makes for one request: a model holds a few of them at once."""
    largest = [
        max((each.memory_mb / max(each.calls, 1) for each in profile.operators), default=0.0) / profile.batch / 1_024
        for profile in facts.profiles
        if profile.batch > 0
    ]
    return math.log(max(largest)) if largest and max(largest) > 0 else None
