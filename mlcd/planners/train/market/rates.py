"""How soon spot machines are lost, and how soon a zone has some again: learned from what was seen, by age and zone.

A zone is up or down. Both kinds of spell end at a rate that falls with their age: what has lasted will last. Over
clouds, years, machine types and sizes of gangs these rates were so much alike that one curve each serves as the
prior. A zone has factors of its own, one for young spells (a market that flickers) and one for old ones (how long a
good or bad time lasts). Factors are learned (gamma prior, Poisson events), and the level of all zones together in the
same way.

    rate of loss of zone z at age a    = loss(a) F f_z          f_z ~ Gamma(A, A),  F ~ Gamma(B, B), by group of age
    rate of return                     = back(a) G g_z          likewise

Symbols   events, expected   seen endings of spells; the sum over watched time of the prior's rate
          f_z                (A + events_z) / (A + F expected_z), the posterior mean; F the same over all zones with B
          age                since the spell began; for a spell whose beginning nobody saw: OLD_H and the time watched

Prior curves: events over exposure in the first two thirds of the seven markets of ../shared/data/spot, rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mlcd.planners.train.market.seen import Seen, Spell

Array = NDArray[np.float64]

AGES_H = np.array([0.0, 0.5, 1.0, 2.0, 4.0, 8.0])
"""Where the classes of age begin."""
WIDTHS_H = np.array([0.5, 0.5, 1.0, 2.0, 4.0, np.inf])
LOSS_PER_H = np.array([1.3, 0.7, 0.4, 0.2, 0.15, 0.06])
BACK_PER_H = np.array([1.5, 0.65, 0.4, 0.25, 0.2, 0.05])
YOUNG = AGES_H < 1.0
"""The classes of the young group; the others are old."""
OLDEST_YOUNG_H = 1.0
OLD_H = 2.0
"""The age of a spell when it was found. Long spells are found more often than short ones, so not zero."""
ZONES_DIFFER = 1.5
"""A: how much zones are alike. Their factors have a standard deviation of 1 / sqrt(A)."""
MARKETS_DIFFER = 4.0
"""B: how much markets as a whole are like those that the prior was taken from."""


@dataclass(frozen=True)
class Rates:
    """Of all zones, in their order: rates of loss and return by class of age."""

    loss_per_h: Array
    """Rows are zones, columns classes of age."""
    back_per_h: Array

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


def learn(seen: Seen, zones: Sequence[str]) -> Rates:
    """The posterior means, given all looks."""
    return Rates(
        _posterior(seen, zones, up=True, prior=LOSS_PER_H),
        _posterior(seen, zones, up=False, prior=BACK_PER_H),
    )


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


def _posterior(seen: Seen, zones: Sequence[str], up: bool, prior: Array) -> Array:
    counted = [_counted(seen.of(zone), up, prior) for zone in zones]
    events, expected = (np.array([each[k] for each in counted]) for k in (0, 1))  # zones x (young, old)
    level = (MARKETS_DIFFER + events.sum(axis=0)) / (MARKETS_DIFFER + expected.sum(axis=0))
    factors = level * (ZONES_DIFFER + events) / (ZONES_DIFFER + level * expected)
    rates: Array = np.where(YOUNG, factors[:, :1], factors[:, 1:]) * prior
    return rates


def _counted(spells: Sequence[Spell], up: bool, prior: Array) -> tuple[Array, Array]:
    """Endings that were seen, and how many the prior expects, of young and of old spells."""
    events, spans = np.zeros(2), []
    for i, spell in enumerate(spells):
        if spell.up is not up:
            continue
        first, end_h = 0.0 if spell.sharp else OLD_H, spell.to_h
        if i + 1 < len(spells) and spells[i + 1].sharp:
            end_h = spells[i + 1].from_h
            events[0 if first + end_h - spell.from_h < OLDEST_YOUNG_H else 1] += 1
        spans.append((first, first + end_h - spell.from_h))
    if not spans:
        return events, np.zeros(2)
    ages = np.array(spans)

    def expected(rates: Array) -> float:
        return float((cumulated(rates, ages[:, 1]) - cumulated(rates, ages[:, 0])).sum())

    return events, np.array([expected(np.where(YOUNG, prior, 0.0)), expected(np.where(YOUNG, 0.0, prior))])
