"""The prior before a model's first probe: the law's coefficients and shared effects for time, levels for memory.

It ships as `time_prior.json` and `memory_prior.json`, which name their sources. They contain no measured times.
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
"""Unit of the integers in which the file stores the spread of the effects."""


@dataclass(frozen=True)
class TimePrior:
    """Prior of the log of a step. `effects`: mean of each learned shared effect, by name.

    `spread`: Cholesky factor of their covariance. `variances`: by kind of effect, shared or a model's own.
    `noise`: squared scale of the residual.
    """

    coefficients: Floats
    effects: Mapping[str, float]
    spread: Floats
    variances: Mapping[str, float]
    noise: float


@dataclass(frozen=True)
class Prior:
    """The priors of step time and of memory."""

    time: TimePrior
    memory: MemoryPrior


@cache
def shipped_prior() -> Prior:
    """The prior that ships with MLCD."""
    text = (resources.files(__package__) / FILE).read_text(encoding="utf-8")
    return Prior(read_time_prior(json.loads(text)), shipped_memory())


def read_time_prior(written: Mapping[str, Any]) -> TimePrior:
    """Read what `written_time_prior` wrote."""
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
    """The prior as JSON. `names`: of the coefficients."""
    lower = np.rint(prior.spread[np.tril_indices(len(prior.effects))] / UNIT).astype(int)
    return {
        "sources": sources,
        "coefficients": {name: float(f"{value:.4g}") for name, value in zip(names, prior.coefficients, strict=True)},
        "variances": {name: float(f"{value:.3g}") for name, value in prior.variances.items()},
        "noise": float(f"{prior.noise:.3g}"),
        "effects": {name: round(float(value), 4) for name, value in prior.effects.items()},
        "spread": lower.tolist(),
    }
