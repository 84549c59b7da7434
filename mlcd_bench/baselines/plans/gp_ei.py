"""Cold Bayesian optimisation of a plan: a Gaussian process that has seen no other model, and expected improvement.

Snoek, Larochelle and Adams, 'Practical Bayesian Optimization of Machine Learning Algorithms', NIPS 2012.

Symbols   y(x)   minus the log cost of plan x; a plan out of memory counts as the worst so far
"""

from __future__ import annotations

import numpy as np

from mlcd.core.configuration import Floats
from mlcd.planners.train.plans.run_spec import RunSpec
from mlcd_bench.baselines.serve.process import expected_improvement, posterior
from mlcd_bench.plans.problem import PlanProblem, Shown

FIRST = 2
"""Random probes before the first fit."""


def gp_ei(problem: PlanProblem, shown: Shown, rng: np.random.Generator) -> int | None:
    """The untried plan with the largest expected improvement."""
    left = [i for i in range(len(problem.rows)) if i not in shown.tried]
    if not left:
        return None
    if len(shown.tried) < FIRST or not shown.ran:
        return int(rng.choice(left))
    tried = list(shown.tried)
    cost = shown.cost[tried]
    y = -np.where(np.isnan(cost), np.nanmax(cost), cost)
    x = points(problem)
    mu, sigma = posterior(x[tried], y - y.mean(), x)
    promise = expected_improvement(mu + y.mean(), sigma, float(y.max()))[left]
    return left[int(rng.choice(np.flatnonzero(promise >= promise.max() - 1e-12)))]


def points(problem: PlanProblem) -> Floats:
    """Each plan as a point, every column scaled to 0..1, without constant columns."""
    words = sorted({word for spec in problem.candidates for word in _words(spec)})
    table = np.array([[*_numbers(f), *(word in _words(f) for word in words)] for f in problem.candidates], dtype=float)
    low, high = table.min(axis=0), table.max(axis=0)
    varies = high > low
    if not varies.any():
        return np.zeros((len(table), 1))
    scaled: Floats = (table[:, varies] - low[varies]) / (high - low)[varies]
    return scaled


def _numbers(spec: RunSpec) -> Floats:
    plan = spec.plan
    counts = (plan.tensor, plan.pipeline, plan.context, plan.expert, plan.micro_batch, spec.gpus, spec.global_batch)
    specs = (spec.gpu.tflops_bf16, spec.gpu.memory_gb, spec.gpu.bandwidth_gb_s)
    logs: Floats = np.log([*counts, *specs])
    return logs


def _words(spec: RunSpec) -> tuple[str, ...]:
    plan = spec.plan
    named = (plan.sharding, plan.checkpointing, plan.precision, plan.attention, plan.kernels)
    return tuple(f"{place} {word}" for place, word in enumerate(named))
