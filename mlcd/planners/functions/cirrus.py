"""Cirrus: a parameter server on a virtual machine, and one allocation for all stages.

Carreira et al., 'Cirrus: a Serverless Framework for End-to-end ML Workflows', SoCC 2019, as CE-scaling compares with
it: VM-PS always (section II-C3), nothing planned by stages.
"""

from __future__ import annotations

from mlcd.core.job import Goal
from mlcd.planners.functions.nouns import StagePlan
from mlcd.planners.functions.problem import StageProblem
from mlcd.planners.functions.static import static_plan
from mlcd.planners.functions.workload import StorageKind


def cirrus(problem: StageProblem, goal: Goal) -> StagePlan | None:
    """The best static plan with a parameter server; None if not one keeps the limits."""
    return static_plan("cirrus", problem, goal, (str(StorageKind.VM_PS),))
