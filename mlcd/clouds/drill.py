"""Preemption drills: simulated spot markets on permanent machines, to test that a job survives preemptions.

A `drill` in a file of node types defines zones, each with its own spot market, for jobs with `use_spot: any`:

drill: {zones: [a, b, c], up: 2m, down: 1m, spot: 0.3, seed: 0}

`up`, `down`: mean time for which a zone has spot machines, and has none. `spot`: their price, as a share of the type's
price. A spot launch is refused while its zone has no machines. On preemption its processes are ended as at the end of
a lifetime: SIGTERM, then SIGKILL. The seed alone determines the times.
"""

from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from math import inf

from mlcd.clouds.virtual import spot_remaining_s
from mlcd.core.backend import Events, Launch
from mlcd.core.configuration import Space
from mlcd.core.errors import NoCapacity, UserError
from mlcd.core.job import Job
from mlcd.core.market import Market
from mlcd.core.measurement import Ended, Outcome
from mlcd.planners.train.space import spot_of


@dataclass(frozen=True)
class Drill:
    """The zones and spot markets of a drill. Without zones there is no drill."""

    zones: tuple[str, ...] = ()
    up_s: float = 120.0
    down_s: float = 60.0
    price: float = 0.3
    seed: int = 0

    def with_markets(self, space: Space, job: Job) -> Space:
        """Add a spot and an on-demand market in each zone, for a job with `use_spot: any`."""
        if spot_of(job) is not None:
            return space
        if not self.zones:
            raise UserError("use_spot: any: there are no spot machines here; for a drill, see docs/howto/spot.md")
        zones = [zone for zone in self.zones if zone in (job.search.zones or self.zones)]
        if not zones:
            raise UserError(f"zones {', '.join(job.search.zones)}: the drill has {', '.join(self.zones)}")
        prices = {True: self.price, False: 1.0}
        choices = (
            replace(
                choice,
                markets=tuple(
                    Market(zone, spot, share * choice.offer.usd_per_hour)
                    for zone in zones
                    for spot, share in prices.items()
                ),
            )
            for choice in space.choices
        )
        return replace(space, choices=tuple(choices))

    def run(self, rent: Callable[[Job, Launch], Events], job: Job, launch: Launch, now_s: float) -> Events:
        """The events of a launch, with a preemption when its spot market runs out of machines.

        `rent` starts the real launch. `now_s`: seconds since the run began.
        """
        market = launch.market
        if market is None or not market.spot or market.zone not in self.zones:
            yield from rent(job, launch)
            return
        remaining_s = spot_remaining_s(self.seed, market.zone, now_s, self.up_s, self.down_s)
        if remaining_s <= 0:
            raise NoCapacity(f"{market}: no machines available (drill)")
        lifetime_s = inf if launch.lifetime_s is None else launch.lifetime_s
        if remaining_s >= lifetime_s:
            yield from rent(job, launch)
            return
        stop_request: bool | None = None
        with closing(rent(job, replace(launch, lifetime_s=remaining_s))) as events, suppress(StopIteration):
            while not isinstance(event := events.send(stop_request), Ended):
                stop_request = yield event
            yield event
            return
        yield Ended(remaining_s, Outcome.PREEMPTED, "the spot machines were taken back (drill)")


NO_DRILL = Drill()
