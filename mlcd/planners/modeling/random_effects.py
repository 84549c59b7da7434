"""Shared effects and effects of groups' own, by the variances that make what was seen most likely.

    y = S b + sum_k sqrt(v_k) own_k + e        b_j ~ N(0, v of its kind), e ~ t4(0, noise)

Symbols   y    residuals, in blocks: rows of different blocks share nothing but b      S   columns of the shared effects
          C_k  covariance, inside a block, of its own effects of kind k, of variance 1  B   sum_k v_k C_k + errors
          V    variances of b      P   precision of b after all rows: S' B^-1 S + V^-1

Rows' covariance is B + S V S', its inverse B^-1 - B^-1 S P^-1 S' B^-1 (Woodbury), so that no matrix is larger than
a block or than S has columns. Student's tails: each row has a trust, found by turns (Lange, Little and Taylor 1989).
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
"""Of freedom of Student's tails."""
NOISE = "noise"
TINY = 1e-7
MOST_VARIANCE, LEAST_VARIANCE = 2.0, 1e-6


@dataclass(frozen=True)
class Block:
    """Rows that have effects of their own together: which rows, and C_k by kind."""

    rows: NDArray[np.int_]
    own: Mapping[str, Floats]


@dataclass(frozen=True)
class Effects:
    """What was seen, in blocks. `kinds`: of each column of `shared`; `fixed`: variances that are not learned.

    `believed`: what each of the others is taken for, and `sure`: how far in the log it may be from that. `doubt`: an
    error's variance that a row has besides, where it is less to be relied on.
    """

    residuals: Floats
    shared: Floats
    kinds: Sequence[str]
    blocks: Sequence[Block]
    fixed: Mapping[str, float]
    believed: Mapping[str, float]
    sure: float
    doubt: Floats

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Kinds whose variance is learned."""
        every = dict.fromkeys((*self.kinds, *(name for block in self.blocks for name in block.own), NOISE))
        return tuple(name for name in every if name not in self.fixed)

    def learn(self, first: Mapping[str, float], trust: Floats, steps: Sequence[int]) -> tuple[dict[str, float], Floats]:
        """The most likely variances, and the trust in each row, by turns of so many steps."""
        at = np.log([(first or self.believed)[name] for name in self.names])
        bounds = [(np.log(LEAST_VARIANCE), np.log(MOST_VARIANCE))] * len(at)
        for count in steps:
            at = minimize(
                self._unlikely,
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
        """Of the shared effects, each block's own integrated out."""
        inverses = [np.asarray(np.linalg.inv(self._block(block, variances, trust))) for block in self.blocks]
        return Posterior(self, np.array([variances[kind] for kind in self.kinds]), inverses)

    def _by_name(self, logs: Floats) -> dict[str, float]:
        return {**self.fixed, **dict(zip(self.names, map(float, np.exp(logs)), strict=True))}

    def _block(self, block: Block, variances: Mapping[str, float], trust: Floats) -> Floats:
        """B of a block."""
        whole = np.diag(variances[NOISE] / trust[block.rows] + self.doubt[block.rows] + TINY)
        for name, part in block.own.items():
            whole += variances[name] * part
        return whole

    def _unlikely(self, logs: Floats, trust: Floats) -> tuple[float, Floats]:
        """Minus the log of the likelihood and of what is believed of the variances, and its slope."""
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
        away = (logs - np.log([self.believed[name] for name in self.names])) / self.sure
        value += 0.5 * float((away**2).sum())
        return value, np.array([slopes[name] for name in self.names]) + away / self.sure

    def _trust(self, variances: Mapping[str, float], trust: Floats) -> Floats:
        """How far each row is to be trusted: less, the larger its own error must be."""
        at, noise = self.posterior(variances, trust), variances[NOISE]
        errors = noise / trust
        left = np.empty(len(errors))
        for i, block in enumerate(self.blocks):
            left[block.rows] = np.diag(at.inverse_of(i))
        # of a row that is doubted anyway, only the part of its error that is noise
        squared = (errors * at.solved) ** 2 + np.maximum(errors - errors**2 * left, 0.0)
        return np.asarray((DEGREES + 1) / (DEGREES + squared / noise))


@dataclass(frozen=True)
class Posterior:
    """Of the shared effects. `variances`: V by column; `inverses`: B^-1 of each block."""

    of: Effects
    variances: Floats
    inverses: Sequence[Floats]

    @cached_property
    def weighed(self) -> Floats:
        """B^-1 S."""
        return self._by_block(self.of.shared)

    @cached_property
    def factor(self) -> tuple[Floats, bool]:
        """Of P."""
        return cho_factor(self.of.shared.T @ self.weighed + np.diag(1 / self.variances), lower=True)  # type: ignore[no-any-return]

    @cached_property
    def covariance(self) -> Floats:
        """P^-1."""
        return np.asarray(cho_solve(self.factor, np.eye(len(self.variances))))

    @cached_property
    def mean(self) -> Floats:
        """Of b."""
        return np.asarray(cho_solve(self.factor, self.weighed.T @ self.of.residuals))

    @cached_property
    def solved(self) -> Floats:
        """The inverse of the rows' covariance times y."""
        return self._by_block(self.of.residuals) - self.weighed @ self.mean

    @cached_property
    def log_precisions(self) -> float:
        """Of the determinants of B^-1."""
        return float(sum(np.linalg.slogdet(inverse)[1] for inverse in self.inverses))

    def inverse_of(self, block: int) -> Floats:
        """The block of the inverse of the rows' covariance."""
        weighed = self.weighed[self.of.blocks[block].rows]
        return np.asarray(self.inverses[block] - weighed @ self.covariance @ weighed.T)

    def without(self, blocks: Sequence[int]) -> tuple[Floats, Floats]:
        """Mean and covariance of b as if these blocks had not been seen."""
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
    """How far each of a few rows is to be trusted, by turns. `covariance`: of what they are without their errors.

    It starts from what the other rows tell of it, so that an odd one is doubted from the first.
    """
    inverse = np.linalg.inv(covariance + noise * np.eye(len(residuals)))
    trust = np.minimum(1.0, (DEGREES + 1) / (DEGREES + (inverse @ residuals) ** 2 / np.diag(inverse)))
    for _ in range(rounds):
        errors = noise / trust
        inverse = np.linalg.inv(covariance + np.diag(errors))
        error, left = errors * (inverse @ residuals), errors - errors**2 * np.diag(inverse)
        trust = (DEGREES + 1) / (DEGREES + (error**2 + left) / noise)
    return np.asarray(trust)
