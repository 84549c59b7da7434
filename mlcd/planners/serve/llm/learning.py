"""Learn the prior of TPOT and TTFT (roofline coefficients, shared effects) from load tests of measured models.

1. Coefficients: least squares in the log, regularised towards TPOT_TERMS and TTFT_TERMS, fitted together with levels
   for engines, GPUs, precisions, models and workloads, so that these do not bias the coefficients.
2. Variances of the effects: maximum marginal likelihood, each with a wide prior. Residuals have Student's tails, since
   servers collapse occasionally: each test has a trust, found by iteration (Lange et al. 1989).
3. Shared effects: their posterior, with each model's own effects integrated out.
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
"""Prior standard deviation of a coefficient, in the log."""
EQUAL_WEIGHT = 60
"""Models with more tests than this have the weight of this many."""
FIRST_VARIANCE, VARIANCE_SD = 0.0025, 2.0
"""Prior of a variance: its median, and its standard deviation in the log."""
MOST_TESTS = 900
"""Most tests from which variances are learned: more take long, and change little."""
ITERATIONS = 8


@dataclass(frozen=True, slots=True)
class LoadTest:
    """The measured TTFT and TPOT of a model at a load point."""

    model: str
    point: LoadPoint
    ttft_s: float
    tpot_s: float


def learn(tests: Sequence[LoadTest], seed: int = 0) -> Prior:
    """The prior from load tests of measured models."""
    points = [test.point for test in tests]
    rows, terms = Rows(points, [test.model for test in tests]), terms_of(points)
    levels = _levels(tests)
    log_tpot, log_ttft = np.log([test.tpot_s for test in tests]), np.log([test.ttft_s for test in tests])
    weights = _weights(rows)

    tpot = _coefficients(terms.log_tpot, list(TPOT_TERMS.values()), log_tpot, levels * TPOT_LEVELS, weights / 0.15)
    modelled_tpot = terms.log_tpot(tpot)
    columns, kinds = shared_columns(terms, rows, tpot)
    learned_tpot = _effects(log_tpot - modelled_tpot, rows, columns, kinds, tpot, seed)

    def modelled_ttft(coefficients: Floats) -> Floats:
        return terms.log_ttft(coefficients, np.exp(modelled_tpot))

    ttft = _coefficients(modelled_ttft, list(TTFT_TERMS.values()), log_ttft, levels * TTFT_LEVELS, weights / 0.4)
    columns, kinds = shared_columns(terms, rows)
    learned_ttft = _effects(log_ttft - modelled_ttft(ttft), rows, columns, kinds, ttft, seed)
    return Prior(learned_tpot, learned_ttft, frozenset(point.gpu.name for point in points))


TPOT_LEVELS = np.array([0.2, 0.1, 0.1, 0.15, 0.1, 0.25, 0.1, 0.1])
TTFT_LEVELS = np.array([0.4, 0.15, 0.15, 0.3, 0.25, 0.5, 0.25, 0.25])
"""Standard deviations of the levels: engine, GPU, precision, mode, stack, model, workload, model on a stack."""


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
    """A column of keys for each kind of level; rows with equal keys share a level."""

    columns: tuple[tuple[Hashable, ...], ...]

    def __mul__(self, deviations: Floats) -> Floats:
        """The design matrix of the levels, scaled so that their weights have variance 1."""
        made = []
        for column, deviation in zip(self.columns, deviations, strict=True):
            known: dict[Hashable, int] = {}
            ids = np.array([known.setdefault(key, len(known)) for key in column])
            made.append(deviation * np.eye(len(known))[ids])
        return np.hstack(made)


def _weights(rows: Rows) -> Floats:
    """The weight of each test, so that models with many tests do not dominate."""
    ids = rows.own["model"].ids
    counts = np.bincount(ids)
    return np.minimum(1.0, np.sqrt(EQUAL_WEIGHT / counts[ids]))


def _coefficients(
    modelled: Callable[[Floats], Floats], first: Sequence[float], logs: Floats, levels: Floats, weights: Floats
) -> Floats:
    """Fit the coefficients of a model of log times, alternating with the levels."""
    start = np.log(first)
    found, squared = start.copy(), (weights**2)[:, None]
    precision = (levels * squared).T @ levels + np.eye(levels.shape[1])
    for _ in range(ITERATIONS):
        offsets = levels @ np.linalg.solve(precision, (levels * squared).T @ (logs - modelled(np.exp(found))))

        def errors(log_coefficients: Floats, offsets: Floats = offsets) -> Floats:
            misfit = weights * (modelled(np.exp(log_coefficients)) + offsets - logs)
            return np.concatenate([misfit, (log_coefficients - start) / COEFFICIENT_SD])

        found = least_squares(errors, found, loss="soft_l1", max_nfev=6).x
    return np.asarray(np.exp(found))


def _effects(
    residuals: Floats,
    rows: Rows,
    columns: dict[str, Floats],
    kinds: dict[str, str],
    coefficients: Floats,
    seed: int,
) -> TimePrior:
    """Estimate the variances of the effects, and the posterior of the shared ones."""
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
    """The variance of each part of the covariance, and of the noise, by maximum marginal likelihood."""
    at = np.log(np.full(len(parts) + 1, 0.01))
    trust = np.ones(len(residuals))
    matrices, unit = list(parts.values()), np.eye(len(residuals))

    def negative_log_posterior(logs: Floats) -> tuple[float, Floats]:
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
        options = {"maxiter": steps}
        at = minimize(negative_log_posterior, at, jac=True, method="L-BFGS-B", options=options, bounds=bounds).x
        variances = np.exp(at)
        whole = sum(v * part for v, part in zip(variances, matrices, strict=False))
        trust = _trust(residuals, np.asarray(whole), float(variances[-1]), trust=trust)
    return dict(zip((*parts, "noise"), map(float, np.exp(at)), strict=True))


def _trust(residuals: Floats, covariance: Floats, noise: float, trust: Floats | None = None, rounds: int = 1) -> Floats:
    """The trust of each test: lower, the larger its residual."""
    trust = np.ones(len(residuals)) if trust is None else trust
    for _ in range(rounds):
        errors = noise / trust
        inverse = np.linalg.inv(covariance + np.diag(errors + 1e-6))
        error, left = errors * (inverse @ residuals), errors - errors**2 * np.diag(inverse)
        trust = (DEGREES + 1) / (DEGREES + (error**2 + np.maximum(left, 0.0)) / noise)
    return np.asarray(trust)
