"""The probability that each zone has spot machines, tick by tick, for the hours ahead.

Computed from the learned rates (`hazard_rates.py`) and the latest observation of each zone. A zone that is down now is
likely to be down in an hour, too; tomorrow at this hour it is as likely to be up as on any other day.

Symbols   p_z(t)   probability that zone z is up at tick t:  p(t + 1) = p + (1 - p) return(t) - p preemption(t)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlcd.planners.train.market.hazard_rates import DAY_H, HazardRates, age_class_of, hour_of_day, spell_age_h
from mlcd.planners.train.market.observations import Observations

Array = NDArray[np.float64]

HELD_AGES_H = np.array([0.0, 1.0, 4.0])
"""The start of each age class of a held machine: fewer classes than the rates have, since each enlarges the table."""
OLDEST_H = 16.0
STEP_H = 0.5
"""The step at which probabilities are computed from the last observation of a zone until now."""
FORGET_AFTER_H = 48.0
"""An older observation says nothing about now."""


@dataclass(frozen=True)
class Availability:
    """Probabilities within a tick, for consecutive ticks. The first axis is the zone, the last the tick."""

    preempted: Array
    """That a held machine is preempted, by age class (second axis)."""
    returned: Array
    """That a zone which is down has machines again."""
    up: Array
    """That a launch in this zone succeeds at this tick."""


def availability(
    rates: HazardRates, observations: Observations, zones: Sequence[str], now_h: float, ticks: int, tick_h: float
) -> Availability:
    """For so many ticks from now on."""
    hours = hour_of_day(now_h + (np.arange(ticks) + 0.5) * tick_h)
    preemption_per_h = _by_held_age(rates.preemption_per_h)[:, :, None] * rates.preemption_by_hour[:, None, hours]
    return_per_h = rates.return_by_hour[:, hours] / rates.mean_down_h[:, None]
    up = np.empty((len(zones), ticks))
    probabilities = _UpProbabilities(rates, observations, zones, now_h)
    for tick, hour in enumerate(hours):
        up[:, tick] = probabilities.after(tick_h, int(hour))
    return Availability(-np.expm1(-preemption_per_h * tick_h), -np.expm1(-return_per_h * tick_h), up)


class _UpProbabilities:
    """The probability of each zone to be up, followed forward in time from its latest observation.

    `_unchanged`: that the last observed spell still continues, at its age; `_up`, `_down`: that another spell does,
    which ends at the mean rate.
    """

    def __init__(self, rates: HazardRates, observations: Observations, zones: Sequence[str], now_h: float) -> None:
        self._rates, self._zones = rates, np.arange(len(zones))
        last = [
            spell if (spell := observations.last_spell(zone)) and now_h - spell.to_h <= FORGET_AFTER_H else None
            for zone in zones
        ]
        self._was_up = np.array([spell is not None and spell.up for spell in last])
        self._age = np.array([spell_age_h(spell, spell.to_h) if spell is not None else 0.0 for spell in last])
        self._unchanged = np.array([float(spell is not None) for spell in last])
        self._up = np.where(self._unchanged > 0, 0.0, rates.share_up)
        self._down = 1 - self._unchanged - self._up
        observed_h = np.array([spell.to_h if spell is not None else now_h - DAY_H for spell in last])
        steps = np.floor((now_h - observed_h) / STEP_H).astype(np.intp)  # each zone was last observed at its own time
        for step in range(int(steps.max(initial=0))):
            self._step(np.where(step < steps, STEP_H, 0.0), hour_of_day(observed_h + step * STEP_H))

    def after(self, hours: float, hour: int) -> Array:
        """Advance by so many hours, at this hour of the day."""
        self._step(np.full(len(self._zones), hours), np.full(len(self._zones), hour))
        up: Array = self._up + self._unchanged * self._was_up
        return up

    def _step(self, hours: Array, hour: NDArray[np.intp]) -> None:
        rates, zones, age_class = self._rates, self._zones, age_class_of(self._age)
        preemption_factor = rates.preemption_by_hour[zones, hour] * hours
        return_factor = rates.return_by_hour[zones, hour] * hours
        end_hazard = np.where(
            self._was_up,
            rates.preemption_per_h[zones, age_class] * preemption_factor,
            rates.return_per_h[zones, age_class] * return_factor,
        )
        ended = self._unchanged * -np.expm1(-end_hazard)
        preempted = self._up * -np.expm1(-preemption_factor / rates.mean_up_h)
        returned = self._down * -np.expm1(-return_factor / rates.mean_down_h)
        self._unchanged = self._unchanged - ended
        self._up = self._up + returned - preempted + np.where(self._was_up, 0.0, ended)
        self._down = self._down + preempted - returned + np.where(self._was_up, ended, 0.0)
        self._age = self._age + hours


def _by_held_age(per_h: Array) -> Array:
    """The rate in each age class of a held machine: the mean over the machines that reach it."""
    ends = [*HELD_AGES_H[1:], OLDEST_H]
    means = []
    for first, end in zip(HELD_AGES_H, ends, strict=True):
        ages = np.linspace(first, end, 25)[:-1]
        rates = per_h[:, age_class_of(ages)]
        alive = np.exp(-np.cumsum(rates, axis=1) * (end - first) / len(ages))
        means.append((rates * alive).sum(axis=1) / alive.sum(axis=1))
    return np.stack(means, axis=1)


def held_age_class(age_h: float) -> int:
    """The age class of a held machine."""
    return int(np.searchsorted(HELD_AGES_H, age_h + 1e-9, side="right")) - 1
