"""Names of methods to strategies that search for machines."""

from __future__ import annotations

from collections.abc import Callable

from mlcd.errors import UnknownName
from mlcd.job import Search
from mlcd.planners.train.net_value import NetValue
from mlcd.plugins import Plugins
from mlcd.strategy import Strategy


def _heterbo(search: Search) -> Strategy:
    from mlcd.planners.train.heterbo import HeterBO

    return HeterBO()


METHODS: Plugins[Callable[[Search], Strategy]] = Plugins(
    "mlcd.methods",
    "train",
    {
        "net-value": lambda search: NetValue(search.seed, search.early_look, search.parallel),
        "heterbo": _heterbo,
    },
)
"""How to make each method from what the job says of the search."""


def method(search: Search) -> Strategy:
    """The strategy that a job asks for."""
    if search.method not in METHODS:
        raise UnknownName("method", search.method, METHODS)
    return METHODS[search.method](search)
