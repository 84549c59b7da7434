"""When machines were available in each zone, and when not, as observed.

A `Spell` is a time during which every observation of a zone gave the same answer: up (machines available) or down.
Observations are: a launch that succeeded or failed, a machine that still runs, a preemption, or a row of a file of
history. Times are hours since the job's start; history has negative ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mlcd.core.market import Market

MAX_GAP_H = 0.5
"""Two observations further apart than this say nothing about the time between them."""
TOLERANCE_H = 1e-9


@dataclass(frozen=True)
class Spell:
    """Up or down, from the first to the last observation that showed so."""

    up: bool
    from_h: float
    to_h: float
    start_observed: bool
    """Whether an observation shortly before showed the opposite. Otherwise the spell began at an unknown time."""

    @property
    def hours(self) -> float:
        """How long it was observed."""
        return self.to_h - self.from_h


@dataclass(frozen=True)
class Observations:
    """The spells of each zone, oldest first. Immutable: each observation makes a new object."""

    spells: Mapping[str, tuple[Spell, ...]] = field(default_factory=dict)

    def spells_of(self, zone: str) -> tuple[Spell, ...]:
        """All spells of a zone."""
        return self.spells.get(zone, ())

    def last_spell(self, zone: str) -> Spell | None:
        """The latest spell of a zone."""
        spells = self.spells.get(zone)
        return spells[-1] if spells else None

    def is_down_at(self, zone: str, now_h: float) -> bool:
        """Whether an observation at this very moment showed the zone down."""
        last = self.last_spell(zone)
        return last is not None and not last.up and last.to_h >= now_h - TOLERANCE_H

    def until(self, at_h: float) -> Observations:
        """Without later observations. A spell that continues beyond this time is cut there."""
        cut: dict[str, tuple[Spell, ...]] = {}
        for zone, spells in self.spells.items():
            if spells[-1].to_h <= at_h:
                cut[zone] = spells
                continue
            kept = [spell for spell in spells if spell.from_h <= at_h]
            if kept and kept[-1].to_h > at_h:
                kept[-1] = Spell(kept[-1].up, kept[-1].from_h, at_h, kept[-1].start_observed)
            cut[zone] = tuple(kept)
        return Observations({zone: spells for zone, spells in cut.items() if spells})

    def observed(self, zone: str, up: bool, at_h: float) -> Observations:
        """With one more observation."""
        before = self.spells.get(zone, ())
        last = before[-1] if before else None
        near = last is not None and at_h - last.to_h <= MAX_GAP_H
        if last is not None and near and last.up == up:
            after = (*before[:-1], Spell(up, last.from_h, at_h, last.start_observed))
        else:
            after = (*before, Spell(up, at_h, at_h, near))
        return Observations({**self.spells, zone: after})

    def with_held_machine(self, zone: str, from_h: float, to_h: float) -> Observations:
        """With a machine that ran there all this time."""
        after = self.observed(zone, True, from_h)
        *before, last = after.spells[zone]
        extended = Spell(True, last.from_h, max(last.to_h, to_h), last.start_observed)
        return Observations({**after.spells, zone: (*before, extended)})


def add_market_history(markets: Iterable[Market], observations: Observations) -> Observations:
    """With what the markets themselves know of the time before the run. Observations of the same zone replace it."""
    history = {each.zone: tuple(_spells(each)) for each in markets if each.before}
    return Observations({**history, **observations.spells}) if history else observations


def _spells(market: Market) -> Iterator[Spell]:
    for i, (from_s, to_s, up) in enumerate(market.before):
        yield Spell(up, from_s / 3_600, to_s / 3_600, i > 0)


def observations_from_table(
    zones: Sequence[str], up: Sequence[Sequence[bool]], step_h: float, until_h: float = 0.0
) -> Observations:
    """From a table with a row for each step and a column for each zone. The last row is one step before `until_h`."""
    first_h = until_h - len(up) * step_h
    spells_by_zone: dict[str, tuple[Spell, ...]] = {}
    for column, zone in enumerate(zones):
        spells: list[Spell] = []
        for row, zones_up in enumerate(up):
            at_h, is_up = first_h + row * step_h, bool(zones_up[column])
            if spells and spells[-1].up == is_up:
                spells[-1] = Spell(is_up, spells[-1].from_h, at_h, spells[-1].start_observed)
            else:
                spells.append(Spell(is_up, at_h, at_h, bool(spells)))
        spells_by_zone[zone] = tuple(spells)
    return Observations(spells_by_zone)
