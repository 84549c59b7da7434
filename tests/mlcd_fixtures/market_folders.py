"""Small folders for `--on market:DIR`, and spaces with markets."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mlcd.clouds.recording import save_recording
from mlcd.core.configuration import Choice, Space
from mlcd.core.market import Market
from mlcd.planners.train.market.expected_cost import with_expected_spot_costs
from mlcd.testing.clouds import small_recording

TICK_S = 600.0
RULES = "markets: [{trace: alone}]"


def market_folder(
    folder: Path,
    up: Sequence[str],
    *,
    prices: Sequence[tuple[str, int, float]] = (),
    rules: str = RULES,
    rates: Sequence[Sequence[float | None]] = ((50.0, 90.0),),
) -> Path:
    """A market of zones a, b ...: for each a string of '1' (up) and '0', a character for each tick of ten minutes.

    Machines cost $4 an hour on demand in the trace, and $1 on the spot market; `prices`: zone, tick, from then on.
    """
    folder.mkdir(parents=True, exist_ok=True)
    zones = [chr(ord("a") + i) for i in range(len(up))]
    save_recording(small_recording(list(rates), [2.0] * len(rates), probe_s=900), folder)
    ticks = [[tick, *states] for tick, states in enumerate(zip(*up, strict=True))]
    _write(folder / "alone.csv", [["tick", *zones], *ticks])
    asked = [["alone", zone, 1, TICK_S] for zone in zones]
    _write(folder / "traces.csv", [["trace", "zone", "requested", "tick_s"], *asked])
    header = ["trace", "zone", "machine", "gpus", "spot_usd_h", "ondemand_usd_h"]
    _write(folder / "prices.csv", [header, *[["alone", zone, "m", 1, 1.0, 4.0] for zone in zones]])
    if prices:
        _write(folder / "alone_prices.csv", [["zone", "tick", "spot_usd_h"], *map(list, prices)])
    (folder / "market.yaml").write_text(f"changeover: 5m\n{rules}\n")
    return folder


def _write(path: Path, rows: list[list[Any]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)


def on_markets(space: Space, rng: np.random.Generator) -> Space:
    """The same space with spot markets of most types, at prices of their own."""

    def rented(choice: Choice) -> Choice:
        if rng.random() < 0.2:
            return choice
        usd = choice.offer.usd_per_hour
        spot = [Market(zone, True, usd * float(rng.uniform(0.1, 1.2))) for zone in "ab"]
        return replace(choice, markets=(*spot, Market("a", False, usd)))

    return with_expected_spot_costs(replace(space, choices=tuple(map(rented, space.choices))), checkpoints=True)
