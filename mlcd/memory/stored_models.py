"""Models that earlier runs have learned, for whoever searches next."""

from __future__ import annotations

from mlcd.core.backend import Provenance
from mlcd.core.configuration import Space
from mlcd.core.database import Database
from mlcd.core.home import home
from mlcd.core.job import Job
from mlcd.memory.models import Identity, Nearest, Shelf, StoredModel, Unreadable, nearest, shelf_of


def learned_models(database: Database) -> Shelf:
    """Where learned models are kept: on this machine, or for a team in its database."""
    return shelf_of(database, home() / "models")


def nearest_models(job: Job, space: Space, shelf: Shelf) -> tuple[Nearest | None, list[Unreadable]]:
    """The stored models to ask about a job, and those that cannot be read."""
    stored, broken = shelf.all()
    usable = [model for model in stored.values() if _of_the_same_world(model, job)]
    return nearest(usable, Identity.of(job), {c.offer.name for c in space.configurations}), broken


def _of_the_same_world(model: StoredModel, job: Job) -> bool:
    """What was made up or replayed is no lesson for what is real, nor the other way round."""
    kinds = {"simulated": Provenance.SIMULATED, "recorded": Provenance.RECORDED}
    return model.provenance is kinds.get(job.on.partition(":")[0], Provenance.LIVE)
