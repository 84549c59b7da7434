"""Recorded spot markets: how many machines were available in each zone, tick by tick, and at which price.

A folder holds

    NAME.csv          a column `tick` (0, 1, 2 ...; it may begin later and leave some out), then one for each zone:
                      how many machines a launch attempt got; empty if nobody tried
    NAME_prices.csv   zone, tick, spot_usd_h: a row for each change of a spot price. Optional
    traces.csv        trace, zone, requested (number of machines), tick_s ...
    prices.csv        trace, zone, machine, gpus, spot_usd_h (empty: see NAME_prices.csv), ondemand_usd_h

A trace of several requested machines makes two markets. In `any` a zone is up if one machine was available, and costs
one machine of prices.csv. In `all` it is up if all of them were, and costs requested / gpus machines (the requested
number if gpus is 1). An empty cell repeats the previous observation; ticks before the first observation of every zone
are not used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, inf
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mlcd.core.csv_table import Line, read_table
from mlcd.core.errors import UserError

NOT_TRACES = {"traces", "prices"}
TRACE_COLUMNS = ("trace", "zone", "requested", "tick_s")
PRICE_COLUMNS = ("trace", "zone", "machine", "gpus", "spot_usd_h", "ondemand_usd_h")
MOST_TICKS = 1_000_000
"""In a file: three years of one observation every hundred seconds."""


@dataclass(frozen=True)
class TracedMarket:
    """The recorded availability of one kind of machine in a set of zones."""

    set: str
    """The file's name."""
    machine: str
    need: str
    """`any` or `all`."""
    zones: tuple[str, ...]
    tick_h: float
    first_tick: int
    """The tick of the first row, as counted in the file. Earlier ticks have no observations."""
    up: NDArray[np.bool_]
    """Rows are ticks, columns zones."""
    spot_usd_h: NDArray[np.float64]
    on_demand_usd_h: tuple[float, ...]
    file_tick: int = 0
    """The first tick of the file, from which its time is counted."""
    machines: int = 1
    """The requested number."""

    @property
    def ticks_before(self) -> int:
        """Ticks of the file before the first row."""
        return self.first_tick - self.file_tick

    @property
    def name(self) -> str:
        """Unique within its folder."""
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
        """The same without earlier ticks; time counts from there."""
        ticks = round(start_h / self.tick_h)
        later = self.between(max(0, ticks - self.ticks_before), len(self.up))
        return replace(later, first_tick=max(0, self.ticks_before - ticks), file_tick=0)

    def between(self, first: int, last: int) -> TracedMarket:
        """The same with only these rows."""
        rows = slice(first, last)
        return replace(self, first_tick=self.first_tick + first, up=self.up[rows], spot_usd_h=self.spot_usd_h[rows])


def read_markets(folder: Path) -> tuple[list[TracedMarket], list[str]]:
    """All markets of a folder, and a message about each trace that cannot be used."""
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder")
    traces, prices = _by_trace(folder / "traces.csv", TRACE_COLUMNS), _by_trace(folder / "prices.csv", PRICE_COLUMNS)
    markets: list[TracedMarket] = []
    left_out: list[str] = [
        f"{name}: there is no {name}.csv" for name in traces if not (folder / f"{name}.csv").exists()
    ]
    for path in sorted(folder.glob("*.csv")):
        name = path.stem
        if name in NOT_TRACES or name.endswith("_prices"):
            continue
        if name not in traces:
            left_out += [f"{name}: traces.csv has no row for it"] if _is_trace(path) else []
        elif name not in prices:
            left_out.append(f"{name}: prices.csv has no row for it")
        else:
            of_file, unusable = _markets_of(path, traces[name][0], prices[name])
            markets, left_out = markets + of_file, left_out + unusable
    if not markets:
        raise UserError(f"{folder}: no market with prices: traces.csv and prices.csv say which files are traces")
    return markets, sorted(left_out)


def read_series(path: Path, tick_s: float) -> tuple[list[str], float, int, NDArray[np.bool_]]:
    """A file without prices: its columns, hours in a tick, the first tick with observations of all columns, and whether
    any machine was available."""
    columns, tick, counts = _counts(path)
    first = int(_first_observed(counts).max())
    return columns, tick_s / 3600, tick + first, _repeat_empty(counts[first:]) >= 1


