"""Models that were sent: their bytes in the database, in parts, and a file of them wherever one is needed.

The row in `uploads` comes last, so that a model is there whole or not at all. A file's path is made of the hash of its
bytes alone; it is a copy, and may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import IO

from sqlalchemy import delete, func, insert, select

from mlcd.core.database.engine import Database
from mlcd.core.database.schema import upload_parts, uploads
from mlcd.core.errors import UnknownName, UserError

PART_BYTES = 1 << 20
"""Each part is written for itself: whoever writes to the ledger meanwhile never waits for a whole model."""
GIVEN_UP = timedelta(days=1)
"""After which parts without their row were left by somebody who died."""
DIGEST = re.compile(r"[0-9a-f]{64}")


class SentModels:
    """The models of a database, and this machine's copies of them, under `home`."""

    def __init__(self, database: Database, home: Path) -> None:
        self._database, self._folder = database, home / "uploads"

    def path(self, digest: str) -> Path:
        """The model's file on this machine, fetched if it is not there yet."""
        if not DIGEST.fullmatch(digest):
            raise UnknownName("upload", digest[:12], ())
        path = self._folder / f"{digest}.onnx"
        if not path.is_file():
            self._fetch(digest, path)
        return path

    def store(self, file: Path, digest: str) -> Path:
        """Put a file into the database, and in its place on this machine; its row in `uploads` is for the caller.

        Of what is there whole already, nothing is written again.
        """
        if not self.is_whole(digest, file.stat().st_size):
            self._sweep()
            self._write_parts(file, digest)
        path = self._folder / f"{digest}.onnx"
        os.replace(file, path)
        return path

    def is_whole(self, digest: str, size: int) -> bool:
        """Whether so many bytes of a model are in the database."""
        query = select(func.sum(func.length(upload_parts.c.body))).where(upload_parts.c.digest == digest)
        with self._database.read() as connection:
            return connection.execute(query).scalar() == size

    def sent_before(self, before: datetime) -> list[str]:
        """The models that were sent so long ago, by their hashes."""
        query = select(uploads.c.digest).where(uploads.c.created_at < before.astimezone(UTC).isoformat())
        with self._database.read() as connection:
            return list(connection.execute(query.order_by(uploads.c.created_at)).scalars())

    def delete(self, digest: str) -> int:
        """A model is gone from the database; how many bytes that was. Copies stay until `forget_copies`."""
        with self._database.write() as connection:
            size = connection.execute(select(uploads.c.size).where(uploads.c.digest == digest)).scalar()
            connection.execute(delete(uploads).where(uploads.c.digest == digest))
            connection.execute(delete(upload_parts).where(upload_parts.c.digest == digest))
        return int(size or 0)

    def forget_copies(self, before: datetime) -> None:
        """Delete old copies here of models that are in the database no more, and what was left half written."""
        with self._database.read() as connection:
            known = set(connection.execute(select(uploads.c.digest)).scalars())
        for path in self._folder.glob("*"):
            if path.is_file() and path.stem not in known and path.stat().st_mtime < before.timestamp():
                path.unlink(missing_ok=True)

    @contextmanager
    def beside(self) -> Iterator[tuple[Path, IO[bytes]]]:
        """A file to be written next to the copies; gone at the end unless it was put in its place."""
        self._folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix="incoming-", dir=self._folder)
        try:
            with os.fdopen(handle, "wb") as file:
                yield Path(name), file
        finally:
            with suppress(FileNotFoundError):
                os.unlink(name)

    def _fetch(self, digest: str, path: Path) -> None:
        """Part by part, checked, and put in place in one step: others may be fetching it, too."""
        with self._database.read() as connection:
            if connection.execute(select(uploads.c.digest).where(uploads.c.digest == digest)).first() is None:
                raise UnknownName("upload", digest[:12], ())
        hashed = hashlib.sha256()
        with self.beside() as (beside, file):
            for body in self._parts(digest):
                hashed.update(body)
                file.write(body)
            if hashed.hexdigest() != digest:
                raise UserError(f"upload {digest[:12]}: its bytes in the database are not those that were sent")
            file.flush()
            os.fsync(file.fileno())
            os.replace(beside, path)

    def _parts(self, digest: str) -> Iterator[bytes]:
        body = select(upload_parts.c.body).where(upload_parts.c.digest == digest)
        for part in count():
            with self._database.read() as connection:
                found: bytes | None = connection.execute(body.where(upload_parts.c.part == part)).scalar()
            if found is None:
                return
            yield found

    def _write_parts(self, file: Path, digest: str) -> None:
        ours = upload_parts.c.digest == digest
        with file.open("rb") as source:
            for part, body in enumerate(iter(lambda: source.read(PART_BYTES), b"")):
                row = {"digest": digest, "part": part, "written_at": datetime.now(UTC).isoformat(), "body": body}
                with self._database.write() as connection:
                    # Somebody may have begun to send the same bytes, or do so now.
                    connection.execute(delete(upload_parts).where(ours, upload_parts.c.part == part))
                    connection.execute(insert(upload_parts), row)

    def _sweep(self) -> None:
        """Remove what was given up."""
        before = (datetime.now(UTC) - GIVEN_UP).isoformat()
        rowless = upload_parts.c.digest.not_in(select(uploads.c.digest))
        with self._database.write() as connection:
            connection.execute(delete(upload_parts).where(rowless, upload_parts.c.written_at < before))
