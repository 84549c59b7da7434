"""Methods that put all plans in an order before any probe: at random, and what practitioners are told to do.

Practitioners: the least tensor and pipeline parallelism that fits, since its exchanges cost most; then the largest
micro-batch, and no activations computed again. They are told for free what fits, which others must find out. Of the
machines, the most and fastest where time counts, the fewest and cheapest where money does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlcd.planners.train.nouns import Checkpointing
from mlcd_bench.plans.folder import PlanRow
from mlcd_bench.plans.problem import PlanGoal, PlanProblem


def by_lot(problem: PlanProblem, rng: np.random.Generator) -> Sequence[int]:
    """Any order."""
    return [int(i) for i in rng.permutation(len(problem.rows))]


def practice(problem: PlanProblem, rng: np.random.Generator) -> Sequence[int]:
    """The plans that fit, as practitioners rank them; equals at random."""
    fits = [i for i in by_lot(problem, rng) if problem.rows[i].step_s is not None]
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
