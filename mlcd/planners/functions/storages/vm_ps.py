"""A client of our parameter server, `vm-ps`, tcp://host:port, and the protocol between both.

A message is a line of JSON, its header, and as many bytes as that says under `bytes`.

A request's header has `do` and its arguments; a reply's has `is`, the kind of reply, and `life`, an id that changes
with each start of the server. Clients send the `life` that they know: a restarted server then refuses the request.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Sequence
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from mlcd.planners.functions.storages.storage import (
    RetryingStorage,
    StorageError,
    Vector,
    checked_prefix,
    from_bytes,
    to_bytes,
)

LONG_POLL_S = 5.0
"""Long-polling timeout of one request; then it is repeated."""
READ_TIMEOUT_S = 30.0
LARGEST_HEADER, LARGEST_BODY = 1 << 20, 1 << 33
Header = dict[str, Any]


class ParameterServerStorage(RetryingStorage):
    """The client: storage and average in one. A restarted server counts as gone: its data are lost."""

    def __init__(self, url: str, retry_s: float) -> None:
        super().__init__("vm-ps", url, retry_s)
        self._address = (urlsplit(url).hostname, urlsplit(url).port)
        self._life: str | None = None
        self._socket: socket.socket | None = None
        self._replies: BinaryIO

    def put(self, key: str, value: bytes) -> None:
        """Store a value."""
        self._exchange({"do": "put", "key": key}, value)

    def get(self, key: str) -> bytes | None:
        """The value of a key; None if there is none."""
        answer, body = self._exchange({"do": "get", "key": key})
        return body if answer["is"] == "value" else None

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
            self._replies.close()
            self._socket.close()
            self._socket = None

    def _exchange(self, header: Header, body: bytes = b"") -> tuple[Header, bytes]:
        """Send a request, with retries after a broken connection: requests are idempotent."""
        answer, data = self.request(lambda: self._once(header | {"life": self._life}, body))
        if self._life not in (None, answer["life"]):
            raise self.gone_error("has restarted, and lost its data")
        self._life = answer["life"]
        if answer["is"] == "refused":
            raise StorageError(f"{self.name} at {self.url}: {answer['why']}")
        return answer, data

    def _once(self, header: Header, body: bytes) -> tuple[Header, bytes]:
        try:
            if self._socket is None:
                connect_s = min(READ_TIMEOUT_S, max(self.retry_s, 1.0))
                self._socket = socket.create_connection(self._address, timeout=connect_s)
                self._socket.settimeout(READ_TIMEOUT_S)
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._replies = self._socket.makefile("rb")
            self._socket.sendall(message(header, body))
            return receive(self._replies)
        except OSError:
            self.close()
            raise


class ProtocolError(ConnectionError):
    """The other end does not speak this protocol."""


def message(header: Header, body: bytes = b"") -> bytes:
    """The header's line, and the body."""
    return b"".join((json.dumps({**header, "bytes": len(body)}, separators=(",", ":")).encode(), b"\n", body))


def _header(line: bytes) -> tuple[Header, int]:
    """The header, and the length of the body that follows."""
    if not line.endswith(b"\n"):
        raise ConnectionResetError("the connection was closed in the middle of a message")
    try:
        header: Header = json.loads(line)
        size = int(header["bytes"])
    except (ValueError, TypeError, KeyError):
        raise ProtocolError("it does not speak the protocol of mlcd's parameter server") from None
    if not 0 <= size <= LARGEST_BODY:
        raise ProtocolError(f"a message of {size:,} bytes is too large")
    return header, size


def receive(source: BinaryIO) -> tuple[Header, bytes]:
    """Receive a message."""
    header, size = _header(source.readline(LARGEST_HEADER))
    body = source.read(size)
    if len(body) < size:
        raise ConnectionResetError("the connection was closed in the middle of a message")
    return header, body


async def read(source: asyncio.StreamReader) -> tuple[Header, bytes]:
    """Receive a message, in the server."""
    try:
        line = await source.readline()
    except ValueError:  # longer than the buffer
        raise ProtocolError("a header is too long") from None
    header, size = _header(line)
    return header, await source.readexactly(size)
