"""The expected cost of a configuration on its spot markets, by which the cheapest configuration is chosen.

The model uses the zones in the order of the cost of an hour of work, and assumes that they are up independently.

Symbols   p_z      spot price of zone z over the on-demand price;   c   changeover
          l_z      mean length of an up spell there;   u_z   share of the time that it is up; both learned
                   (`hazard_rates.py`)
          e_z      p_z (1 + c / l_z): the price of an hour of work, including the changeovers

    up     =  1 - prod (1 - u_z)                                over the zones that are cheaper than on demand
    price  =  sum of u_z prod over cheaper y of (1 - u_y) e_z,  over up

The guard lets a job use spot machines only with slack for two changeovers (there and back) and for the work that a
preemption destroys; the policy also requires slack of `LEAVE_SLACK` times the work left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from mlcd.core.configuration import Choice, Space
from mlcd.core.market import Market, OnSpot
from mlcd.planners.train.market.cost_table import LEAVE_SLACK, RESERVED_CHANGEOVERS
from mlcd.planners.train.market.hazard_rates import learn_rates
from mlcd.planners.train.market.observations import Observations, add_market_history
from mlcd.planners.train.market_state import CHECKPOINT_EVERY_S


def with_expected_spot_costs(space: Space, *, checkpoints: bool) -> Space:
    """With the expected spot costs of each type that has spot markets. `checkpoints`: whether the job saves work."""
    choices = [replace(each, on_spot=tuple(_by_node_counts(each, space, checkpoints))) for each in space.choices]
    return replace(space, choices=tuple(choices))


def _by_node_counts(choice: Choice, space: Space, checkpoints: bool) -> Iterator[OnSpot]:
    """For each group of node counts that has its own markets."""
    groups: dict[tuple[int, ...], list[Market]] = {}
    for market in choice.markets:
        if market.spot:
            groups.setdefault(market.nodes, []).append(market)
    slack, slack_s = (LEAVE_SLACK, CHECKPOINT_EVERY_S) if checkpoints else (LEAVE_SLACK + 1.0, 0.0)
    slack_s += RESERVED_CHANGEOVERS * space.startup_limit_s
    for nodes, spot in groups.items():
        expected = expected_on_spot(spot, choice.offer.usd_per_hour, space.startup_limit_s / 3_600)
        if expected is not None:
            yield replace(expected, slack=slack, slack_s=slack_s, nodes=nodes)


def expected_on_spot(spot: Sequence[Market], on_demand_usd_h: float, changeover_h: float) -> OnSpot | None:
    """What to expect of these spot markets; None if none of them is cheaper than on demand."""
    rates = learn_rates(add_market_history(spot, Observations()), [market.zone for market in spot])
    prices = np.array([market.usd_per_hour for market in spot]) / on_demand_usd_h
    price_of_work = prices * (1 + changeover_h / rates.mean_up_h)
    none_up, cost = 1.0, 0.0
    for z in np.argsort(price_of_work, kind="stable"):
        if price_of_work[z] < 1:
            cost += none_up * float(rates.share_up[z] * price_of_work[z])
            none_up *= 1 - float(rates.share_up[z])
    return OnSpot(1 - none_up, cost / (1 - none_up)) if none_up < 1 else None
