"""Our method on recorded plans: the prior learned from other models, and the posterior after some probes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlcd.planners.train.plans.belief import PlanBelief, ProbeResults, believe_plans
from mlcd.planners.train.plans.memory_learning import learn_memory
from mlcd.planners.train.plans.prior import Prior
from mlcd.planners.train.plans.time_learning import learn_time
from mlcd_bench.plans.folder import PlanRow
from mlcd_bench.plans.problem import PlanProblem, Shown

ERROR = 0.01
"""Standard error of the log of a recorded time."""


def believed(problem: PlanProblem, tried: Sequence[int], seed: int) -> PlanBelief:
    """Our method's posterior after these probes."""
    shown = Shown.of(problem, tried)
    ran = [problem.rows[i] for i in shown.ran]
    seen = ProbeResults(
        ran=np.array(shown.ran, dtype=np.intp),
        step_s=np.array([row.step_s for row in ran], dtype=float),
        error=np.full(len(ran), ERROR),
        out_of_memory=np.array(shown.failed, dtype=np.intp),
        allocated_gb=np.array([row.allocated_gb or np.nan for row in ran], dtype=float),
    )
    return believe_plans(problem.candidates, seen, seed=seed, prior=problem.prior)


def learned(rows: Sequence[PlanRow]) -> Prior | None:
    """The prior learned from other models; None, for the shipped one, if there are none."""
    seen = [row.seen for row in rows]
    return Prior(learn_time(seen), learn_memory(seen)) if seen else None
