"""What the model of an earlier `mlcd scale` of the same job tells a search for machines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlcd.core.configuration import Space
from mlcd.core.job import Job
from mlcd.core.measurement import Measurement, Outcome
from mlcd.memory.earlier import Kinship, nearest_models
from mlcd.memory.models import ModelShelf
from mlcd.planners.modeling.performance import read_performance_model


def known_by_model(job: Job, space: Space, known: Sequence[Measurement], shelf: ModelShelf) -> tuple[Measurement, ...]:
    """What is known to a search for machines, and what the model that a run of `mlcd scale` has left adds to it.

    It tells where to look, and certifies nothing.
    """
    batch, (found, _) = job.hints.global_batch, nearest_models(job, space, shelf)
    if batch is None or found is None or found.kinship is not Kinship.SAME:
        return tuple(known)
    steps = found.models[0].learned(read_performance_model).steps
    told, types = {m.configuration for m in known}, {machine.instance_type for machine in found.models[0].machines}
    new = [c for c in space.configurations if c.offer.name in types and c not in told and batch % c.workers == 0]
    expected = (steps.predict(np.array([float(c.nodes)]), np.array([batch / c.workers])) for c in new)
    return (
        *known,
        *(
            Measurement(c, Outcome.OK, 0.0, 0.0, batch / float(step_s[0]), float(error[0]))
            for c, (step_s, error) in zip(new, expected, strict=True)
        ),
    )
