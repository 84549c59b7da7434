"""What elastic runs have left on the shelf, for whoever searches next."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlcd.core.backend import Provenance
from mlcd.core.configuration import Space
from mlcd.core.database import Database
from mlcd.core.home import home
from mlcd.core.job import Job
from mlcd.core.measurement import Measurement, Outcome
from mlcd.memory.models import Identity, Kinship, Nearest, Shelf, StoredModel, Unreadable, nearest, shelf_of
from mlcd.planners.modeling.performance import read_performance_model


def learned_models(database: Database) -> Shelf:
    """Where learned models are kept: on this machine, or for a team in its database."""
    return shelf_of(database, home() / "models")


def known_by_model(job: Job, space: Space, known: Sequence[Measurement], shelf: Shelf) -> tuple[Measurement, ...]:
    """What is known to a search for machines, and what a model that an elastic run of the same job has left adds to it.

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


def nearest_models(job: Job, space: Space, shelf: Shelf) -> tuple[Nearest | None, list[Unreadable]]:
    """The stored models to ask about a job, and those that cannot be read."""
    stored, broken = shelf.all()
    usable = [model for model in stored.values() if _of_the_same_world(model, job)]
    return nearest(usable, Identity.of(job), {c.offer.name for c in space.configurations}), broken


def _of_the_same_world(model: StoredModel, job: Job) -> bool:
    """What was made up or replayed is no lesson for what is real, nor the other way round."""
    kinds = {"simulated": Provenance.SIMULATED, "recorded": Provenance.RECORDED}
    return model.provenance is kinds.get(job.on.partition(":")[0], Provenance.LIVE)
