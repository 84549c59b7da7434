"""Recorded spot markets: what could be had in each zone, tick by tick, and at which price.

A folder holds

    NAME.csv          a column `tick` (0, 1, 2 ...), then one for each zone: how many machines a try got; empty where
                      nobody tried
    NAME_prices.csv   zone, tick, spot_usd_h: a row where the spot price changes. Optional
    traces.csv        trace, zone, requested (machines asked for), tick_s ...
    prices.csv        trace, zone, machine, gpus, spot_usd_h (empty: see NAME_prices.csv), ondemand_usd_h

Machines asked for together make two markets: with `any` a zone is up if one machine could be had, and costs one
machine of prices.csv; with `all` it is up if all could be had, and costs requested / gpus of them (as many as asked
for, if gpus is 1). An empty cell repeats the look before it; ticks before the first look of all zones are not used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mlcd.core.csv_table import Line, read_table
from mlcd.core.errors import UserError

NOT_TRACES = {"traces", "prices"}
ASKED = ("trace", "zone", "requested", "tick_s")
PRICED = ("trace", "zone", "machine", "gpus", "spot_usd_h", "ondemand_usd_h")


@dataclass(frozen=True)
class TracedMarket:
    """One set of zones in which one kind of machine is asked for."""

    set: str
    """The file's name."""
    machine: str
    need: str
    """`any` or `all`."""
    zones: tuple[str, ...]
    tick_h: float
    first_tick: int
    """The tick of the first row: those before it have no look."""
    up: NDArray[np.bool_]
    """Rows are ticks, columns zones."""
    spot_usd_h: NDArray[np.float64]
    on_demand_usd_h: tuple[float, ...]

    @property
    def name(self) -> str:
        """What tells it from all others of its folder."""
        return f"{self.set}, {self.machine}, {self.need} in {', '.join(self.zones)}"

    def only(self, zones: Sequence[str]) -> TracedMarket:
        """The same with some of the zones."""
        kept = [self.zones.index(zone) for zone in zones]
        on_demand = tuple(self.on_demand_usd_h[i] for i in kept)
        return replace(
            self,
            zones=tuple(zones),
            up=self.up[:, kept],
            spot_usd_h=self.spot_usd_h[:, kept],
            on_demand_usd_h=on_demand,
        )

    def since(self, start_h: float) -> TracedMarket:
        """The same without what is before that time; its ticks count from there."""
        ticks = round(start_h / self.tick_h)
        later = self.between(max(0, ticks - self.first_tick), len(self.up))
        return replace(later, first_tick=max(0, self.first_tick - ticks))

    def between(self, first: int, last: int) -> TracedMarket:
        """The same with some of the rows."""
        rows = slice(first, last)
        return replace(self, first_tick=self.first_tick + first, up=self.up[rows], spot_usd_h=self.spot_usd_h[rows])


def read_markets(folder: Path) -> tuple[list[TracedMarket], list[str]]:
    """All markets of a folder, and a sentence about each that cannot be used."""
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder")
    asked, prices = _by_trace(folder / "traces.csv", ASKED), _by_trace(folder / "prices.csv", PRICED)
    markets: list[TracedMarket] = []
    left_out: list[str] = []
    for path in sorted(folder.glob("*.csv")):
        if path.stem in NOT_TRACES or path.stem not in asked:
            continue
        for machine in dict.fromkeys(line.text("machine") for line in prices.get(path.stem, ())):
            lines = [line for line in prices[path.stem] if line.cells["machine"] == machine]
            found = list(_markets(path, asked[path.stem][0], lines))
            markets += found
            if not found:
                left_out.append(f"{path.stem}, {machine}: no spot price is known")
    if not markets:
        raise UserError(f"{folder}: no market with prices: traces.csv and prices.csv say which files are traces")
    return markets, left_out


