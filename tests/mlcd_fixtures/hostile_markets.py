"""Adversarial spot markets for tests and `benchmarks/spot_adversarial.py`, all generated from a seed.

The market may look at the job. It preempts machines at the worst moment that it can find:

- `checkpoint`: just before a checkpoint is due, so that as much work as possible is lost;
- `changeover`: just before a launch begins to work;
- `brink`: as soon as the job has no slack left beyond the guard's reserve;
- `drought`: after a good hour, nothing for many hours, in all zones;
- `chance`: at random, for comparison.

Prices jump by factors of up to ten at random ticks, also above on-demand.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from mlcd.planners.train.market import Action, Kind, State, Terms

MOODS = ("checkpoint", "changeover", "brink", "drought", "chance")


@dataclass
class Hostile:
    """A market in one of the moods, over several zones."""

    mood: str
    seed: int
    terms: Terms
    prices: list[tuple[float, ...]] = field(default_factory=list)
    _until: int = 0
    """No machine is available before this tick."""

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        usd = [0.3 * price for price in self.terms.on_demand_usd_h]
        for _ in range(int(self.terms.deadline_h / self.terms.step_h) + 2):
            if self._random.random() < 0.05:
                usd = [price * self._random.choice((0.2, 0.5, 2.0, 10.0)) for price in usd]
                usd = [min(max(price, 0.05), 30.0) for price in usd]
            self.prices.append(tuple(usd))

    def spot_usd_h(self, tick: int) -> tuple[float, ...]:
        """Prices that jump."""
        return self.prices[tick]

    def is_up(self, tick: int, zone: int, state: State) -> bool:
        """Whether the zone is up: whichever hurts more."""
        if tick < self._until:
            return False
        held = state.held
        mine = held is not None and held.is_spot and state.terms.zones[zone] == held.zone and held.since_h < state.now_h
        if not mine or held is None:
            return self._random.random() < 0.7
        if self._hurts(state, held.changeover_left_h, held.since_h):
            self._until = tick + self._random.choice((0, 1, 2, 30))
            return False
        return self._random.random() < 0.98

    def _hurts(self, state: State, changeover_left_h: float, since_h: float) -> bool:
        step = self.terms.step_h
        if self.mood == "checkpoint":
            return state.unsaved_h > 0 and state.unsaved_h + step > self.terms.checkpoint_h
        if self.mood == "changeover":
            return 0 < changeover_left_h <= step
        if self.mood == "brink":
            return state.slack_h < 2.5 * self.terms.changeover_h + self.terms.checkpoint_h + 2 * step
        if self.mood == "drought":
            return state.now_h - since_h >= 1.0
        return self._random.random() < 0.2


@dataclass
class RandomPolicy:
    """A policy that acts at random, also senselessly: only the guard keeps the deadline."""

    seed: int
    name: str = "reckless"

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def decide(self, state: State) -> Action:
        """A random action, often waiting or moving."""
        zones = [zone for zone in state.terms.zones if not state.was_refused(zone)]
        kind = self._random.choice((Kind.WAIT, Kind.HOLD, Kind.SPOT, Kind.SPOT, Kind.ON_DEMAND))
        if kind is Kind.SPOT and zones:
            return Action(kind, self._random.choice(zones))
        if kind is Kind.ON_DEMAND and self._random.random() < 0.2:
            return Action(kind, self._random.choice(state.terms.zones))
        return Action(kind if kind in (Kind.WAIT, Kind.HOLD) else Kind.WAIT)


def hostile_terms(seed: int) -> Terms:
    """A small job: one to three zones, twenty to eighty ticks, any changeover and checkpoint, sometimes a budget."""
    draw = random.Random(seed)
    zones = tuple(f"zone-{i}" for i in range(draw.randint(1, 3)))
    step_h = draw.choice((1 / 12, 1 / 6, 0.25, 195 / 3600))
    ticks = draw.randint(20, 80)
    changeover_h = draw.choice((0.0, 0.05, 0.2, 0.5))
    on_demand = tuple(draw.uniform(2.0, 4.0) for _ in zones)
    least = changeover_h + step_h  # the last tick may only be started
    work_h = max(step_h, (ticks * step_h - least) / draw.choice((1.0, 1.02, 1.05, 1.1, 1.5, 2.0)))
    needed = (work_h + changeover_h) / step_h + 1
    budget = None if draw.random() < 0.5 else min(on_demand) * needed * step_h * draw.choice((1.0, 1.05, 1.5))
    fees = None
    if draw.random() < 0.3:
        fees = tuple(tuple(0.0 if a == b else draw.uniform(0, 0.3) for b in zones) for a in zones)
    return Terms(
        zones=zones,
        deadline_h=ticks * step_h,
        work_h=work_h,
        changeover_h=changeover_h,
        step_h=step_h,
        on_demand_usd_h=on_demand,
        budget_usd=budget,
        checkpoint_h=draw.choice((0.0, 0.0, 0.25, 1.0)),
        move_usd=fees,
    )


@dataclass
class Scarce(Hostile):
    """The same, with on-demand machines that may be missing, but never for more than `most` ticks in all zones at once.

    They come back in only one zone of the fallback, mostly for one tick.
    """

    most: int = 0

    def has_on_demand(self, tick: int, zone: int) -> bool:
        """Always in the last tick of each period of `most` + 1 ticks, perhaps earlier."""
        draw = random.Random(self.seed * 1_000_003 + tick // (self.most + 1))
        named = self.terms.fallback_zones or self.terms.zones
        there = draw.randint(0, self.most) if draw.random() < 0.5 else self.most
        return tick % (self.most + 1) >= there and self.terms.zones[zone] == draw.choice(named)


def scarce_terms(seed: int) -> tuple[Terms, int]:
    """A small job with time for a wait, and the most ticks for which `Scarce` has no machines."""
    draw, terms = random.Random(seed), hostile_terms(seed)
    most = draw.randint(1, 8)
    named = terms.zones[: draw.randint(1, len(terms.zones))]
    budget = terms.budget_usd
    if budget is not None:
        budget *= max(terms.on_demand_usd_h) / min(terms.on_demand_usd_h)
    scarce = replace(
        terms,
        deadline_h=terms.deadline_h + most * terms.step_h,
        budget_usd=budget,
        fallback_wait_h=most * terms.step_h,
        fallback_zones=named,
    )
    return scarce, most
