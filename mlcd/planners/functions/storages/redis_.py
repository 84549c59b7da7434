"""Redis: `elasticache`, redis://host:port/db. One key for each object, all in memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from mlcd.core.clock import Clock
from mlcd.core.errors import MissingExtra
from mlcd.planners.functions.storages.storage import PATIENCE_S, Fate, Patient, some

SILENT_S = 30.0
AT_ONCE = 1_000


class RedisStorage(Patient):
    """A Redis server. One that has restarted is gone: what it held is lost, or may be older than what was put."""

    def __init__(self, url: str, clock: Clock | None = None, patience_s: float = PATIENCE_S) -> None:
        super().__init__("elasticache", url, clock, patience_s)
        redis = _redis()
        self._errors = redis.exceptions
        self._life: str | None = None
        self._client: Any = redis.Redis.from_url(
            url,
            socket_timeout=SILENT_S,
            socket_connect_timeout=min(SILENT_S, max(patience_s, 1.0)),
            retry=redis.retry.Retry(redis.backoff.NoBackoff(), 0),  # asking again is ours, so that it is counted
            redis_connect_func=self._connected,
        )

    def put(self, key: str, value: bytes) -> None:
        """Keep this under that key."""
        self.ask(partial(self._client.set, key, value))

    def get(self, key: str) -> bytes | None:
        """What is under that key; None if nothing is."""
        found: bytes | None = self.ask(partial(self._client.get, key))
        return found

    def delete(self, keys: Sequence[str]) -> None:
        """Forget these."""
        for first in range(0, len(keys), AT_ONCE):
            self.ask(partial(self._client.unlink, *keys[first : first + AT_ONCE]))

    def clear(self, prefix: str) -> None:
        """Forget every key that begins so."""
        pattern = "".join(f"\\{letter}" if letter in "*?[]^\\" else letter for letter in some(prefix)) + "*"
        cursor = 0
        while True:
            cursor, keys = self.ask(partial(self._client.scan, cursor, match=pattern, count=AT_ONCE))
            self.delete(keys)
            if not cursor:
                return

    def close(self) -> None:
        """Let go of the connection."""
        self._client.close()

    def fate(self, error: Exception) -> Fate:
        """No connection passes; whatever else Redis says is final."""
        final = (self._errors.AuthenticationError, self._errors.AuthorizationError)
        if isinstance(error, (self._errors.ConnectionError, self._errors.TimeoutError, OSError)):
            return Fate.REFUSED if isinstance(error, final) else Fate.PASSES
        return Fate.REFUSED if isinstance(error, self._errors.RedisError) else Fate.NOT_OURS

    def _connected(self, connection: Any) -> None:
        """With each new connection: is it still the same server?"""
        connection.on_connect()
        connection.send_command("INFO", "server")
        told = connection.read_response()
        text = told.decode() if isinstance(told, bytes) else str(told)
        life = next((line for line in text.splitlines() if line.startswith("run_id:")), None)
        if self._life not in (None, life):
            connection.disconnect()
            raise self.gone("has restarted, and lost what it held")
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
