"""Learn the memory prior from measured runs: peaks, successes and failures.

    log peak = log need(level of all + level of kernels + level of the job) + e      levels: `memory_prior.py`

A job is a model, an adapter, a precision and a source. Levels are normal, those of kernels and jobs with mean zero.
Their standard deviations are estimated by expectation-maximization, with a Laplace approximation at the mode. A run
without a known peak only shows that it fitted; one that ran out of memory, that it did not. Each of these is a residual
sqrt(-2 log P) of the least squares. If only the reserved memory is known, it stands for the peak with a larger error.

Mixtures of experts are left out: published memory of these is of padded dialogues of unknown length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from mlcd.core.configuration import Floats
from mlcd.planners.train.plans.memory_levels import Sizes, busy_share, sizes_of, tensors_gb
from mlcd.planners.train.plans.memory_prior import LEVELS, MemoryPrior
from mlcd.planners.train.plans.run_spec import MeasuredRun

N, SLACK = len(LEVELS), LEVELS.index("slack")
MIDDLE = np.array([0.0, 0.0, 0.0, 0.0, 0.2, 0.0, 0.35, 0.35, 0.06])
"""Prior mean of the levels: about half of the frameworks keep fp32 masters and copy what they update."""
SPREAD = np.array([0.005, 1.0, 0.03, 0.3, 0.2, 0.4, 0.4, 0.05, 0.03])
KERNELS = np.array([0.01, 2.0, 0.1, 0.3, 0.4, 0.4, 0.2, 0.05, 0.02])
OWN = np.array([0.02, 0.5, 0.05, 0.15, 0.4, 0.2, 0.2, 0.35, 0.02])
"""Initial standard deviations of the levels: of all, of kernels, of jobs."""
LEAST = {
    "kernels": np.array([0.003, 1.0, 0.05, 0.3, 0.4, 0.4, 0.2, 0.05, 0.01]),
    "job": np.array([0.01, 0.5, 0.03, 0.1, 0.3, 0.25, 0.2, 0.35, 0.01]),
}
"""Lower bounds of the estimated standard deviations: few jobs show little of how jobs differ."""
MEASURED, BUSY = 0.02, 0.08
MARGIN = 0.1
"""Log of the free memory assumed of plans of which it is only known that they ran: published plans are seldom tight."""
RESERVED_OVER, RESERVED_ERROR = 0.12, 0.1
"""Log of reserved over allocated memory: mean and standard deviation."""
ROUNDS, STEPS, ENOUGH = 3, 15, 1e-4
STEP = 1e-4
FAR = 2.5
"""Larger residuals, in standard errors, are weighted down (Huber)."""


def learn_memory(rows: Sequence[MeasuredRun], source: str = "") -> MemoryPrior:
    """Learn from runs of any models. `source`: text for the prior's file."""
    data = _Data.of([row for row in rows if not row.spec.architecture.experts])
    spreads = {"all": SPREAD, "kernels": KERNELS.copy(), "job": OWN.copy()}
    levels = np.concatenate([MIDDLE, np.zeros(N * (len(data.kernels) + len(data.jobs)))])
    for _ in range(ROUNDS):
        levels, covariance = _mode(data, levels, spreads)
        uncertain = np.diag(covariance).reshape(-1, N)
        of = levels.reshape(-1, N)
        for name, places in (("kernels", data.places[0]), ("job", data.places[1])):
            spreads[name] = np.maximum(np.sqrt((of[places] ** 2 + uncertain[places]).mean(axis=0)), LEAST[name])
    sums = {name: np.eye(N, len(levels)) + np.eye(N, len(levels), N * (1 + i)) for i, name in enumerate(data.kernels)}
    return MemoryPrior(
        middle=_plain(of[0]),
        error=_plain(np.sqrt(uncertain[0])),
        kernels={name: _plain(both @ levels) for name, both in sums.items()},
        kernels_error={name: _plain(np.sqrt(np.diag(both @ covariance @ both.T))) for name, both in sums.items()},
        unlike=_plain(spreads["kernels"]),
        own=_plain(spreads["job"]),
        measured=MEASURED,
        busy=BUSY,
        source=source,
    )


