"""How long a step takes: the law of each type's step times, from what probes and runs have shown.

Symbols   tau  seconds of a step = B / samples a second      b = B / K  one worker's share of the batch
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlcd.core.configuration import Floats
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.measurement import Measurement
from mlcd.planners.modeling.iteration_time import IterationTime, fit_iteration_time
from mlcd.planners.scale.share import Machine, local_batch, machine_of, trained_batch

ENOUGH = 4
"""Measurements of a type that speak for themselves."""


def measured_steps(job: Job, history: History) -> dict[Machine, IterationTime]:
    """For each type that was measured, the law of its step times.

    A type that was hardly measured is taken to scale like the one that was measured most, at its own speed.
    """
    of: dict[Machine, list[Measurement]] = {}
    for m in (*history.good, *(run for run in history.runs if run.ok)):
        of.setdefault(machine_of(m.configuration), []).append(m)
    steps = {machine: _points(job, told) for machine, told in of.items()}
    if not steps:
        return {}
    most = max(steps, key=lambda machine: steps[machine].shape[1])
    model = fit_iteration_time(*steps[most])
    return {
        machine: model if machine == most else fit_iteration_time(*_with_the_shape_of(model, points))
        for machine, points in steps.items()
    }


def _points(job: Job, told: Sequence[Measurement]) -> Floats:
    """Nodes, local batch and seconds of a step, a column for each measurement."""
    return np.array(
        [
            (
                float(m.configuration.nodes),
                local_batch(job, m.configuration),
                trained_batch(job, m.configuration) / m.rate,
            )
            for m in told
        ]
    ).T


def _with_the_shape_of(model: IterationTime, points: Floats) -> Floats:
    """The points and, while they are few, those of another type at the speed of these."""
    if points.shape[1] >= ENOUGH:
        return points
    slower = np.exp(np.mean(np.log(points[2] / model.predict(points[0], points[1])[0])))
    others = np.array([model.nodes, model.local_batch, np.array(model.seconds) * slower])
    return np.concatenate([points, others], axis=1)
