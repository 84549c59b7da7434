"""A stored model: what was learned, for which job, on which machines, when and by which run.

The model itself is plain data here; its owner parses it with `learned`, so that this package does not depend on any
kind of model.
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
"""Version of the file format. Incremented whenever an old file could be misread."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of a job: its name, its fingerprint, the size of its model and of its dataset."""

    job: str
    fingerprint: Fingerprint = field(default_factory=Fingerprint)
    parameters: float | None = None
    dataset_samples: float | None = None

    @staticmethod
    def of(job: Job) -> Identity:
        """The identity of this job."""
        return Identity(job.name, job.fingerprint, job.hints.parameters, job.dataset_samples)

    @property
    def is_identified(self) -> bool:
        """Whether the fingerprint alone identifies the job."""
        return bool(self.fingerprint.architecture and self.fingerprint.data)


@dataclass(frozen=True, slots=True)
class Machine:
    """An instance type that the model was learned on: its price, and its computing devices."""

    instance_type: str
    usd_per_hour: float
    devices: int
    cloud: str = ""
    region: str = ""
    spot: bool = False

    @staticmethod
    def of(offer: Offer) -> Machine:
        """The stored part of an offer."""
        return Machine(offer.name, offer.usd_per_hour, offer.workers, offer.cloud, offer.region, offer.spot)


@dataclass(frozen=True, slots=True)
class StoredModel:
    """A model that a run has learned.

    `nodes` and `batches`: its range, for display. `epochs`: what the run took to reach its `target`; None if it did not
    reach it.
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
        """The name of its file: the run, and a hash that distinguishes jobs whose runs have the same name."""
        job = self.identity.fingerprint
        identifying = "\n".join((job.architecture, job.data, job.optimizer, str(self.identity.parameters)))
        run = re.sub(r"[^A-Za-z0-9._-]+", "-", self.run).strip(".-") or "run"
        return f"{run}-{sha256(identifying.encode()).hexdigest()[:6]}"

    def learned(self, read: Callable[[Mapping[str, Any]], T]) -> T:
        """The model, parsed by `read`; `UserError` if that fails."""
        try:
            return read(self.model)
        except (KeyError, TypeError, ValueError) as error:
            why = f"this MLCD cannot read its model ({type(error).__name__}: {error})"
            raise UserError(
                f"stored model '{self.name}': {why}; drop it with: mlcd models forget {self.name}"
            ) from error


def complaint(error: ValidationError) -> str:
    """The first mistake, in a few words: 'identity.job is missing'."""
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "the whole"
    if first["type"] in ("missing", "missing_argument"):
        return f"'{where}' is missing"
    return f"'{where}': {first['msg'][0].lower()}{first['msg'][1:]}"
