"""What is known of a run before a model's first probe: of its time, the law's coefficients and the shared effects.

It ships as `time_prior.json` and `memory_prior.json`, with their sources. No measured time can be read from them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from mlcd.core.configuration import Floats
from mlcd.planners.train.plans.memory_prior import MemoryPrior, shipped_memory

FILE = "time_prior.json"
UNIT = 1e-4
"""Of the numbers that the spread of the effects is written in."""


@dataclass(frozen=True)
class TimePrior:
    """Of the log of a step. `effects`: mean of each shared effect that was learned, by name.

    `spread`: a lower triangular matrix whose square is their covariance. `variances`: of each kind of effect, shared or
    a model's own. `noise`: the squared scale of what is left.
    """

    coefficients: Floats
    effects: Mapping[str, float]
    spread: Floats
    variances: Mapping[str, float]
    noise: float


@dataclass(frozen=True)
class Prior:
    """Of the time of a step and of memory."""

    time: TimePrior
    memory: MemoryPrior


@cache
def shipped_prior() -> Prior:
    """The one that comes with MLCD."""
    text = (resources.files(__package__) / FILE).read_text(encoding="utf-8")
    return Prior(read_time_prior(json.loads(text)), shipped_memory())


def read_time_prior(written: Mapping[str, Any]) -> TimePrior:
    """From what `written_time_prior` wrote."""
    names = list(written["effects"])
    spread = np.zeros((len(names), len(names)))
    spread[np.tril_indices(len(names))] = written["spread"]
    return TimePrior(
        np.array(list(written["coefficients"].values())),
        written["effects"],
        spread * UNIT,
        written["variances"],
        float(written["noise"]),
    )


def written_time_prior(prior: TimePrior, names: Mapping[str, float], sources: str) -> dict[str, Any]:
    """As JSON. `names`: of the coefficients."""
    lower = np.rint(prior.spread[np.tril_indices(len(prior.effects))] / UNIT).astype(int)
    return {
        "sources": sources,
        "coefficients": {name: float(f"{value:.4g}") for name, value in zip(names, prior.coefficients, strict=True)},
        "variances": {name: float(f"{value:.3g}") for name, value in prior.variances.items()},
        "noise": float(f"{prior.noise:.3g}"),
        "effects": {name: round(float(value), 4) for name, value in prior.effects.items()},
        "spread": lower.tolist(),
    }
