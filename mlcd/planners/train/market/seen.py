"""What was seen of each zone: when spot machines could be had there, and when not.

A `Spell` is a time in which every look at a zone showed the same. Looks are: a try that got a machine, a try in vain, a
machine that is still there, a machine that was taken away, a line in a file of history. Times are in hours since the
job's start; history has negative ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from mlcd.core.market import Market

JOIN_H = 0.5
"""Two looks that are further apart say nothing about the time between them."""
TOLERANCE_H = 1e-9


@dataclass(frozen=True)
class Spell:
    """Up (machines could be had) or down, from the first to the last look that showed so."""

    up: bool
    from_h: float
    to_h: float
    sharp: bool
    """Whether its beginning was seen: another look shortly before showed the opposite. Else it is older than this."""

    @property
    def hours(self) -> float:
        """How long it was watched."""
        return self.to_h - self.from_h


@dataclass(frozen=True)
class Seen:
    """The spells of each zone, the oldest first. Never changed: a look makes a new one."""

    spells: Mapping[str, tuple[Spell, ...]] = field(default_factory=dict)

    def of(self, zone: str) -> tuple[Spell, ...]:
        """All spells of a zone."""
        return self.spells.get(zone, ())

    def last(self, zone: str) -> Spell | None:
        """What was seen last of a zone."""
        spells = self.spells.get(zone)
        return spells[-1] if spells else None

    def is_down_at(self, zone: str, now_h: float) -> bool:
        """Whether a look at this very moment showed that no machine is to be had."""
        last = self.last(zone)
        return last is not None and not last.up and last.to_h >= now_h - TOLERANCE_H

    def last_loss_h(self) -> float:
        """When a zone was last seen to go down; minus infinity if never."""
        found = -inf
        for spells in self.spells.values():
            for spell in spells[-2:]:
                if spell.sharp and not spell.up:
                    found = max(found, spell.from_h)
        return found

    def until(self, at_h: float) -> Seen:
        """Without what was seen later than this. Spells that go on beyond it end there."""
        cut: dict[str, tuple[Spell, ...]] = {}
        for zone, spells in self.spells.items():
            if spells[-1].to_h <= at_h:
                cut[zone] = spells
                continue
            kept = [spell for spell in spells if spell.from_h <= at_h]
            if kept and kept[-1].to_h > at_h:
                kept[-1] = Spell(kept[-1].up, kept[-1].from_h, at_h, kept[-1].sharp)
            cut[zone] = tuple(kept)
        return Seen({zone: spells for zone, spells in cut.items() if spells})

    def looked(self, zone: str, up: bool, at_h: float) -> Seen:
        """With one more look."""
        before = self.spells.get(zone, ())
        last = before[-1] if before else None
        near = last is not None and at_h - last.to_h <= JOIN_H
        if last is not None and near and last.up == up:
            after = (*before[:-1], Spell(up, last.from_h, at_h, last.sharp))
        else:
            after = (*before, Spell(up, at_h, at_h, near))
        return Seen({**self.spells, zone: after})

    def held(self, zone: str, from_h: float, to_h: float) -> Seen:
        """With a machine that was there all this time."""
        after = self.looked(zone, True, from_h)
        *before, last = after.spells[zone]
        return Seen({**after.spells, zone: (*before, Spell(True, last.from_h, max(last.to_h, to_h), last.sharp))})


def before_the_run(markets: Iterable[Market], seen: Seen) -> Seen:
    """With what the markets themselves tell of the time before the run."""
    told = {each.zone: tuple(_spells(each)) for each in markets if each.before}
    return Seen({**told, **seen.spells}) if told else seen


def _spells(market: Market) -> Iterator[Spell]:
    for i, (from_s, to_s, up) in enumerate(market.before):
        yield Spell(up, from_s / 3_600, to_s / 3_600, i > 0)


def from_history(zones: Sequence[str], up: Sequence[Sequence[bool]], step_h: float, until_h: float = 0.0) -> Seen:
    """From a table of looks, a row for each step and a column for each zone; the last row is one step before
    `until_h`."""
    first_h = until_h - len(up) * step_h
    found: dict[str, tuple[Spell, ...]] = {}
    for column, zone in enumerate(zones):
        spells: list[Spell] = []
        for row, look in enumerate(up):
            at_h, is_up = first_h + row * step_h, bool(look[column])
            if spells and spells[-1].up == is_up:
                spells[-1] = Spell(is_up, spells[-1].from_h, at_h, spells[-1].sharp)
            else:
                spells.append(Spell(is_up, at_h, at_h, bool(spells)))
        found[zone] = tuple(spells)
    return Seen(found)