@dataclass(frozen=True)
class _Data:
    """Runs as arrays. `design`: (runs, blocks) 1 for each block of levels that adds to the run's level."""

    sizes: Sizes
    peak: Floats
    error: Floats
    failed: Floats
    design: Floats
    kernels: tuple[str, ...]
    jobs: tuple[tuple[str, ...], ...]

    @staticmethod
    def of(rows: Sequence[MeasuredRun]) -> _Data:
        kernels = tuple(sorted({row.spec.plan.kernels for row in rows}))
        named = [(row.source, row.model, row.spec.plan.adapter.value, row.spec.plan.precision.value) for row in rows]
        jobs = tuple(sorted(set(named)))
        design = np.zeros((len(rows), 1 + len(kernels) + len(jobs)))
        design[:, 0] = 1
        for i, (row, job) in enumerate(zip(rows, named, strict=True)):
            design[i, 1 + kernels.index(row.spec.plan.kernels)] = 1
            design[i, 1 + len(kernels) + jobs.index(job)] = 1
        peaks = [_peak_and_error(row) for row in rows]
        return _Data(
            sizes=sizes_of([row.spec for row in rows]),
            peak=np.array([peak for peak, _ in peaks]),
            error=np.array([error for _, error in peaks]),
            failed=np.array([float(row.out_of_memory) for row in rows]),
            design=design,
            kernels=kernels,
            jobs=jobs,
        )

    @property
    def places(self) -> tuple[slice, slice]:
        """The slices of the blocks of kernels and of jobs."""
        return slice(1, 1 + len(self.kernels)), slice(1 + len(self.kernels), None)


def _peak_and_error(row: MeasuredRun) -> tuple[float, float]:
    """Log of the peak memory of tensors, nan if unknown, and its standard error."""
    if row.out_of_memory or not (row.allocated_gb or row.reserved_gb):
        return np.nan, 0.0
    if row.allocated_gb:
        return float(np.log(row.allocated_gb)), 0.0
    return float(np.log(row.reserved_gb or 1.0)) - RESERVED_OVER, RESERVED_ERROR


def _mode(data: _Data, start: Floats, spreads: dict[str, Floats]) -> tuple[Floats, Floats]:
    """The likeliest levels and their covariance there, by Gauss-Newton with damping (Levenberg-Marquardt)."""
    spread = np.concatenate([spreads["all"], np.tile(spreads["kernels"], len(data.kernels)),
                             np.tile(spreads["job"], len(data.jobs))])  # fmt: skip
    middle = np.concatenate([MIDDLE, np.zeros(len(start) - N)])
    at, damping = start, 1e-3
    residuals, slopes = _residuals(data, at)
    cost = float(residuals @ residuals + (((at - middle) / spread) ** 2).sum())
    for _ in range(STEPS):
        information = slopes.T @ slopes + np.diag(1 / spread**2)
        downhill = slopes.T @ residuals + (at - middle) / spread**2
        step = np.linalg.solve(information + damping * np.diag(np.diag(information)), downhill)
        tried = at - step
        new_residuals, new_slopes = _residuals(data, tried)
        new = float(new_residuals @ new_residuals + (((tried - middle) / spread) ** 2).sum())
        if new < cost:
            done = cost - new < ENOUGH * cost
            at, residuals, slopes, cost, damping = tried, new_residuals, new_slopes, new, damping / 3
            if done:
                break
        else:
            damping *= 10
    return at, np.asarray(np.linalg.inv(slopes.T @ slopes + np.diag(1 / spread**2)))


def _residuals(data: _Data, at: Floats) -> tuple[Floats, Floats]:
    """Residual of each run in standard errors, and its derivatives by each level of each block."""
    levels = data.design @ at.reshape(-1, N)
    here = _residual(data, levels)
    by_level = np.stack([(_residual(data, levels + STEP * one) - here) / STEP for one in np.eye(N)], axis=1)
    slopes = data.design[:, :, None] * by_level[:, None, :]
    weight = np.sqrt(np.minimum(1.0, FAR / np.maximum(np.abs(here), 1e-9)))
    return here * weight, slopes.reshape(len(here), -1) * weight[:, None]


def _residual(data: _Data, levels: Floats) -> Floats:
    log_need = np.log(tensors_gb(levels, data.sizes))
    busy = busy_share(levels, data.sizes)
    error = np.hypot(MEASURED, BUSY * busy)
    known = np.isfinite(data.peak)
    off = (np.where(known, data.peak, 0.0) - log_need) / np.hypot(error, data.error)
    spare = (np.log(data.sizes.tensors_room) - log_need - levels[:, SLACK] * busy) / error
    surprise = np.sqrt(-2 * log_ndtr(np.where(data.failed > 0, -spare, spare - MARGIN / error)))
    return np.where(known, off, surprise)


def _plain(levels: Floats) -> tuple[float, ...]:
    return tuple(round(float(level), 4) for level in levels)
