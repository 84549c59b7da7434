"""Training: instance type x node count."""

from mlcd.planners.train.completion import RunToCompletion
from mlcd.planners.train.heterbo import HeterBO
from mlcd.planners.train.space import narrow

__all__ = ["HeterBO", "RunToCompletion", "narrow"]
