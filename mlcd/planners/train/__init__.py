"""Training: instance type x node count. `net_value` is ours, and the default; `heterbo` is the paper's."""

from mlcd.planners.train.completion import RunToCompletion
from mlcd.planners.train.net_value import NetValue
from mlcd.planners.train.outlook import Outlook, cheapest_expected_usd, outlook
from mlcd.planners.train.space import accelerators_of, grid, narrow

__all__ = [
    "NetValue",
    "Outlook",
    "RunToCompletion",
    "accelerators_of",
    "cheapest_expected_usd",
    "grid",
    "narrow",
    "outlook",
]
