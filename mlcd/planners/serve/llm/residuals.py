"""The residuals that roofline model and effects leave: heavy-tailed, and strongly correlated within a deployment.

    e = sqrt(noise / trust) x a rough function of the log of the concurrency

    each deployment has a trust of its own, which gives e Student's tails

A server that runs short of memory, or collapses, usually does so at twice the concurrency as well. So a residual is
attributed to its deployment, and says little about others. Outlying deployments get a lower trust, found by iteration
(Lange, Little and Taylor, 'Robust statistical modeling using the t distribution', 1989).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlcd.core.configuration import Floats

DEGREES = 4.0
"""Degrees of freedom of Student's tails."""
CORRELATION_LENGTH = 6.0
"""In the log of the concurrency: over this distance the correlation falls to 1/e."""
OWN_SHARE = 0.02
"""The share of the variance that is independent at each load: a repeated test would differ by that."""
JITTER = 1e-6
TRUST_ITERATIONS = 4


@dataclass(frozen=True)
class Residuals:
    """Residuals of rows, scaled to variance 1. `curves`: the id of each row's deployment."""

    curves: NDArray[np.int_]
    log_requests: Floats

    def of(self, rows: NDArray[np.int_]) -> Residuals:
        """The residuals of some of the rows."""
        return Residuals(self.curves[rows], self.log_requests[rows])

    def covariance(self, a: NDArray[np.int_], b: NDArray[np.int_]) -> Floats:
        """Covariance between rows a and b."""
        apart = np.abs(self.log_requests[a][:, None] - self.log_requests[b][None, :])
        common = (self.curves[a][:, None] == self.curves[b][None, :]) * np.exp(-apart / CORRELATION_LENGTH)
        return np.asarray((1 - OWN_SHARE) * common + OWN_SHARE * (a[:, None] == b[None, :]))

    def drawn(self, count: int, rng: np.random.Generator) -> Floats:
        """Samples at every row; count x rows."""
        loads, where = np.unique(self.log_requests, return_inverse=True)
        alike = np.exp(-np.abs(loads[:, None] - loads[None, :]) / CORRELATION_LENGTH)
        root = np.linalg.cholesky(alike + JITTER * np.eye(len(loads)))
        curves = rng.standard_normal((count, self._curves, len(loads))) @ root.T
        own = rng.standard_normal((count, len(self.curves)))
        return np.asarray(np.sqrt(1 - OWN_SHARE) * curves[:, self.curves, where] + np.sqrt(OWN_SHARE) * own)

    def trust_drawn(self, count: int, rng: np.random.Generator) -> Floats:
        """Samples of every row's trust, before any test."""
        return np.asarray((rng.chisquare(DEGREES, (count, self._curves)) / DEGREES)[:, self.curves])

    def trust(self, residuals: Floats, covariance: Floats, noise: float) -> Floats:
        """The trust of each row, given its residual. `covariance`: of the effects, between the rows.

        The iteration starts from the prior prediction, so that a collapse is distrusted, not fitted.
        """
        rows = np.arange(len(residuals))
        alike = self.covariance(rows, rows)
        trust = np.minimum(1.0, self._trust_by(residuals**2 / (1 + np.diag(covariance) / noise), noise))
        for _ in range(TRUST_ITERATIONS):
            errors = noise * alike / np.sqrt(trust[:, None] * trust[None, :])
            gain = errors @ np.linalg.inv(covariance + errors + JITTER * np.eye(len(rows)))
            error, unsure = gain @ residuals, np.diag(errors) - (gain * errors).sum(axis=1)
            trust = self._trust_by(error**2 + np.maximum(unsure, 0.0), noise)
        return trust

    def _trust_by(self, squares: Floats, noise: float) -> Floats:
        """The trust of each row, from the mean squared error of its deployment."""
        _, of = np.unique(self.curves, return_inverse=True)
        mean = np.bincount(of, squares) / np.bincount(of)
        return np.asarray((DEGREES + 1) / (DEGREES + mean[of] / noise))

    @property
    def _curves(self) -> int:
        return int(self.curves.max(initial=-1)) + 1
