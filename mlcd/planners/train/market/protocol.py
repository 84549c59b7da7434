"""The interface of a market policy: the state that it gets, and the action that it returns.

A job needs some hours of work on machines of one type before a deadline. These machines can be rented on the spot
market of several zones, where they are cheap but may be preempted, or on demand, where they are expensive but stay. At
each decision a policy gets a `State` and returns an `Action`. It reads no clock, does no I/O, draws no random numbers
and keeps no state between decisions except caches that it could compute again.

All times are in hours and all money is in dollars. Work is in hours, too: how long it takes on these machines, at the
lower confidence bound of the measured rate. A policy is asked

- at least every `step_h` until the job ends, and at once when a machine was preempted;
- again, at the same moment, when a launch that it asked for failed. `State.observations` then contains the failure
  (`State.on_demand_observations`, if on-demand machines were missing).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from mlcd.planners.train.market.observations import Observations


class Kind(StrEnum):
    """The kinds of action."""

    HOLD = "hold"
    """Keep what is held. With nothing held, the same as WAIT."""
    SPOT = "spot"
    """Launch a spot machine in a zone. What is held is given up only if the launch succeeds."""
    ON_DEMAND = "on_demand"
    """Launch an on-demand machine in a zone, and give up what is held."""
    WAIT = "wait"
    """Give up what is held, and hold nothing."""


@dataclass(frozen=True)
class Action:
    """What to do now, in which zone, and why."""

    kind: Kind
    zone: str | None = None
    because: str = ""


@dataclass(frozen=True)
class HeldMachines:
    """The machines that the job holds now. All of them are in one zone, and all are spot or all on demand."""

    zone: str
    is_spot: bool
    since_h: float
    changeover_left_h: float
    """Time until they start to work: they still start, or restore the checkpoint."""
    idle_h: float = 0.0
    """The longest time without work that may go unnoticed, since a job may hang between two decisions."""


@dataclass(frozen=True)
class Terms:
    """What does not change while the job runs."""

    zones: tuple[str, ...]
    deadline_h: float
    work_h: float
    changeover_h: float
    """The longest time to stop, start and restore. Billed like work."""
    step_h: float
    """The longest time between two decisions, and the shortest time for which a launched machine is billed."""
    on_demand_usd_h: tuple[float, ...]
    """By zone."""
    budget_usd: float | None = None
    checkpoint_h: float = 0.0
    """The longest time between two checkpoints: the most work that a preemption can destroy."""
    move_usd: tuple[tuple[float, ...], ...] | None = None
    """The fee for moving the checkpoint from a zone (row) to a zone (column). None: no fees."""
    fallback_wait_h: float = 0.0
    """The longest expected wait for on-demand machines in one of `fallback_zones`. Zero: they are always available."""
    fallback_zones: tuple[str, ...] | None = None
    """The zones in which on-demand machines are expected to be available. None: all."""

    def fee_usd(self, origin: str | None, target: str) -> float:
        """The fee for a launch in `target` with the checkpoint in `origin`."""
        if self.move_usd is None or origin is None:
            return 0.0
        return self.move_usd[self.zones.index(origin)][self.zones.index(target)]

    def fallback_zone(self, origin: str | None) -> str:
        """The zone where on-demand machines are requested first, with the checkpoint in `origin`."""
        return self.zones_by_on_demand_cost(origin)[0]

    def zones_by_on_demand_cost(self, origin: str | None) -> list[str]:
        """All zones: `fallback_zones` first, then by the on-demand cost of the whole job and the fee from `origin`."""

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
    """Work since the last checkpoint counts as done."""
    unsaved_h: float
    """Work since the last checkpoint, which a preemption now would destroy. At most `terms.checkpoint_h`."""
    spent_usd: float
    held: HeldMachines | None
    checkpoint_zone: str | None
    """The zone of the last checkpoint; None before the first launch."""
    spot_usd_h: tuple[float, ...]
    """Current prices, by zone."""
    observations: Observations = field(repr=False)
    """Spot availability of each zone, as observed in this run and before it."""
    on_demand_observations: Observations = field(default_factory=Observations, repr=False)
    """On-demand availability of each zone: mostly failed launches."""
    paused: frozenset[str] = frozenset()
    """Zones whose last spot launch failed and which must not be tried again yet."""

    @property
    def time_left_h(self) -> float:
        """Time until the deadline."""
        return self.terms.deadline_h - self.now_h

    @property
    def slack_h(self) -> float:
        """Time left minus work left."""
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
        """Current dollars an hour."""
        return self.spot_usd_h[self.terms.zones.index(zone)]

    def was_refused(self, zone: str) -> bool:
        """Whether a spot launch in this zone has just failed, or its machine was just preempted."""
        return zone in self.paused or self.observations.is_down_at(zone, self.now_h)

    def was_refused_on_demand(self, zone: str) -> bool:
        """Whether an on-demand launch in this zone has just failed."""
        return self.on_demand_observations.is_down_at(zone, self.now_h)


class Policy(Protocol):
    """Chooses the next action: a pure function of the state."""

    @property
    def name(self) -> str:
        """As `mlcd bench spot --policy` accepts it."""
        ...

    def decide(self, state: State) -> Action:
        """What to do now."""
        ...
