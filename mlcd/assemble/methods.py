"""Names of methods to strategies."""

from __future__ import annotations

from collections.abc import Callable

from mlcd.configuration import Configuration
from mlcd.errors import UnknownName
from mlcd.job import Job, Search
from mlcd.planners.elastic import ElasticSearch, RunElastic
from mlcd.planners.train import (
    CheapestOffer,
    CherryPick,
    ConvBO,
    EIPerDollar,
    Ernest,
    Exhaustive,
    HeterBO,
    NetValue,
    OneNodeLinear,
    Paleo,
    RandomSearch,
    RunToCompletion,
)
from mlcd.strategy import Strategy

METHODS: dict[str, Callable[[Search], Strategy]] = {
    "net-value": lambda search: NetValue(search.seed, search.early_look, search.parallel),
    "heterbo": lambda search: HeterBO(),
    "convbo": lambda search: ConvBO(search.seed),
    "convbo-improved": lambda search: ConvBO(search.seed, improved=True),
    "cherrypick": lambda search: CherryPick(search.seed),
    "cherrypick-improved": lambda search: CherryPick(search.seed, improved=True),
    "ei-per-dollar": lambda search: EIPerDollar(search.seed),
    "ernest": lambda search: Ernest(),
    "paleo": lambda search: Paleo(),
    "one-node-linear": lambda search: OneNodeLinear(),
    "cheapest-offer": lambda search: CheapestOffer(),
    "random": lambda search: RandomSearch(search.seed),
    "exhaustive": lambda search: Exhaustive(),
}
"""How to make each method from what the job says of the search."""


def method(search: Search) -> Strategy:
    """The strategy that a job asks for."""
    if search.method not in METHODS:
        raise UnknownName("method", search.method, METHODS)
    return METHODS[search.method](search)


def exploring(job: Job) -> Strategy:
    """What searches for the job."""
    return ElasticSearch(job.elastic.mode) if job.elastic is not None else method(job.search)


def steering(job: Job, configuration: Configuration) -> Strategy:
    """What runs the job, once it is decided where."""
    return RunElastic(configuration) if job.elastic is not None else RunToCompletion(configuration)