def read_series(path: Path, tick_s: float) -> tuple[list[str], float, int, NDArray[np.bool_]]:
    """One file without prices: its columns, hours in a tick, the first tick of all looks, and when any machine was
    there."""
    columns, counts = _counts(path)
    first = int(np.flatnonzero(~np.isnan(counts).any(axis=1))[0])
    return columns, tick_s / 3600, first, _repeat_empty(counts[first:]) >= 1


def _markets(path: Path, asked: Line, lines: Sequence[Line]) -> Iterator[TracedMarket]:
    """A market for each need, of the zones that have a price."""
    columns, counts = _counts(path)
    changes = _price_changes(path.with_name(f"{path.stem}_prices.csv"))
    priced = {line.text("zone"): line for line in lines if line.cells["spot_usd_h"] or line.cells["zone"] in changes}
    zones = [zone for zone in priced if zone in columns]
    if not zones:
        return
    counts = counts[:, [columns.index(zone) for zone in zones]]
    known = np.flatnonzero(~np.isnan(counts).any(axis=1))
    if not len(known):
        return
    first = int(known[0])
    counts = _repeat_empty(counts[first:])
    requested, gpus = asked.count("requested"), lines[0].number("gpus", above_zero=True)
    ticks = len(counts) + first
    spot = np.column_stack([_prices(priced[zone], changes.get(zone, []), ticks)[first:] for zone in zones])
    on_demand = np.array([priced[zone].number("ondemand_usd_h", above_zero=True) for zone in zones])
    for need, least, machines in (("any", 1, 1.0), ("all", requested, max(1.0, requested / gpus))):
        if need == "all" and requested == 1:
            continue
        yield TracedMarket(
            path.stem,
            lines[0].cells["machine"],
            need,
            tuple(zones),
            asked.number("tick_s", above_zero=True) / 3600,
            first,
            counts >= least,
            spot * machines,
            tuple((on_demand * machines).tolist()),
        )


def _lines(path: Path, columns: Sequence[str]) -> Iterator[Line]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeError as error:
        raise UserError(f"{path}: not readable as CSV: {error}") from None
    return read_table(text, name=str(path), columns=columns, complain=UserError)


def _by_trace(path: Path, columns: Sequence[str]) -> dict[str, list[Line]]:
    found: dict[str, list[Line]] = {}
    for line in _lines(path, columns):
        found.setdefault(line.text("trace"), []).append(line)
    return found


def _counts(path: Path) -> tuple[list[str], NDArray[np.float64]]:
    """The zones, and a row for each tick; NaN where nobody tried."""
    lines = list(_lines(path, ("tick",)))
    for tick, line in enumerate(lines):
        if line.count("tick") != tick:
            raise line.error(f"tick '{line.cells['tick']}': expected {tick}; ticks count from 0, without a gap")
    if not lines:
        raise UserError(f"{path}: no ticks; expected a row for each")
    zones = [column for column in lines[0].cells if column != "tick"]
    return zones, np.array([[line.count(zone) if line.cells[zone] else np.nan for zone in zones] for line in lines])


def _repeat_empty(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    rows = np.where(np.isnan(counts), 0, np.arange(len(counts))[:, None])
    return counts[np.maximum.accumulate(rows, axis=0), np.arange(counts.shape[1])]


def _price_changes(path: Path) -> dict[str, list[tuple[int, float]]]:
    found: dict[str, list[tuple[int, float]]] = {}
    if path.exists():
        for line in _lines(path, ("zone", "tick", "spot_usd_h")):
            change = line.count("tick"), line.number("spot_usd_h", above_zero=True)
            found.setdefault(line.text("zone"), []).append(change)
    return found


def _prices(line: Line, changes: Sequence[tuple[int, float]], ticks: int) -> NDArray[np.float64]:
    prices = np.full(ticks, line.number("spot_usd_h", above_zero=True) if line.cells["spot_usd_h"] else changes[0][1])
    for tick, usd_h in sorted(changes):
        prices[tick:] = usd_h
    return prices
