"""Parse options that are given as text, for programs without a command line: same names, same parsers.

`parse_options("train", {"budget": "100", "deadline": "6h", "nodes": "1..8"})` is what the command line would make of
`mlcd train JOB --budget 100 --deadline 6h --nodes 1..8`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

from mlcd.core import units
from mlcd.core.errors import UnknownName, UserError
from mlcd.core.job import parse_target
from mlcd.core.options import NO_LIMIT
from mlcd.planners.serve.caps import CAPS, SERVERS
from mlcd.planners.serve.llm.blocks import parse_sweep

Parser = Callable[[Any], Any]
Parsers = dict[str, Parser]
GOALS = {
    "train": ("fastest", "cheapest"),
    "tune": ("fastest", "cheapest"),
    "scale": ("knee", "fastest", "cheapest"),
    "serve": ("per-dollar", "cheapest", "fastest"),
    "what-if": ("fastest", "cheapest", "knee", "per-dollar"),
}
SEARCHES = ("full", "partial", "none")
LEARNING_RATES = ("none", "linear", "sqrt", "adascale")
MOST_PARALLEL = 64
MOST_LETTERS, MOST_EACH = 200, 100
"""Longest text of a value, and most values in a list."""


def _of_functions(name: str) -> Parser:
    """A parser of the functions planner, imported on first use, so that `--help` stays fast."""

    def parse(text: Any) -> Any:
        return getattr(import_module("mlcd.planners.functions.block"), name)(text)

    return parse


storages, functions, memory = map(_of_functions, ("storage_names", "function_range", "memory_range"))
"""Storages to exchange gradients, 's3,vm-ps'; numbers of functions, '1..50'; megabytes of each, '512..1769'."""


def _number(more_than: float, written: Any) -> float:
    try:
        value = math.nan if isinstance(written, bool) else float(written)
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value) or value <= more_than:
        above = "a number" if more_than == -math.inf else f"a number above {more_than:g}"
        raise ValueError(f"'{written}': expected {above}")
    return value


def _or_none(parse: Parser, written: Any) -> Any:
    return NO_LIMIT if str(written).lower() == NO_LIMIT else parse(written)


def _word(written: Any) -> str:
    if not isinstance(written, str) or not written or not written.isprintable():
        raise ValueError(f"'{written}': expected a word")
    return written


def _name(written: Any) -> str:
    """A name that is not a path."""
    if not isinstance(written, str) or not re.fullmatch(r"[\w-][\w. -]*", written):
        raise ValueError(f"'{written}': expected a name, such as cpu")
    return written


def _sizes(written: Any) -> dict[str, int]:
    if isinstance(written, Mapping):
        written = [f"{axis}={size}" for axis, size in written.items()]
    return dict(units.parse_size(str(each)) for each in (written if isinstance(written, list | tuple) else [written]))


def whole(least: int, most: float = math.inf) -> Parser:
    """A parser of whole numbers in this range."""
    return partial(units.parse_whole, least=least, most=most)


usd, duration = partial(_or_none, units.parse_usd), partial(_or_none, units.parse_duration)
_LIMITS: Parsers = {"budget": usd, "deadline": duration}
_CONFIDENCE: Parsers = {"confidence": units.parse_confidence}
_PROBE_LIMITS: Parsers = {"max_probe": usd, "max_hourly": usd}
_SEARCH: Parsers = {"on": _word, "method": _word, "seed": whole(0)}
_ASKED_OF_A_SERVICE: Parsers = {
    **{name: partial(_or_none, units.parse_latency) for name in CAPS},
    "min_rps": partial(_number, 0.0),
}
_ALLOCATION: Parsers = {
    "functions": functions,
    "memory": memory,
    "storage": storages,
    "concurrency": whole(1),
    "fresh": units.parse_flag,
}
_TABLES: dict[str, Parsers] = {
    "train": _LIMITS | _CONFIDENCE | _PROBE_LIMITS | _SEARCH | _ALLOCATION | {
        "nodes": units.parse_range,
        "instances": units.parse_patterns,
        "parallel": whole(1, MOST_PARALLEL),
        "early_look": units.parse_share,
        "target_loss": partial(_number, -math.inf),
    },
    "tune": _LIMITS | _SEARCH | _ALLOCATION | {
        "max_probe": usd,
        "trials": whole(1),
        "eta": whole(2),
        "epochs_per_stage": whole(1),
    },
    "scale": _LIMITS | _CONFIDENCE | _PROBE_LIMITS | {
        "workers": units.parse_range,
        "batch": units.parse_batches,
        "target": parse_target,
        "search": partial(units.parse_one_of, known=SEARCHES),
        "learning_rate": partial(units.parse_one_of, known=LEARNING_RATES),
        "on": _word,
        "instances": units.parse_patterns,
        "seed": whole(0),
    },
    "serve": _LIMITS | _PROBE_LIMITS | _SEARCH | _ASKED_OF_A_SERVICE | {
        "trials": whole(1),
        "knowledge": _name,
        "target": partial(units.parse_one_of, known=SERVERS),
        "shape": _sizes,
        "engine": _word,
        "endpoint": _word,
        "input_tokens": whole(1),
        "output_tokens": whole(1),
        "prompts": _word,
        "shared_prefix": whole(0),
        "sweep": parse_sweep,
        "price": units.parse_usd,
    },
    "what-if": _LIMITS | _CONFIDENCE | _ASKED_OF_A_SERVICE,
}  # fmt: skip
PARSERS: dict[str, Parsers] = {
    kind: {"goal": partial(units.parse_one_of, known=GOALS[kind]), **table} for kind, table in _TABLES.items()
}
"""For each kind of job, its options and their parsers."""
_RENAMED = {"storage": "storages", "shape": "shapes"}
"""Options whose values are passed on under another name."""


def parsers_of(kind: str) -> Mapping[str, Parser]:
    """The options of a kind of job. For a planner of another package: the usual ones and its own."""
    if kind in PARSERS:
        return PARSERS[kind]
    from mlcd.core.planner import planner_named

    planner = planner_named(kind)
    usual: Parsers = _LIMITS | _CONFIDENCE | _PROBE_LIMITS | _SEARCH
    own = {each.name: each.parse for each in planner.options}
    return {"goal": partial(units.parse_one_of, known=planner.goals), **usual, **own}


def parse_options(kind: str, words: Mapping[str, Any]) -> dict[str, Any]:
    """Parse these options; `UserError` for the first mistake.

    Names may have dashes, as on the command line (`early-look`), or underscores. None counts as not given.
    """
    from mlcd.core.planner import added_names

    if kind not in PARSERS and kind not in added_names():
        raise UnknownName("kind of job", str(kind), (*PARSERS, *added_names()))
    known = parsers_of(kind)
    chosen: dict[str, Any] = {}
    for option, value in words.items():
        name = str(option).replace("-", "_")
        if name not in known:
            raise UnknownName(f"option of {kind}", str(option)[:MOST_LETTERS], known)
        if value is None:
            continue
        _check_size(name, value)
        try:
            chosen[_RENAMED.get(name, name)] = known[name](value)
        except ValueError as error:
            raise UserError(f"{name} {error}") from None
    return chosen


def _check_size(name: str, value: Any) -> None:
    """Refuse values that are too long or nested."""
    if isinstance(value, Mapping):
        value = [item for pair in value.items() for item in pair]
    each = value if isinstance(value, list | tuple) else [value]
    if len(each) > MOST_EACH:
        raise UserError(f"{name}: {len(each)} values; at most {MOST_EACH} are allowed")
    for one in each:
        if not isinstance(one, str | int | float):
            raise UserError(f"{name}: expected a word or a number, or a list of them")
        if isinstance(one, str) and len(one) > MOST_LETTERS:
            raise UserError(f"{name}: {len(one)} characters; at most {MOST_LETTERS} are allowed")
