"""The keys of a job file with their values in words, from the job as the ledger stored it (options included)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from math import isclose
from typing import Any
from zlib import crc32

from mlcd.core.ledger.entries import Started, to_json
from mlcd.core.units import format_duration, format_usd, parse_count
from mlcd.reports.view.summary import place_words

KEYS = {
    "work_samples": "work",
    "goal.objective": "goal",
    "goal.budget_usd": "budget",
    "goal.deadline_s": "deadline",
    "goal.confidence": "confidence",
    "hints.global_batch": "batch",
    "hints.memory_gb": "memory",
    "search.max_probe_usd": "search.max_probe",
    "search.max_hourly_usd": "search.max_hourly",
    "dataset_samples": "work.dataset",
    "egress_gb": "egress",
    "checkpoint_gb": "checkpoint_size",
}
"""Keys that the job file calls otherwise than the ledger. The prefixes `hints.` and `task.` are dropped besides."""
LEFT_OUT = {"goal.stated", "folder", "search.max_probe_stated", "task.name"}
"""Keys that follow from others, or that name folders of one machine."""
LONGEST_TEXT = 120
"""Characters of a value that is neither a word nor a number."""


def _count(value: float) -> str:
    """'25.6M', or all digits where that would round: '25,557,032'."""
    for size, letter in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if value >= size and isclose(parse_count(short := f"{value / size:.4g}{letter}"), value, rel_tol=1e-12):
            return short
    return f"{value:,.12g}"


FORMATS: dict[str, Callable[[Any], str]] = {
    "budget": format_usd,
    "deadline": format_duration,
    "work": _count,
    "work.dataset": _count,
    "parameters": _count,
    "flops_per_sample": lambda flops: _count(flops).replace("B", "G"),
    "on": place_words,
    "search.nodes": lambda ends: "..".join(map(str, ends)),
    "search.max_probe": lambda usd: "none" if usd == "Infinity" else format_usd(usd),
    "search.max_hourly": format_usd,
}
"""How values are shown that are more than a word or a plain number."""


def keys_of(started: Started) -> dict[str, str]:
    """The keys that the job sets, each with its value in words."""
    job = json.loads(to_json(started))["job"]
    ask = job.pop("ask") or {"kind": ""}
    planner = ask.pop("kind").partition(".")[0]  # as the planner's block is called in the job file
    values = {}
    for path, value in (*_leaves(job, ""), *_leaves(ask, planner)):
        if path not in LEFT_OUT and value not in (None, "", [], {}):
            key = KEYS.get(path, path.removeprefix("hints.").removeprefix("task."))
            values[key] = FORMATS.get(key, _words)(value)
    return values


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The values of all keys, with their paths."""
    if not isinstance(value, dict) or not value:
        yield path, value
        return
    for key, inner in value.items():
        yield from _leaves(inner, f"{path}.{key}" if path else key)


def _words(value: Any) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case int() | float():
            return f"{value:.12g}"
        case list() if all(isinstance(each, str | int | float) for each in value):
            return ", ".join(map(_words, value))
        case str():
            return value
    text = json.dumps(value)  # such as a price list; with a checksum, since the part that is cut off may differ
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]} … ({crc32(text.encode()):x})"
