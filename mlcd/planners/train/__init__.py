"""Training: instance type x node count. One file for each method; `net_value` is ours, and the default."""

from mlcd.planners.train.cheapest_offer import CheapestOffer
from mlcd.planners.train.cherrypick import CherryPick
from mlcd.planners.train.completion import RunToCompletion
from mlcd.planners.train.convbo import ConvBO
from mlcd.planners.train.ei_per_dollar import EIPerDollar
from mlcd.planners.train.ernest import Ernest
from mlcd.planners.train.exhaustive import Exhaustive
from mlcd.planners.train.heterbo import HeterBO
from mlcd.planners.train.net_value import NetValue
from mlcd.planners.train.one_node_linear import OneNodeLinear
from mlcd.planners.train.outlook import Outlook, cheapest_expected_usd, outlook
from mlcd.planners.train.paleo import Paleo
from mlcd.planners.train.random_search import RandomSearch
from mlcd.planners.train.space import accelerators_of, grid, narrow

__all__ = [
    "CheapestOffer",
    "CherryPick",
    "ConvBO",
    "EIPerDollar",
    "Ernest",
    "Exhaustive",
    "HeterBO",
    "NetValue",
    "OneNodeLinear",
    "Outlook",
    "Paleo",
    "RandomSearch",
    "RunToCompletion",
    "accelerators_of",
    "cheapest_expected_usd",
    "grid",
    "narrow",
    "outlook",
]
