"""How soon spot machines are lost, and how soon a zone has some again: learned by zone, age and hour of the day.

A zone is up or down. Both kinds of spell end at a rate that falls with their age: what has lasted will last. Over
clouds, years, machine types and sizes of gangs these rates were so much alike that one curve each serves as the
prior. A zone has factors of its own, one for young spells (a market that flickers), one for old ones (how long a good
or bad time lasts), and one for each hour of the day (machines are short when people work). All are learned in the same
way (gamma prior, Poisson events), and so is the level of all zones together. What was seen counts less as it gets old.

    rate of loss of zone z at age a and hour h   = loss(a) F f_z r_z(h)     f_z ~ Gamma(A, A),  F ~ Gamma(B, B), by
    rate of return                               = back(a) G g_z q_z(h)     group of age;  r_z(h) ~ Gamma(C, C)

Symbols   events, expected   seen endings of spells; the sum over watched time of the prior's rate
          f_z                (A + events_z) / (A + F expected_z), the posterior mean; F the same over all zones with B;
                             r_z(h) with C, events and expectation from the hours around h
          age                since the spell began; for a spell whose beginning nobody saw: OLD_H and the time watched

Prior curves: events over exposure in the first two thirds of the seven markets of ../shared/data/spot, rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlcd.planners.train.market.seen import Seen, Spell

Array = NDArray[np.float64]
Hours = NDArray[np.floating[Any]] | float

AGES_H = np.array([0.0, 0.5, 1.0, 2.0, 4.0, 8.0])
"""Where the classes of age begin."""
WIDTHS_H = np.array([0.5, 0.5, 1.0, 2.0, 4.0, np.inf])
LOSS_PER_H = np.array([1.3, 0.7, 0.4, 0.2, 0.15, 0.06])
BACK_PER_H = np.array([1.5, 0.65, 0.4, 0.25, 0.2, 0.05])
YOUNG = AGES_H < 1.0
"""The classes of the young group; the others are old."""
OLD_H = 2.0
"""The age of a spell when it was found. Long spells are found more often than short ones, so not zero."""
ZONES_DIFFER = 1.5
"""A: how much zones are alike. Their factors have a standard deviation of 1 / sqrt(A)."""
MARKETS_DIFFER = 4.0
"""B: how much markets as a whole are like those that the prior was taken from."""
HOURS_DIFFER = 2.0
"""C: how much the hours of a day are alike in a zone."""
HOURS_AROUND = {-2: 1 / 3, -1: 2 / 3, 0: 1.0, 1: 2 / 3, 2: 1 / 3}
"""How much what was seen so many hours earlier or later in the day says of an hour."""
HALF_LIFE_H = 72.0
"""What was seen so long before the last look counts half."""
FINE_H = 1 / 12
"""Watched time is counted in pieces of this length."""
DAY_H = 24


@dataclass(frozen=True)
class Rates:
    """Of all zones, in their order: rates of loss and return by class of age, and their factors by hour of the day."""

    loss_per_h: Array
    """Rows are zones, columns classes of age."""
    back_per_h: Array
    loss_by_hour: Array
    """Rows are zones, columns hours of the day; hour 0 is that in which the job starts."""
    back_by_hour: Array

    @cached_property
    def life_h(self) -> Array:
        """Mean length of a spell in which a zone is up, from its beginning."""
        return mean_length(self.loss_per_h)

    @cached_property
    def gap_h(self) -> Array:
        """Mean length of a spell in which a zone is down."""
        return mean_length(self.back_per_h)

    @property
    def share_up(self) -> Array:
        """Of the time, in the long run."""
        up: Array = self.life_h / (self.life_h + self.gap_h)
        return up


Belief = Callable[[Seen, Sequence[str]], Rates]
"""What is made of all looks at these zones: `learn`, or, where a market is known, what is true of it."""


def learn(seen: Seen, zones: Sequence[str]) -> Rates:
    """The posterior means, given all looks."""
    last_h = max((spell.to_h for zone in zones for spell in seen.of(zone)[-1:]), default=0.0)
    loss, loss_by_hour = _posterior(_watched(seen, zones, True, last_h), len(zones), LOSS_PER_H)
    back, back_by_hour = _posterior(_watched(seen, zones, False, last_h), len(zones), BACK_PER_H)
    return Rates(loss, back, loss_by_hour, back_by_hour)


def class_of(age: Hours) -> NDArray[np.intp]:
    """The class of each age."""
    found: NDArray[np.intp] = np.searchsorted(AGES_H, age, side="right") - 1
    return found


def hour_of(at_h: Hours) -> NDArray[np.intp]:
    """The hour of the day of each time."""
    hour: NDArray[np.intp] = np.floor(np.asarray(at_h) % DAY_H).astype(np.intp) % DAY_H
    return hour


def age_h(spell: Spell, now_h: float) -> float:
    """Of a spell that goes on."""
    return now_h - spell.from_h + (0.0 if spell.sharp else OLD_H)


def cumulated(rates: Array, age: Array | float) -> Array:
    """The integral of the rate from age zero. The last axis of `rates` is the class of age."""
    ages = np.asarray(age)[..., None]
    inside: Array = np.clip(ages - AGES_H, 0.0, WIDTHS_H)
    total: Array = (inside * rates).sum(axis=-1)
    return total


def mean_length(rates: Array) -> Array:
    """The mean time until an event, from age zero: the integral of the survival function, class by class."""
    return mean_length_after(rates, 0.0)


def mean_length_after(rates: Array, age: float) -> Array:
    """The mean time until an event of what has reached an age."""
    left = np.maximum(AGES_H + WIDTHS_H - np.maximum(AGES_H, age), 0.0)
    reached = np.where(age >= AGES_H + WIDTHS_H, 0.0, 1.0)
    finite = np.where(np.isinf(left), 0.0, left)
    starts = np.concatenate([np.zeros((*rates.shape[:-1], 1)), np.cumsum(rates[..., :-1] * finite[:-1], axis=-1)], -1)
    lasting = np.where(np.isinf(left), 1.0, -np.expm1(-rates * finite))
    mean: Array = (reached * np.exp(-starts) * lasting / rates).sum(axis=-1)
    return mean


@dataclass(frozen=True)
class _Watched:
    """Moments, with what they count: pieces of the time that spells of one kind were watched, or their endings."""

    zone: NDArray[np.intp]
    age_class: NDArray[np.intp]
    hour: NDArray[np.intp]
    weight: Array

    def by_group(self, zones: int, counts: Array) -> Array:
        """Summed for each zone and group of age (young, old)."""
        total = np.zeros((zones, 2))
        np.add.at(total, (self.zone, np.where(YOUNG[self.age_class], 0, 1)), counts)
        return total

    def by_hour(self, zones: int, counts: Array) -> Array:
        """Summed for each zone and hour of the day, with the hours around it."""
        total = np.zeros((zones, DAY_H))
        np.add.at(total, (self.zone, self.hour), counts)
        around: Array = np.sum([share * np.roll(total, hours, axis=1) for hours, share in HOURS_AROUND.items()], axis=0)
        return around


def _watched(seen: Seen, zones: Sequence[str], up: bool, last_h: float) -> tuple[_Watched, _Watched]:
    """The time that spells of this kind were watched, in pieces, and their endings that were seen."""
    spells = [(z, *each) for z, zone in enumerate(zones) for each in _spells(seen.of(zone), up)]
    zone = np.array([each[0] for each in spells], dtype=np.intp)
    from_h, to_h, age, ended = (np.array([each[k] for each in spells]) for k in (1, 2, 3, 4))
    pieces = np.round((to_h - from_h) / FINE_H).astype(np.intp)
    each = np.repeat(np.arange(len(spells)), pieces)
    within_h = (np.arange(len(each)) - np.repeat(np.cumsum(pieces) - pieces, pieces) + 0.5) * FINE_H
    ends = ended > 0

    def moments(zones: NDArray[np.intp], ages: Array, at_h: Array) -> _Watched:
        return _Watched(zones, class_of(ages), hour_of(at_h), 0.5 ** ((last_h - at_h) / HALF_LIFE_H))

    return (
        moments(zone[each], age[each] + within_h, from_h[each] + within_h),
        moments(zone[ends], (age + to_h - from_h)[ends], to_h[ends]),
    )


def _spells(spells: Sequence[Spell], up: bool) -> Iterator[tuple[float, float, float, float]]:
    """Of each spell of this kind: its beginning and end, its age at its beginning, and whether its end was seen."""
    for i, spell in enumerate(spells):
        if spell.up is up:
            ended = i + 1 < len(spells) and spells[i + 1].sharp
            end_h = spells[i + 1].from_h if ended else spell.to_h
            yield spell.from_h, end_h, 0.0 if spell.sharp else OLD_H, float(ended)


def _posterior(seen: tuple[_Watched, _Watched], zones: int, prior: Array) -> tuple[Array, Array]:
    """Rates by zone and class of age, and factors by zone and hour of the day."""
    watched, endings = seen
    events = endings.by_group(zones, endings.weight)
    expected = watched.by_group(zones, prior[watched.age_class] * FINE_H * watched.weight)
    level = (MARKETS_DIFFER + events.sum(axis=0)) / (MARKETS_DIFFER + expected.sum(axis=0))
    factors = level * (ZONES_DIFFER + events) / (ZONES_DIFFER + level * expected)
    rates: Array = np.where(YOUNG, factors[:, :1], factors[:, 1:]) * prior
    expected = watched.by_hour(zones, rates[watched.zone, watched.age_class] * FINE_H * watched.weight)
    by_hour = (HOURS_DIFFER + endings.by_hour(zones, endings.weight)) / (HOURS_DIFFER + expected)
    return rates, by_hour
