"""What a run of `mlcd scale` has learned of its job: step times, epochs to the target, the size of its data.

Tyagi and Sharma, Scavenger, 2023, equations (3) to (5): time is step time x epochs x data set over the batch.

Symbols   K  nodes    B  global batch    b  samples of one device = ceil(B / (K devices)): the slowest one decides
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from mlcd.core.configuration import Floats
from mlcd.planners.modeling.iteration_time import IterationTime
from mlcd.planners.modeling.statistical_efficiency import NINETY_PERCENT, Direction, StatisticalEfficiency


@dataclass(frozen=True)
class NodePrice:
    """A price for each node, whatever it holds."""

    usd_per_node_hour: float


@dataclass(frozen=True)
class PerformanceModel:
    """What is known of a job: its steps, its epochs, its size; and what machines cost."""

    steps: IterationTime
    epochs: StatisticalEfficiency
    dataset_samples: float
    devices_per_node: int
    price: NodePrice

    def document(self) -> dict[str, Any]:
        """As plain JSON."""
        return asdict(self)


def interval_factor(step_error: Floats, epochs_error: Floats) -> Floats:
    """What a time is divided and multiplied by for the ends of its 90 % interval."""
    factor: Floats = np.exp(NINETY_PERCENT * np.hypot(step_error, epochs_error))
    return factor


def read_performance_model(document: Mapping[str, Any]) -> PerformanceModel:
    """What `document` wrote."""
    steps: dict[str, Any] = {
        name: tuple(each) if isinstance(each, list) else each for name, each in document["steps"].items()
    }
    epochs = {**document["epochs"], "direction": Direction(document["epochs"]["direction"])}
    parts = {"steps": IterationTime(**steps), "epochs": StatisticalEfficiency(**epochs)}
    return PerformanceModel(**{**document, **parts, "price": NodePrice(**document["price"])})


def local_batch(nodes: Floats, global_batch: Floats, devices_per_node: int) -> Floats:
    """Samples of the fullest device; the tolerance forgives the rounding of a division."""
    share: Floats = np.ceil(np.asarray(global_batch, float) / (np.asarray(nodes, float) * devices_per_node) - 1e-9)
    return share
