"""Store the models that runs of `mlcd scale` have learned: as files or, for a team, as rows of its database.

The model itself is plain data here; its planner parses it with `learned`, so this package depends on no kind of model.
"""

import json
import os
import re
import tempfile
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import delete, insert, select

from mlcd.core.backend import Provenance
from mlcd.core.configuration import Offer
from mlcd.core.database import Database
from mlcd.core.database.schema import models as table
from mlcd.core.errors import UnknownName, UserError
from mlcd.core.home import home
from mlcd.core.job import Fingerprint, Job, Target
from mlcd.core.version import VERSION
from mlcd.memory.record_store import RecordStore, UnreadableRecord

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

    @classmethod
    def of(cls, job: Job) -> Self:
        """The identity of this job."""
        return cls(job.name, job.fingerprint, job.hints.parameters, job.dataset_samples)


@dataclass(frozen=True, slots=True)
class Machine:
    """An instance type that the model was learned on: its price, and its computing devices."""

    instance_type: str
    usd_per_hour: float
    devices: int
    cloud: str = ""
    region: str = ""
    spot: bool = False

    @classmethod
    def of(cls, offer: Offer) -> Self:
        """The stored part of an offer."""
        return cls(offer.name, offer.usd_per_hour, offer.workers, offer.cloud, offer.region, offer.spot)


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
            raise _unusable(f"stored model '{self.name}'", self.name, why) from error


_CODEC: TypeAdapter[StoredModel] = TypeAdapter(StoredModel)


class ModelStore(RecordStore[StoredModel]):
    """Learned models by name."""

    noun: ClassVar[str] = "stored model"

    def all(self) -> tuple[dict[str, StoredModel], list[UnreadableRecord]]:
        """All models, the newest first, and the unreadable ones."""
        stored, broken = super().all()
        return dict(sorted(stored.items(), key=lambda each: (each[1].saved_at, each[0]), reverse=True)), broken

    @abstractmethod
    def save(self, stored: StoredModel) -> None:
        """Store a model, replacing one of the same run and job; `ValueError` for NaN or infinity."""

    @abstractmethod
    def forget(self, name: str) -> None:
        """Delete a model, readable or not."""


@dataclass(frozen=True)
class FileModelStore(ModelStore):
    """A file for each model, in a folder."""

    folder: Path

    def readers(self) -> Mapping[str, Callable[[], StoredModel]]:
        """A reader for each file; hidden files are unfinished."""
        paths = sorted(path for path in self.folder.glob("*.json") if not path.name.startswith("."))
        return {path.stem: partial(_read_file, path) for path in paths}

    def path(self, name: str) -> Path:
        """The file of the model of that name."""
        if name not in (readers := self.readers()):
            raise UnknownName(self.noun, name, readers)
        return self.folder / f"{name}.json"

    def save(self, stored: StoredModel) -> None:
        """Write the file atomically."""
        body = _written(stored)
        self.folder.mkdir(parents=True, exist_ok=True)
        # in the same folder, so that the replacement is atomic; hidden, so that a crash leaves no partial model
        with tempfile.TemporaryDirectory(dir=self.folder, prefix=".") as scratch:
            fresh = Path(scratch) / "model"
            with fresh.open("w", encoding="utf-8") as file:
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
            os.replace(fresh, self.folder / f"{stored.name}.json")

    def forget(self, name: str) -> None:
        """Delete its file."""
        self.path(name).unlink(missing_ok=True)  # another process may have deleted it


@dataclass(frozen=True)
class DatabaseModelStore(ModelStore):
    """A row for each model."""

    database: Database

    def readers(self) -> Mapping[str, Callable[[], StoredModel]]:
        """A reader for each row."""
        with self.database.read() as connection:
            rows = connection.execute(select(table.c.name, table.c.body).order_by(table.c.name)).all()
        return {name: partial(_parsed, body, f"stored model '{name}'", name) for name, body in rows}

    def save(self, stored: StoredModel) -> None:
        """Replace its row."""
        row = {"name": stored.name, "saved_at": stored.saved_at.isoformat(), "body": _written(stored)}
        with self.database.write() as connection:
            connection.execute(delete(table).where(table.c.name == stored.name))
            connection.execute(insert(table).values(row))

    def forget(self, name: str) -> None:
        """Delete its row."""
        with self.database.write() as connection:
            names = connection.execute(select(table.c.name)).scalars().all()
            if name not in names:  # compared here: PostgreSQL does not accept every text
                raise UnknownName(self.noun, name, names)
            connection.execute(delete(table).where(table.c.name == name))


def learned_models(database: Database, folder: Path | None = None) -> ModelStore:
    """Where learned models are kept: in files for a ledger in SQLite, otherwise in the team's database."""
    return FileModelStore(folder or home() / "models") if database.dialect == "sqlite" else DatabaseModelStore(database)


def _written(stored: StoredModel) -> str:
    return json.dumps(_CODEC.dump_python(stored), indent=2, allow_nan=False, default=datetime.isoformat) + "\n"


def _read_file(path: Path) -> StoredModel:
    try:
        body = path.read_text(encoding="utf-8")
    except OSError as error:
        raise _unusable(str(path), path.stem, f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise _unusable(str(path), path.stem, str(error)) from None
    return _parsed(body, str(path), path.stem)


def _parsed(body: str, where: str, name: str) -> StoredModel:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise _unusable(where, name, f"is not JSON ({error})") from None
    version = document.get("format") if isinstance(document, dict) else None
    if version is None:
        raise _unusable(where, name, "is not a stored model: it has no 'format'")
    if version != FORMAT:
        raise _unusable(where, name, f"is of format {version}, and this MLCD reads format {FORMAT}")
    try:
        return _CODEC.validate_python(document)
    except ValidationError as error:
        raise _unusable(where, name, f"is not a stored model: {_complaint(error)}") from None


def _unusable(where: str, name: str, why: str) -> UserError:
    return UserError(f"{where}: {why}; delete it with: mlcd models forget {name}")


def _complaint(error: ValidationError) -> str:
    """The first mistake, in a few words: 'identity.job is missing'."""
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "the whole"
    if first["type"] in ("missing", "missing_argument"):
        return f"'{where}' is missing"
    return f"'{where}': {first['msg'][0].lower()}{first['msg'][1:]}"
