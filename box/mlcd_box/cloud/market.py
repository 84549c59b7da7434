"""A spot market that is replayed: how many machines each zone has, by the hour of a trace, scaled to seconds.

A trace is a table with a line for each tick and a column for each zone, as the project's recorded markets have it. An
empty cell is a round that did not run: the one before it goes on, and so does the last line. Zones without a column
always have spot machines, and machines on demand are none of the trace's.

Machines that a zone will no longer have get their notice before that tick, and none is given out that would.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import inf
from pathlib import Path


@dataclass(frozen=True)
class Trace:
    """Machines by zone and tick. `began_s`: when its first tick was, in seconds since 1970."""

    zones: Mapping[str, Sequence[int]]
    tick_s: float
    notice_s: float
    began_s: float

    def has(self, zone: str, at_s: float) -> float:
        """How many spot machines the zone has then."""
        counts = self.zones.get(zone)
        if not counts:
            return inf
        tick = int((at_s - self.began_s) // self.tick_s)
        return counts[min(max(0, tick), len(counts) - 1)]

    def gives(self, zone: str, now_s: float) -> float:
        """How many it gives to who asks now: those that will not get their notice at once."""
        return min(self.has(zone, now_s), self.has(zone, now_s + self.notice_s))


@dataclass(frozen=True)
class Market:
    """The trace of a box, in a file, so that it can begin at any time."""

    path: Path

    def trace(self) -> Trace | None:
        """None: every zone has spot machines."""
        try:
            return Trace(**json.loads(self.path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None

    def replay(self, trace: Trace, now_s: float) -> None:
        """Begin with its first tick now."""
        beside = self.path.with_suffix(".new")
        beside.write_text(json.dumps(asdict(replace(trace, began_s=now_s))), encoding="utf-8")
        beside.replace(self.path)


def read_trace(path: Path, tick_s: float, notice_s: float, zones: Sequence[str] = (), first: int = 0) -> Trace:
    """A trace from its tick `first` on. `zones`: other names for its first columns; further columns are left out."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    columns = [name for name in (rows[0] if rows else {}) if name != "tick"]
    named = dict(zip(zones, columns, strict=False)) or {name: name for name in columns}
    found: dict[str, list[int]] = {zone: [] for zone in named}
    for row in rows:
        for zone, column in named.items():
            before = found[zone][-1] if found[zone] else 0
            found[zone].append(int(row[column]) if row[column] else before)
    return Trace({zone: counts[first:] for zone, counts in found.items()}, tick_s, notice_s, 0.0)
