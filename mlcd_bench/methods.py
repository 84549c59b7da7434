"""Names of entrants: NAME is the raw method, NAME+guard the same method under the product's guard."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mlcd.core.errors import UnknownName
from mlcd.core.job import Search
from mlcd.core.strategy import Strategy
from mlcd.planners.train.planner import METHODS
from mlcd.planners.train.planner import method as method_
from mlcd_bench.tools import TOOLS, tool

GUARDED = "+guard"


def entrants() -> list[str]:
    """Every method, raw and guarded."""
    return _both(METHODS)


def tools() -> list[str]:
    """Every external optimiser (Optuna, SMAC ...), raw and guarded."""
    return _both(TOOLS)


def parse_methods(written: str) -> list[str]:
    """The entrants in a comma-separated list; 'all' is every method, 'tools' every external optimiser."""
    words = {"all": entrants(), "tools": tools()}
    names = [name for part in written.split(",") for name in words.get(part.strip(), [part.strip()])]
    known = entrants() + tools()
    for name in names:
        if name not in known:
            raise UnknownName("method", name, [*known, *words])
    return list(dict.fromkeys(names))


def check_installed(names: Sequence[str]) -> None:
    """`MissingExtra` if one of these entrants is a tool that is not installed."""
    for name in names:
        if (bare := name.removesuffix(GUARDED)) in TOOLS:
            tool(bare, 0)


def method(search: Search) -> Strategy:
    """The strategy of a method, or of a tool."""
    return tool(search.method, search.seed) if search.method in TOOLS else method_(search)


def is_guarded(name: str) -> bool:
    """Whether this entrant runs under the guard."""
    return name.endswith(GUARDED)


def _both(names: Iterable[str]) -> list[str]:
    return [written for name in names for written in (name, name + GUARDED)]
