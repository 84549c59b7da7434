"""Is the stated wait for scarce on-demand machines long enough? python benchmarks/spot_capacity.py [DIR]

No dataset records the availability of on-demand machines, so recorded spot markets stand in for them: all nodes in one
zone, or none. At several moments a wait is stated from all earlier observations that should be enough for 99 % of
starts. Then every tick of the next two days is a start: did one of the zones have machines within the wait? Starts
are left out if the trace ends before their wait does. The constants of `fallback.py` were chosen on the first half of
each market; at a moment of the second half, everything before it is known.

The last table shows the price of a reserve: the cost of `pace` over on demand only on windows of all 16 H100, with some
hours reserved for on-demand machines that are in fact always available.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import floor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mlcd.clouds.market_traces import TracedMarket as Market
from mlcd.clouds.market_traces import read_markets, read_series
from mlcd.planners.train.market import Guarded, OnDemandOnly, Pace, estimate_fallback, observations_from_table
from mlcd_bench.spot import RecordedConditions, Setting, play, starts
from mlcd_bench.spot.contest import history_of, terms_of

Array = npt.NDArray[Any]
SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "spot"
ZONES = (1, 2, 3, 5, 9)
LEAST_H = 24.0
"""The observed hours before the first wait is stated."""
EVERY_H = 12.0
AFTER_H = 48.0
RESERVED_H = (0.0, 0.25, 1.0, 3.0, 8.0)
WINDOWS = Setting(history_h=72.0, ratios=(1.1, 1.25, 1.5, 2.0), changeovers_min=(12.0,))


@dataclass(frozen=True)
class Stated:
    """A stated wait, and how many of the starts after it had machines within it."""

    wait_h: float
    empirical_h: float
    """The wait that was enough for 99 % of the starts observed before, without a prior."""
    starts: int
    kept: int
    empirical_kept: int
    """How many had machines within the empirical wait."""
    worst_day: float


def stated(market: Market, zones: Sequence[int], now: int, end: int) -> Stated | None:
    """None if no wait can be stated, or if the trace up to `end` is too short to check it."""
    names = [market.zones[z] for z in zones]
    observations = observations_from_table(names, market.up[:now][:, zones].tolist(), market.tick_h)
    promise = estimate_fallback(observations, names)
    if not promise.meets_confidence:
        return None
    counted = [zones[names.index(name)] for name in promise.zones]
    together = np.asarray(market.up[:end][:, counted].any(axis=1))
    before, after = together[:now], together[now:]
    starts_then = min(round(AFTER_H / market.tick_h), floor((end - now) - promise.wait_h / market.tick_h))
    if starts_then <= 0:
        return None
    waits = waits_h(after, market.tick_h)[:starts_then]
    kept, days = waits <= promise.wait_h + 1e-9, np.arange(starts_then) * market.tick_h // 24
    worst = min(float(kept[days == day].mean()) for day in np.unique(days))
    empirical = float(np.quantile(np.minimum(waits_h(before, market.tick_h), now * market.tick_h), 0.99))
    return Stated(promise.wait_h, empirical, len(kept), int(kept.sum()), int((waits <= empirical + 1e-9).sum()), worst)


def waits_h(up: Array, tick_h: float) -> Array:
    """From each tick to the next one that has machines."""
    ticks = np.where(up, np.arange(len(up)), np.inf)
    return np.asarray((np.minimum.accumulate(ticks[::-1])[::-1] - np.arange(len(up))) * tick_h)


def moments(market: Market, half: int) -> Iterator[tuple[int, int]]:
    """The rows at which a wait is stated in one half of the trace, each with the end of that half."""
    middle, last = len(market.up) // 2, len(market.up)
    first, end = (round(LEAST_H / market.tick_h), middle) if half == 1 else (middle, last)
    for now in range(first, end - round(EVERY_H / market.tick_h) + 1, round(EVERY_H / market.tick_h)):
        yield now, end


def answers(market: Market, zones: int, half: int) -> list[Stated | None]:
    """For all sets of so many zones, at all moments."""
    sets = combinations(range(len(market.zones)), zones)
    return [stated(market, each, *moment) for each in sets for moment in moments(market, half)]


def row(name: str, asked: Sequence[Stated | None]) -> str:
    """A line of the table."""
    found = [each for each in asked if each is not None]
    if not found:
        return f"{name:>5}  {len(asked):5}       0"
    starts = sum(each.starts for each in found)
    kept, empirical_kept = (
        100 * sum(kept) / starts for kept in zip(*((e.kept, e.empirical_kept) for e in found), strict=True)
    )
    waits, good = [each.wait_h for each in found], np.mean([each.worst_day >= 0.97 for each in found])
    empirical_h = np.median([each.empirical_h for each in found])
    return (
        f"{name:>5}  {len(asked):5}  {len(found):6}  {starts:8}  {kept:6.2f} %  {np.median(waits):6.2f}"
        f"  {np.mean(waits):6.2f}    {100 * good:3.0f} %      {empirical_kept:6.2f} %  {empirical_h:6.2f}"
    )


def markets(folder: Path) -> Iterator[tuple[str, Market]]:
    """All markets with prices except any of 16 H100, and four types of 2022, which have no prices."""
    for market in read_markets(folder)[0]:
        if (market.set, market.need) != ("h100x16", "any"):
            yield f"{market.set}, {market.need}", market
    columns, tick_h, first, up = read_series(folder / "types2022.csv", 600.0)
    for kind in dict.fromkeys(column.partition("_")[2] for column in columns):
        kept = [i for i, column in enumerate(columns) if column.endswith(f"_{kind}")]
        zones = tuple(columns[i] for i in kept)
        prices = np.zeros((len(up), len(kept)))
        yield (
            f"types2022, {kind}",
            Market("types2022", kind, "any", zones, tick_h, first, up[:, kept], prices, (0.0, 0.0)),
        )


def print_cost_of_reserve(market: Market) -> None:
    """Mean cost of pace over on demand only, with some hours reserved."""
    length = round(WINDOWS.window_h / market.tick_h)
    for reserved_h in RESERVED_H:
        shares = []
        for ratio in WINDOWS.ratios:
            terms = replace(terms_of(market, WINDOWS, ratio, 12.0), fallback_wait_h=reserved_h)
            costs = []
            for start in starts(market, WINDOWS):
                window = market.between(start, start + length)
                conditions = RecordedConditions(window.up, window.spot_usd_h)
                observations = history_of(market, WINDOWS, start)
                plain = play(Guarded(OnDemandOnly()), conditions, terms).cost_usd
                costs.append(play(Guarded(Pace()), conditions, terms, observations).cost_usd / plain)
            shares.append(float(np.mean(costs)))
        print(f"{reserved_h:5}  " + "  ".join(f"{share:5.2f}" for share in shares), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=SHARED)
    parser.add_argument("--half", type=int, choices=(1, 2), default=2)
    asked = parser.parse_args()
    found = dict(markets(asked.folder))
    print(
        "zones  asked  stated    starts    within  wait, h: median, mean  no day < 97 %  without prior: within, median"
    )
    for name, market in found.items():
        print(f"{name}: half {asked.half}")
        by_zones = {zones: answers(market, zones, asked.half) for zones in ZONES if zones <= len(market.zones)}
        for zones, stated_waits in by_zones.items():
            print(row(str(zones), stated_waits))
        print(row("all", [each for stated_waits in by_zones.values() for each in stated_waits]), flush=True)
    print(f"h reserved  cost over on-demand only at deadline / work = {', '.join(map(str, WINDOWS.ratios))}")
    print_cost_of_reserve(found["h100x16, all"])


if __name__ == "__main__":
    main()
