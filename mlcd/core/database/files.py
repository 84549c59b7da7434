"""Files in the database: uploaded models in parts, and logs of launches in pieces.

A model has a cached file on each machine that needs it, named by the hash of its bytes; it can be deleted at any time.
The row in `uploads` is written last, so that a model is complete or absent. Logs are stored so that readers need no
access to workers' machines: a log is its pieces in order, and an empty piece marks the end.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import IO

from sqlalchemy import ColumnElement, and_, delete, func, insert, select

from mlcd.core.database.engine import Database
from mlcd.core.database.schema import logs, upload_parts, uploads
from mlcd.core.errors import UnknownName, UserError

PART_BYTES = 1 << 20
"""Each part is a transaction of its own, so that other writers never wait for a whole model."""
ABANDONED_AFTER = timedelta(days=1)
"""After this time, parts without a row in `uploads` are abandoned."""
DIGEST = re.compile(r"[0-9a-f]{64}")
PIECE_BYTES = 256 << 10
"""Most bytes of one piece."""
PIECES_AT_ONCE = 4_096
"""Most pieces read for one request: a log that grows slowly has many small ones."""


class UploadedModels:
    """The models of a database, and this machine's cached files, under `home`."""

    def __init__(self, database: Database, home: Path) -> None:
        self._database, self._folder = database, home / "uploads"

    def path(self, digest: str) -> Path:
        """The model's file on this machine, fetched if it is not cached."""
        if not DIGEST.fullmatch(digest):
            raise UnknownName("upload", digest[:12], ())
        path = self._folder / f"{digest}.onnx"
        if not path.is_file():
            self._fetch(digest, path)
        return path

    def store(self, file: Path, digest: str) -> Path:
        """Put a file into the database, unless it is there, and the cache; the caller writes the row in `uploads`."""
        if not self.is_whole(digest, file.stat().st_size):
            self._delete_abandoned()
            self._write_parts(file, digest)
        path = self._folder / f"{digest}.onnx"
        os.replace(file, path)
        return path

    def is_whole(self, digest: str, size: int) -> bool:
        """Whether all bytes of a model are in the database."""
        query = select(func.sum(func.length(upload_parts.c.body))).where(upload_parts.c.digest == digest)
        with self._database.read() as connection:
            return connection.execute(query).scalar() == size

    def sent_before(self, before: datetime) -> list[str]:
        """The hashes of models uploaded before this time."""
        query = select(uploads.c.digest).where(uploads.c.created_at < before.astimezone(UTC).isoformat())
        with self._database.read() as connection:
            return list(connection.execute(query.order_by(uploads.c.created_at)).scalars())

    def delete(self, digest: str) -> int:
        """Delete a model from the database; return its bytes. Cached files stay until `forget_copies`."""
        with self._database.write() as connection:
            size = connection.execute(select(uploads.c.size).where(uploads.c.digest == digest)).scalar()
            connection.execute(delete(uploads).where(uploads.c.digest == digest))
            connection.execute(delete(upload_parts).where(upload_parts.c.digest == digest))
        return int(size or 0)

    def forget_copies(self, before: datetime) -> None:
        """Delete old cached files of deleted models, and abandoned partial files."""
        with self._database.read() as connection:
            known = set(connection.execute(select(uploads.c.digest)).scalars())
        for path in self._folder.glob("*"):
            if path.is_file() and path.stem not in known and path.stat().st_mtime < before.timestamp():
                path.unlink(missing_ok=True)

    @contextmanager
    def beside(self) -> Iterator[tuple[Path, IO[bytes]]]:
        """A temporary file in the cache folder; deleted at the end unless it was moved."""
        self._folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix="incoming-", dir=self._folder)
        try:
            with os.fdopen(handle, "wb") as file:
                yield Path(name), file
        finally:
            with suppress(FileNotFoundError):
                os.unlink(name)

    def _fetch(self, digest: str, path: Path) -> None:
        """Fetch the parts, check the hash, and move the file atomically: other processes may fetch it, too."""
        with self._database.read() as connection:
            if connection.execute(select(uploads.c.digest).where(uploads.c.digest == digest)).first() is None:
                raise UnknownName("upload", digest[:12], ())
        hashed = hashlib.sha256()
        with self.beside() as (beside, file):
            for body in self._parts(digest):
                hashed.update(body)
                file.write(body)
            if hashed.hexdigest() != digest:
                raise UserError(f"upload {digest[:12]}: its bytes in the database do not match its hash")
            file.flush()
            os.fsync(file.fileno())
            os.replace(beside, path)

    def _parts(self, digest: str) -> Iterator[bytes]:
        body = select(upload_parts.c.body).where(upload_parts.c.digest == digest)
        for part in count():
            with self._database.read() as connection:
                body_part: bytes | None = connection.execute(body.where(upload_parts.c.part == part)).scalar()
            if body_part is None:
                return
            yield body_part

    def _write_parts(self, file: Path, digest: str) -> None:
        same_model = upload_parts.c.digest == digest
        with file.open("rb") as source:
            for part, body in enumerate(iter(lambda: source.read(PART_BYTES), b"")):
                row = {"digest": digest, "part": part, "written_at": datetime.now(UTC).isoformat(), "body": body}
                with self._database.write() as connection:
                    # The same model may be uploaded twice at the same time.
                    connection.execute(delete(upload_parts).where(same_model, upload_parts.c.part == part))
                    connection.execute(insert(upload_parts), row)

    def _delete_abandoned(self) -> None:
        """Delete abandoned parts."""
        before = (datetime.now(UTC) - ABANDONED_AFTER).isoformat()
        unlisted = upload_parts.c.digest.not_in(select(uploads.c.digest))
        with self._database.write() as connection:
            connection.execute(delete(upload_parts).where(unlisted, upload_parts.c.written_at < before))


