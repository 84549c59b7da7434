"""Uploaded models: their facts and names. Their bytes are in `mlcd.core.database.files`."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from sqlalchemy import func, insert, select, update

from mlcd.core.database import Database
from mlcd.core.database.files import DIGEST, SentModels
from mlcd.core.database.schema import uploads
from mlcd.core.errors import UnknownName, UserError, WrongState
from mlcd.planners.serve.nouns import UPLOAD, ModelFacts
from mlcd.service.web.failures import Refusal
from mlcd.service.web.reading import MODEL, in_child_process, passes_limits
from mlcd.service.web.reading.parsers import FACTS, PROFILES, anatomy, passes

LONGEST_NAME = 80


@dataclass(frozen=True)
class Upload:
    """An uploaded model. `operators`: the count of each kind. `note`: why the model could not be run."""

    digest: str
    name: str
    size: int
    facts: ModelFacts
    operators: dict[str, int]
    note: str = ""

    @property
    def word(self) -> str:
        """The name of the model in a job, valid on every machine."""
        return f"{UPLOAD}{self.digest}"


class Uploads:
    """The uploads of one service."""

    def __init__(self, database: Database, home: Path) -> None:
        self._database, self._sent = database, SentModels(database, home)

    def path(self, upload: Upload) -> Path:
        """Its file."""
        return self._sent.path(upload.digest)

    def get(self, digest: str) -> Upload:
        """The upload of this hash."""
        upload = self._find(digest) if DIGEST.fullmatch(digest) else None
        if upload is None:
            raise UnknownName("upload", digest[:12], ())
        return upload

    def check_quota(self, owner: str, more: int, most: int) -> None:
        """Refuse bytes beyond the owner's quota."""
        query = select(func.coalesce(func.sum(uploads.c.size), 0)).where(uploads.c.owner == owner)
        with self._database.read() as connection:
            used = int(connection.execute(query).scalar_one())
        if used + more > most:
            raise Refusal(413, f"{owner} has {used >> 20} MB of models here, and {most >> 20} MB are the most")

    @contextmanager
    def incoming(self) -> Iterator[Incoming]:
        """A temporary file to write to; deleted at the end unless it was stored."""
        with self._sent.beside() as (path, file):
            yield Incoming(path, file)

    def keep(self, incoming: Incoming, name: str, owner: str | None) -> Upload:
        """Read the received file and store it. Equal files are stored once."""
        incoming.close()
        upload = self._find(incoming.digest) or read_model(incoming.path, cleaned(name), incoming.digest)
        self._sent.store(incoming.path, upload.digest)
        self._record(upload, owner)
        return upload

    def _find(self, digest: str) -> Upload | None:
        with self._database.read() as connection:
            row = connection.execute(select(uploads).where(uploads.c.digest == digest)).one_or_none()
        if row is None:
            return None
        stored = json.loads(row.facts)
        return Upload(
            row.digest,
            row.name,
            row.size,
            FACTS.validate_python(stored["facts"]),
            stored["operators"],
            stored.get("note", ""),
        )

    def _record(self, upload: Upload, owner: str | None) -> None:
        facts = json.dumps(
            {
                "facts": FACTS.dump_python(upload.facts, mode="json"),
                "operators": upload.operators,
                "note": upload.note,
            }
        )
        with self._database.write() as connection:
            if not self._sent.is_whole(upload.digest, upload.size):  # storing took so long that the file was cleaned up
                raise WrongState(f"{upload.name}: storing it took more than a day; send it again")
            now, this_upload = datetime.now(UTC).isoformat(), uploads.c.digest == upload.digest
            if not connection.execute(update(uploads).where(this_upload).values(created_at=now)).rowcount:
                row = {"digest": upload.digest, "name": upload.name, "size": upload.size, "owner": owner}
                connection.execute(insert(uploads).values({**row, "created_at": now, "facts": facts}))


class Incoming:
    """A file that is being received, and its hash."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self.path, self.size = path, 0
        self._file, self._hash = file, hashlib.sha256()

    def write(self, chunk: bytes) -> None:
        """Add the next bytes."""
        self._hash.update(chunk)
        self._file.write(chunk)
        self.size += len(chunk)

    def close(self) -> None:
        """Flush all bytes to disk."""
        if not self._file.closed:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()

    @property
    def digest(self) -> str:
        """The hash of what was received so far."""
        return self._hash.hexdigest()


def cleaned(name: str) -> str:
    """A name that can be shown: letters, digits and a few signs, without folders."""
    plain = re.sub(r"[^A-Za-z0-9._ -]+", "-", re.split(r"[/\\]", name)[-1]).strip(" .-")
    return plain[-LONGEST_NAME:].strip(" .-") or "model.onnx"


def read_model(path: Path, name: str, digest: str) -> Upload:
    """Read a model's file in a child process, and profile passes of it if that needs no further input."""
    anatomy_read = json.loads(in_child_process(name, MODEL, anatomy, str(path), name))
    facts = FACTS.validate_python(anatomy_read["facts"])
    upload = Upload(digest, name, path.stat().st_size, facts, dict(anatomy_read["operators"]))
    try:
        return replace(upload, facts=profiled(facts, path, name, {}))
    except UserError as error:
        return replace(upload, note=str(error))


def profiled(facts: ModelFacts, path: Path, name: str, shapes: dict[str, int]) -> ModelFacts:
    """The facts with profiles of passes at these sizes of free axes, made in a child process."""
    folder = tempfile.mkdtemp(prefix="passes-", dir=path.parent)
    try:
        profiles = in_child_process(name, passes_limits(path.stat().st_size), passes, str(path), name, shapes, folder)
        return replace(facts, profiles=PROFILES.validate_json(profiles))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
