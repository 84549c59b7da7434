"""Training and tuning on functions (CE-scaling): calibrate, plan the stages, run them, adapt while it trains."""

from mlcd.planners.serverless.adaptive import AdaptiveTraining
from mlcd.planners.serverless.halving import SuccessiveHalving
from mlcd.planners.serverless.plans import PLANNERS, Planner
from mlcd.planners.serverless.problem import StageProblem
from mlcd.planners.serverless.sampling import expected_epochs
from mlcd.planners.serverless.search import PlanOnFunctions, measured_calibration
from mlcd.planners.serverless.space import (
    calibration_space,
    configuration,
    frozen,
    nothing_fits,
    on_functions,
    usable,
)

__all__ = [
    "PLANNERS",
    "AdaptiveTraining",
    "PlanOnFunctions",
    "Planner",
    "StageProblem",
    "SuccessiveHalving",
    "calibration_space",
    "configuration",
    "expected_epochs",
    "frozen",
    "measured_calibration",
    "nothing_fits",
    "on_functions",
    "usable",
]
