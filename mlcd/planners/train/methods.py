"""Names of methods to strategies that search for machines."""

from __future__ import annotations

from collections.abc import Callable

from mlcd.core.errors import UnknownName
from mlcd.core.job import Search
from mlcd.core.plugins import Plugins
from mlcd.core.strategy import Strategy
from mlcd.planners.train.net_value import NetValue

METHODS: Plugins[Callable[[Search], Strategy]] = Plugins(
    "mlcd.methods",
    "train",
    {"net-value": lambda search: NetValue(search.seed, search.early_look, search.parallel)},
)
"""How to make each method from what the job says of the search."""


def method(search: Search) -> Strategy:
    """The strategy that a job asks for."""
    if search.method not in METHODS:
        raise UnknownName("method", search.method, METHODS)
    return METHODS[search.method](search)
