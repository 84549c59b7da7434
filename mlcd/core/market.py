"""Markets: the ways in which the same machines can be rented.

A configuration says which machines, and so how fast the job is. A market says how they are rented: in which zone, on
demand or on the spot market, at which price. The search is about configurations, at the price of its offer, which is
on demand; only a launch has a market.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Market:
    """A zone, empty for any, and a way to pay. `usd_per_hour`: of one node, with all that is billed beside it.

    `usd_per_launch`: as of an offer; None: the same as of the offer that is searched. `move_usd`: what it costs to
    bring the job's checkpoint here, by the region that it is in; from any other region nothing.
    """

    zone: str
    spot: bool
    usd_per_hour: float
    region: str = ""
    usd_per_launch: float | None = None
    move_usd: tuple[tuple[str, float], ...] = ()

    def __str__(self) -> str:
        return f"{'spot' if self.spot else 'on demand'} in {self.zone or self.region or 'any zone'}"

    def moved_from(self, region: str) -> float:
        """Dollars for bringing the job's checkpoint here from a region."""
        return dict(self.move_usd).get(region, 0.0)
