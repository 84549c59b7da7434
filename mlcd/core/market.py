"""Markets: the ways to rent the same machines, by zone, on demand or spot, and price.

A configuration says which machines, and so how fast the job runs. Its offer has the on-demand price, which all limits
and certificates use. Only a launch has a market. The expected cost on spot markets (`OnSpot`) helps to choose the
cheapest configuration, and never supports a certificate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
NO_DEADLINE = 2.0
"""Without a deadline, a job on spot machines may take this many times as long as on demand; so waiting has an end."""
Spell = tuple[float, float, bool]
"""From, to (seconds since the run began, negative before it), and whether machines were available throughout."""


@dataclass(frozen=True, slots=True)
class Market:
    """A zone (empty: any) and a way to pay. `usd_per_hour`: of one node, with everything billed by time.

    `usd_per_launch`: as in `Offer`; None: that of the offer. `move_usd`: cost of copying the job's checkpoint here, by
    the region that has it; free from any other. `nodes`: the node counts that it rents; empty: any. Of a recorded
    market, `changes`: new prices, each with the seconds since the run began; `before`: its availability before the run.
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
        """The market at this time of the run: with the price at that time."""
        prices = [usd_per_hour for since_s, usd_per_hour in self.changes if since_s <= elapsed_s]
        usd_per_hour = prices[-1] if prices else self.usd_per_hour
        return replace(self, usd_per_hour=usd_per_hour, nodes=(), changes=(), before=())

    def is_same(self, other: Market | None) -> bool:
        """Whether zone and way to pay are the same; prices may differ."""
        return other is not None and (self.zone, self.spot) == (other.zone, other.spot)

    def moved_from(self, region: str) -> float:
        """Dollars for copying the job's checkpoint here from a region."""
        return dict(self.move_usd).get(region, 0.0)


@dataclass(frozen=True, slots=True)
class OnSpot:
    """What is expected of the spot markets of an instance type.

    `up`: the share of time in which at least one of them has machines. `price`: the cost of an hour of work there,
    changeovers included, as a share of an hour on demand. `slack`, `slack_s`: the spare time needed to use spot, as a
    share of the work left and in seconds; with less, the job is on demand. `nodes`: as in `Market`.
    """

    up: float
    price: float
    slack: float = 0.0
    slack_s: float = 0.0
    nodes: tuple[int, ...] = ()


def share_on_spot(expected: Floats, seconds: Floats, worst_s: Floats, deadline_s: float | None) -> Floats:
    """The share of the work that is expected to be done on spot machines by the deadline; the rest is on demand.

    `expected`: `up`, `price`, `slack` and `slack_s` for each configuration. Spare time is what the worst case leaves;
    each hour on demand that takes no longer than expected adds to it.
    """
    up, _, slack, slack_s = expected
    if deadline_s is None:
        return np.broadcast_to(np.minimum(1.0, NO_DEADLINE * up), np.shape(seconds))
    seconds = np.maximum(seconds, 1e-9)
    spared = worst_s / seconds - 1
    first_s = (slack * worst_s + slack_s - (deadline_s - worst_s)) / np.maximum(spared + slack * (1 + spared), 1e-9)
    share: Floats = np.minimum(1 - np.clip(first_s / seconds, 0.0, 1.0), up * deadline_s / seconds)
    return share
