"""What a configuration is expected to cost on its markets: what the cheapest one is chosen by.

Zones are taken in the order of what an hour of work costs there, and are up independently of each other.

Symbols   p_z      spot price of zone z over the price on demand;   c   changeover
          l_z      mean life of a machine there;   u_z   how often it has some; both as learned (`rates.py`)
          e_z      p_z (1 + c / l_z): the price of an hour of work, with the changeover that it takes to get it

    up     =  1 - prod (1 - u_z)                                over the zones that are cheaper than on demand
    price  =  sum of u_z prod over cheaper y of (1 - u_y) e_z,  over up

The guard lets a job go there with time to spare for a changeover there and one back, and for what a loss destroys; the
policy asks for `LEAVE` of the work left besides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from mlcd.core.configuration import Choice, Space
from mlcd.core.market import Market, OnSpot
from mlcd.planners.train.market.cost_table import LEAVE, MOVES
from mlcd.planners.train.market.rates import learn
from mlcd.planners.train.market.seen import Seen, before_the_run
from mlcd.planners.train.market_state import SAVED_EVERY_S


def with_expectations(space: Space, *, checkpoints: bool) -> Space:
    """With what each type that has spot markets is expected to cost there. `checkpoints`: whether work is saved."""
    choices = [replace(each, on_spot=tuple(_on_spots(each, space, checkpoints))) for each in space.choices]
    return replace(space, choices=tuple(choices))


def _on_spots(choice: Choice, space: Space, checkpoints: bool) -> Iterator[OnSpot]:
    """Of each group of node counts that has markets of its own."""
    groups: dict[tuple[int, ...], list[Market]] = {}
    for market in choice.markets:
        if market.spot:
            groups.setdefault(market.nodes, []).append(market)
    slack, slack_s = (LEAVE, SAVED_EVERY_S) if checkpoints else (LEAVE + 1.0, 0.0)
    slack_s += MOVES * space.startup_limit_s
    for nodes, spot in groups.items():
        if (found := on_spot(spot, choice.offer.usd_per_hour, space.startup_limit_s / 3_600)) is not None:
            yield replace(found, slack=slack, slack_s=slack_s, nodes=nodes)


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
