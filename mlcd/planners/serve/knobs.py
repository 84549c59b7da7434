"""What may be set when a model is served, and what each setting costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Knob = str | int | float
"""The value of something that may be set."""
Knobs = tuple[tuple[str, Knob], ...]
"""Every knob of a server with its value, in a fixed order."""


@dataclass(frozen=True)
class KnobTable:
    """The knobs with their values, in order, and what they cost.

    `usd_per_hour`: for each unit of a knob that is a number, or for each value of one that is a word. `base_usd`: of
    the machine itself. `cores` and `memory`: the knobs that size a machine, for the offer's own words.
    """

    knobs: Mapping[str, tuple[Knob, ...]]
    usd_per_hour: Mapping[str, float | Mapping[str, float]] = field(default_factory=dict)
    base_usd: float = 0.0
    machine: str = ""
    cores: str = ""
    memory: str = ""

    def price(self, knobs: Knobs) -> float:
        """Dollars an hour with the knobs set so."""
        total = self.base_usd
        for name, setting in knobs:
            rate = self.usd_per_hour.get(name, 0.0)
            total += float(rate[str(setting)]) if isinstance(rate, Mapping) else rate * float(setting)
        return total
