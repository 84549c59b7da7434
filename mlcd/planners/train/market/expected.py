"""What a configuration is expected to cost on its markets: what the cheapest one is chosen by.

Zones are taken in the order of what an hour of work costs there, and are up independently of each other.

Symbols   p_z      spot price of zone z over the price on demand;   c   changeover
          l_z      mean life of a machine there;   u_z   how often it has some; both as learned (`rates.py`)
          e_z      p_z (1 + c / l_z): the price of an hour of work, with the changeover that it takes to get it

    up     =  1 - prod (1 - u_z)                                over the zones that are cheaper than on demand
    price  =  sum of u_z prod over cheaper y of (1 - u_y) e_z,  over up
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from mlcd.core.configuration import Choice, Space
from mlcd.core.market import Market, OnSpot
from mlcd.planners.train.market.rates import learn
from mlcd.planners.train.market.seen import Seen, before_the_run


def with_expectations(space: Space) -> Space:
    """With what each type that has spot markets is expected to cost there."""
    changeover_h = space.startup_limit_s / 3_600
    choices = [replace(each, on_spot=tuple(_on_spots(each, changeover_h))) for each in space.choices]
    return replace(space, choices=tuple(choices))


def _on_spots(choice: Choice, changeover_h: float) -> Iterator[OnSpot]:
    """Of each group of node counts that has markets of its own."""
    groups: dict[tuple[int, ...], list[Market]] = {}
    for market in choice.markets:
        if market.spot:
            groups.setdefault(market.nodes, []).append(market)
    for nodes, spot in groups.items():
        if (found := on_spot(spot, choice.offer.usd_per_hour, changeover_h)) is not None:
            yield replace(found, nodes=nodes)


def on_spot(spot: Sequence[Market], on_demand_usd_h: float, changeover_h: float) -> OnSpot | None:
    """Of these markets; None where none of them is cheaper than on demand."""
    rates = learn(before_the_run(spot, Seen()), [market.zone for market in spot])
    prices = np.array([market.usd_per_hour for market in spot]) / on_demand_usd_h
    price_of_work = prices * (1 + changeover_h / rates.life_h)
    none_up, cost = 1.0, 0.0
    for z in np.argsort(price_of_work, kind="stable"):
        if price_of_work[z] < 1:
            cost += none_up * float(rates.share_up[z] * price_of_work[z])
            none_up *= 1 - float(rates.share_up[z])
    return OnSpot(1 - none_up, cost / (1 - none_up)) if none_up < 1 else None
