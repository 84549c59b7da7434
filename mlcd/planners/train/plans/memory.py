"""Posterior of which plans fit the memory of their GPUs, given the plans that ran or ran out of memory.

    need = exp(levels) x parts of `needed_gb`           fits if log need + slack x busy + e <= log room

Levels are log factors of a job (`memory_prior.py`), with a normal prior. Measured peaks update them by Gauss-Newton (a
Laplace approximation). Plans that only ran, and plans that ran out of memory, reweight samples of the levels
(importance sampling), which a normal distribution then approximates. busy is the temporary share of need (activations,
copies); e is a normal error that grows with it.

A failure also rules out larger plans whatever the levels: `dominance.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri
from scipy.stats import qmc

from mlcd.core.configuration import Floats, Mask
from mlcd.planners.train.plans.dominance import too_large
from mlcd.planners.train.plans.identity_key import IdentityKey
from mlcd.planners.train.plans.memory_levels import AT, Rows, Sizes, busy_share, sizes_of, tensors_gb
from mlcd.planners.train.plans.memory_parts import Needed, needed_gb
from mlcd.planners.train.plans.memory_prior import LEVELS, MemoryPrior, shipped_memory
from mlcd.planners.train.plans.run_spec import RunSpec

__all__ = ["CALLED_FITTING", "MemoryBelief", "Needed", "believe_memory", "needed_gb"]

CALLED_FITTING = 0.75
"""Least probability to call a plan fitting: running out of memory costs more than leaving a plan out."""
DRAWS = 64
"""Samples of the levels over which a probability is the mean. A power of two, for Sobol points."""
PROPOSED = 1024
"""Samples of the importance sampling."""
WIDE = 2.5
"""Half of those are this much wider, to cover what the prior thought unlikely."""
STEPS = 8
STEP = 1e-4
SLACK = LEVELS.index("slack")


@dataclass(frozen=True)
class MemoryBelief:
    """Posterior of N candidates. `spare`: (K, N) log of room over need in standard errors of e, by sample of levels.

    `known`: 1 for those that ran, 0 for those that did not fit, nan for the others.
    """

    spare: Floats
    known: Floats
    ruled_out: Mask

    @property
    def chance(self) -> Floats:
        """Probability of each to fit."""
        probability = ndtr(self.spare).mean(axis=0)
        return np.asarray(np.where(np.isnan(self.known), probability, self.known))

    def drawn(self, count: int, rng: np.random.Generator) -> Mask:
        """(count, N) joint samples of which candidates fit."""
        levels = rng.integers(len(self.spare), size=count)
        fits = self.spare[levels] > rng.standard_normal((count, self.spare.shape[1]))
        return np.asarray(np.where(np.isnan(self.known), fits, self.known > 0.5))


def believe_memory(
    candidates: Sequence[RunSpec],
    ran: Rows,
    out_of_memory: Rows,
    allocated_gb: Floats,
    prior: MemoryPrior | None = None,
) -> MemoryBelief:
    """The posterior after the candidates in rows `ran` and `out_of_memory` were tried.

    `allocated_gb`: peak of the tensors of those that ran, or nan. Results are cached by the identity of `candidates`.
    """
    prior = prior or shipped_memory()
    ran, failed = np.asarray(ran, dtype=np.intp), np.asarray(out_of_memory, dtype=np.intp)
    sizes = _sizes(IdentityKey(candidates))
    problem = _Problem(sizes, prior)
    measured = np.isfinite(allocated_gb)
    mode, covariance = problem.after_peaks(ran[measured], np.log(np.asarray(allocated_gb)[measured]))
    levels = problem.draws(*problem.after_outcomes(mode, covariance, ran, failed))
    ruled_out = too_large(sizes, ran, failed) | hopeless(sizes)
    known = np.where(ruled_out, 0.0, np.nan)
    known[failed], known[ran] = 0.0, 1.0
    ruled_out[ran] = False
    return MemoryBelief(problem.spare(levels, np.arange(len(candidates))), known, ruled_out)


def hopeless(sizes: Sizes) -> Mask:
    """Plans whose weights alone are larger than a GPU."""
    return np.asarray(sizes.parts[:, :, AT["weights"]].max(axis=0) > sizes.room)


@dataclass(frozen=True)
class _Problem:
    """The inference problem of one job. The job's own levels are added to those of a candidate's kernels."""

    sizes: Sizes
    prior: MemoryPrior

    @cached_property
    def kernel_levels(self) -> tuple[Floats, Floats]:
        """Prior mean and variance of the levels, by name of kernels."""
        found = [self.prior.of(name) for name in self.sizes.names]
        return np.stack([middle for middle, _ in found]), np.stack([variance for _, variance in found])

    def mean_levels(self, rows: Rows) -> Floats:
        """Mean levels of the candidates' kernels: (rows, levels), or (1, levels) if all have the same."""
        levels = self.kernel_levels[0]
        return np.asarray(levels if len(levels) == 1 else levels[self.sizes.kernels[rows]])

    @property
    def covariance(self) -> Floats:
        """Prior covariance of the job's own levels, including the error of its kernels' levels."""
        return np.diag(self.kernel_levels[1].mean(axis=0))

    def log_need(self, own: Floats, rows: Rows) -> Floats:
        """Log GB of the tensors of some candidates, at own levels (..., levels)."""
        levels = self.mean_levels(rows) + own[..., None, :]
        return np.log(tensors_gb(levels, self.sizes.of(rows)))

    def busy(self, own: Floats, rows: Rows) -> Floats:
        """Share of the tensors' memory that is temporary."""
        return busy_share(self.mean_levels(rows) + own, self.sizes.of(rows))

    def error(self, busy: Floats) -> Floats:
        """Standard deviation of e."""
        return np.asarray(np.hypot(self.prior.measured, self.prior.busy * busy))

    def slopes(self, own: Floats, rows: Rows) -> tuple[Floats, Floats]:
        """log_need at own levels, and its numerical derivative by each of them (rows, levels)."""
        here = self.log_need(own, rows)
        changed = [(self.log_need(own + STEP * one, rows) - here) / STEP for one in np.eye(len(LEVELS))]
        return here, np.stack(changed, axis=1)

    def after_peaks(self, rows: Rows, log_gb: Floats) -> tuple[Floats, Floats]:
        """Posterior mean and covariance of the job's own levels after these peaks."""
        covariance = self.covariance
        information, at = np.linalg.inv(covariance), np.zeros(len(LEVELS))
        for _ in range(STEPS if len(rows) else 0):
            here, slopes = self.slopes(at, rows)
            weighted = slopes / self.error(self.busy(at, rows))[:, None] ** 2
            covariance = np.asarray(np.linalg.inv(information + weighted.T @ slopes))
            at = covariance @ (weighted.T @ (log_gb - here + slopes @ at))
        return at, covariance

    def spare(self, own: Floats, rows: Rows) -> Floats:
        """Log of room over need in standard errors: (samples of own levels, rows)."""
        busy = self.busy(own.mean(axis=0), rows)
        slack = (self.mean_levels(rows)[:, SLACK] + own[:, SLACK, None]) * busy
        return np.asarray((np.log(self.sizes.tensors_room[rows]) - self.log_need(own, rows) - slack) / self.error(busy))

    def after_outcomes(self, mode: Floats, covariance: Floats, ran: Rows, failed: Rows) -> tuple[Floats, Floats]:
        """The same, updated by plans that only ran and plans that ran out of memory."""
        if not len(ran) + len(failed):
            return mode, covariance
        normal = _normal(PROPOSED, len(mode))
        normal[::2] *= WIDE
        length = (normal**2).sum(axis=1) / 2
        # log of target over proposal density: half of the samples come from the target, half are wider
        weight = -np.logaddexp(0.0, length * (1 - WIDE**-2) - len(mode) * np.log(WIDE))
        levels = mode + normal @ np.linalg.cholesky(covariance).T
        weight = weight + log_ndtr(self.spare(levels, ran)).sum(axis=1)
        weight = weight + log_ndtr(-self.spare(levels, failed)).sum(axis=1)
        share = np.exp(weight - weight.max())
        share /= share.sum()
        middle = share @ levels
        about = levels - middle
        return middle, (share[:, None] * about).T @ about + (share**2).sum() * covariance

    def draws(self, middle: Floats, covariance: Floats) -> Floats:
        """Equally likely samples of the job's own levels."""
        return np.asarray(middle + _normal(DRAWS, len(middle)) @ np.linalg.cholesky(covariance).T)


def _normal(count: int, levels: int) -> Floats:
    """Standard normal samples from Sobol points, each moved to the center of its cell."""
    return np.asarray(ndtri(qmc.Sobol(levels, scramble=False).random(count) + 0.5 / count))


@lru_cache(maxsize=4)
def _sizes(key: IdentityKey[Sequence[RunSpec]]) -> Sizes:
    return sizes_of(key.value)
