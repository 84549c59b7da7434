"""Models that were measured before: what a search for a new one may learn from.

cell        the knobs that set what a model does on a device: its rate, its latency, its memory
composed    what a whole configuration comes to: the slower of device and host, or out of memory
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from mlcd.core.configuration import Configuration
from mlcd.planners.serve.nouns import Figure, Knob, Knobs, ModelFacts, knobs_of

KEPT = 64
"""Tables that are remembered: enough for leave-one-out over a few dozen models."""


class Same:
    """Stands for things as they are, not for what they equal: comparing a space of thousands takes long."""

    def __init__(self, *things: Any) -> None:
        self.things = things

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and all(a is b for a, b in zip(self.things, other.things, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(id(thing) for thing in self.things))


class Kind(StrEnum):
    """What the models were measured on: cuts of one device, whole machines of several types, or GPUs by the number."""

    DEVICE = "device"
    INSTANCES = "instances"
    LANGUAGE = "language"


@dataclass(frozen=True, slots=True)
class Anatomy:
    """Which knob does what, so that one trial tells of many configurations.

    `cell`: the knobs that the device's work depends on. `host`: the one that says how many cores prepare requests;
    `memory`: the one that says how many GB may be held. Empty where there is none.
    """

    cell: tuple[str, ...]
    host: str = ""
    memory: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """What a model does on a device: answers a second, latency figures in seconds, the memory it holds."""

    rate: float
    figures: Mapping[Figure, float]
    peak_gb: float | None = None


@dataclass(frozen=True)
class SeenModel:
    """A model with every cell that was measured; one that is missing did not run."""

    facts: ModelFacts
    cells: Mapping[Knobs, Cell]


@dataclass(frozen=True)
class Knowledge:
    """The models of one kind of machine, and what is known of the machines themselves.

    `host_rates`: requests a second that so many cores prepare, by kind of input. `resources`: numbers of a knob's
    values, such as the bandwidth of a GPU type: knob -> value -> name -> number. `source`: where and when all of it was
    measured.
    """

    kind: Kind
    anatomy: Anatomy
    models: tuple[SeenModel, ...]
    host_rates: Mapping[str, Mapping[float, float]] = field(default_factory=dict)
    resources: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    source: str = ""

    def without(self, *names: str) -> Knowledge:
        """As if these models had never been seen."""
        return replace(self, models=tuple(model for model in self.models if model.facts.name not in names))

    def cell_of(self, configuration: Configuration) -> Knobs:
        """The knobs of a configuration that the device's work depends on."""
        told = dict(knobs_of(configuration))
        return tuple((name, told[name]) for name in self.anatomy.cell)

    def host_rate(self, inputs: str, configuration: Configuration) -> float | None:
        """Requests a second that the configuration's cores prepare; None where that is no limit, or not known."""
        cores = knob(configuration, self.anatomy.host)
        return self.host_rates.get(inputs, {}).get(float(cores)) if isinstance(cores, int | float) else None

    def memory_gb(self, configuration: Configuration) -> float | None:
        """The GB that the configuration allows; None where that is no limit."""
        allowed = knob(configuration, self.anatomy.memory)
        return float(allowed) if isinstance(allowed, int | float) else None

    def composed(self, model: SeenModel, configuration: Configuration) -> Cell | None:
        """What the model does there as a whole; None if it does not run."""
        cell = model.cells.get(self.cell_of(configuration))
        if cell is None:
            return None
        allowed, host = self.memory_gb(configuration), self.host_rate(model.facts.inputs, configuration)
        if allowed is not None and cell.peak_gb is not None and cell.peak_gb > allowed:
            return None
        return cell if host is None or host >= cell.rate else replace(cell, rate=host)


def knob(configuration: Configuration, name: str) -> Knob | None:
    """How a knob is set there; None if there is no such knob."""
    return dict(knobs_of(configuration)).get(name)
