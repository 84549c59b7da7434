"""What the law and the effects leave of a time: rough, mostly the same for a deployment, and now and then far away.

    e = sqrt(noise / trust) x a rough function of the log of the requests at once

    each deployment has a trust of its own, so that e has Student's tails

A server that waits for memory, or collapses, mostly does so with twice the requests as well. So what a test leaves
stays with its deployment, and tells little of others. A deployment that is far away is trusted less (the tails' scale,
found by turns; Lange, Little and Taylor, 'Robust statistical modeling using the t distribution', 1989).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlcd.core.configuration import Floats

DEGREES = 4.0
"""Of freedom of Student's tails."""
STAYS = 6.0
"""Over so many e-folds of the requests at once, what is left falls to 1/e of its correlation."""
OWN_SHARE = 0.02
"""The share of its variance that each load has for itself: a test made again would differ by that."""
JITTER = 1e-6
TURNS = 4


@dataclass(frozen=True)
class Residuals:
    """Of rows: which deployment each is of, and the log of its requests at once. Variances are 1 here."""

    curves: NDArray[np.int_]
    log_requests: Floats

    def of(self, rows: NDArray[np.int_]) -> Residuals:
        """Of some of the rows."""
        return Residuals(self.curves[rows], self.log_requests[rows])

    def covariance(self, a: NDArray[np.int_], b: NDArray[np.int_]) -> Floats:
        """Between rows a and b."""
        apart = np.abs(self.log_requests[a][:, None] - self.log_requests[b][None, :])
        stays = (self.curves[a][:, None] == self.curves[b][None, :]) * np.exp(-apart / STAYS)
        return np.asarray((1 - OWN_SHARE) * stays + OWN_SHARE * (a[:, None] == b[None, :]))

    def drawn(self, count: int, rng: np.random.Generator) -> Floats:
        """So many samples at every row."""
        loads, where = np.unique(self.log_requests, return_inverse=True)
        alike = np.exp(-np.abs(loads[:, None] - loads[None, :]) / STAYS)
        root = np.linalg.cholesky(alike + JITTER * np.eye(len(loads)))
        curves = rng.standard_normal((count, self._curves, len(loads))) @ root.T
        own = rng.standard_normal((count, len(self.curves)))
        return np.asarray(np.sqrt(1 - OWN_SHARE) * curves[:, self.curves, where] + np.sqrt(OWN_SHARE) * own)

    def trust_drawn(self, count: int, rng: np.random.Generator) -> Floats:
        """Samples of every row's trust, before any test."""
        return np.asarray((rng.chisquare(DEGREES, (count, self._curves)) / DEGREES)[:, self.curves])

    def trust(self, residuals: Floats, covariance: Floats, noise: float) -> Floats:
        """How far each row is to be trusted that left these residuals. `covariance`: of the effects, between the rows.

        It starts from what was believed before: a collapse is then doubted.
        """
        rows = np.arange(len(residuals))
        alike = self.covariance(rows, rows)
        trust = np.minimum(1.0, self._trust_by(residuals**2 / (1 + np.diag(covariance) / noise), noise))
        for _ in range(TURNS):
            errors = noise * alike / np.sqrt(trust[:, None] * trust[None, :])
            gain = errors @ np.linalg.inv(covariance + errors + JITTER * np.eye(len(rows)))
            error, unsure = gain @ residuals, np.diag(errors) - (gain * errors).sum(axis=1)
            trust = self._trust_by(error**2 + np.maximum(unsure, 0.0), noise)
        return trust

    def _trust_by(self, squares: Floats, noise: float) -> Floats:
        """Of each row, by the mean of its deployment's squared errors."""
        _, of = np.unique(self.curves, return_inverse=True)
        mean = np.bincount(of, squares) / np.bincount(of)
        return np.asarray((DEGREES + 1) / (DEGREES + mean[of] / noise))

    @property
    def _curves(self) -> int:
        return int(self.curves.max(initial=-1)) + 1
