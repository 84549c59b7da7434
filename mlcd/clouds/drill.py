"""Preemption drills: spot machines that come and go, made up on machines that stay, to see that a job survives it.

A file of node types with a `drill` has zones, each with a spot market of its own, for jobs with `use_spot: any`:

drill: {zones: [a, b, c], up: 2m, down: 1m, spot: 0.3, seed: 0}

`up`, `down`: how long a zone has spot machines, and has none, in the mean. `spot`: their price, as a share of the one
of the type. A launch on spot machines is refused where its zone has none, and when they are taken back its processes
are ended as at the end of a lifetime: SIGTERM, then SIGKILL. When that is depends on the seed alone.
"""

from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from math import inf

from mlcd.clouds.virtual import spot_lasts_s
from mlcd.core.backend import Events, Launch
from mlcd.core.configuration import Space
from mlcd.core.errors import NoCapacity, UserError
from mlcd.core.job import Job
from mlcd.core.market import Market
from mlcd.core.measurement import Ended, Outcome
from mlcd.planners.train.space import spot_of


@dataclass(frozen=True)
class Drill:
    """Zones whose spot machines come and go. Without zones there is no drill."""

    zones: tuple[str, ...] = ()
    up_s: float = 120.0
    down_s: float = 60.0
    price: float = 0.3
    seed: int = 0

    def with_markets(self, space: Space, job: Job) -> Space:
        """A spot and an on-demand market in each zone, where the job leaves open how it is rented."""
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
        """What happens on machines that are taken back when their market has no more. `now_s`: since the run began."""
        market = launch.market
        if market is None or not market.spot or market.zone not in self.zones:
            yield from rent(job, launch)
            return
        lasts_s = spot_lasts_s(self.seed, market.zone, now_s, self.up_s, self.down_s)
        if lasts_s <= 0:
            raise NoCapacity(f"{market}: no machines are to be had (drill)")
        lifetime_s = inf if launch.lifetime_s is None else launch.lifetime_s
        if lasts_s >= lifetime_s:
            yield from rent(job, launch)
            return
        asked: bool | None = None
        with closing(rent(job, replace(launch, lifetime_s=lasts_s))) as events, suppress(StopIteration):
            while not isinstance(event := events.send(asked), Ended):
                asked = yield event
            yield event
            return
        yield Ended(lasts_s, Outcome.PREEMPTED, "the spot machines were taken back (drill)")


NO_DRILL = Drill()
