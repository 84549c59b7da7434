"""Recorded spot markets with simulated speeds, for a folder of traces without a `market.yaml`.

Its types are the machines of `prices.csv` that are in a catalog, at the on-demand price of the trace. A configuration
of several nodes gets the smallest recorded market where at least that many machines were requested together (`all`);
one node gets the smallest market, whichever way it was recorded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from mlcd.catalog import clouds_in, load_offers
from mlcd.clouds.market_folder import MarketFolder
from mlcd.clouds.market_traces import TracedMarket, read_markets
from mlcd.clouds.recording import Point, Recording
from mlcd.clouds.simulated import Simulated
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Configuration, Offer
from mlcd.core.errors import UserError
from mlcd.core.home import home
from mlcd.core.job import Job
from mlcd.core.measurement import Outcome

CHANGEOVER_S = 180.0


def market_with_simulated_speeds(folder: Path, job: Job) -> MarketFolder:
    """Like `load_market_folder`, with the speeds that the simulated cloud has for this job."""
    traced, _ = read_markets(folder)
    markets = dict(_markets(traced, job))
    if not markets:
        named = ", ".join(sorted({market.machine for market in traced}))
        raise UserError(
            f"{folder}: without a market.yaml, only machine types of the catalog can be used; "
            f"for {job.search.nodes[0]}..{job.search.nodes[1]} nodes none of these is in it: {named}"
        )
    cloud = Simulated(VirtualClock(), job.search.seed)

    def point(configuration: Configuration) -> Point:
        if not cloud.fits(job, configuration):
            return Point(Outcome.OUT_OF_MEMORY)
        return Point(Outcome.OK, cloud.true_samples_per_s(job, configuration))

    recording = Recording(job.name, job.work_samples, {each: point(each) for each in markets})
    return MarketFolder(recording, markets, CHANGEOVER_S, made_up=True)


def _markets(traced: list[TracedMarket], job: Job) -> Iterator[tuple[Configuration, TracedMarket]]:
    offers: dict[str, Offer] = {}
    for offer in load_offers(clouds_in(home() / "catalog"), directory=home() / "catalog"):
        offers.setdefault(offer.instance_type, offer)
    low, high = job.search.nodes
    for machine in dict.fromkeys(market.machine for market in traced):
        own = sorted((market for market in traced if market.machine == machine), key=lambda market: market.machines)
        if machine not in offers:
            continue
        usd_per_hour = min(min(market.on_demand_usd_h) for market in own if market.need == "any")
        offer = replace(offers[machine], usd_per_hour=usd_per_hour)
        for nodes in range(low, min(high, own[-1].machines) + 1):
            enough = [market for market in own if market.machines >= nodes]
            together = [market for market in enough if market.need == "all"]
            yield Configuration(offer, nodes), enough[0] if nodes == 1 else together[0]
