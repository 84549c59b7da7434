"""S3: s3://bucket at AWS, or http://host:port/bucket for any server that speaks S3. One object for each key."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from mlcd.core.clock import Clock
from mlcd.core.errors import UserError
from mlcd.planners.functions.storages.boto import client, code, fate, is_loopback
from mlcd.planners.functions.storages.storage import PATIENCE_S, Fate, Patient, StorageError, some

AT_ONCE = 1_000
"""Objects that one request may list or delete."""


class S3Storage(Patient):
    """A bucket. On this machine it is made if it is not there; elsewhere it must be."""

    def __init__(self, url: str, clock: Clock | None = None, patience_s: float = PATIENCE_S) -> None:
        super().__init__("s3", url, clock, patience_s)
        parts = urlsplit(url)
        self._bucket = (parts.netloc if parts.scheme == "s3" else parts.path.strip("/")) or ""
        if not self._bucket or "/" in self._bucket:
            raise UserError(f"s3: '{url}' names no bucket: write s3://BUCKET or http://HOST:PORT/BUCKET")
        self._client: Any = client("s3", parts, patience_s)
        if is_loopback(parts):
            self._make()

    def put(self, key: str, value: bytes) -> None:
        """Keep this under that key."""
        self.ask(partial(self._client.put_object, Bucket=self._bucket, Key=key, Body=value))

    def get(self, key: str) -> bytes | None:
        """What is under that key; None if nothing is."""

        def read() -> bytes | None:
            try:
                found: bytes = self._client.get_object(Bucket=self._bucket, Key=key)["Body"].read()
            except self._client.exceptions.NoSuchKey:
                return None
            return found

        return self.ask(read)

    def delete(self, keys: Sequence[str]) -> None:
        """Forget these."""
        for first in range(0, len(keys), AT_ONCE):
            these = {"Objects": [{"Key": key} for key in keys[first : first + AT_ONCE]], "Quiet": True}
            told = self.ask(partial(self._client.delete_objects, Bucket=self._bucket, Delete=these))
            for error in told.get("Errors", ()):
                raise StorageError(f"s3 at {self.url} does not delete {error.get('Key')}: {error.get('Message')}")

    def clear(self, prefix: str) -> None:
        """Forget every object whose key begins so."""
        where = {"Bucket": self._bucket, "Prefix": some(prefix), "MaxKeys": AT_ONCE}
        while found := self.ask(partial(self._client.list_objects_v2, **where)).get("Contents", ()):
            self.delete([each["Key"] for each in found])

    def close(self) -> None:
        """Let go of the connections."""
        self._client.close()

    def fate(self, error: Exception) -> Fate:
        """What an error of boto3 means."""
        return fate(error)

    def _make(self) -> None:
        """Make the bucket, unless it is there."""

        def once() -> None:
            try:
                self._client.head_bucket(Bucket=self._bucket)
            except self._client.exceptions.ClientError as error:
                if code(error) not in ("404", "NoSuchBucket"):
                    raise
                with contextlib.suppress(
                    self._client.exceptions.BucketAlreadyOwnedByYou, self._client.exceptions.BucketAlreadyExists
                ):  # another function was first
                    self._client.create_bucket(Bucket=self._bucket)

        self.ask(once)
