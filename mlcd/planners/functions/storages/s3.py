"""S3: s3://bucket at AWS, or http://host:port/bucket for any server that speaks S3. One object for each key."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from mlcd.core.clock import Clock
from mlcd.core.errors import UserError
from mlcd.planners.functions.storages.boto import client, code, error_kind, is_loopback
from mlcd.planners.functions.storages.storage import RETRY_S, ErrorKind, RetryingStorage, StorageError, checked_prefix

AT_ONCE = 1_000
"""Most objects that one request can list or delete."""


class S3Storage(RetryingStorage):
    """A bucket. On this machine it is created if it does not exist; elsewhere it must exist."""

    def __init__(self, url: str, clock: Clock | None = None, retry_s: float = RETRY_S) -> None:
        super().__init__("s3", url, clock, retry_s)
        parts = urlsplit(url)
        self._bucket = (parts.netloc if parts.scheme == "s3" else parts.path.strip("/")) or ""
        if not self._bucket or "/" in self._bucket:
            raise UserError(f"s3: '{url}' names no bucket: write s3://BUCKET or http://HOST:PORT/BUCKET")
        self._client: Any = client("s3", parts, retry_s)
        if is_loopback(parts):
            self._create_bucket()

    def put(self, key: str, value: bytes) -> None:
        """Store a value."""
        self.request(partial(self._client.put_object, Bucket=self._bucket, Key=key, Body=value))

    def get(self, key: str) -> bytes | None:
        """The value of a key; None if there is none."""

        def read() -> bytes | None:
            try:
                body: bytes = self._client.get_object(Bucket=self._bucket, Key=key)["Body"].read()
            except self._client.exceptions.NoSuchKey:
                return None
            return body

        return self.request(read)

    def delete(self, keys: Sequence[str]) -> None:
        """Delete these keys."""
        for first in range(0, len(keys), AT_ONCE):
            objects = {"Objects": [{"Key": key} for key in keys[first : first + AT_ONCE]], "Quiet": True}
            reply = self.request(partial(self._client.delete_objects, Bucket=self._bucket, Delete=objects))
            for error in reply.get("Errors", ()):
                raise StorageError(f"s3 at {self.url} does not delete {error.get('Key')}: {error.get('Message')}")

    def clear(self, prefix: str) -> None:
        """Delete all keys with this prefix."""
        where = {"Bucket": self._bucket, "Prefix": checked_prefix(prefix), "MaxKeys": AT_ONCE}
        while page := self.request(partial(self._client.list_objects_v2, **where)).get("Contents", ()):
            self.delete([each["Key"] for each in page])

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def error_kind(self, error: Exception) -> ErrorKind:
        """Classify an error of boto3."""
        return error_kind(error)

    def _create_bucket(self) -> None:
        """Create the bucket if it does not exist."""

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

        self.request(once)
