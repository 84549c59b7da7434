"""Probes on spot machines: they are as fast as others, cost less, and can be taken away.

Where the machines of a configuration can be rented on the spot market, its probe goes to the cheapest of these markets.
A probe that is refused there, or taken back, is bad luck: it is billed and tried again, on demand. So the worst case is
a probe on demand and a lost one on spot. Both have to be allowed before the first is taken, and the lost one has to be
small beside what is left: nobody gives up a deadline to save a part of the price of a probe.
"""

from __future__ import annotations

from dataclasses import replace

from mlcd.core.configuration import Configuration, Space
from mlcd.core.guarantee import Guard
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.market import Market
from mlcd.core.strategy import Probe

MOST_LOST_SHARE = 0.05
"""The share of what is left of a limit that lost probes may take at the most."""


def with_spot_markets(
    probes: tuple[Probe, ...], left: Job, space: Space, history: History, guard: Guard
) -> tuple[Probe, ...]:
    """The same probes, on spot machines where there are any, and where they can be lost and repeated on demand."""
    rented = tuple(replace(probe, market=_market(space, history, probe.configuration)) for probe in probes)
    lost = [probe for probe in rented if probe.market is not None]
    if not lost:
        return probes
    seconds = [probe.share * space.probe_time.seconds(probe.configuration.nodes) for probe in lost]
    usd = sum(p.configuration.rented(p.market).worst_usd(s) for p, s in zip(lost, seconds, strict=True))
    then = replace(history, spent_usd=history.spent_usd + usd, elapsed_s=history.elapsed_s + max(seconds))
    small = usd <= MOST_LOST_SHARE * (left.goal.most_usd - history.spent_usd)
    small &= max(seconds) <= MOST_LOST_SHARE * (left.goal.most_s - history.elapsed_s)
    again, share = [probe.configuration for probe in probes], max(probe.share for probe in probes)
    return rented if small and guard(left, space, then, again, share) is None else probes


def _market(space: Space, history: History, configuration: Configuration) -> Market | None:
    """The cheapest spot market of these machines; None: on demand, as after a loss."""
    if configuration in history.lost_on_spot:
        return None
    offered = [each.at(history.elapsed_s) for each in space.markets(configuration) if each.spot]
    cheapest = min(offered, key=lambda each: each.usd_per_hour, default=None)
    is_cheaper = cheapest is not None and cheapest.usd_per_hour < configuration.offer.usd_per_hour
    return cheapest if is_cheaper else None
