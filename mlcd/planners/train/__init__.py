"""Training: instance type x node count."""

from mlcd.planners.train.completion import RunToCompletion
from mlcd.planners.train.heterbo import HeterBO
from mlcd.planners.train.net_value import NetValue
from mlcd.planners.train.outlook import Outlook, outlook
from mlcd.planners.train.space import grid, narrow

__all__ = ["HeterBO", "NetValue", "Outlook", "RunToCompletion", "grid", "narrow", "outlook"]
