"""A language model that is scaled: nodes come and go, the global batch stays, and so does the plan of a step.

Of the plans that the script accepts that one is taken which is expected to lose least over all types and node counts,
by the law of a step and the memory model of `train/plans/`, as both are believed before any probe.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np

from mlcd.core.configuration import Choice, Space
from mlcd.planners.train.nouns import PlannedTraining, TrainingPlan, plan_of
from mlcd.planners.train.plans.memory import CALLED_FITTING
from mlcd.planners.train.plans.plan_choice import UNFIT
from mlcd.planners.train.plans.space import plan_space
from mlcd.planners.train.plans.surfaces import expected_in

Machines = tuple[int, int]
"""The place of a type in the space, and a number of nodes."""


def with_one_plan(space: Space, asked: PlannedTraining) -> Space:
    """With the best plan, on the nodes that it suits and is likely to fit; where it fits none, on all that it suits."""
    space = plan_space(space, asked)
    losses, fitting = _looked_at(space, asked)
    machines = {where for each in losses.values() for where in each}
    best = min(losses, key=lambda plan: sum(losses[plan].get(where, UNFIT) for where in machines))
    kept = fitting[best] or set(losses[best])
    choices = (_only(choice, best, {n for at, n in kept if at == i}) for i, choice in enumerate(space.choices))
    return replace(space, choices=tuple(choice for choice in choices if choice.nodes))


def _looked_at(
    space: Space, asked: PlannedTraining
) -> tuple[dict[TrainingPlan, dict[Machines, float]], dict[TrainingPlan, set[Machines]]]:
    """For each plan the log by which it is expected to be slower than the best on each machines, and where it fits."""
    losses: dict[TrainingPlan, dict[Machines, float]] = defaultdict(dict)
    fitting: dict[TrainingPlan, set[Machines]] = defaultdict(set)
    for i, choice in enumerate(space.choices):
        part = replace(space, choices=(choice,))
        sample_s, chance = expected_in(part, asked)
        for n in choice.nodes:
            rows = np.flatnonzero(part.nodes == n)
            likely = rows[chance[rows] >= CALLED_FITTING]
            least_s = sample_s[likely if len(likely) else rows].min()
            for row in rows:
                plan = plan_of(part.configurations[row])
                assert plan is not None, "every configuration of such a space has one"
                slower = min(UNFIT, max(0.0, float(np.log(sample_s[row] / least_s))))
                losses[plan][i, n] = float(chance[row]) * slower + (1 - float(chance[row])) * UNFIT
                if chance[row] >= CALLED_FITTING:
                    fitting[plan].add((i, n))
    return losses, fitting


def _only(choice: Choice, plan: TrainingPlan, nodes: set[int]) -> Choice:
    return replace(choice, nodes=tuple(sorted(nodes)), settings=(plan,))
