"""Markets: the ways in which the same machines can be rented.

A configuration says which machines, and so how fast the job is. A market says how they are rented: in which zone, on
demand or on the spot market, at which price. The search is about configurations, at the price of its offer, which is
on demand; only a launch has a market.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

Spell = tuple[float, float, bool]
"""From, to, in seconds since the run began (negative: before it), and whether there were machines all the time."""


@dataclass(frozen=True, slots=True)
class Market:
    """A zone, empty for any, and a way to pay. `usd_per_hour`: of one node, with all that is billed beside it.

    `nodes`: the numbers of nodes that it is a market of; empty: any. Of a recorded market, `changes`: seconds since the
    run began, and the price from then on; `before`: what is known of it from before the run.
    """

    zone: str
    spot: bool
    usd_per_hour: float
    region: str = ""
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
