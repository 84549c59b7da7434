"""Models to serve: POST /uploads takes an ONNX file, reads it in a child process, and stores it.

Here are the models' facts and names; their bytes are in `mlcd.core.database.uploaded_models`.
"""

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
from typing import IO, Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import Field
from sqlalchemy import func, insert, select, update
from starlette.concurrency import run_in_threadpool

from mlcd.core.database import Database
from mlcd.core.database.files import DIGEST, UploadedModels
from mlcd.core.database.schema import uploads as table
from mlcd.core.errors import UnknownName, UserError, WrongState
from mlcd.core.part import Part, part_fields
from mlcd.planners.serve.model_facts import ModelFacts
from mlcd.planners.serve.nouns import UPLOAD
from mlcd.service.team.members import Member
from mlcd.service.web.errors import Refusal, error_responses
from mlcd.service.web.identity import Submitter, audited
from mlcd.service.web.places import check_uploads
from mlcd.service.web.safety.bodies import BYTES, arriving, check_size, check_type, limited_chunks
from mlcd.service.web.state import CurrentState, State
from mlcd.service.web.untrusted_input import (
    FACTS,
    MODEL,
    PROFILES,
    in_child_process,
    inspect_model,
    passes,
    passes_limits,
)

router = APIRouter(tags=["submit"])
LONGEST_S = 900.0  # timeout of an upload
LONGEST_NAME = 80
BODY = {"required": True, "content": {BYTES: {"schema": {"type": "string", "format": "binary"}}}}


class UploadedOperator(Part):
    """A kind of operator in a model."""

    kind: str = Field(description="The operator.")
    count: int = Field(description="Its calls in one forward pass.")
    share: float | None = Field(description="Its share of the pass's time; null if the model could not be run.")


class UploadedFacts(Part):
    """What is known about a model before any trial."""

    family: str = Field(description="Its family of architectures.")
    inputs: str = Field(description="The kind of its input.")
    weights_mb: float | None = Field(description="Its weights, in 2**20 bytes.")
    parameters: float | None = Field(description="Its parameters, in billions.")
    note: str = Field(description="What could not be found out; else empty.")


class Uploaded(Part):
    """A model that can be served, identified by the SHA-256 of its file."""

    upload: str = Field(description="The SHA-256 of its file: what to submit.")
    name: str = Field(description="The file's name.")
    size: int = Field(description="Its bytes.")
    facts: UploadedFacts = Field(description="What is known about it.")
    operators: list[UploadedOperator] = Field(description="Its operators, the most expensive first.")


@router.post("/uploads", status_code=201, responses=error_responses(413, 415, 422), openapi_extra={"requestBody": BODY})
async def upload_model(
    request: Request,
    state: CurrentState,
    who: Submitter,
    name: Annotated[str, Query(max_length=200, description="The file's name.")] = "model.onnx",
) -> Uploaded:
    """Upload an ONNX model in one file. Equal files are stored once."""
    check_uploads(state.settings)
    most = state.settings.limits.upload_mb << 20
    check_type(request, BYTES)
    check_size(request, most)
    uploads = Uploads(state.database, state.settings.home)
    await run_in_threadpool(_check_quota, state, who, uploads, int(request.headers.get("content-length", "0")))
    with uploads.incoming() as incoming:
        async with arriving("file", LONGEST_S):
            async for chunk in limited_chunks(request, most):
                await run_in_threadpool(incoming.write, chunk)
        await run_in_threadpool(incoming.close)
        upload = await run_in_threadpool(_store, state, who, uploads, incoming, name)
    facts = UploadedFacts(**part_fields(UploadedFacts, upload.facts, note=upload.note))
    return Uploaded(**part_fields(Uploaded, upload, upload=upload.digest, facts=facts, operators=_operators(upload)))


def _check_quota(state: State, who: Member | None, uploads: Uploads, more: int) -> None:
    """Refuse bytes beyond the member's quota."""
    most = state.settings.limits.uploads_mb_each << 20
    if who is not None and (used := uploads.bytes_of(who.name)) + more > most:
        raise Refusal(413, f"{who.name} has uploaded {used >> 20} MB of models, and {most >> 20} MB are the most")


def _store(state: State, who: Member | None, uploads: Uploads, incoming: Incoming, name: str) -> Upload:
    with audited(state, who, "upload", incoming.digest) as note:
        _check_quota(state, who, uploads, incoming.size)
        upload = uploads.keep(incoming, name, who.name if who is not None else None)
        note.detail = f"{upload.name}, {upload.size} bytes"
    return upload


def _operators(upload: Upload) -> list[UploadedOperator]:
    """Those that ran, by their share of the time; if none ran, those in the file."""
    if not upload.facts.profiles:
        counts = sorted(upload.operators.items(), key=lambda pair: (-pair[1], pair[0]))
        return [UploadedOperator(kind=kind, count=count, share=None) for kind, count in counts]
    profile = upload.facts.profiles[0]
    ranked = sorted(profile.operators, key=lambda each: -profile.shares[each.name])
    return [UploadedOperator(kind=each.name, count=each.calls, share=profile.shares[each.name]) for each in ranked]


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
        self._database, self._sent = database, UploadedModels(database, home)

    def path(self, upload: Upload) -> Path:
        """Its file."""
        return self._sent.path(upload.digest)

    def get(self, digest: str) -> Upload:
        """The upload of this hash."""
        upload = self._find(digest) if DIGEST.fullmatch(digest) else None
        if upload is None:
            raise UnknownName("upload", digest[:12], ())
        return upload

    def bytes_of(self, owner: str) -> int:
        """How many bytes a member has here."""
        query = select(func.coalesce(func.sum(table.c.size), 0)).where(table.c.owner == owner)
        with self._database.read() as connection:
            return int(connection.execute(query).scalar_one())

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
            row = connection.execute(select(table).where(table.c.digest == digest)).one_or_none()
        if row is None:
            return None
        stored = json.loads(row.facts)
        facts, note = FACTS.validate_python(stored["facts"]), stored.get("note", "")
        return Upload(row.digest, row.name, row.size, facts, stored["operators"], note)

    def _record(self, upload: Upload, owner: str | None) -> None:
        facts = FACTS.dump_python(upload.facts, mode="json")
        text = json.dumps({"facts": facts, "operators": upload.operators, "note": upload.note})
        with self._database.write() as connection:
            if not self._sent.is_whole(upload.digest, upload.size):  # storing took so long that the file was cleaned up
                raise WrongState(f"{upload.name}: storing it took more than a day; send it again")
            now, this_upload = datetime.now(UTC).isoformat(), table.c.digest == upload.digest
            if not connection.execute(update(table).where(this_upload).values(created_at=now)).rowcount:
                row: dict[str, Any] = {"digest": upload.digest, "name": upload.name, "size": upload.size}
                connection.execute(insert(table).values(**row, owner=owner, created_at=now, facts=text))


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
    anatomy_read = json.loads(in_child_process(name, MODEL, inspect_model, str(path), name))
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
