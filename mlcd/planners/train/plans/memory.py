"""Which plans fit the memory of their GPUs: before any was tried, and after some ran or ran out of memory.

    need = exp(levels) x parts of `needed_gb`           fits where log need + slack x busy + e <= log room

Levels are a job's own (`memory_prior.py`): normal, with the prior's middle and variance. Each measured peak corrects
them (Gauss-Newton, then the normal distribution about the mode). Plans that merely ran, and those that ran out of
memory, weigh draws of the levels (importance sampling), whose moments stand for them. busy is the share of need that
comes and goes; e is what levels cannot say: normal, and the wider the larger that share.

What ran out of memory also rules out plans by size alone, whatever the levels: `dominance.py`.
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
"""A plan with less chance is not said to fit: running out of memory costs more than leaving a plan out."""
DRAWS = 64
"""Of the levels, that a chance is the mean over. Powers of two, for Sobol points."""
PROPOSED = 1024
"""Draws that are weighed by what ran and what did not."""
WIDE = 2.5
"""How much wider half of those are: for what the prior thought unlikely."""
STEPS = 8
STEP = 1e-4
SLACK = LEVELS.index("slack")


@dataclass(frozen=True)
class MemoryBelief:
    """Of N candidates. `spare`: log of room over need, in standard errors of e, for each draw of levels (K, N).

    `known`: 1 for those that ran, 0 for those that did not fit, nan for the others.
    """

    spare: Floats
    known: Floats
    ruled_out: Mask

    @property
    def chance(self) -> Floats:
        """Of each, to fit."""
        believed = ndtr(self.spare).mean(axis=0)
        return np.asarray(np.where(np.isnan(self.known), believed, self.known))

    def drawn(self, count: int, rng: np.random.Generator) -> Mask:
        """Equally likely answers to which of them fit, (count, N)."""
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
    """After the rows `ran` and `out_of_memory` of the candidates were tried; `allocated_gb`: of what ran, the peak
    of its tensors, or nan.

    The candidates of two calls are taken for the same if they are the same object.
    """
    prior = prior or shipped_memory()
    ran, failed = np.asarray(ran, dtype=np.intp), np.asarray(out_of_memory, dtype=np.intp)
    sizes = _sizes(IdentityKey(candidates))
    problem = _Problem(sizes, prior)
    measured = np.isfinite(allocated_gb)
    mode, covariance = problem.corrected(ran[measured], np.log(np.asarray(allocated_gb)[measured]))
    levels = problem.draws(*problem.weighed(mode, covariance, ran, failed))
    ruled_out = too_large(sizes, ran, failed) | hopeless(sizes)
    known = np.where(ruled_out, 0.0, np.nan)
    known[failed], known[ran] = 0.0, 1.0
    ruled_out[ran] = False
    return MemoryBelief(problem.spare(levels, np.arange(len(candidates))), known, ruled_out)


def hopeless(sizes: Sizes) -> Mask:
    """Whose weights alone are larger than a GPU."""
    return np.asarray(sizes.parts[:, :, AT["weights"]].max(axis=0) > sizes.room)


@dataclass(frozen=True)
class _Problem:
    """One job's candidates. Its own levels come on top of those of a candidate's kernels."""

    sizes: Sizes
    prior: MemoryPrior

    @cached_property
    def named(self) -> tuple[Floats, Floats]:
        """Middle and variance of the levels of each kind of kernels."""
        found = [self.prior.of(name) for name in self.sizes.names]
        return np.stack([middle for middle, _ in found]), np.stack([variance for _, variance in found])

    def kernels(self, rows: Rows) -> Floats:
        """Levels of the kernels of some candidates: (rows, levels), or (1, levels) where all have the same."""
        levels = self.named[0]
        return np.asarray(levels if len(levels) == 1 else levels[self.sizes.kernels[rows]])

    @property
    def covariance(self) -> Floats:
        """Of the job's own levels, and of those of its kernels, which are taken to be off by the same."""
        return np.diag(self.named[1].mean(axis=0))

    def log_need(self, own: Floats, rows: Rows) -> Floats:
        """The log of what tensors take, of some candidates, at own levels (..., levels)."""
        levels = self.kernels(rows) + own[..., None, :]
        return np.log(tensors_gb(levels, self.sizes.of(rows)))

    def busy(self, own: Floats, rows: Rows) -> Floats:
        """Of what tensors take, the share that comes and goes."""
        return busy_share(self.kernels(rows) + own, self.sizes.of(rows))

    def error(self, busy: Floats) -> Floats:
        """The spread of e."""
        return np.asarray(np.hypot(self.prior.measured, self.prior.busy * busy))

    def slopes(self, own: Floats, rows: Rows) -> tuple[Floats, Floats]:
        """log_need at own levels, and how it changes with each of them (rows, levels)."""
        here = self.log_need(own, rows)
        changed = [(self.log_need(own + STEP * one, rows) - here) / STEP for one in np.eye(len(LEVELS))]
        return here, np.stack(changed, axis=1)

    def corrected(self, rows: Rows, log_gb: Floats) -> tuple[Floats, Floats]:
        """Middle and covariance of the job's own levels after these peaks."""
        covariance = self.covariance
        information, at = np.linalg.inv(covariance), np.zeros(len(LEVELS))
        for _ in range(STEPS if len(rows) else 0):
            here, slopes = self.slopes(at, rows)
            weighed = slopes / self.error(self.busy(at, rows))[:, None] ** 2
            covariance = np.asarray(np.linalg.inv(information + weighed.T @ slopes))
            at = covariance @ (weighed.T @ (log_gb - here + slopes @ at))
        return at, covariance

    def spare(self, own: Floats, rows: Rows) -> Floats:
        """Room over need, in standard errors: (draws of own levels, rows)."""
        busy = self.busy(own.mean(axis=0), rows)
        slack = (self.kernels(rows)[:, SLACK] + own[:, SLACK, None]) * busy
        return np.asarray((np.log(self.sizes.tensors_room[rows]) - self.log_need(own, rows) - slack) / self.error(busy))

    def weighed(self, mode: Floats, covariance: Floats, ran: Rows, failed: Rows) -> tuple[Floats, Floats]:
        """Middle and covariance of the job's own levels, also after what merely ran and what did not."""
        if not len(ran) + len(failed):
            return mode, covariance
        normal = _normal(PROPOSED, len(mode))
        normal[::2] *= WIDE
        length = (normal**2).sum(axis=1) / 2
        # target over proposal: half of the proposals are as the target, half are wider
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
        """Of the job's own levels: equally likely ones."""
        return np.asarray(middle + _normal(DRAWS, len(middle)) @ np.linalg.cholesky(covariance).T)


def _normal(count: int, levels: int) -> Floats:
    """Sobol points, each in the middle of its part of the cube, as standard normal draws."""
    return np.asarray(ndtri(qmc.Sobol(levels, scramble=False).random(count) + 0.5 / count))


@lru_cache(maxsize=4)
def _sizes(same: IdentityKey[Sequence[RunSpec]]) -> Sizes:
    return sizes_of(same.value)
