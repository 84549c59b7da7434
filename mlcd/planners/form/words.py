"""Options as people write them, for programs that have no command line: the same words, the same parsers.

`parsed("train", {"budget": "100", "deadline": "6h", "nodes": "1..8"})` is what the command line would make of
`mlcd train JOB --budget 100 --deadline 6h --nodes 1..8`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from mlcd.core.errors import UnknownName, UserError
from mlcd.core.job import parse_target
from mlcd.core.options import NO_LIMIT
from mlcd.core.units import (
    parse_batches,
    parse_confidence,
    parse_duration,
    parse_latency,
    parse_range,
    parse_share,
    parse_size,
    parse_usd,
)
from mlcd.planners.serve.caps import CAPS

Parser = Callable[[Any], Any]
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
"""Of a word, and of a list of them: more is not meant."""


def storages(text: Any) -> tuple[str, ...]:
    """Where functions meet: 's3,vm-ps'."""
    from mlcd.planners.functions.block import storage_names

    return storage_names(text)


def functions(text: Any) -> tuple[int, int]:
    """How many functions: '1..50'."""
    from mlcd.planners.functions.block import function_range

    return function_range(text)


def memory(text: Any) -> tuple[int, int]:
    """Megabytes of a function: '512..1769'."""
    from mlcd.planners.functions.block import memory_range

    return memory_range(text)


def _one_of(known: tuple[str, ...], written: Any) -> str:
    from mlcd.planners.jobfile.keys import nearest

    if written not in known:
        raise ValueError(f"'{written}': {nearest(str(written), known)}")
    return str(written)


def _whole(least: int, most: float, written: Any) -> int:
    """A whole number, as click's IntRange takes one."""
    ends = f"from {least} to {most}" if most < math.inf else f"of {least} or more"
    if isinstance(written, bool) or not re.fullmatch(r"[+-]?\d{1,18}", str(written).strip()):
        raise ValueError(f"'{written}': expected a whole number {ends}")
    if not least <= int(written) <= most:
        raise ValueError(f"'{written}': expected a whole number {ends}")
    return int(written)


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
    """A name, and never a path."""
    if not isinstance(written, str) or not re.fullmatch(r"[\w-][\w. -]*", written):
        raise ValueError(f"'{written}': expected a name, such as cpu")
    return written


def _flag(written: Any) -> bool:
    if not isinstance(written, bool):
        raise ValueError(f"'{written}': expected true or false")
    return written


def _patterns(written: Any) -> tuple[str, ...]:
    return tuple(_word(each) for each in (written if isinstance(written, list | tuple) else [written]))


def _sizes(written: Any) -> dict[str, int]:
    if isinstance(written, Mapping):
        written = [f"{axis}={size}" for axis, size in written.items()]
    return dict(parse_size(str(each)) for each in (written if isinstance(written, list | tuple) else [written]))


def whole(least: int, most: float = math.inf) -> Parser:
    """Reads a whole number between these ends."""
    return partial(_whole, least, most)


