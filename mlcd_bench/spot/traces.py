"""Recorded spot markets: what could be had in each zone, tick by tick, and at which price.

A folder holds

    NAME.csv          a column `tick`, then one for each zone: how many machines a try got; empty where nobody tried
    NAME_prices.csv   zone, tick, spot_usd_h: a row where the spot price changes. Optional
    traces.csv        trace, zone, requested (machines asked for), tick_s ...
    prices.csv        trace, zone, machine, gpus, spot_usd_h (empty: see NAME_prices.csv), ondemand_usd_h

Machines asked for together make two markets: with `any` a zone is up if one machine could be had, and costs one
machine of prices.csv; with `all` it is up if all could be had, and costs requested / gpus of them (as many as asked
for, if gpus is 1). An empty cell repeats the look before it; ticks before the first look of all zones are not used.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mlcd.core.errors import UserError

NOT_TRACES = {"traces", "prices"}
Row = Mapping[str, str]


@dataclass(frozen=True)
class Market:
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

    def only(self, zones: Sequence[str]) -> Market:
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

    def between(self, first: int, last: int) -> Market:
        """The same with some of the rows."""
        rows = slice(first, last)
        return replace(self, first_tick=self.first_tick + first, up=self.up[rows], spot_usd_h=self.spot_usd_h[rows])


def read_markets(folder: Path) -> tuple[list[Market], list[str]]:
    """All markets of a folder, and a sentence about each that cannot be used."""
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder")
    asked, prices = _by_trace(folder / "traces.csv"), _by_trace(folder / "prices.csv")
    markets: list[Market] = []
    left_out: list[str] = []
    for path in sorted(folder.glob("*.csv")):
        if path.stem in NOT_TRACES or path.stem not in asked:
            continue
        for machine in dict.fromkeys(row["machine"] for row in prices.get(path.stem, ())):
            rows = [row for row in prices[path.stem] if row["machine"] == machine]
            found = list(_markets(path, asked[path.stem][0], rows))
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


def _markets(path: Path, asked: Row, rows: Sequence[Row]) -> Iterator[Market]:
    """A market for each need, of the zones that have a price."""
    columns, counts = _counts(path)
    changes = _price_changes(path.with_name(f"{path.stem}_prices.csv"))
    zones = [row["zone"] for row in rows if row["zone"] in columns]
    priced = {row["zone"]: row for row in rows if row["spot_usd_h"] or row["zone"] in changes}
    zones = [zone for zone in zones if zone in priced]
    if not zones:
        return
    counts = counts[:, [columns.index(zone) for zone in zones]]
    known = np.flatnonzero(~np.isnan(counts).any(axis=1))
    if not len(known):
        return
    first = int(known[0])
    counts = _repeat_empty(counts[first:])
    requested, gpus = int(asked["requested"]), int(rows[0]["gpus"])
    ticks = len(counts) + first
    spot = np.column_stack([_prices(priced[zone], changes.get(zone, []), ticks)[first:] for zone in zones])
    on_demand = np.array([float(priced[zone]["ondemand_usd_h"]) for zone in zones])
    for need, least, machines in (("any", 1, 1.0), ("all", requested, max(1.0, requested / gpus))):
        if need == "all" and requested == 1:
            continue
        yield Market(
            path.stem,
            rows[0]["machine"],
            need,
            tuple(zones),
            float(asked["tick_s"]) / 3600,
            first,
            counts >= least,
            spot * machines,
            tuple((on_demand * machines).tolist()),
        )


def _by_trace(path: Path) -> dict[str, list[Row]]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["trace"], []).append(row)
    return found


def _counts(path: Path) -> tuple[list[str], NDArray[np.float64]]:
    with path.open(newline="", encoding="utf-8") as file:
        header, *lines = csv.reader(file)
    if not lines or header[0] != "tick":
        raise UserError(f"{path}: the first column is to be `tick`, with a row for each tick")
    counts = np.array([[float(cell) if cell else np.nan for cell in line[1:]] for line in lines])
    return header[1:], counts


def _repeat_empty(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    rows = np.where(np.isnan(counts), 0, np.arange(len(counts))[:, None])
    return counts[np.maximum.accumulate(rows, axis=0), np.arange(counts.shape[1])]


def _price_changes(path: Path) -> dict[str, list[tuple[int, float]]]:
    if not path.exists():
        return {}
    found: dict[str, list[tuple[int, float]]] = {}
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["zone"], []).append((int(row["tick"]), float(row["spot_usd_h"])))
    return found


def _prices(row: Row, changes: Sequence[tuple[int, float]], ticks: int) -> NDArray[np.float64]:
    prices = np.full(ticks, float(row["spot_usd_h"]) if row["spot_usd_h"] else changes[0][1])
    for tick, usd_h in sorted(changes):
        prices[tick:] = usd_h
    return prices
