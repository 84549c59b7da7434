"""Time and cost to the target of every configuration, from a model of steps and one of epochs, whichever they are.

Symbols   T = e (D/B) tau    cost = T x price of K nodes an hour
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mlcd.core.configuration import Floats
from mlcd.planners.modeling.performance import NodePrice, interval_factor, local_batch


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
class Forecast:
    """Time and cost of each configuration, with 90 % intervals.

    Where `absolute` is False only ratios between configurations mean anything: rank by them, never show them.
    """

    seconds: Floats
    usd: Floats
    factor: Floats
    """An interval runs from value / factor to value x factor."""
    absolute: bool


def forecast(
    steps: StepTimes,
    epochs: Epochs,
    dataset_samples: float,
    devices_per_node: int,
    price: NodePrice,
    nodes: Floats,
    global_batch: Floats,
) -> Forecast:
    """Of each (nodes, global batch)."""
    batch = np.asarray(global_batch, float)
    step_s, step_error = steps.predict(nodes, local_batch(nodes, batch, devices_per_node))
    needed, epochs_error = epochs.predict(batch)
    seconds = needed * dataset_samples / batch * step_s
    usd = seconds / 3600 * price.usd_per_node_hour * np.asarray(nodes, float)
    return Forecast(seconds, usd, interval_factor(step_error, epochs_error), epochs.reference_epochs is not None)
