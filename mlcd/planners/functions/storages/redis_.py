"""Redis: `elasticache`, redis://host:port/db. One key for each object, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from mlcd.core.errors import MissingExtra
from mlcd.planners.functions.storages.storage import ErrorKind, RetryingStorage, checked_prefix

READ_TIMEOUT_S = 30.0
AT_ONCE = 1_000


class RedisStorage(RetryingStorage):
    """A Redis server. A restarted one counts as gone: its data are lost, or may be outdated."""

    def __init__(self, url: str, retry_s: float) -> None:
        super().__init__("elasticache", url, retry_s)
        redis = _redis()
        self._errors = redis.exceptions
        self._life: str | None = None
        self._client: Any = redis.Redis.from_url(
            url,
            socket_timeout=READ_TIMEOUT_S,
            socket_connect_timeout=min(READ_TIMEOUT_S, max(retry_s, 1.0)),
            retry=redis.retry.Retry(redis.backoff.NoBackoff(), 0),  # we retry ourselves, to count the requests
            redis_connect_func=self._connected,
        )

    def put(self, key: str, value: bytes) -> None:
        """Store a value."""
        self.request(partial(self._client.set, key, value))

    def get(self, key: str) -> bytes | None:
        """The value of a key; None if there is none."""
        value: bytes | None = self.request(partial(self._client.get, key))
        return value

    def delete(self, keys: Sequence[str]) -> None:
        """Delete these keys."""
        for first in range(0, len(keys), AT_ONCE):
            self.request(partial(self._client.unlink, *keys[first : first + AT_ONCE]))

    def clear(self, prefix: str) -> None:
        """Delete all keys with this prefix."""
        pattern = "".join(f"\\{letter}" if letter in "*?[]^\\" else letter for letter in checked_prefix(prefix)) + "*"
        cursor = 0
        while True:
            cursor, keys = self.request(partial(self._client.scan, cursor, match=pattern, count=AT_ONCE))
            self.delete(keys)
            if not cursor:
                return

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def error_kind(self, error: Exception) -> ErrorKind:
        """Connection errors are transient; all other errors of Redis are final."""
        final = (self._errors.AuthenticationError, self._errors.AuthorizationError)
        if isinstance(error, (self._errors.ConnectionError, self._errors.TimeoutError, OSError)):
            return ErrorKind.REFUSED if isinstance(error, final) else ErrorKind.TRANSIENT
        return ErrorKind.REFUSED if isinstance(error, self._errors.RedisError) else ErrorKind.OTHER

    def _connected(self, connection: Any) -> None:
        """Check with each new connection that the server has not restarted."""
        connection.on_connect()
        connection.send_command("INFO", "server")
        reply = connection.read_response()
        text = reply.decode() if isinstance(reply, bytes) else str(reply)
        life = next((line for line in text.splitlines() if line.startswith("run_id:")), None)
        if self._life not in (None, life):
            connection.disconnect()
            raise self.gone_error("has restarted, and lost its data")
        self._life = life


def _redis() -> Any:
    """The library."""
    try:
        import redis
        import redis.backoff
        import redis.exceptions
        import redis.retry
    except ImportError:
        raise MissingExtra("a Redis storage", "lithops") from None
    return redis
