"""Time and cost of training to a target over nodes and batch size: step time x epochs x data set.

Tyagi and Sharma, Scavenger, 2023, equations (3) to (5), and its section V-D for prices by CPU and memory.

Symbols   K  nodes    B  global batch    b  samples of one device = ceil(B / (K devices)): the slowest one decides
          T = e (D/B) tau                cost = T x price of K nodes an hour
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np

from mlcd.core.configuration import Floats
from mlcd.planners.modeling.iteration_time import IterationTime, read_iteration_time
from mlcd.planners.modeling.statistical_efficiency import (
    NINETY_PERCENT,
    StatisticalEfficiency,
    read_statistical_efficiency,
)


class StepTimes(Protocol):
    """Seconds of one step, each with a relative standard error."""

    def predict(self, nodes: Floats, local_batch: Floats) -> tuple[Floats, Floats]:
        """At each (nodes, local batch)."""


class Epochs(Protocol):
    """Epochs to the target, each with a relative standard error; relative ones where no run is known."""

    @property
    def reference_epochs(self) -> float | None:
        """None where only ratios are known."""

    def predict(self, global_batch: Floats) -> tuple[Floats, Floats]:
        """At each global batch."""


@dataclass(frozen=True)
class NodePrice:
    """A price for each node, whatever it holds."""

    usd_per_node_hour: float

    def usd_per_hour(self, nodes: Floats, local_batch: Floats) -> Floats:
        """Of all nodes together."""
        return self.usd_per_node_hour * np.asarray(nodes, float)


@dataclass(frozen=True)
class ResourcePrice:
    """A price for each CPU and each GB: a node is rented with the memory that its local batch needs."""

    usd_per_cpu_hour: float
    usd_per_gb_hour: float
    cpus_per_node: float
    base_gb: float
    gb_per_sample: float
    devices_per_node: int = 1

    def usd_per_hour(self, nodes: Floats, local_batch: Floats) -> Floats:
        """Of all nodes together."""
        gb = self.base_gb + self.gb_per_sample * self.devices_per_node * np.asarray(local_batch, float)
        one: Floats = self.usd_per_cpu_hour * self.cpus_per_node + self.usd_per_gb_hour * gb
        all_nodes: Floats = one * np.asarray(nodes, float)
        return all_nodes


@dataclass(frozen=True)
class Forecast:
    """Time and cost of each configuration, with 90 % intervals.

    Where `absolute` is False only ratios between configurations mean anything: rank by them, never show them.
    """

    seconds: Floats
    usd: Floats
    factor: Floats
    """An interval runs from value / factor to value x factor."""
    absolute: bool


@dataclass(frozen=True)
class PerformanceModel:
    """What is known of a job: its steps, its epochs, its size; and what machines cost."""

    steps: StepTimes
    epochs: Epochs
    dataset_samples: float
    devices_per_node: int
    price: NodePrice | ResourcePrice

    def predict(self, nodes: Floats, global_batch: Floats) -> Forecast:
        """Time and cost to the target of each (nodes, global batch)."""
        batch = np.asarray(global_batch, float)
        local = local_batch(nodes, batch, self.devices_per_node)
        step_s, step_error = self.steps.predict(nodes, local)
        epochs, epochs_error = self.epochs.predict(batch)
        seconds = epochs * self.dataset_samples / batch * step_s
        usd = seconds / 3600 * self.price.usd_per_hour(nodes, local)
        factor = interval_factor(step_error, epochs_error)
        return Forecast(seconds, usd, factor, self.epochs.reference_epochs is not None)

    def document(self) -> dict[str, Any]:
        """As plain JSON."""
        if not isinstance(self.steps, IterationTime) or not isinstance(self.epochs, StatisticalEfficiency):
            raise TypeError("only a model of fitted steps and epochs can be stored")
        return {
            "steps": self.steps.document(),
            "epochs": self.epochs.document(),
            "dataset_samples": self.dataset_samples,
            "devices_per_node": self.devices_per_node,
            "price": asdict(self.price),
        }


def interval_factor(step_error: Floats, epochs_error: Floats) -> Floats:
    """What a time is divided and multiplied by for the ends of its 90 % interval."""
    factor: Floats = np.exp(NINETY_PERCENT * np.hypot(step_error, epochs_error))
    return factor


def read_performance_model(document: Mapping[str, Any]) -> PerformanceModel:
    """What `document` wrote."""
    price = document["price"]
    return PerformanceModel(
        read_iteration_time(document["steps"]),
        read_statistical_efficiency(document["epochs"]),
        document["dataset_samples"],
        document["devices_per_node"],
        NodePrice(**price) if "usd_per_node_hour" in price else ResourcePrice(**price),
    )


def local_batch(nodes: Floats, global_batch: Floats, devices_per_node: int) -> Floats:
    """Samples of the fullest device; the tolerance forgives the rounding of a division."""
    found: Floats = np.ceil(np.asarray(global_batch, float) / (np.asarray(nodes, float) * devices_per_node) - 1e-9)
    return found
