"""Which stored model to ask about a job that nothing is known of yet.

The distance of two jobs is a sum: 1 for another architecture, the decades between their numbers of parameters (3 at the
most), 1 for other data, 1/2 for another optimiser. Where one of the two does not say, 1/2; of the optimiser, 1/4.
A model within 1 is taken as it is; where none is so near, all of them are averaged, by whoever knows how.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from mlcd.memory.models.stored import Identity, StoredModel

SIMILAR = 1.0
MOST_DECADES = 3.0


class Kinship(StrEnum):
    """How the models that were found are related to the job."""

    SAME = "the same job"
    SIMILAR = "the most similar job"
    AVERAGE = "the average of all jobs"


@dataclass(frozen=True, slots=True)
class Nearest:
    """The models to ask: one of the same or of the most similar job, or all of them, to be averaged."""

    kinship: Kinship
    models: tuple[StoredModel, ...]
    distance: float


def nearest(models: Collection[StoredModel], job: Identity, instance_types: Collection[str] = ()) -> Nearest | None:
    """The models to ask about a job; None without any. Of equally near ones: on these machines, then the newest."""
    if not models:
        return None

    def rank(model: StoredModel) -> tuple[bool, float, bool, float]:
        elsewhere = not any(machine.instance_type in instance_types for machine in model.machines)
        return not same(model.identity, job), distance(model.identity, job), elsewhere, -model.saved_at.timestamp()

    best = min(models, key=rank)
    far = distance(best.identity, job)
    if same(best.identity, job):
        return Nearest(Kinship.SAME, (best,), far)
    if far <= SIMILAR:
        return Nearest(Kinship.SIMILAR, (best,), far)
    return Nearest(Kinship.AVERAGE, tuple(models), far)


def same(one: Identity, other: Identity) -> bool:
    """Whether two jobs are one: equal fingerprints that say enough, or else the same name."""
    sizes = {size for size in (one.parameters, other.parameters) if size}
    return one.fingerprint == other.fingerprint and len(sizes) < 2 and (one.known or one.job == other.job)


def distance(one: Identity, other: Identity) -> float:
    """How unlike two jobs are; 0 where both say everything, and the same."""
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