def _markets_of(path: Path, trace: Line, prices: Sequence[Line]) -> tuple[list[TracedMarket], list[str]]:
    """The markets of a file, and messages about what cannot be used."""
    columns, tick, counts = _counts(path)
    changes = _price_changes(path.with_name(f"{path.stem}_prices.csv"))
    markets: list[TracedMarket] = []
    without = [zone for zone in columns if all(zone != line.cells["zone"] for line in prices)]
    left_out = [f"{path.stem}: prices.csv has no row for {', '.join(without)}"] if without else []
    first_observed = dict(zip(columns, _first_observed(counts), strict=True))
    for machine in dict.fromkeys(line.text("machine") for line in prices):
        of_machine = {line.text("zone"): line for line in prices if line.cells["machine"] == machine}
        priced = [zone for zone, line in of_machine.items() if line.cells["spot_usd_h"] or zone in changes]
        zones = [zone for zone in priced if first_observed.get(zone, inf) < inf]
        if unobserved := [zone for zone in priced if zone not in zones]:
            left_out.append(f"{path.stem}, {machine}: no observations of {', '.join(unobserved)}")
        if not priced:
            left_out.append(f"{path.stem}, {machine}: no spot price is known")
        elif unpriced := [zone for zone in of_machine if zone not in priced]:
            left_out.append(f"{path.stem}, {machine}: no spot price is known in {', '.join(unpriced)}")
        if zones:
            first = int(max(first_observed[zone] for zone in zones))
            filled = _repeat_empty(counts[first:, [columns.index(zone) for zone in zones]])
            lines = [of_machine[zone] for zone in zones]
            spot = [_prices(line, changes.get(line.cells["zone"], []), tick + first, len(filled)) for line in lines]
            markets += _markets(path.stem, trace, lines, (tick, first), filled, np.column_stack(spot))
    return markets, left_out


def _markets(
    name: str,
    trace: Line,
    lines: Sequence[Line],
    first: tuple[int, int],
    counts: NDArray[np.float64],
    spot: NDArray[np.float64],
) -> Iterator[TracedMarket]:
    """A market for each need. `lines`: prices, by zone; `first`: the file's first tick, and unobserved ticks."""
    requested, gpus = trace.count("requested"), lines[0].number("gpus", above_zero=True)
    on_demand = np.array([line.number("ondemand_usd_h", above_zero=True) for line in lines])
    for need, least, machines in (("any", 1, 1.0), ("all", requested, max(1.0, requested / gpus))):
        if need == "all" and requested == 1:
            continue
        yield TracedMarket(
            name,
            lines[0].cells["machine"],
            need,
            tuple(line.cells["zone"] for line in lines),
            trace.number("tick_s", above_zero=True) / 3600,
            sum(first),
            counts >= least,
            spot * machines,
            tuple((on_demand * machines).tolist()),
            first[0],
            max(1, ceil(requested / gpus)),
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
    by_trace: dict[str, list[Line]] = {}
    for line in _lines(path, columns):
        by_trace.setdefault(line.text("trace"), []).append(line)
    return by_trace


def _is_trace(path: Path) -> bool:
    """Whether the file has ticks. A folder may have other tables."""
    with path.open(encoding="utf-8", errors="replace") as file:
        return "tick" in file.readline().strip().split(",")


def _counts(path: Path) -> tuple[list[str], int, NDArray[np.float64]]:
    """The zones, the first tick, and a row for each tick from there; NaN if nobody tried."""
    ticks: list[int] = []
    rows: list[list[float]] = []
    zones: list[str] = []
    for line in _lines(path, ("tick",)):
        zones = zones or [column for column in line.cells if column != "tick"]
        tick = line.count("tick")
        if ticks and tick <= ticks[-1]:
            raise line.error(f"tick '{line.cells['tick']}': must be above the previous one, {ticks[-1]}")
        if ticks and tick - ticks[0] >= MOST_TICKS:
            raise line.error(
                f"tick '{line.cells['tick']}': more than {MOST_TICKS:,} ticks after the first one, {ticks[0]}"
            )
        ticks.append(tick)
        rows.append([line.count(zone) if line.cells[zone] else np.nan for zone in zones])
    if not ticks:
        raise UserError(f"{path}: no ticks; expected a row for each")
    counts = np.full((ticks[-1] - ticks[0] + 1, len(zones)), np.nan)
    counts[np.array(ticks) - ticks[0]] = rows
    return zones, ticks[0], counts


def _first_observed(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """The row of the first observation of each zone; infinite if there is none."""
    observed = ~np.isnan(counts)
    return np.where(observed.any(axis=0), observed.argmax(axis=0), inf)


def _repeat_empty(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    rows = np.where(np.isnan(counts), 0, np.arange(len(counts))[:, None])
    return counts[np.maximum.accumulate(rows, axis=0), np.arange(counts.shape[1])]


def _price_changes(path: Path) -> dict[str, list[tuple[int, float]]]:
    changes: dict[str, list[tuple[int, float]]] = {}
    if path.exists():
        for line in _lines(path, ("zone", "tick", "spot_usd_h")):
            change = line.count("tick"), line.number("spot_usd_h", above_zero=True)
            changes.setdefault(line.text("zone"), []).append(change)
    return changes


def _prices(line: Line, changes: Sequence[tuple[int, float]], first: int, ticks: int) -> NDArray[np.float64]:
    """The spot price in each row. `first`: the tick of the first row."""
    changes = sorted(changes)
    prices = np.full(ticks, line.number("spot_usd_h", above_zero=True) if line.cells["spot_usd_h"] else changes[0][1])
    for tick, usd_h in changes:
        prices[max(0, tick - first) :] = usd_h
    return prices
