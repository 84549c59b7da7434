"""Probes on spot machines, which are as fast and cheaper, but can be preempted.

A probe goes to the cheapest spot market of its configuration. If no machines are available, or they are preempted, the
probe is billed and repeated on demand. So the worst case is a lost probe on spot and a second one on demand. The guard
must allow both, and the lost one must be a small part of the limits that are left: saving on a probe is not worth
missing a deadline.
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
"""The largest share of what is left of a limit that lost probes may take."""


def with_spot_markets(
    probes: tuple[Probe, ...], left: Job, space: Space, history: History, guard: Guard
) -> tuple[Probe, ...]:
    """The same probes, on spot markets if the limits allow losing them and repeating them on demand."""
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
    """The cheapest spot market of a configuration; None for on demand, as after a lost spot probe."""
    if configuration in history.lost_on_spot:
        return None
    offered = [each.at(history.elapsed_s) for each in space.markets(configuration) if each.spot]
    cheapest = min(offered, key=lambda each: each.usd_per_hour, default=None)
    is_cheaper = cheapest is not None and cheapest.usd_per_hour < configuration.offer.usd_per_hour
    return cheapest if is_cheaper else None
