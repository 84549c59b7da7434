"""What differs between jobs, by the keys of the job file. A job is read as its ledger froze it, with all options."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any
from zlib import crc32

from mlcd.core.ledger.entries import Started, to_json
from mlcd.core.units import format_duration, format_usd
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
"""Where the job file has another word than the ledger. `hints.` has none at all, and `task.` is what stands beside."""
UNTOLD = {"goal.stated", "folder", "search.max_probe_stated", "task.name"}
"""What follows from the rest, or is about a machine's own folders."""
LONGEST_LIST = 120
"""Letters of what is neither a word nor a number."""
WORDS: dict[str, Callable[[Any], str]] = {
    "budget": format_usd,
    "deadline": format_duration,
    "on": place_words,
    "search.nodes": lambda ends: "..".join(map(str, ends)),
    "search.max_probe": lambda usd: "none" if usd == "Infinity" else format_usd(usd),
    "search.max_hourly": format_usd,
}


def keys_of(started: Started) -> dict[str, str]:
    """What the job says, by key, in words; what it does not say is not there."""
    job = json.loads(to_json(started))["job"]
    ask = job.pop("ask") or {"kind": ""}
    planner = ask.pop("kind").partition(".")[0]  # as the planner's block is called in the job file
    found = {}
    for path, value in (*_leaves(job, ""), *_leaves(ask, planner)):
        if path not in UNTOLD and value not in (None, "", [], {}):
            key = KEYS.get(path, path.removeprefix("hints.").removeprefix("task."))
            found[key] = WORDS.get(key, _words)(value)
    return found


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
    text = json.dumps(value)  # of the planner's own facts, such as a price list: where it differs is more than is shown
    return text if len(text) <= LONGEST_LIST else f"{text[:LONGEST_LIST]} … ({crc32(text.encode()):x})"
