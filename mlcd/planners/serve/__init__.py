"""Serve a model that nobody has seen before: what may vary, and the ways to search it."""

from mlcd.planners.serve.ernest import Ernest
from mlcd.planners.serve.exhaustive import Exhaustive
from mlcd.planners.serve.falcon import Falcon
from mlcd.planners.serve.gp_ei import GpEi
from mlcd.planners.serve.grey_box import GreyBox
from mlcd.planners.serve.heterbo import HeterBO
from mlcd.planners.serve.morphling import Morphling
from mlcd.planners.serve.popular import Popular
from mlcd.planners.serve.portfolio import Portfolio
from mlcd.planners.serve.random_trials import RandomTrials
from mlcd.planners.serve.vesta import Vesta

__all__ = [
    "Ernest",
    "Exhaustive",
    "Falcon",
    "GpEi",
    "GreyBox",
    "HeterBO",
    "Morphling",
    "Popular",
    "Portfolio",
    "RandomTrials",
    "Vesta",
]
