"""Markets: the ways in which the same machines can be rented.

A configuration says which machines, and so how fast the job is. A market says how they are rented: in which zone, on
demand or on the spot market, at which price. Limits are about configurations at the price of their offer, which is on
demand; only a launch has a market. What a configuration is expected to cost on its markets (`OnSpot`) is what the
cheapest one is chosen by, and never what a certificate rests on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
NO_DEADLINE = 2.0
"""Without a deadline a job may take so many times what it takes on demand: spot machines are waited for, but not for
ever."""
Spell = tuple[float, float, bool]
"""From, to, in seconds since the run began (negative: before it), and whether there were machines all the time."""


@dataclass(frozen=True, slots=True)
class Market:
    """A zone, empty for any, and a way to pay. `usd_per_hour`: of one node, with all that is billed beside it.

    `usd_per_launch`: as of an offer; None: the same as of the offer that is searched. `move_usd`: what it costs to
    bring the job's checkpoint here, by the region that it is in; from any other region nothing.
    `nodes`: the numbers of nodes that it is a market of; empty: any. Of a recorded market, `changes`: seconds since the
    run began, and the price from then on; `before`: what is known of it from before the run.
    """

    zone: str
    spot: bool
    usd_per_hour: float
    region: str = ""
    usd_per_launch: float | None = None
    move_usd: tuple[tuple[str, float], ...] = ()
    nodes: tuple[int, ...] = ()
    changes: tuple[tuple[float, float], ...] = ()
    before: tuple[Spell, ...] = ()

    def __str__(self) -> str:
        return f"{'spot' if self.spot else 'on demand'} in {self.zone or self.region or 'any zone'}"

    def at(self, elapsed_s: float) -> Market:
        """As a launch finds it so long after the run began: at the price of then."""
        prices = [usd_per_hour for since_s, usd_per_hour in self.changes if since_s <= elapsed_s]
        usd_per_hour = prices[-1] if prices else self.usd_per_hour
        return replace(self, usd_per_hour=usd_per_hour, nodes=(), changes=(), before=())

    def is_same(self, other: Market | None) -> bool:
        """Whether it is the same zone and way to pay, at whatever price."""
        return other is not None and (self.zone, self.spot) == (other.zone, other.spot)

    def moved_from(self, region: str) -> float:
        """Dollars for bringing the job's checkpoint here from a region."""
        return dict(self.move_usd).get(region, 0.0)


@dataclass(frozen=True, slots=True)
class OnSpot:
    """What is expected of the spot markets of a type.

    `up`: the share of the time in which one of them has machines. `price`: what an hour of work costs there, with the
    changeovers, as a share of an hour on demand. `slack`, `slack_s`: how much time to spare it takes to go there, as a
    share of the work left and in seconds; until then the job is on demand. `nodes`: as of the markets.
    """

    up: float
    price: float
    slack: float = 0.0
    slack_s: float = 0.0
    nodes: tuple[int, ...] = ()


def share_on_spot(expected: Floats, seconds: Floats, worst_s: Floats, deadline_s: float | None) -> Floats:
    """Of work that takes so long: what is expected to be done on spot machines by the deadline, the rest on demand.

    `expected`: `up`, `price`, `slack` and `slack_s`, by configuration. Time to spare is counted at the worst; each hour
    on demand that takes no longer than expected adds to it.
    """
    up, _, slack, slack_s = expected
    if deadline_s is None:
        return np.broadcast_to(np.minimum(1.0, NO_DEADLINE * up), np.shape(seconds))
    seconds = np.maximum(seconds, 1e-9)
    spared = worst_s / seconds - 1
    first_s = (slack * worst_s + slack_s - (deadline_s - worst_s)) / np.maximum(spared + slack * (1 + spared), 1e-9)
    share: Floats = np.minimum(1 - np.clip(first_s / seconds, 0.0, 1.0), up * deadline_s / seconds)
    return share
