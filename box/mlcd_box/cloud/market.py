"""Replays a recorded spot market: how many spot machines each zone has over time. A tick of the trace is some seconds.

A trace is a table with a line for each tick and a column for each zone, in the format of the project's recorded
markets. An empty cell, where nothing was measured, repeats the one before; after the last line, that line holds. Zones
without a column always have spot machines. On-demand machines are not affected.

If a zone will lose machines at a tick, they get their notice before it; orders that would get a notice at once are
refused.
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
    """Machines by zone and tick. `began_s`: Unix time of its first tick."""

    zones: Mapping[str, Sequence[int]]
    tick_s: float
    notice_s: float
    began_s: float

    def machines(self, zone: str, at_s: float) -> float:
        """The number of spot machines that the zone has at this time."""
        counts = self.zones.get(zone)
        if not counts:
            return inf
        tick = int((at_s - self.began_s) // self.tick_s)
        return counts[min(max(0, tick), len(counts) - 1)]

    def rentable(self, zone: str, now_s: float) -> float:
        """The number of spot machines that can be rented now: those that would not get their notice at once."""
        return min(self.machines(zone, now_s), self.machines(zone, now_s + self.notice_s))


@dataclass(frozen=True)
class Market:
    """The spot market of a box. Its trace is in a file, so that it can start at any time."""

    path: Path

    def trace(self) -> Trace | None:
        """The trace that is replayed; None if every zone has spot machines."""
        try:
            return Trace(**json.loads(self.path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None

    def replay(self, trace: Trace, now_s: float) -> None:
        """Start to replay a trace: its first tick is now."""
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(asdict(replace(trace, began_s=now_s))), encoding="utf-8")
        new.replace(self.path)


def read_trace(path: Path, tick_s: float, notice_s: float, zones: Sequence[str] = (), first: int = 0) -> Trace:
    """Read a trace from tick `first` on. `zones`: zones for its first columns; the other columns are left out."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    columns = [name for name in (rows[0] if rows else {}) if name != "tick"]
    named = dict(zip(zones, columns, strict=False)) or {name: name for name in columns}
    by_zone: dict[str, list[int]] = {zone: [] for zone in named}
    for row in rows:
        for zone, column in named.items():
            before = by_zone[zone][-1] if by_zone[zone] else 0
            by_zone[zone].append(int(row[column]) if row[column] else before)
    return Trace({zone: counts[first:] for zone, counts in by_zone.items()}, tick_s, notice_s, 0.0)
