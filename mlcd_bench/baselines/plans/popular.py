"""The plans that were best for other models, as one would copy them from published results.

The value of a row of another model is the cost of the best plan of its problem over its own cost. A plan is ranked by
the mean value of the rows that agree with it in the most fields.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import astuple

import numpy as np

from mlcd.core.configuration import Floats
from mlcd.planners.train.plans.run_spec import RunSpec
from mlcd_bench.plans.problem import PlanProblem, log_factor


def popular(problem: PlanProblem, rng: np.random.Generator) -> Sequence[int]:
    """The best plans of other models first; equals in random order."""
    others = [row for row in problem.others if row.step_s is not None]
    order = [int(i) for i in rng.permutation(len(problem.rows))]
    if not others:
        return order
    worth, theirs = _worth(problem), np.array([_fields(row.spec) for row in others], dtype=object)
    score = {}
    for i, spec in enumerate(problem.candidates):
        agreeing = (theirs == np.array(_fields(spec), dtype=object)).sum(axis=1)
        score[i] = float(worth[agreeing == agreeing.max()].mean())
    return sorted(order, key=lambda i: -score[i])


def _worth(problem: PlanProblem) -> Floats:
    others = [row for row in problem.others if row.step_s is not None]
    cost = np.array([log_factor(row, problem.goal) + np.log(row.step_s or np.nan) for row in others])
    groups: dict[tuple[str, str, int, str], list[int]] = defaultdict(list)
    for i, row in enumerate(others):
        groups[row.group].append(i)
    for places in groups.values():
        cost[places] = np.exp(cost[places].min() - cost[places])
    return cost


def _fields(spec: RunSpec) -> tuple[object, ...]:
    return (spec.gpu.name, spec.gpus, *astuple(spec.plan))
