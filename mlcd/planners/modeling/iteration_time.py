"""Step time by nodes and local batch, fitted to a few measurements, with a standard error for each prediction.

The mean is a law: that of Tyagi and Sharma, 'Scavenger', CCGrid 2023, equations (8) to (10), or an overlap law that
fits real runs better (docs/methods/scavenger.md). The residual is a Gaussian process in the log: near a measurement the
prediction follows it, and far from all it has the error of the law. Both are fitted together ('universal kriging':
Rasmussen and Williams 2006, section 2.7, with the law linearised at its best parameters).

Symbols   K       nodes                             b      samples of one device in one step
          tau     seconds of one step               g      1..10: overlap of C and S; 1 adds them, 10 is nearly max
          C       computation, c0 + c1 b            S      synchronization: s_in on one node, else s0 + s1 (K - 2)
          y       log of measured seconds           f, J   a law's log seconds and their derivatives by theta
          theta   parameters in logs, prior N(m, P) V      covariance of residual and measurement error
          q       misfit: (y-f)' V^-1 (y-f) + (theta-m)' P^-1 (theta-m)
          scale   (nu + q) / (nu + n - 2): a factor on all variances, the posterior mean of an inverse gamma;
                  nu = 4 pseudo-observations keep it near 1 for few points
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from mlcd.core.configuration import Floats

MOST_OVERLAP = 10.0
MISSED = 0.12
"""Standard deviation of the residual: real step times scatter 3 to 11 % about a law within one node count, more
between."""
PROBE_ERROR = 0.02
NODES_REACH = 1.0
BATCH_REACH = 3.0
"""Correlation lengths of the residual, in doublings."""
PSEUDO_OBSERVATIONS = 4.0
ENOUGH = 6
"""Fewest points to choose between laws."""


@dataclass(frozen=True)
class StepLaw:
    """A law: log tau and its derivatives, and the prior of its parameters.

    `centre` and `width` are in logs, relative to the typical measured step; the coefficient of the local batch also
    relative to the typical measured local batch.
    """

    name: str
    centre: tuple[float, ...]
    width: tuple[float, ...]
    log_step: Callable[[Floats, Floats, Floats], tuple[Floats, Floats]]
    """(theta, K, b) -> (log tau, d log tau / d theta)."""

    def prior(self, typical_s: float, typical_batch: float) -> tuple[Floats, Floats]:
        """Prior mean and standard deviation of theta, in the units of the measurements."""
        mean = np.array(self.centre)
        mean[:5] += np.log(typical_s)  # all are times except the sixth, which determines g
        mean[1] -= np.log(typical_batch)  # c1 multiplies the local batch
        return mean, np.array(self.width)


def _linear(theta: Floats, nodes: Floats, batch: Floats) -> tuple[Floats, Floats]:
    """Scavenger: tau = c0 + c1 b + s K, with positive coefficients."""
    parts = np.exp(theta) * np.column_stack([np.ones_like(batch), batch, nodes])
    tau = parts.sum(axis=1)
    return np.log(tau), parts / tau[:, None]


def _overlap(theta: Floats, nodes: Floats, batch: Floats) -> tuple[Floats, Floats]:
    """tau = (C^g + S^g)^(1/g)."""
    c0, c1, s_in, s0, s1 = np.exp(theta[:5])
    share = 1 / (1 + np.exp(-theta[5]))
    g = 1 + (MOST_OVERLAP - 1) * share
    alone = nodes < 2
    computing = c0 + c1 * batch
    apart = s0 + s1 * np.maximum(nodes - 2, 0)
    log_c, log_s = np.log(computing), np.log(np.where(alone, s_in, apart))
    log_tau = np.logaddexp(g * log_c, g * log_s) / g
    of_c = np.exp(g * (log_c - log_tau))
    of_s = 1 - of_c
    by_g = (of_c * log_c + of_s * log_s - log_tau) / g
    slopes = np.column_stack(
        [
            of_c * c0 / computing,
            of_c * c1 * batch / computing,
            of_s * alone,
            of_s * ~alone * s0 / apart,
            of_s * ~alone * s1 * np.maximum(nodes - 2, 0) / apart,
            by_g * (MOST_OVERLAP - 1) * share * (1 - share),
        ]
    )
    return log_tau, slopes


LINEAR = StepLaw("linear", tuple(np.log([0.3, 0.5, 0.05])), (1.0, 1.0, 1.5), _linear)
OVERLAP = StepLaw("overlap", (*np.log([0.3, 0.5, 0.2, 0.7, 0.02]), -0.5), (1.0, 1.0, 1.5, 1.0, 1.0, 1.0), _overlap)
"""Prior means, as shares of a typical step: constant 0.3, batch 0.5, inside a node 0.2, two nodes 0.7, each further
node 0.02, all within a factor of e; overlap g = 4.4."""
LAWS = {law.name: law for law in (LINEAR, OVERLAP)}


@dataclass(frozen=True)
class IterationTime:
    """A fitted law and the points it was fitted to. `predict` is a pure function of these."""

    law: str
    theta: tuple[float, ...]
    scale: float
    nodes: tuple[float, ...]
    local_batch: tuple[float, ...]
    seconds: tuple[float, ...]

    def predict(self, nodes: Floats, local_batch: Floats) -> tuple[Floats, Floats]:
        """Seconds of one step, and the relative standard error of each."""
        law = LAWS[self.law]
        at, seen = _points(nodes, local_batch), _points(self.nodes, self.local_batch)
        theta = np.array(self.theta)
        f, j = law.log_step(theta, seen[0], seen[1])
        f_at, j_at = law.log_step(theta, at[0], at[1])
        _, width = law.prior(1.0, 1.0)
        factor = cho_factor(_covariance(seen, seen) + PROBE_ERROR**2 * np.eye(len(f)))
        across = _covariance(at, seen)
        mean = f_at + across @ cho_solve(factor, np.log(self.seconds) - f)
        known = cho_solve(factor, across.T)
        unexplained = j_at - known.T @ j
        spread = np.linalg.inv(j.T @ cho_solve(factor, j) + np.diag(width**-2))
        variance = MISSED**2 - np.einsum("ij,ji->i", across, known)
        variance = variance + np.einsum("ij,jk,ik->i", unexplained, spread, unexplained)
        return np.exp(mean), np.sqrt(self.scale * np.maximum(variance, 0.0) + PROBE_ERROR**2)


def fit_iteration_time(
    nodes: Floats, local_batch: Floats, seconds: Floats, laws: Sequence[StepLaw] | None = None
) -> IterationTime:
    """The law with the highest evidence, fitted to these points; with too few points, the overlap law."""
    choice = list(laws) if laws is not None else list(LAWS.values())
    if laws is None and len(seconds) < ENOUGH:
        choice = [OVERLAP]
    fitted = [_fit(law, _points(nodes, local_batch), np.log(np.asarray(seconds, float))) for law in choice]
    _, law, theta, scale = max(fitted, key=lambda one: one[0])
    lists = [tuple(float(x) for x in column) for column in (theta, nodes, local_batch, seconds)]
    return IterationTime(law.name, lists[0], scale, *lists[1:])


def _fit(law: StepLaw, points: Floats, y: Floats) -> tuple[float, StepLaw, Floats, float]:
    """Log evidence (up to a constant), the law, its best parameters, the scale of its variances."""
    from scipy.optimize import least_squares  # slow to import

    mean, width = law.prior(float(np.exp(y.mean())), float(np.exp(np.log(points[1]).mean())))
    covariance = _covariance(points, points) + PROBE_ERROR**2 * np.eye(len(y))
    white = np.linalg.inv(np.linalg.cholesky(covariance))

    def residuals(theta: Floats) -> Floats:
        return np.concatenate([white @ (law.log_step(theta, *points)[0] - y), (theta - mean) / width])

    def slopes(theta: Floats) -> Floats:
        return np.vstack([white @ law.log_step(theta, *points)[1], np.diag(1 / width)])

    found = least_squares(residuals, mean, slopes, method="lm", ftol=1e-6)
    theta, best, n = found.x, 2 * found.cost, len(y)
    j = law.log_step(theta, *points)[1]
    whole = np.linalg.slogdet(covariance + (j * width**2) @ j.T)[1]
    evidence = -(PSEUDO_OBSERVATIONS + n) / 2 * np.log(PSEUDO_OBSERVATIONS + best) - whole / 2
    return float(evidence), law, theta, (PSEUDO_OBSERVATIONS + best) / (PSEUDO_OBSERVATIONS + n - 2)


def _points(nodes: Floats | Sequence[float], local_batch: Floats | Sequence[float]) -> Floats:
    return np.array(np.broadcast_arrays(np.asarray(nodes, float), np.asarray(local_batch, float)))


def _covariance(a: Floats, b: Floats) -> Floats:
    """Covariance of the residual between points a and b: it decays with doublings of nodes and of local batch."""
    apart = np.abs(np.log2(a[:, :, None] / b[:, None, :]))
    return np.asarray(MISSED**2 * np.exp(-apart[0] / NODES_REACH - apart[1] / BATCH_REACH))
