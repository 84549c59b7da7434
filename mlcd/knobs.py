"""What may be set when a model is served, and what each setting costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import product

from mlcd.configuration import Choice, Knob, Knobs, Offer, ProbeTime, Space

TRIAL = ProbeTime(60.0, 0.0)
"""A trial takes a minute at the most, where nobody says otherwise."""


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


def serving_space(
    table: KnobTable,
    trial: ProbeTime = TRIAL,
    possible: Callable[[Knobs], bool] = lambda knobs: True,
    startup_limit_s: float = 0.0,
) -> Space:
    """Every setting of the knobs. Those that are priced make an offer; the others are free to set on it."""
    priced = [name for name in table.knobs if name in table.usd_per_hour]
    free = [name for name in table.knobs if name not in table.usd_per_hour]
    choices = []
    for bought in product(*(table.knobs[name] for name in priced)):
        cut = dict(zip(priced, bought, strict=True))
        settings = []
        for chosen in product(*(table.knobs[name] for name in free)):
            told = {**cut, **dict(zip(free, chosen, strict=True))}
            knobs = tuple((name, told[name]) for name in table.knobs)
            if possible(knobs):
                settings.append(knobs)
        if settings:
            choices.append(Choice(_offer(table, tuple(cut.items())), settings=tuple(settings)))
    return Space(tuple(choices), trial, startup_limit_s)


def _offer(table: KnobTable, bought: Knobs) -> Offer:
    cut = dict(bought)
    words = ", ".join(_words(name, setting) for name, setting in bought) or "one size"
    return Offer(
        f"{table.machine}: {words}" if table.machine else words,
        table.price(bought),
        vcpus=float(cut.get(table.cores, 1.0)),
        memory_gb=float(cut.get(table.memory, 1.0)),
    )


def _words(name: str, setting: Knob) -> str:
    return str(setting) if isinstance(setting, str) else f"{name} {setting:g}"
