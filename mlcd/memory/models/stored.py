"""A learned model as it is kept: what was learned, of which job, on which machines, when and by which run.

The model itself is plain data here. Whoever made it reads it back with `learned`, so that this room needs to know
nothing of models.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, TypeVar

from pydantic import ValidationError

from mlcd.core.backend import Provenance
from mlcd.core.configuration import Offer
from mlcd.core.errors import UserError
from mlcd.core.job import Fingerprint, Job, Target
from mlcd.core.version import VERSION

FORMAT = 1
"""Of the file. Raised whenever a file of before could be read wrongly."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Identity:
    """What a job is known by: its name, what it trains, how large that is, and how many samples make an epoch."""

    job: str
    fingerprint: Fingerprint = field(default_factory=Fingerprint)
    parameters: float | None = None
    dataset_samples: float | None = None

    @staticmethod
    def of(job: Job) -> Identity:
        """What this job is known by."""
        return Identity(job.name, job.fingerprint, job.hints.parameters, job.dataset_samples)

    @property
    def known(self) -> bool:
        """Whether the fingerprint alone says which job it is."""
        return bool(self.fingerprint.architecture and self.fingerprint.data)


@dataclass(frozen=True, slots=True)
class Machine:
    """An instance type that the model was learned on: its price for a node, and the devices in one that compute."""

    instance_type: str
    usd_per_hour: float
    devices: int
    cloud: str = ""
    region: str = ""
    spot: bool = False

    @staticmethod
    def of(offer: Offer) -> Machine:
        """What is kept of an offer."""
        return Machine(offer.name, offer.usd_per_hour, offer.workers, offer.cloud, offer.region, offer.spot)


@dataclass(frozen=True, slots=True)
class StoredModel:
    """A model that a run has learned.

    `nodes` and `batches`: where it was asked for, so that it can be shown there. `epochs`: what the run itself took to
    reach its `target`; None if it did not get there.
    """

    run: str
    identity: Identity
    machines: tuple[Machine, ...]
    nodes: tuple[int, ...]
    batches: tuple[int, ...]
    model: Mapping[str, Any]
    provenance: Provenance
    target: Target | None = None
    epochs: float | None = None
    saved_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    version: str = VERSION
    format: int = FORMAT

    @property
    def name(self) -> str:
        """Of the file it is saved as: the run, and what tells two jobs apart whose runs have the same name."""
        job = self.identity.fingerprint
        told = "\n".join((job.architecture, job.data, job.optimizer, str(self.identity.parameters)))
        run = re.sub(r"[^A-Za-z0-9._-]+", "-", self.run).strip(".-") or "run"
        return f"{run}-{sha256(told.encode()).hexdigest()[:6]}"

    def learned(self, read: Callable[[Mapping[str, Any]], T]) -> T:
        """The model as what it was, by whoever can read it; one line to the user if it cannot be."""
        try:
            return read(self.model)
        except (KeyError, TypeError, ValueError) as error:
            why = f"its model is none of this MLCD ({type(error).__name__}: {error})"
            raise UserError(
                f"stored model '{self.name}': {why}; drop it with: mlcd models forget {self.name}"
            ) from error


def complaint(error: ValidationError) -> str:
    """The first thing that is wrong, in a few words: 'identity.job is missing'."""
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "the whole"
    if first["type"] in ("missing", "missing_argument"):
        return f"'{where}' is missing"
    return f"'{where}': {first['msg'][0].lower()}{first['msg'][1:]}"
