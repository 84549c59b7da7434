"""A client of our parameter server: `vm-ps`, tcp://host:port."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from mlcd.core.clock import Clock
from mlcd.planners.functions.storages.storage import RETRY_S, RetryingStorage, StorageError, checked_prefix
from mlcd.planners.functions.storages.vectors import Vector, from_bytes, to_bytes
from mlcd.planners.functions.storages.wire import Header, receive_frame, send_frame

LONG_POLL_S = 5.0
"""Long-polling timeout of one request; then it is repeated."""
READ_TIMEOUT_S = 30.0


class ParameterServerStorage(RetryingStorage):
    """The client: storage and average in one. A restarted server counts as gone: its data are lost."""

    def __init__(self, host: str, port: int, url: str, clock: Clock | None = None, retry_s: float = RETRY_S) -> None:
        super().__init__("vm-ps", url, clock, retry_s)
        self._address = (host, port)
        self._life: str | None = None
        self._socket: socket.socket | None = None

    def put(self, key: str, value: bytes) -> None:
        """Store a value."""
        self._exchange({"do": "put", "key": key}, value)

    def get(self, key: str) -> bytes | None:
        """The value of a key; None if there is none."""
        answer, body = self._exchange({"do": "get", "key": key})
        return bytes(body) if answer["is"] == "value" else None

    def delete(self, keys: Sequence[str]) -> None:
        """Delete these keys."""
        self._exchange({"do": "delete", "keys": list(keys)})

    def clear(self, prefix: str) -> None:
        """Delete blobs and groups with this prefix."""
        self._exchange({"do": "clear", "prefix": checked_prefix(prefix)})

    def average(
        self, group: str, step: int, rank: int, functions: int, vector: Vector, timeout_s: float
    ) -> Vector | tuple[int, ...]:
        """The mean over all ranks; after `timeout_s` without it, the missing ranks."""
        deadline_s = self.clock.elapsed_s() + timeout_s
        where = {"group": group, "step": step}
        push = {"do": "push", **where, "rank": rank, "functions": functions, "wait_s": min(timeout_s, LONG_POLL_S)}
        answer, body = self._exchange(push, to_bytes(vector))
        while answer["is"] == "waiting" and (left_s := deadline_s - self.clock.elapsed_s()) > 0:
            answer, body = self._exchange({"do": "pull", **where, "wait_s": min(left_s, LONG_POLL_S)})
        if answer["is"] == "waiting":
            return tuple(answer["missing"])
        if answer["is"] == "over":
            raise self.gone_error(f"does not know the round: {answer['why']}")
        return from_bytes(body)

    def close(self) -> None:
        """Close the connection."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _exchange(self, header: Header, body: bytes = b"") -> tuple[Header, bytearray]:
        """Send a request, with retries after a broken connection: requests are idempotent."""
        answer, data = self.request(lambda: self._once(header | {"life": self._life}, body))
        if self._life not in (None, answer["life"]):
            raise self.gone_error("has restarted, and lost its data")
        self._life = answer["life"]
        if answer["is"] == "refused":
            raise StorageError(f"{self.name} at {self.url}: {answer['why']}")
        return answer, data

    def _once(self, header: Header, body: bytes) -> tuple[Header, bytearray]:
        try:
            if self._socket is None:
                connect_s = min(READ_TIMEOUT_S, max(self.retry_s, 1.0))
                self._socket = socket.create_connection(self._address, timeout=connect_s)
                self._socket.settimeout(READ_TIMEOUT_S)
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            send_frame(self._socket, header, body)
            return receive_frame(self._socket)
        except OSError:
            self.close()
            raise
