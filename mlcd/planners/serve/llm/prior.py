"""The prior of TPOT and TTFT before a model's first trial: roofline coefficients, and effects shared by models.

It ships as `prior.json`, with its sources; for a recording it is learned from that instead (`learning.py`).
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
from mlcd.planners.serve.llm.effects import OWN, SHARED, Rows, shared_names, term_shares
from mlcd.planners.serve.llm.roofline import TPOT_TERMS, TTFT_TERMS, Terms

FILE = "prior.json"
UNSEEN_SD = 1.0
"""Standard deviation of the level on a GPU (or a CPU) without measurements, of which only the datasheet is known."""
UNSEEN_TERMS_SD = 0.5
"""There, the additional error of each group of roofline terms, and of TTFT's waits."""

UNLEARNED_SD, UNLEARNED_NOISE = 0.15, 0.05
"""Without any measured model: standard deviation of each kind of effect, and of the residual."""


@dataclass(frozen=True)
class TimePrior:
    """The prior of TPOT or of TTFT. `names`: the learned shared effects, with their mean and covariance.

    `variances`: of each kind of effect, shared or a model's own. `noise`: the squared scale of the residual.
    """

    coefficients: Floats
    names: tuple[str, ...]
    mean: Floats
    covariance: Floats
    variances: Mapping[str, float]
    noise: float


@dataclass(frozen=True)
class Prior:
    """The priors of TPOT and TTFT. `systems`: the GPUs with measurements."""

    tpot: TimePrior
    ttft: TimePrior
    systems: frozenset[str]


@dataclass(frozen=True)
class SharedEffects:
    """The sum of the shared effects at load points: its mean `middle`, and `spread`, a root of its covariance."""

    middle: Floats
    spread: Floats


def shared_effects(
    prior: TimePrior, terms: Terms, rows: Rows, seen: frozenset[str], tpot_s: Floats | None = None
) -> SharedEffects:
    """Shared effects at load points: learned ones, and wide ones for unseen engines and GPUs. `tpot_s`: for TTFT."""
    columns, kinds = shared_columns(terms, rows, prior.coefficients if tpot_s is None else None)
    known = {name: i for i, name in enumerate(prior.names)}
    matrix = np.zeros((len(rows.points), len(known)))
    spread: list[Floats] = []
    for name, column in columns.items():
        if name in known:
            matrix[:, known[name]] = column
        else:
            spread.append(np.sqrt(prior.variances[kinds[name]]) * column)
    outside = np.array([point.gpu.name not in seen for point in rows.points], dtype=float)
    if outside.any():
        waiting = np.zeros(len(outside)) if tpot_s is None else terms.waiting_share(prior.coefficients, tpot_s)
        spread.append(UNSEEN_SD * outside * (1 - waiting))
        apart = [column for name, column in columns.items() if kinds[name] == "terms"]
        spread += [UNSEEN_TERMS_SD * outside * column for column in (*apart, waiting)]
    learned = matrix @ np.linalg.cholesky(prior.covariance + 1e-10 * np.eye(len(known)))
    return SharedEffects(matrix @ prior.mean, np.column_stack([learned, *spread]))


def shared_columns(
    terms: Terms, rows: Rows, coefficients: Floats | None = None
) -> tuple[dict[str, Floats], dict[str, str]]:
    """The design-matrix column and the kind of each shared effect. `coefficients`: of TPOT, to include its terms."""
    columns: dict[str, Floats] = {}
    kinds: dict[str, str] = {}
    for i, point in enumerate(rows.points):
        for kind, name in shared_names(point).items():
            columns.setdefault(name, np.zeros(len(rows.points)))[i] = 1.0
            kinds[name] = kind
    if coefficients is not None:
        for name, share in term_shares(terms.tpot, coefficients).items():
            columns[name], kinds[name] = share, "terms"
    return columns, kinds


@cache
def unlearned_prior() -> Prior:
    """The prior without any measured model: textbook coefficients and wide effects."""
    variances = dict.fromkeys((*SHARED, *OWN), UNLEARNED_SD**2)
    none = np.zeros(0)

    def of(terms: Mapping[str, float]) -> TimePrior:
        return TimePrior(np.array(list(terms.values())), (), none, none.reshape(0, 0), variances, UNLEARNED_NOISE**2)

    return Prior(of(TPOT_TERMS), of(TTFT_TERMS), frozenset())


@cache
def shipped_prior() -> Prior:
    """The prior that ships with MLCD."""
    return read_prior(json.loads((resources.files(__package__) / FILE).read_text(encoding="utf-8")))


def read_prior(written: Mapping[str, Any]) -> Prior:
    """The prior from the JSON of `written_prior`."""
    return Prior(_read(written["tpot"]), _read(written["ttft"]), frozenset(written["systems"]))


def written_prior(prior: Prior, sources: str) -> dict[str, Any]:
    """The prior as JSON."""
    return {
        "sources": sources,
        "systems": sorted(prior.systems),
        "tpot": _write(prior.tpot),
        "ttft": _write(prior.ttft),
    }


def _read(written: Mapping[str, Any]) -> TimePrior:
    names = tuple(written["names"])
    covariance = np.zeros((len(names), len(names)))
    covariance[np.tril_indices(len(names))] = written["covariance"]
    covariance = covariance + np.tril(covariance, -1).T
    return TimePrior(
        np.array(written["coefficients"]), names, np.array(written["mean"]), covariance, written["variances"],
        float(written["noise"]),
    )  # fmt: skip


def _write(prior: TimePrior) -> dict[str, Any]:
    lower = prior.covariance[np.tril_indices(len(prior.names))]
    return {
        "coefficients": [float(f"{value:.4g}") for value in prior.coefficients],
        "variances": {name: float(f"{value:.3g}") for name, value in prior.variances.items()},
        "noise": float(f"{prior.noise:.3g}"),
        "names": list(prior.names),
        "mean": [round(float(value), 4) for value in prior.mean],
        "covariance": [round(float(value), 6) for value in lower],
    }
