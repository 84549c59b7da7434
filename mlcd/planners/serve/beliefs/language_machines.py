"""GPUs by the number, as language models are served on: what is published of them, or guessed from their price."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

GB_FOR_A_DOLLAR, GB_S_FOR_A_DOLLAR = 10.0, 300.0
"""Of memory, and of its bandwidth, an hour's dollar buys about so much where nothing tells more (L4 to H100, 2024)."""


@dataclass(frozen=True, slots=True)
class Machine:
    """So many GPUs of a kind, and what all of them have together."""

    name: str
    kind: str
    count: int
    memory_gb: float
    bandwidth_gb_s: float


def machines(names: Mapping[str, float], resources: Mapping[str, Mapping[str, float]]) -> dict[str, Machine]:
    """Each machine by its name, given with its dollars an hour.

    What nobody tells of one is what its price would buy of the others; its number of GPUs is read from its name.
    """
    usual_gb = _usual(names, resources, "memory_gb", GB_FOR_A_DOLLAR)
    usual_gb_s = _usual(names, resources, "bandwidth_gb_s", GB_S_FOR_A_DOLLAR)
    found = {}
    for name, usd in names.items():
        told = resources.get(name, {})
        count, kind = counted(name)
        count = int(told.get("count", count))
        each_gb_s = told.get("bandwidth_gb_s")
        found[name] = Machine(
            name,
            kind,
            count,
            told.get("memory_gb", usual_gb * usd),
            each_gb_s * count if each_gb_s is not None else usual_gb_s * usd,
        )
    return found


def counted(name: str) -> tuple[int, str]:
    """How many of which kind: '4 x T4' is four of T4; a name without a number is one of its kind."""
    told = re.fullmatch(r"\s*(\d+)\s*x\s*(.+?)\s*", name)
    return (int(told[1]), told[2]) if told else (1, name)


def _usual(
    names: Mapping[str, float], resources: Mapping[str, Mapping[str, float]], number: str, otherwise: float
) -> float:
    """How much of it a dollar an hour buys, in the middle of the machines that tell."""
    bought = []
    for name, usd in names.items():
        told = resources.get(name, {})
        if number in told:
            together = told.get("count", counted(name)[0]) if number == "bandwidth_gb_s" else 1.0
            bought.append(told[number] * together / usd)
    return float(np.exp(np.mean(np.log(bought)))) if bought else otherwise
