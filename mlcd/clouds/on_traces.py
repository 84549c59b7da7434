"""A cloud whose spot market is a trace: speeds as recorded, machines as they could be had.

A spot launch in a zone that is down at that moment is refused. One that runs is taken back at the tick in which its
zone goes down; what was done until then has been reported. On-demand machines are always there. The price of a launch
is that of the moment at which it began (`Market.at`), until it ends. After the end of a trace there is no spot machine.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import floor

import numpy as np

from mlcd.clouds.market_traces import TracedMarket
from mlcd.clouds.recorded import Recorded
from mlcd.clouds.virtual import play
from mlcd.core.backend import Events, Launch, Provenance
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Configuration
from mlcd.core.errors import NoCapacity
from mlcd.core.job import Job
from mlcd.core.market import Market, Spell
from mlcd.core.measurement import Ended, Event, Outcome, Sample

ROUNDING = 1e-6
"""Of a tick: so much before its start counts as in it."""


@dataclass(frozen=True)
class Trace:
    """A recorded market as seen by a run that begins at a moment of it."""

    market: TracedMarket
    start_s: float
    """Since the first tick of its file."""

    @property
    def tick_s(self) -> float:
        """Seconds in a tick."""
        return self.market.tick_h * 3_600

    def lasts_s(self, zone: str, elapsed_s: float) -> float:
        """How long machines that are asked for now would be there; 0: there are none."""
        row, ups = self._row(elapsed_s), self.market.up[:, self.market.zones.index(zone)]
        if row < 0 or row >= len(ups) or not ups[row]:
            return 0.0
        down = np.flatnonzero(~ups[row:])
        ends = row + (int(down[0]) if len(down) else len(ups) - row)
        return (ends + self.market.ticks_before) * self.tick_s - self.start_s - elapsed_s

    def markets(self, on_demand_usd: float, nodes: tuple[int, ...], history_s: float) -> Iterator[Market]:
        """Spot and on demand in each zone, for machines whose on-demand price this is in the cheapest zone."""
        scale = on_demand_usd / min(self.market.on_demand_usd_h)
        for z, zone in enumerate(self.market.zones):
            now, *later = self._prices(z)
            changes, before = tuple((since_s, usd * scale) for since_s, usd in later), self._before(z, history_s)
            yield Market(zone, True, now[1] * scale, nodes=nodes, changes=changes, before=before)
            yield Market(zone, False, self.market.on_demand_usd_h[z] * scale, nodes=nodes)

    def _row(self, elapsed_s: float) -> int:
        return floor((self.start_s + elapsed_s) / self.tick_s + ROUNDING) - self.market.ticks_before

    def _since_s(self, row: int) -> float:
        """When a row of the trace begins, in seconds of the run."""
        return (row + self.market.ticks_before) * self.tick_s - self.start_s

    def _prices(self, z: int) -> list[tuple[float, float]]:
        """The price at the start, and each later one with its moment."""
        prices = self.market.spot_usd_h[:, z]
        first = min(max(self._row(0.0), 0), len(prices) - 1)
        rows = [first, *(first + 1 + np.flatnonzero(np.diff(prices[first:]))).tolist()]
        return [(self._since_s(row), float(prices[row])) for row in rows]

    def _before(self, z: int, history_s: float) -> tuple[Spell, ...]:
        """When there were machines, and when not, in so many seconds before the start."""
        last, first = self._row(0.0), max(self._row(-history_s), 0)
        ups = self.market.up[first:last, z]
        if not len(ups):
            return ()
        begins = [0, *(1 + np.flatnonzero(np.diff(ups))).tolist()]
        ends = [*begins[1:], len(ups)]
        return tuple(
            (self._since_s(first + begin), self._since_s(first + end - 1), bool(ups[begin]))
            for begin, end in zip(begins, ends, strict=True)
        )


@dataclass
class OnTraces:
    """Replays a recording on recorded markets. `traces`: of each configuration that can be rented on the spot."""

    recorded: Recorded
    traces: Mapping[Configuration, Trace]
    provenance: Provenance = Provenance.RECORDED

    @property
    def clock(self) -> VirtualClock:
        """Its time."""
        return self.recorded.clock

    def run(self, job: Job, launch: Launch) -> Events:
        """Replay one launch."""
        events, market = self.recorded.events(launch), launch.market
        if market is not None and market.spot:
            lasts_s = self.traces[launch.configuration].lasts_s(market.zone, self.clock.elapsed_s())
            if lasts_s <= 0:
                raise NoCapacity(f"{market}: no machines are to be had")
            events = until_lost(events, lasts_s)
        return play(events, job, launch, self.clock)

    def reclaim(self, label: str) -> None:
        """Nothing to do: a recorded machine ends with this process."""


def until_lost(events: Iterable[Event], lasts_s: float) -> Iterator[Event]:
    """The events of machines that are taken back after so long, with a last report of what was done by then."""
    last: Sample | None = None
    for event in events:
        if event.elapsed_s > lasts_s:
            if last is not None and isinstance(event, Sample) and lasts_s > last.elapsed_s:
                share = (lasts_s - last.elapsed_s) / (event.elapsed_s - last.elapsed_s)
                yield Sample(lasts_s, last.samples + share * (event.samples - last.samples))
            yield Ended(lasts_s, Outcome.PREEMPTED, "the spot machines were taken back")
            return
        if isinstance(event, Sample):
            last = event
        yield event
