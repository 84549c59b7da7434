"""A mixed-effects model with Student t errors: effects shared by all rows, and effects of blocks of rows.

    y = S b + sum_k sqrt(v_k) own_k + e        b_j ~ N(0, v of its kind), e ~ t4(0, noise)

Symbols   y    observed residuals, in blocks of rows; different blocks share only b      S   columns of shared effects
          C_k  covariance within a block of its own effects of kind k, at variance 1     B   sum_k v_k C_k + errors
          V    variances of b      P   posterior precision of b: S' B^-1 S + V^-1
          trust   weight of a row: its error variance is noise / trust

Variances maximize the marginal likelihood times their prior. The covariance of the rows is B + S V S', its inverse
B^-1 - B^-1 S P^-1 S' B^-1 (Woodbury), so no matrix is larger than a block or the number of shared effects. Student t
errors are fitted by iteratively reweighting the rows (Lange, Little and Taylor 1989).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from mlcd.core.configuration import Floats

DEGREES = 4.0
"""Degrees of freedom of the Student t errors."""
NOISE = "noise"
TINY = 1e-7
MOST_VARIANCE, LEAST_VARIANCE = 2.0, 1e-6


@dataclass(frozen=True)
class Block:
    """Rows with common effects of their own: the rows, and C_k by kind."""

    rows: NDArray[np.int_]
    own: Mapping[str, Floats]


@dataclass(frozen=True)
class Effects:
    """Observations and the structure of their effects.

    `kinds`: of each column of `shared`. `fixed`: variances that are not learned. `prior_variances`: prior median of
    each other variance; `prior_spread`: prior standard deviation of its log. `extra_variance`: additional error
    variance of less reliable rows.
    """

    residuals: Floats
    shared: Floats
    kinds: Sequence[str]
    blocks: Sequence[Block]
    fixed: Mapping[str, float]
    prior_variances: Mapping[str, float]
    prior_spread: float
    extra_variance: Floats

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The kinds whose variance is learned."""
        every = dict.fromkeys((*self.kinds, *(name for block in self.blocks for name in block.own), NOISE))
        return tuple(name for name in every if name not in self.fixed)

    def learn(self, first: Mapping[str, float], trust: Floats, steps: Sequence[int]) -> tuple[dict[str, float], Floats]:
        """The most likely variances and the trust in each row. `steps`: optimizer steps before each reweighting."""
        at = np.log([(first or self.prior_variances)[name] for name in self.names])
        bounds = [(np.log(LEAST_VARIANCE), np.log(MOST_VARIANCE))] * len(at)
        for count in steps:
            at = minimize(
                self._negative_log_posterior,
                at,
                args=(trust,),
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": count},
                bounds=bounds,
            ).x
            trust = self._trust(self._by_name(at), trust)
        return self._by_name(at), trust

    def posterior(self, variances: Mapping[str, float], trust: Floats) -> Posterior:
        """Posterior of the shared effects, with each block's own effects integrated out."""
        inverses = [np.asarray(np.linalg.inv(self._block(block, variances, trust))) for block in self.blocks]
        return Posterior(self, np.array([variances[kind] for kind in self.kinds]), inverses)

    def _by_name(self, logs: Floats) -> dict[str, float]:
        return {**self.fixed, **dict(zip(self.names, map(float, np.exp(logs)), strict=True))}

    def _block(self, block: Block, variances: Mapping[str, float], trust: Floats) -> Floats:
        """B of a block."""
        whole = np.diag(variances[NOISE] / trust[block.rows] + self.extra_variance[block.rows] + TINY)
        for name, part in block.own.items():
            whole += variances[name] * part
        return whole

    def _negative_log_posterior(self, logs: Floats, trust: Floats) -> tuple[float, Floats]:
        """Minus the log of marginal likelihood times prior of the variances, and its gradient by their logs."""
        variances = self._by_name(logs)
        at = self.posterior(variances, trust)
        value = 0.5 * float(self.residuals @ at.solved) - 0.5 * at.log_precisions
        value += float(np.log(np.diag(at.factor[0])).sum()) + 0.5 * float(np.log(at.variances).sum())
        slopes = dict.fromkeys((*self.names, *self.fixed), 0.0)
        pulled = self.shared.T @ at.solved
        each = 1.0 - np.diag(at.covariance) / at.variances - at.variances * pulled**2
        for kind, slope in zip(self.kinds, each, strict=True):
            slopes[kind] += 0.5 * float(slope)
        for i, block in enumerate(self.blocks):
            solved = at.solved[block.rows]
            slope = at.inverse_of(i) - np.outer(solved, solved)
            for name, part in block.own.items():
                slopes[name] += 0.5 * variances[name] * float(np.vdot(slope, part))
            slopes[NOISE] += 0.5 * variances[NOISE] * float((np.diag(slope) / trust[block.rows]).sum())
        away = (logs - np.log([self.prior_variances[name] for name in self.names])) / self.prior_spread
        value += 0.5 * float((away**2).sum())
        return value, np.array([slopes[name] for name in self.names]) + away / self.prior_spread

    def _trust(self, variances: Mapping[str, float], trust: Floats) -> Floats:
        """Student t weight of each row: the larger its expected error, the smaller."""
        at, noise = self.posterior(variances, trust), variances[NOISE]
        errors = noise / trust
        left = np.empty(len(errors))
        for i, block in enumerate(self.blocks):
            left[block.rows] = np.diag(at.inverse_of(i))
        # of the error of a less reliable row, only the part that is noise counts
        squared = (errors * at.solved) ** 2 + np.maximum(errors - errors**2 * left, 0.0)
        return np.asarray((DEGREES + 1) / (DEGREES + squared / noise))


