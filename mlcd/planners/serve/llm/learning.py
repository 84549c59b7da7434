"""Learn the law's coefficients and the effects that models share, from load tests of models that were seen.

1. Coefficients: least squares in the log, each near what it is taken for before (TPOT_TERMS, TTFT_TERMS), with levels
   for engines, GPUs, precisions, models and workloads beside them, so that none of these speaks for the law.
2. Variances of the effects: the largest marginal likelihood, each with a wide prior. What is left has Student's tails:
   each test has a trust, found by turns (Lange et al. 1989), since servers collapse now and then.
3. The effects that models share: their posterior, with each model's own effects integrated out.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import least_squares, minimize

from mlcd.core.configuration import Floats
from mlcd.planners.serve.llm.effects import CURVES, OWN, SHARED, Rows
from mlcd.planners.serve.llm.prior import Prior, TimePrior, shared_columns
from mlcd.planners.serve.llm.residuals import DEGREES
from mlcd.planners.serve.llm.roofline import TPOT_TERMS, TTFT_TERMS, LoadPoint, terms_of

COEFFICIENT_SD = 0.7
"""How far, in the log, a coefficient may be from what it is taken for."""
EQUAL_WEIGHT = 60
"""A model with more tests than this counts as one that has as many."""
FIRST_VARIANCE, VARIANCE_SD = 0.0025, 2.0
"""What a variance is taken for, and how far in the log it may be from that."""
MOST_TESTS = 900
"""Tests that variances are learned from: more take long, and tell no more."""
TURNS = 8


@dataclass(frozen=True, slots=True)
class LoadTest:
    """What a model did at a load point."""

    model: str
    point: LoadPoint
    ttft_s: float
    tpot_s: float


def learn(tests: Sequence[LoadTest], seed: int = 0) -> Prior:
    """From the load tests of seen models."""
    points = [test.point for test in tests]
    rows, terms = Rows(points, [test.model for test in tests]), terms_of(points)
    levels = _levels(tests)
    log_tpot, log_ttft = np.log([test.tpot_s for test in tests]), np.log([test.ttft_s for test in tests])
    weights = _weights(rows)

    tpot = _coefficients(terms.log_tpot, list(TPOT_TERMS.values()), log_tpot, levels * TPOT_LEVELS, weights / 0.15)
    law_tpot = terms.log_tpot(tpot)
    columns, kinds = shared_columns(terms, rows, tpot)
    learned_tpot = _effects(log_tpot - law_tpot, rows, columns, kinds, tpot, seed)

    def ttft_law(coefficients: Floats) -> Floats:
        return terms.log_ttft(coefficients, np.exp(law_tpot))

    ttft = _coefficients(ttft_law, list(TTFT_TERMS.values()), log_ttft, levels * TTFT_LEVELS, weights / 0.4)
    columns, kinds = shared_columns(terms, rows)
    learned_ttft = _effects(log_ttft - ttft_law(ttft), rows, columns, kinds, ttft, seed)
    return Prior(learned_tpot, learned_ttft, frozenset(point.gpu.name for point in points))


TPOT_LEVELS = np.array([0.2, 0.1, 0.1, 0.15, 0.1, 0.25, 0.1, 0.1])
TTFT_LEVELS = np.array([0.4, 0.15, 0.15, 0.3, 0.25, 0.5, 0.25, 0.25])
"""Standard deviations of the levels beside the law: engine, GPU, precision, mode, stack, model, workload, its stack."""


def _levels(tests: Sequence[LoadTest]) -> Levels:
    found = []
    for test in tests:
        at, prompts = test.point.deployment, test.point.prompts
        stack = (at.engine, at.gpu, at.precision)
        workload = (test.model, prompts.input_tokens, prompts.output_tokens)
        found.append((at.engine, at.gpu, at.precision, at.mode, stack, test.model, workload, (test.model, *stack)))
    return Levels(tuple(zip(*found, strict=True)))


@dataclass(frozen=True)
class Levels:
    """A column of keys for each kind of level: rows with equal keys share one."""

    columns: tuple[tuple[Hashable, ...], ...]

    def __mul__(self, deviations: Floats) -> Floats:
        """The levels as a matrix of weights of variance 1."""
        made = []
        for column, deviation in zip(self.columns, deviations, strict=True):
            known: dict[Hashable, int] = {}
            ids = np.array([known.setdefault(key, len(known)) for key in column])
            made.append(deviation * np.eye(len(known))[ids])
        return np.hstack(made)


def _weights(rows: Rows) -> Floats:
    """Of each test, so that no model outvotes the others by its number of tests."""
    ids = rows.own["model"].ids
    counts = np.bincount(ids)
    return np.minimum(1.0, np.sqrt(EQUAL_WEIGHT / counts[ids]))


def _coefficients(
    law: Callable[[Floats], Floats], first: Sequence[float], logs: Floats, levels: Floats, weights: Floats
) -> Floats:
    """Of a law, by turns with the levels beside it."""
    start = np.log(first)
    found, squared = start.copy(), (weights**2)[:, None]
    precision = (levels * squared).T @ levels + np.eye(levels.shape[1])
    for _ in range(TURNS):
        beside = levels @ np.linalg.solve(precision, (levels * squared).T @ (logs - law(np.exp(found))))

        def misses(log_coefficients: Floats, beside: Floats = beside) -> Floats:
            missed = weights * (law(np.exp(log_coefficients)) + beside - logs)
            return np.concatenate([missed, (log_coefficients - start) / COEFFICIENT_SD])

        found = least_squares(misses, found, loss="soft_l1", max_nfev=6).x
    return np.asarray(np.exp(found))


def _effects(
    residuals: Floats,
    rows: Rows,
    columns: dict[str, Floats],
    kinds: dict[str, str],
    coefficients: Floats,
    seed: int,
) -> TimePrior:
    """Variances of the effects, and the posterior of those that models share."""
    rng = np.random.default_rng(seed)
    count = len(residuals)
    some = np.sort(rng.choice(count, min(MOST_TESTS, count), replace=False))
    shared = np.stack(list(columns.values()), axis=1)
    of_kind = {kind: [i for i, name in enumerate(columns) if kinds[name] == kind] for kind in SHARED}
    of_kind = {kind: at for kind, at in of_kind.items() if at}
    parts = {kind: shared[some][:, at] @ shared[some][:, at].T for kind, at in of_kind.items()}
    parts |= {name: group.covariance(some, some) for name, group in rows.own.items()}
    parts |= {name: rows.curve_covariance(name, some, some) for name in CURVES}
    variances = _variances(residuals[some], parts)
    noise = variances.pop("noise")

    all_rows = np.arange(count)
    own = rows.own_covariance(variances, all_rows, all_rows)
    total = own + (shared * [variances[kinds[name]] for name in columns]) @ shared.T
    trust = _trust(residuals, total, noise, rounds=3)
    factor = cho_factor(own + np.diag(noise / trust), lower=True)
    precision = shared.T @ cho_solve(factor, shared) + np.diag([1 / variances[kinds[name]] for name in columns])
    covariance = np.linalg.inv(precision)
    mean = covariance @ (shared.T @ cho_solve(factor, residuals))
    kept = {name: variances.get(name, FIRST_VARIANCE) for name in (*SHARED, *OWN)}
    return TimePrior(coefficients, tuple(columns), mean, covariance, kept, noise)


def _variances(residuals: Floats, parts: dict[str, Floats]) -> dict[str, float]:
    """Of each part, and of the noise: the most likely ones."""
    at = np.log(np.full(len(parts) + 1, 0.01))
    trust = np.ones(len(residuals))
    matrices, unit = list(parts.values()), np.eye(len(residuals))

    def unlikely(logs: Floats) -> tuple[float, Floats]:
        variances = np.exp(logs)
        errors = variances[-1] / trust
        whole = sum(v * part for v, part in zip(variances, matrices, strict=False)) + np.diag(errors + 1e-6)
        factor = cho_factor(whole, lower=True)
        solved, inverse = cho_solve(factor, residuals), cho_solve(factor, unit)
        slope = inverse - np.outer(solved, solved)
        slopes = [0.5 * v * float((slope * part).sum()) for v, part in zip(variances, matrices, strict=False)]
        slopes.append(0.5 * float((np.diag(slope) * errors).sum()))
        away = (logs - np.log(FIRST_VARIANCE)) / VARIANCE_SD
        value = 0.5 * residuals @ solved + np.log(np.diag(factor[0])).sum() + 0.5 * (away**2).sum()
        return float(value), np.array(slopes) + away / VARIANCE_SD

    for steps in (30, 15, 15):
        bounds = [(np.log(1e-5), np.log(2.0))] * len(at)
        at = minimize(unlikely, at, jac=True, method="L-BFGS-B", options={"maxiter": steps}, bounds=bounds).x
        variances = np.exp(at)
        whole = sum(v * part for v, part in zip(variances, matrices, strict=False))
        trust = _trust(residuals, np.asarray(whole), float(variances[-1]), trust=trust)
    return dict(zip((*parts, "noise"), map(float, np.exp(at)), strict=True))


def _trust(residuals: Floats, covariance: Floats, noise: float, trust: Floats | None = None, rounds: int = 1) -> Floats:
    """How far each test is to be trusted: less, the larger its own error must be."""
    trust = np.ones(len(residuals)) if trust is None else trust
    for _ in range(rounds):
        errors = noise / trust
        inverse = np.linalg.inv(covariance + np.diag(errors + 1e-6))
        error, left = errors * (inverse @ residuals), errors - errors**2 * np.diag(inverse)
        trust = (DEGREES + 1) / (DEGREES + (error**2 + np.maximum(left, 0.0)) / noise)
    return np.asarray(trust)
