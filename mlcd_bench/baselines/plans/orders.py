"""Methods that rank all plans before any probe: at random, and by common practice.

Practice: the least tensor and pipeline parallelism that fits, since its communication costs most; then the largest
micro-batch, and no activation checkpointing. It knows for free which plans fit, which others must find out. For time it
prefers the most and fastest machines, for money the fewest and cheapest.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlcd.planners.train.nouns import Checkpointing
from mlcd_bench.plans.folder import PlanRow
from mlcd_bench.plans.problem import PlanGoal, PlanProblem


def random_order(problem: PlanProblem, rng: np.random.Generator) -> Sequence[int]:
    """A random order."""
    return [int(i) for i in rng.permutation(len(problem.rows))]


def practice(problem: PlanProblem, rng: np.random.Generator) -> Sequence[int]:
    """The plans that fit, ranked by common practice; equals in random order."""
    fits = [i for i in random_order(problem, rng) if problem.rows[i].step_s is not None]
    return sorted(fits, key=lambda i: (_machines(problem.rows[i], problem.goal), _plan(problem.rows[i])))


def _machines(row: PlanRow, goal: PlanGoal) -> tuple[float, float]:
    gpus, gpu = row.spec.gpus, row.spec.gpu
    if goal is PlanGoal.FASTEST:
        return (-gpus, -gpu.tflops_bf16)
    return (gpus, row.usd_per_gpu_hour / gpu.tflops_bf16)


def _plan(row: PlanRow) -> tuple[int, int, bool]:
    plan = row.spec.plan
    recomputed = plan.checkpointing is not Checkpointing.NONE
    return (plan.tensor * plan.pipeline * plan.context, -plan.micro_batch, recomputed)