class LogPieces:
    """The logs in a database, by launch label and process number."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def with_log(self, labels: Collection[str], process: int) -> set[str]:
        """Those of these launches that have a log of this process."""
        query = select(logs.c.label).where(logs.c.label.in_(labels), logs.c.process == process).distinct()
        with self._database.read() as connection:
            return set(connection.execute(query).scalars())

    def processes(self, label: str) -> list[int]:
        """The processes of a launch that have a log."""
        query = select(logs.c.process).where(logs.c.label == label).distinct().order_by(logs.c.process)
        with self._database.read() as connection:
            return list(connection.execute(query).scalars())

    def end(self, label: str, process: int) -> tuple[int, bool]:
        """The number of bytes, and whether the log is complete."""
        query = select(logs.c.start, func.length(logs.c.body)).where(_of(label, process))
        with self._database.read() as connection:
            last = connection.execute(query.order_by(logs.c.start.desc()).limit(1)).first()
        return (0, False) if last is None else (last[0] + last[1], last[1] == 0)

    def append(self, label: str, process: int, start: int, body: bytes) -> None:
        """Add the next piece, of at most `PIECE_BYTES`; an empty one marks the end."""
        with self._database.write() as connection:
            row = {"label": label, "process": process, "start": start, "body": body}
            connection.execute(insert(logs), row)

    def read(self, label: str, process: int, after: int, most: int) -> bytes:
        """At most `most` bytes, from position `after`."""
        of = and_(_of(label, process), logs.c.start > after - PIECE_BYTES)
        sizes = select(logs.c.start, func.length(logs.c.body)).where(of).order_by(logs.c.start).limit(PIECES_AT_ONCE)
        with self._database.read() as connection:
            starts = [start for start, size in connection.execute(sizes) if after < start + size < after + most + size]
            if not starts:
                return b""
            bodies = select(logs.c.body).where(of, logs.c.start.between(starts[0], starts[-1])).order_by(logs.c.start)
            text = b"".join(connection.execute(bodies).scalars())
        return text[max(0, after - starts[0]) :][:most]

    def labels(self) -> list[str]:
        """The launches that have a log."""
        with self._database.read() as connection:
            return list(connection.execute(select(logs.c.label).distinct().order_by(logs.c.label)).scalars())

    def delete(self, label: str) -> int:
        """Delete the logs of a launch; return their bytes."""
        size = select(func.coalesce(func.sum(func.length(logs.c.body)), 0)).where(logs.c.label == label)
        with self._database.write() as connection:
            size_bytes = int(connection.execute(size).scalar_one())
            connection.execute(delete(logs).where(logs.c.label == label))
        return size_bytes


def _of(label: str, process: int) -> ColumnElement[bool]:
    return and_(logs.c.label == label, logs.c.process == process)
