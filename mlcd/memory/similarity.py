"""Selects the stored model for a new job.

The distance of two jobs is a sum: 1 for another architecture, the decades between their numbers of parameters (at most
3), 1 for other data, 1/2 for another optimiser. If one of the two is not stated: 1/2, for the optimiser 1/4.
A model within distance 1 is used unchanged; if there is none, the caller averages all of them.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from mlcd.core.backend import Provenance
from mlcd.core.configuration import Space
from mlcd.core.job import Job
from mlcd.memory.models import Identity, ModelShelf, StoredModel
from mlcd.memory.shelf import Unreadable

SIMILAR = 1.0
MOST_DECADES = 3.0


class Kinship(StrEnum):
    """The relation of the selected models to the job."""

    SAME = "the same job"
    SIMILAR = "the most similar job"
    AVERAGE = "the average of all jobs"


@dataclass(frozen=True, slots=True)
class Nearest:
    """The selected models: one of the same or of the most similar job, or all of them, to be averaged."""

    kinship: Kinship
    models: tuple[StoredModel, ...]
    distance: float


def nearest_models(job: Job, space: Space, shelf: ModelShelf) -> tuple[Nearest | None, list[Unreadable]]:
    """The stored models to ask about a job, and those that cannot be read.

    What was simulated or recorded is no lesson for real machines, nor the other way round.
    """
    kinds = {"simulated": Provenance.SIMULATED, "recorded": Provenance.RECORDED}
    provenance = kinds.get(job.on.partition(":")[0], Provenance.LIVE)
    stored, broken = shelf.all()
    usable = [model for model in stored.values() if model.provenance is provenance]
    return nearest(usable, Identity.of(job), {c.offer.name for c in space.configurations}), broken


def nearest(models: Collection[StoredModel], job: Identity, instance_types: Collection[str] = ()) -> Nearest | None:
    """The models for a job; None without any. Ties are broken by equal machines, then by date."""
    if not models:
        return None

    def rank(model: StoredModel) -> tuple[bool, float, bool, float]:
        other_machines = not any(machine.instance_type in instance_types for machine in model.machines)
        return not same(model.identity, job), distance(model.identity, job), other_machines, -model.saved_at.timestamp()

    best = min(models, key=rank)
    distance_of_best = distance(best.identity, job)
    if same(best.identity, job):
        return Nearest(Kinship.SAME, (best,), distance_of_best)
    if distance_of_best <= SIMILAR:
        return Nearest(Kinship.SIMILAR, (best,), distance_of_best)
    return Nearest(Kinship.AVERAGE, tuple(models), distance_of_best)


def same(one: Identity, other: Identity) -> bool:
    """Whether two jobs are the same: equal complete fingerprints, or else the same name."""
    sizes = {size for size in (one.parameters, other.parameters) if size}
    complete = bool(one.fingerprint.architecture and one.fingerprint.data)
    return one.fingerprint == other.fingerprint and len(sizes) < 2 and (complete or one.job == other.job)


def distance(one: Identity, other: Identity) -> float:
    """The distance of two jobs; 0 if both are fully stated and equal."""
    mine, yours = one.fingerprint, other.fingerprint
    return (
        _differ(mine.architecture, yours.architecture)
        + _decades(one.parameters, other.parameters)
        + _differ(mine.data, yours.data)
        + 0.5 * _differ(mine.optimizer, yours.optimizer)
    )


def _differ(one: str, other: str) -> float:
    if not one or not other:
        return 0.5
    return float(one.casefold() != other.casefold())


def _decades(one: float | None, other: float | None) -> float:
    if not one or not other:
        return 0.5
    return min(MOST_DECADES, abs(math.log10(one / other)))