@dataclass(frozen=True)
class Posterior:
    """Posterior of the shared effects. `variances`: V by column; `inverses`: B^-1 of each block."""

    of: Effects
    variances: Floats
    inverses: Sequence[Floats]

    @cached_property
    def weighed(self) -> Floats:
        """B^-1 S."""
        return self._by_block(self.of.shared)

    @cached_property
    def factor(self) -> tuple[Floats, bool]:
        """Cholesky factor of P."""
        return cho_factor(self.of.shared.T @ self.weighed + np.diag(1 / self.variances), lower=True)  # type: ignore[no-any-return]

    @cached_property
    def covariance(self) -> Floats:
        """P^-1."""
        return np.asarray(cho_solve(self.factor, np.eye(len(self.variances))))

    @cached_property
    def mean(self) -> Floats:
        """Posterior mean of b."""
        return np.asarray(cho_solve(self.factor, self.weighed.T @ self.of.residuals))

    @cached_property
    def solved(self) -> Floats:
        """Inverse covariance of the rows times y."""
        return self._by_block(self.of.residuals) - self.weighed @ self.mean

    @cached_property
    def log_precisions(self) -> float:
        """Log determinant of B^-1."""
        return float(sum(np.linalg.slogdet(inverse)[1] for inverse in self.inverses))

    def inverse_of(self, block: int) -> Floats:
        """The diagonal block of the inverse covariance of the rows."""
        weighed = self.weighed[self.of.blocks[block].rows]
        return np.asarray(self.inverses[block] - weighed @ self.covariance @ weighed.T)

    def without(self, blocks: Sequence[int]) -> tuple[Floats, Floats]:
        """Posterior mean and covariance of b without these blocks (leave-out)."""
        precision, pull = np.linalg.inv(self.covariance), self.weighed.T @ self.of.residuals
        for i in blocks:
            rows = self.of.blocks[i].rows
            precision = precision - self.of.shared[rows].T @ self.weighed[rows]
            pull = pull - self.weighed[rows].T @ self.of.residuals[rows]
        covariance = np.linalg.inv(precision)
        return covariance @ pull, covariance

    def _by_block(self, values: Floats) -> Floats:
        found = np.empty_like(values)
        for block, inverse in zip(self.of.blocks, self.inverses, strict=True):
            found[block.rows] = inverse @ values[block.rows]
        return found


def trust_in(residuals: Floats, covariance: Floats, noise: float, rounds: int = 8) -> Floats:
    """Student t weights of a few rows, by iterative reweighting. `covariance`: of the rows without their errors.

    The first weights come from leave-one-out residuals, so an outlier has a small weight from the start.
    """
    inverse = np.linalg.inv(covariance + noise * np.eye(len(residuals)))
    trust = np.minimum(1.0, (DEGREES + 1) / (DEGREES + (inverse @ residuals) ** 2 / np.diag(inverse)))
    for _ in range(rounds):
        errors = noise / trust
        inverse = np.linalg.inv(covariance + np.diag(errors))
        error, left = errors * (inverse @ residuals), errors - errors**2 * np.diag(inverse)
        trust = (DEGREES + 1) / (DEGREES + (error**2 + left) / noise)
    return np.asarray(trust)
