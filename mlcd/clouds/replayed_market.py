"""A backend that replays a recorded job on a recorded spot market: recorded speeds, prices and availability.

A spot launch is refused if its zone has no machines at that moment, and preempted at the tick at which the zone loses
them; the progress made until then is reported. On-demand machines are always available. A launch keeps the price of the
moment at which it began (`Market.at`). After the end of a trace there are no spot machines.
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
"""In ticks: a time that is less than this before a tick counts as in it, because times are rounded."""


@dataclass(frozen=True)
class Trace:
    """A recorded market, in the time of a run that begins `start_s` seconds after the first tick of its file."""

    market: TracedMarket
    start_s: float

    @property
    def tick_s(self) -> float:
        """Seconds in a tick."""
        return self.market.tick_h * 3_600

    def remaining_s(self, zone: str, elapsed_s: float) -> float:
        """For how many more seconds the zone has machines; 0 if it has none now."""
        row, ups = self._row(elapsed_s), self.market.up[:, self.market.zones.index(zone)]
        if row < 0 or row >= len(ups) or not ups[row]:
            return 0.0
        down = np.flatnonzero(~ups[row:])
        ends = row + (int(down[0]) if len(down) else len(ups) - row)
        return (ends + self.market.ticks_before) * self.tick_s - self.start_s - elapsed_s

    def markets(self, on_demand_usd: float, nodes: tuple[int, ...], history_s: float) -> Iterator[Market]:
        """A spot and an on-demand market in each zone. `on_demand_usd`: the on-demand price in the cheapest zone."""
        scale = on_demand_usd / min(self.market.on_demand_usd_h)
        for z, zone in enumerate(self.market.zones):
            now, *later = self._prices(z)
            changes, before = tuple((since_s, usd * scale) for since_s, usd in later), self._before(z, history_s)
            yield Market(zone, True, now[1] * scale, nodes=nodes, changes=changes, before=before)
            yield Market(zone, False, self.market.on_demand_usd_h[z] * scale, nodes=nodes)

    def _row(self, elapsed_s: float) -> int:
        return floor((self.start_s + elapsed_s) / self.tick_s + ROUNDING) - self.market.ticks_before

    def _since_s(self, row: int) -> float:
        """When a row of the trace begins, in seconds since the run began."""
        return (row + self.market.ticks_before) * self.tick_s - self.start_s

    def _prices(self, z: int) -> list[tuple[float, float]]:
        """The price when the run begins, and each later price, as (seconds since the run began, price)."""
        prices = self.market.spot_usd_h[:, z]
        first = min(max(self._row(0.0), 0), len(prices) - 1)
        rows = [first, *(first + 1 + np.flatnonzero(np.diff(prices[first:]))).tolist()]
        return [(self._since_s(row), float(prices[row])) for row in rows]

    def _before(self, z: int, history_s: float) -> tuple[Spell, ...]:
        """The spells with and without machines in the `history_s` seconds before the run began."""
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
class ReplayedMarket:
    """Replays a recording on recorded markets. `traces`: for each configuration that has a spot market."""

    recorded: Recorded
    traces: Mapping[Configuration, Trace]
    provenance: Provenance = Provenance.RECORDED

    @property
    def clock(self) -> VirtualClock:
        """The clock of the recording."""
        return self.recorded.clock

    def run(self, job: Job, launch: Launch) -> Events:
        """Replay one launch."""
        events, market = self.recorded.events(launch), launch.market
        if market is not None and market.spot:
            remaining_s = self.traces[launch.configuration].remaining_s(market.zone, self.clock.elapsed_s())
            if remaining_s <= 0:
                raise NoCapacity(f"{market}: no machines available")
            events = until_preempted(events, remaining_s)
        return play(events, job, launch, self.clock)

    def reclaim(self, label: str) -> None:
        """Nothing to do: a recorded machine ends with this process."""


def until_preempted(events: Iterable[Event], preempted_s: float) -> Iterator[Event]:
    """The events until a preemption, with a last report of the progress made by then (linear interpolation)."""
    last: Sample | None = None
    for event in events:
        if event.elapsed_s > preempted_s:
            if last is not None and isinstance(event, Sample) and preempted_s > last.elapsed_s:
                share = (preempted_s - last.elapsed_s) / (event.elapsed_s - last.elapsed_s)
                yield Sample(preempted_s, last.samples + share * (event.samples - last.samples))
            yield Ended(preempted_s, Outcome.PREEMPTED, "the spot machines were taken back")
            return
        if isinstance(event, Sample):
            last = event
        yield event
