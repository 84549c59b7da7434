"""Baselines for training, each made from the job's search settings."""

from mlcd.core.job import Search
from mlcd_bench.baselines.train.cheapest_offer import CheapestOffer
from mlcd_bench.baselines.train.cherrypick import CherryPick
from mlcd_bench.baselines.train.convbo import ConvBO
from mlcd_bench.baselines.train.ei_per_dollar import EIPerDollar
from mlcd_bench.baselines.train.ernest import Ernest
from mlcd_bench.baselines.train.exhaustive import Exhaustive
from mlcd_bench.baselines.train.heterbo import HeterBO
from mlcd_bench.baselines.train.one_node_linear import OneNodeLinear
from mlcd_bench.baselines.train.paleo import Paleo
from mlcd_bench.baselines.train.random_search import RandomSearch

__all__ = [
    "CheapestOffer",
    "CherryPick",
    "ConvBO",
    "EIPerDollar",
    "Ernest",
    "Exhaustive",
    "HeterBO",
    "OneNodeLinear",
    "Paleo",
    "RandomSearch",
]


def convbo(search: Search) -> ConvBO:
    """Bayesian optimisation as published."""
    return ConvBO(search.seed)


def convbo_improved(search: Search) -> ConvBO:
    """The improved form, which knows the limits."""
    return ConvBO(search.seed, improved=True)


def cherrypick(search: Search) -> CherryPick:
    """CherryPick as published."""
    return CherryPick(search.seed)


def cherrypick_improved(search: Search) -> CherryPick:
    """The improved form, which knows the limits."""
    return CherryPick(search.seed, improved=True)


def ei_per_dollar(search: Search) -> EIPerDollar:
    """Expected improvement per dollar of a probe."""
    return EIPerDollar(search.seed)


def ernest(search: Search) -> Ernest:
    """Ernest's scale-out law."""
    return Ernest()


def paleo(search: Search) -> Paleo:
    """Published specifications alone, without a probe."""
    return Paleo()


def one_node_linear(search: Search) -> OneNodeLinear:
    """One node of each type, and linear speed-up from there."""
    return OneNodeLinear()


def cheapest_offer(search: Search) -> CheapestOffer:
    """The cheapest machine that runs the job."""
    return CheapestOffer()


def random(search: Search) -> RandomSearch:
    """Probes drawn at random."""
    return RandomSearch(search.seed)


def exhaustive(search: Search) -> Exhaustive:
    """Everything, one after the other."""
    return Exhaustive()


def heterbo(search: Search) -> HeterBO:
    """HeterBO as published."""
    return HeterBO()
