"""How likely each zone has spot machines in the hours ahead, tick by tick.

From the learned rates (`rates.py`) and from what was seen last of each zone: a zone that is down now is likely to be
down in an hour, and as likely as on any day to be up tomorrow at this hour.

Symbols   p_z(t)   chance that zone z is up at tick t:  p(t + 1) = p + (1 - p) back(t) - p lost(t)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlcd.planners.train.market.rates import DAY_H, Rates, age_h, class_of, hour_of
from mlcd.planners.train.market.seen import Seen

Array = NDArray[np.float64]

HELD_AGES_H = np.array([0.0, 1.0, 4.0])
"""Where the classes of age of a held machine begin: fewer than those of the rates, since each is a part of a table."""
OLDEST_H = 16.0
COARSE_H = 0.5
"""The step at which chances are followed from the last look at a zone until now."""
FORGOTTEN_H = 48.0
"""A look that is older says nothing of today."""


@dataclass(frozen=True)
class Availability:
    """Chances within a tick, for ticks that follow each other. The first axis is the zone, the last the tick."""

    lost: Array
    """That a held machine is lost, by class of its age (second axis)."""
    back: Array
    """That a zone which is down has machines again."""
    up: Array
    """That a zone, asked at this tick, has machines."""


def availability(
    rates: Rates, seen: Seen, zones: Sequence[str], now_h: float, ticks: int, tick_h: float
) -> Availability:
    """From now on."""
    hours = hour_of(now_h + (np.arange(ticks) + 0.5) * tick_h)
    lost_per_h = _by_held_age(rates.loss_per_h)[:, :, None] * rates.loss_by_hour[:, None, hours]
    back_per_h = rates.back_by_hour[:, hours] / rates.gap_h[:, None]
    up = np.empty((len(zones), ticks))
    chances = _Chances(rates, seen, zones, now_h)
    for tick, hour in enumerate(hours):
        up[:, tick] = chances.after(tick_h, int(hour))
    return Availability(-np.expm1(-lost_per_h * tick_h), -np.expm1(-back_per_h * tick_h), up)


class _Chances:
    """The chance of each zone to be up, followed from what was seen of it last.

    `_since`: that the spell which was seen last still goes on, at its age; `_up`, `_down`: that another one does, which
    ends at the mean rate.
    """

    def __init__(self, rates: Rates, seen: Seen, zones: Sequence[str], now_h: float) -> None:
        self._rates, self._zones = rates, np.arange(len(zones))
        last = [spell if (spell := seen.last(zone)) and now_h - spell.to_h <= FORGOTTEN_H else None for zone in zones]
        self._was_up = np.array([spell is not None and spell.up for spell in last])
        self._age = np.array([age_h(spell, spell.to_h) if spell is not None else 0.0 for spell in last])
        self._since = np.array([float(spell is not None) for spell in last])
        self._up = np.where(self._since > 0, 0.0, rates.share_up)
        self._down = 1 - self._since - self._up
        looked_h = np.array([spell.to_h if spell is not None else now_h - DAY_H for spell in last])
        steps = np.floor((now_h - looked_h) / COARSE_H).astype(np.intp)  # zones were looked at, at different times
        for step in range(int(steps.max(initial=0))):
            self._step(np.where(step < steps, COARSE_H, 0.0), hour_of(looked_h + step * COARSE_H))

    def after(self, hours: float, hour: int) -> Array:
        """So much later, at this hour of the day."""
        self._step(np.full(len(self._zones), hours), np.full(len(self._zones), hour))
        up: Array = self._up + self._since * self._was_up
        return up

    def _step(self, hours: Array, hour: NDArray[np.intp]) -> None:
        rates, zones, age_class = self._rates, self._zones, class_of(self._age)
        by_loss, by_back = rates.loss_by_hour[zones, hour] * hours, rates.back_by_hour[zones, hour] * hours
        ends = np.where(
            self._was_up, rates.loss_per_h[zones, age_class] * by_loss, rates.back_per_h[zones, age_class] * by_back
        )
        ended = self._since * -np.expm1(-ends)
        lost = self._up * -np.expm1(-by_loss / rates.life_h)
        back = self._down * -np.expm1(-by_back / rates.gap_h)
        self._since = self._since - ended
        self._up = self._up + back - lost + np.where(self._was_up, 0.0, ended)
        self._down = self._down + lost - back + np.where(self._was_up, ended, 0.0)
        self._age = self._age + hours


def _by_held_age(per_h: Array) -> Array:
    """The rate in each class of age of a held machine: the mean over the machines that reach it."""
    ends = [*HELD_AGES_H[1:], OLDEST_H]
    found = []
    for first, end in zip(HELD_AGES_H, ends, strict=True):
        ages = np.linspace(first, end, 25)[:-1]
        rates = per_h[:, class_of(ages)]
        alive = np.exp(-np.cumsum(rates, axis=1) * (end - first) / len(ages))
        found.append((rates * alive).sum(axis=1) / alive.sum(axis=1))
    return np.stack(found, axis=1)


def held_class(age_h: float) -> int:
    """The class of age of a held machine."""
    return int(np.searchsorted(HELD_AGES_H, age_h + 1e-9, side="right")) - 1
