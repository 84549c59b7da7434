"""Choose one training plan for a language model that is scaled: the nodes change, the plan and the global batch do not.

The chosen plan is the one that is expected to lose least over all machine types and node counts, by the step-time law
and the memory model of `train/plans/`, as they are before any probe.
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

NodesOfType = tuple[int, int]
"""The index of a machine type in the space, and a number of nodes."""


def with_fixed_plan(space: Space, planned: PlannedTraining) -> Space:
    """The space with the best plan alone, on the nodes where it probably fits memory; on all nodes if it fits none."""
    space = plan_space(space, planned)
    losses, fitting = _losses_and_fits(space, planned)
    every = {nodes for each in losses.values() for nodes in each}
    best = min(losses, key=lambda plan: sum(losses[plan].get(nodes, UNFIT) for nodes in every))
    kept = fitting[best] or set(losses[best])
    choices = (_only(choice, best, {n for at, n in kept if at == i}) for i, choice in enumerate(space.choices))
    return replace(space, choices=tuple(choice for choice in choices if choice.nodes))


def _losses_and_fits(
    space: Space, planned: PlannedTraining
) -> tuple[dict[TrainingPlan, dict[NodesOfType, float]], dict[TrainingPlan, set[NodesOfType]]]:
    """For each plan: the expected log of its time over the best plan's, by nodes; and the nodes that it fits."""
    losses: dict[TrainingPlan, dict[NodesOfType, float]] = defaultdict(dict)
    fitting: dict[TrainingPlan, set[NodesOfType]] = defaultdict(set)
    for i, choice in enumerate(space.choices):
        part = replace(space, choices=(choice,))
        sample_s, chance = expected_in(part, planned)
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
