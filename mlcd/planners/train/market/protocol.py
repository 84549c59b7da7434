"""What a market policy is given and what it answers.

A job needs so many hours of work on machines of one type before a deadline. The same machines can be had on the spot
market of several zones, where they are cheap and can be taken away, and on demand, where they are dear and stay. At
every decision a policy gets a `State` and answers with an `Action`. It reads no clock, does no I/O, draws no random
numbers and keeps nothing from one decision to the next except tables that it could compute again.

All times are hours and all money is dollars. Work is in hours, too: how long it takes on these machines, at the slow
end of the measured rate. Whoever drives a policy asks it

- at least every `step_h` while nothing is over, and at once when a machine was lost;
- again, at the same moment, when a machine that it wanted to take could not be had (`Seen` then says so; on-demand
  machines, too, may be missing).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from mlcd.planners.train.market.seen import Seen


class Kind(StrEnum):
    """What can be done."""

    HOLD = "hold"
    """Go on with what is held. With nothing held, the same as waiting."""
    SPOT = "spot"
    """Take a spot machine in a zone. What is held is given back only if it is to be had."""
    ON_DEMAND = "on_demand"
    """Take an on-demand machine in a zone, and give back what is held."""
    WAIT = "wait"
    """Give back what is held, and hold nothing."""


@dataclass(frozen=True)
class Action:
    """What to do now, where, and why."""

    kind: Kind
    zone: str | None = None
    because: str = ""


@dataclass(frozen=True)
class Held:
    """The machines that are held now. All of a job's machines are of one zone and one market."""

    zone: str
    is_spot: bool
    since_h: float
    changeover_left_h: float
    """How long it takes until they work: starting and restoring the checkpoint."""
    idle_h: float = 0.0
    """How long they may do nothing, at the worst: a job may hang, and nobody looks before."""


@dataclass(frozen=True)
class Terms:
    """What does not change while the job runs."""

    zones: tuple[str, ...]
    deadline_h: float
    work_h: float
    changeover_h: float
    """Stop, start and restore, at the longest. Billed like work."""
    step_h: float
    """The longest time between two decisions. A machine that is taken is paid for at least so long."""
    on_demand_usd_h: tuple[float, ...]
    """By zone."""
    budget_usd: float | None = None
    checkpoint_h: float = 0.0
    """How much work a loss can destroy: the longest time between two checkpoints. Zero: nothing is lost."""
    move_usd: tuple[tuple[float, ...], ...] | None = None
    """What it costs to bring the checkpoint from a zone (row) to a zone (column). None: nothing, everywhere."""
    fallback_wait_h: float = 0.0
    """How long on-demand machines may take to come to one of the fallback's zones. Zero: they are always there."""
    fallback_zones: tuple[str, ...] | None = None
    """Where on-demand machines are counted on. None: everywhere."""

    def fee_usd(self, origin: str | None, target: str) -> float:
        """What a launch in a zone costs besides its time, with the checkpoint in `origin`."""
        if self.move_usd is None or origin is None:
            return 0.0
        return self.move_usd[self.zones.index(origin)][self.zones.index(target)]

    def fallback_zone(self, origin: str | None) -> str:
        """Where on-demand is asked for first."""
        return self.by_on_demand_cost(origin)[0]

    def by_on_demand_cost(self, origin: str | None) -> list[str]:
        """All zones: those of the fallback first, then by what is at most left of the job, with the checkpoint in
        `origin`."""

        def cost(zone: str) -> tuple[bool, float]:
            usd = self.on_demand_price(zone) * self.work_h + self.fee_usd(origin, zone)
            return self.fallback_zones is not None and zone not in self.fallback_zones, usd

        return sorted(self.zones, key=cost)

    def on_demand_price(self, zone: str) -> float:
        """Dollars an hour."""
        return self.on_demand_usd_h[self.zones.index(zone)]


@dataclass(frozen=True)
class State:
    """All that is known at a decision."""

    terms: Terms
    now_h: float
    """Since the job's start; the deadline is at `terms.deadline_h`."""
    work_left_h: float
    """With the work that no checkpoint holds yet counted as done."""
    unsaved_h: float
    """How much work would be lost if the machine were lost now. At most `terms.checkpoint_h`."""
    spent_usd: float
    held: Held | None
    saved_in: str | None
    """The zone where the last checkpoint is; None before the first launch."""
    spot_usd_h: tuple[float, ...]
    """Today's prices, by zone."""
    seen: Seen = field(repr=False)
    """What was seen of each zone, in this run and before it."""
    seen_on_demand: Seen = field(default_factory=Seen, repr=False)
    """The same of machines on demand: mostly tries in vain."""
    paused: frozenset[str] = frozenset()
    """Zones whose spot market was asked in vain lately, and is not asked again yet."""

    @property
    def time_left_h(self) -> float:
        """Until the deadline."""
        return self.terms.deadline_h - self.now_h

    @property
    def slack_h(self) -> float:
        """Time left beyond the work left."""
        return self.time_left_h - self.work_left_h

    @property
    def on_spot(self) -> bool:
        """Whether a spot machine is held."""
        return self.held is not None and self.held.is_spot

    @property
    def on_demand(self) -> bool:
        """Whether an on-demand machine is held."""
        return self.held is not None and not self.held.is_spot

    def spot_price(self, zone: str) -> float:
        """Dollars an hour, today."""
        return self.spot_usd_h[self.terms.zones.index(zone)]

    def refused(self, zone: str) -> bool:
        """Whether this zone was just tried in vain, or has just taken a machine away."""
        return zone in self.paused or self.seen.is_down_at(zone, self.now_h)

    def refused_on_demand(self, zone: str) -> bool:
        """Whether on-demand machines were just asked for in vain."""
        return self.seen_on_demand.is_down_at(zone, self.now_h)


class Policy(Protocol):
    """Says what to do next. A pure function of the state."""

    @property
    def name(self) -> str:
        """As `mlcd bench spot --policy` takes it."""
        ...

    def decide(self, state: State) -> Action:
        """What to do now."""
        ...
