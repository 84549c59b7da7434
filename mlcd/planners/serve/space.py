"""The configurations of a server: every way to set its knobs, on the offers that the priced ones make."""

from __future__ import annotations

from itertools import product

from mlcd.core.configuration import Choice, Offer, ProbeTime, Space
from mlcd.planners.serve.knobs import Knob, Knobs, KnobTable
from mlcd.planners.serve.nouns import ServerSettings

TRIAL = ProbeTime(60.0, 0.0)
"""A trial of a server takes a minute at the most, where nobody says otherwise."""


def serving_space(
    table: KnobTable,
    trial: ProbeTime = TRIAL,
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
            settings.append(ServerSettings(tuple((name, told[name]) for name in table.knobs)))
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
