"""How soon spot machines are preempted, and how soon a zone has machines again: hazard rates learned from observations.

A zone is up or down. The hazard rate at which a spell of either kind ends falls with its age: a long spell is likely to
continue. Across clouds, years, machine types and numbers of machines the rates were so similar that one curve for each
kind serves as the prior. Each zone has its own factors: one for young spells (does the market flicker?), one for old
spells (how long does a good or bad time last?), and one for each hour of the day (machines are scarce in working
hours). All factors, and the level of all zones together, have gamma priors and are learned from Poisson events. Older
observations have less weight.

    preemption rate of zone z at age a and hour h   = preemption(a) F f_z r_z(h)
    return rate of zone z at age a and hour h       = return(a) G g_z q_z(h)
    f_z, g_z ~ Gamma(A, A),  F, G ~ Gamma(B, B),  all by age group;  r_z(h), q_z(h) ~ Gamma(C, C)

Symbols   events, expected   observed ends of spells; the sum of the prior's rate over the observed time
          f_z                (A + events_z) / (A + F expected_z), the posterior mean; F in the same way over all zones
                             with B; r_z(h) with C, from the hours around h
          age                time since the spell began; if its start was not observed: ASSUMED_AGE_H + observed time

Prior curves: events over exposure in the first two thirds of the seven markets of ../shared/data/spot, rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlcd.planners.train.market.observations import Observations, Spell

Array = NDArray[np.float64]
Hours = NDArray[np.floating[Any]] | float

AGES_H = np.array([0.0, 0.5, 1.0, 2.0, 4.0, 8.0])
"""The start of each age class."""
WIDTHS_H = np.array([0.5, 0.5, 1.0, 2.0, 4.0, np.inf])
PREEMPTION_PER_H = np.array([1.3, 0.7, 0.4, 0.2, 0.15, 0.06])
RETURN_PER_H = np.array([1.5, 0.65, 0.4, 0.25, 0.2, 0.05])
YOUNG = AGES_H < 1.0
"""The age classes of the young group; the others are old."""
ASSUMED_AGE_H = 2.0
"""The age of a spell at its first observation, if its start was not observed. Not zero: a random observation falls into
a long spell more often than into a short one."""
ZONE_PRIOR_WEIGHT = 1.5
"""A: zone factors have a prior standard deviation of 1 / sqrt(A)."""
MARKET_PRIOR_WEIGHT = 4.0
"""B: the same for the level of a whole market."""
HOUR_PRIOR_WEIGHT = 2.0
"""C: the same for the hours of the day in a zone."""
HOUR_WEIGHTS = {-2: 1 / 3, -1: 2 / 3, 0: 1.0, 1: 2 / 3, 2: 1 / 3}
"""The weight of observations made so many hours earlier or later in the day."""
HALF_LIFE_H = 72.0
"""An observation that is so much older than the latest one has half its weight."""
PIECE_H = 1 / 12
"""Observed time is counted in pieces of this length."""
DAY_H = 24


@dataclass(frozen=True)
class HazardRates:
    """Preemption and return rates of all zones by age class, and their factors by hour of the day."""

    preemption_per_h: Array
    """Rows are zones, columns age classes."""
    return_per_h: Array
    preemption_by_hour: Array
    """Rows are zones, columns hours of the day; hour 0 is the one in which the job starts."""
    return_by_hour: Array

    @cached_property
    def mean_up_h(self) -> Array:
        """Mean length of an up spell, by zone."""
        return mean_spell_h(self.preemption_per_h)

    @cached_property
    def mean_down_h(self) -> Array:
        """Mean length of a down spell, by zone."""
        return mean_spell_h(self.return_per_h)

    @property
    def share_up(self) -> Array:
        """Long-run share of the time in which each zone is up."""
        up: Array = self.mean_up_h / (self.mean_up_h + self.mean_down_h)
        return up


RateEstimator = Callable[[Observations, Sequence[str]], HazardRates]
"""Estimates the rates of these zones from observations: `learn_rates`, or the true rates of a synthetic market."""


def learn_rates(observations: Observations, zones: Sequence[str]) -> HazardRates:
    """The posterior means, given all observations."""
    last_h = max((spell.to_h for zone in zones for spell in observations.spells_of(zone)[-1:]), default=0.0)
    up = _exposure_and_ends(observations, zones, True, last_h)
    down = _exposure_and_ends(observations, zones, False, last_h)
    preemption, preemption_by_hour = _posterior(*up, len(zones), PREEMPTION_PER_H)
    back, back_by_hour = _posterior(*down, len(zones), RETURN_PER_H)
    return HazardRates(preemption, back, preemption_by_hour, back_by_hour)


def age_class_of(age: Hours) -> NDArray[np.intp]:
    """The class of each age."""
    classes: NDArray[np.intp] = np.searchsorted(AGES_H, age, side="right") - 1
    return classes


def hour_of_day(at_h: Hours) -> NDArray[np.intp]:
    """The hour of the day of each time."""
    hour: NDArray[np.intp] = np.floor(np.asarray(at_h) % DAY_H).astype(np.intp) % DAY_H
    return hour


def spell_age_h(spell: Spell, now_h: float) -> float:
    """The age of a spell that still continues."""
    return now_h - spell.from_h + (0.0 if spell.start_observed else ASSUMED_AGE_H)


def cumulative_hazard(rates: Array, age: Array | float) -> Array:
    """The integral of the rate from age zero. The last axis of `rates` is the age class."""
    ages = np.asarray(age)[..., None]
    inside: Array = np.clip(ages - AGES_H, 0.0, WIDTHS_H)
    total: Array = (inside * rates).sum(axis=-1)
    return total


def mean_spell_h(rates: Array) -> Array:
    """The mean length of a spell: the integral of the survival function, class by class."""
    return mean_remaining_h(rates, 0.0)


def mean_remaining_h(rates: Array, age: float) -> Array:
    """The mean remaining length of a spell that has reached an age."""
    left = np.maximum(AGES_H + WIDTHS_H - np.maximum(AGES_H, age), 0.0)
    reached = np.where(age >= AGES_H + WIDTHS_H, 0.0, 1.0)
    finite = np.where(np.isinf(left), 0.0, left)
    starts = np.concatenate([np.zeros((*rates.shape[:-1], 1)), np.cumsum(rates[..., :-1] * finite[:-1], axis=-1)], -1)
    lasting = np.where(np.isinf(left), 1.0, -np.expm1(-rates * finite))
    mean: Array = (reached * np.exp(-starts) * lasting / rates).sum(axis=-1)
    return mean


@dataclass(frozen=True)
class _WeightedTimes:
    """Points in time with their zone, spell age, hour of the day and weight: pieces of observed time, or spell ends."""

    zone: NDArray[np.intp]
    age_class: NDArray[np.intp]
    hour: NDArray[np.intp]
    weight: Array

    def by_group(self, zones: int, counts: Array) -> Array:
        """Sums by zone and age group (young, old)."""
        total = np.zeros((zones, 2))
        np.add.at(total, (self.zone, np.where(YOUNG[self.age_class], 0, 1)), counts)
        return total

    def by_hour(self, zones: int, counts: Array) -> Array:
        """Sums by zone and hour of the day, smoothed over the hours around it."""
        total = np.zeros((zones, DAY_H))
        np.add.at(total, (self.zone, self.hour), counts)
        around: Array = np.sum([share * np.roll(total, hours, axis=1) for hours, share in HOUR_WEIGHTS.items()], axis=0)
        return around


def _exposure_and_ends(
    observations: Observations, zones: Sequence[str], up: bool, last_h: float
) -> tuple[_WeightedTimes, _WeightedTimes]:
    """The observed time of up (or down) spells, in pieces, and their observed ends."""
    spells = [(z, *each) for z, zone in enumerate(zones) for each in _spells(observations.spells_of(zone), up)]
    zone = np.array([each[0] for each in spells], dtype=np.intp)
    from_h, to_h, age, ended = (np.array([each[k] for each in spells]) for k in (1, 2, 3, 4))
    pieces = np.round((to_h - from_h) / PIECE_H).astype(np.intp)
    each = np.repeat(np.arange(len(spells)), pieces)
    within_h = (np.arange(len(each)) - np.repeat(np.cumsum(pieces) - pieces, pieces) + 0.5) * PIECE_H
    ends = ended > 0

    def weighted(zones: NDArray[np.intp], ages: Array, at_h: Array) -> _WeightedTimes:
        return _WeightedTimes(zones, age_class_of(ages), hour_of_day(at_h), 0.5 ** ((last_h - at_h) / HALF_LIFE_H))

    return (
        weighted(zone[each], age[each] + within_h, from_h[each] + within_h),
        weighted(zone[ends], (age + to_h - from_h)[ends], to_h[ends]),
    )


def _spells(spells: Sequence[Spell], up: bool) -> Iterator[tuple[float, float, float, float]]:
    """Of each up (or down) spell: start, end, age at its start, and whether its end was observed."""
    for i, spell in enumerate(spells):
        if spell.up is up:
            ended = i + 1 < len(spells) and spells[i + 1].start_observed
            end_h = spells[i + 1].from_h if ended else spell.to_h
            yield spell.from_h, end_h, 0.0 if spell.start_observed else ASSUMED_AGE_H, float(ended)


def _posterior(exposure: _WeightedTimes, ends: _WeightedTimes, zones: int, prior: Array) -> tuple[Array, Array]:
    """Rates by zone and age class, and factors by zone and hour of the day."""
    events = ends.by_group(zones, ends.weight)
    expected = exposure.by_group(zones, prior[exposure.age_class] * PIECE_H * exposure.weight)
    level = (MARKET_PRIOR_WEIGHT + events.sum(axis=0)) / (MARKET_PRIOR_WEIGHT + expected.sum(axis=0))
    factors = level * (ZONE_PRIOR_WEIGHT + events) / (ZONE_PRIOR_WEIGHT + level * expected)
    rates: Array = np.where(YOUNG, factors[:, :1], factors[:, 1:]) * prior
    expected = exposure.by_hour(zones, rates[exposure.zone, exposure.age_class] * PIECE_H * exposure.weight)
    by_hour = (HOUR_PRIOR_WEIGHT + ends.by_hour(zones, ends.weight)) / (HOUR_PRIOR_WEIGHT + expected)
    return rates, by_hour