usd, duration = partial(_or_none, parse_usd), partial(_or_none, parse_duration)
_LIMITS: dict[str, Parser] = {"budget": usd, "deadline": duration}
_CONFIDENCE: dict[str, Parser] = {"confidence": parse_confidence}
_PROBE_LIMITS: dict[str, Parser] = {"max_probe": usd, "max_hourly": usd}
_ASKED_OF_A_SERVICE: dict[str, Parser] = {
    **{name: partial(_or_none, parse_latency) for name in CAPS},
    "min_rps": partial(_number, 0.0),
}
_ALLOCATION: dict[str, Parser] = {
    "functions": functions,
    "memory": memory,
    "storage": storages,
    "concurrency": whole(1),
    "fresh": _flag,
}
_SEARCH: dict[str, Parser] = {"on": _word, "method": _word, "seed": whole(0)}
_TRAIN: dict[str, Parser] = {
    **_LIMITS,
    **_CONFIDENCE,
    **_PROBE_LIMITS,
    **_SEARCH,
    "nodes": parse_range,
    "instances": _patterns,
    "parallel": whole(1, MOST_PARALLEL),
    "early_look": parse_share,
    "target_loss": partial(_number, -math.inf),
    **_ALLOCATION,
}
_TUNE: dict[str, Parser] = {
    **_LIMITS,
    "max_probe": usd,
    **_SEARCH,
    "trials": whole(1),
    "eta": whole(2),
    "epochs_per_stage": whole(1),
    **_ALLOCATION,
}
_SCALE: dict[str, Parser] = {
    **_LIMITS,
    **_CONFIDENCE,
    **_PROBE_LIMITS,
    "workers": parse_range,
    "batch": parse_batches,
    "target": parse_target,
    "search": partial(_one_of, SEARCHES),
    "learning_rate": partial(_one_of, LEARNING_RATES),
    "on": _word,
    "instances": _patterns,
    "seed": whole(0),
}
_SERVE: dict[str, Parser] = {
    **_LIMITS,
    **_PROBE_LIMITS,
    **_SEARCH,
    **_ASKED_OF_A_SERVICE,
    "trials": whole(1),
    "knowledge": _name,
    "shape": _sizes,
}
_TABLES = {
    "train": _TRAIN,
    "tune": _TUNE,
    "scale": _SCALE,
    "serve": _SERVE,
    "what-if": {**_LIMITS, **_CONFIDENCE, **_ASKED_OF_A_SERVICE},
}
WORDS: dict[str, dict[str, Parser]] = {
    kind: {"goal": partial(_one_of, GOALS[kind]), **table} for kind, table in _TABLES.items()
}
"""For each kind of question: its options, and what reads each of them."""
_FIELDS = {"storage": "storages", "shape": "shapes"}
"""Where an option is told under another name than it is kept."""


def words_of(kind: str) -> Mapping[str, Parser]:
    """The options of a kind of question; of a planner of another package, the usual ones and its own."""
    if kind in WORDS:
        return WORDS[kind]
    from mlcd.core.planner import planner_named

    planner, usual = planner_named(kind), {**_LIMITS, **_CONFIDENCE, **_PROBE_LIMITS, **_SEARCH}
    return {"goal": partial(_one_of, planner.goals), **usual, **{each.name: each.parse for each in planner.options}}


def parsed(kind: str, words: Mapping[str, Any]) -> dict[str, Any]:
    """The values of these options, under the names that the builders of jobs know; `UserError` for the first mistake.

    Names may be written as on the command line (`early-look`) or with an underscore. None is as good as nothing.
    """
    from mlcd.core.planner import added_names

    if kind not in WORDS and kind not in added_names():
        raise UnknownName("kind of job", str(kind), (*WORDS, *added_names()))
    known = words_of(kind)
    chosen: dict[str, Any] = {}
    for said, value in words.items():
        name = str(said).replace("-", "_")
        if name not in known:
            raise UnknownName(f"option of {kind}", str(said)[:MOST_LETTERS], known)
        if value is None:
            continue
        _check_size(name, value)
        try:
            chosen[_FIELDS.get(name, name)] = known[name](value)
        except ValueError as error:
            raise UserError(f"{name} {error}") from None
    return chosen


def _check_size(name: str, value: Any) -> None:
    """Nothing that is long, and lists of plain words alone."""
    if isinstance(value, Mapping):
        value = [item for pair in value.items() for item in pair]
    each = value if isinstance(value, list | tuple) else [value]
    if len(each) > MOST_EACH:
        raise UserError(f"{name}: {len(each)} values; at most {MOST_EACH} are read")
    for one in each:
        if not isinstance(one, str | int | float):
            raise UserError(f"{name}: expected a word or a number, or a list of them")
        if isinstance(one, str) and len(one) > MOST_LETTERS:
            raise UserError(f"{name}: {len(one)} letters; at most {MOST_LETTERS} are read")
