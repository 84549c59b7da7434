"""One model on one cluster: the configurations with known results, and the true time of each.

A configuration is (full nodes, global batch of a run), without gradient accumulation. Its step time is the measured
one at its local batch on that many nodes or, since runs and step times were measured at different batches, is
log-linearly interpolated between the two measured neighbours. There are no configurations outside the measured range.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlcd.core.configuration import Floats
from mlcd.core.errors import RecordingError
from mlcd.planners.modeling.performance import NodePrice, local_batch
from mlcd_bench.scale.folder import Folder
from mlcd_bench.scale.target import Reached, Target, common_target

DEVICES_PER_NODE = {"aws": 4, "azure": 8, "dgx-ext": 8}
USD_PER_NODE_HOUR = {"aws": 3.912, "azure": 22.03, "dgx-ext": 32.77}
UNKNOWN_USD = 1.0
"""The price of a cluster without a known one. Ratios do not depend on it."""


@dataclass(frozen=True)
class Problem:
    """Columns over configurations, and the runs behind them."""

    model: str
    cluster: str
    devices_per_node: int
    price: NodePrice
    target: Target
    runs: tuple[Reached, ...]
    """In order of batch size."""
    nodes: Floats
    global_batch: Floats
    local_batch: Floats
    step_s: Floats
    interpolated: Floats
    """1 where the step time lies between two measured ones, else 0."""
    seconds: Floats
    """What training to the target really takes."""

    @property
    def usd(self) -> Floats:
        """True cost."""
        return self.seconds / 3600 * self.price.usd_per_node_hour * self.nodes


def problem(folder: Folder, model: str, cluster: str, usd_per_node_hour: float | None = None) -> Problem | None:
    """The configurations of a model on a cluster; None if no step time on full nodes fits a run."""
    target = common_target(folder.runs[model])
    runs = tuple(reached for run in folder.runs[model] if (reached := target.reached(run)) is not None)
    if not runs:
        raise RecordingError(f"{folder.path}: no run of {model} reaches its target, {target.level:g}")
    devices = _devices_per_node(folder, cluster)
    times = _times(folder, model, cluster, devices)
    rows = []
    for nodes, (batches, seconds) in sorted(times.items()):
        for reached in runs:
            local = float(local_batch(np.array(nodes), np.array(reached.run.global_batch), devices))
            if batches[0] <= local <= batches[-1]:
                step_s = np.exp(np.interp(np.log(local), np.log(batches), np.log(seconds)))
                between = local not in batches
                row = (nodes, reached.run.global_batch, local, step_s, between, reached.iterations * step_s)
                rows.append(row)
    if not rows:
        return None
    usd = usd_per_node_hour or USD_PER_NODE_HOUR.get(cluster, UNKNOWN_USD)
    return Problem(model, cluster, devices, NodePrice(usd), target, runs, *np.array(rows, dtype=float).T)


def _devices_per_node(folder: Folder, cluster: str) -> int:
    """The known number, or the most that any measured node of the cluster had."""
    seen = max(-(-step.devices // step.nodes) for step in folder.steps if step.cluster == cluster)
    return DEVICES_PER_NODE.get(cluster, seen)


def _times(folder: Folder, model: str, cluster: str, devices: int) -> dict[int, tuple[Floats, Floats]]:
    """Local batches and seconds on full nodes, by node count; repeated measurements are averaged in the log."""
    times: dict[int, dict[float, list[float]]] = {}
    for step in folder.steps:
        if (step.model, step.cluster) == (model, cluster) and step.devices == step.nodes * devices:
            times.setdefault(step.nodes, {}).setdefault(step.local_batch, []).append(np.log(step.seconds))
    return {
        nodes: (np.array(sorted(logs)), np.array([float(np.exp(np.mean(logs[batch]))) for batch in sorted(logs)]))
        for nodes, logs in times.items()
    }
