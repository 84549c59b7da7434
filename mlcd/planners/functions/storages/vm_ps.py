"""A client of our parameter server, `vm-ps`, tcp://host:port, and the protocol between both.

A frame is a fixed prefix, a small JSON header, and bytes.

    prefix   "mlps", the length of the header (4 bytes), the length of the body (8 bytes), both big-endian

A request's header has `do` and its arguments; a reply's has `is`, the kind of reply, and `life`, an id that changes
with each start of the server. Clients send the `life` that they know: a restarted server then refuses the request.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from mlcd.core.clock import Clock
from mlcd.planners.functions.storages.storage import (
    RETRY_S,
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
PREFIX = struct.Struct("!4sIQ")
MAGIC = b"mlps"
LARGEST_HEADER, LARGEST_BODY = 1 << 20, 1 << 33
Header = dict[str, Any]


class ParameterServerStorage(RetryingStorage):
    """The client: storage and average in one. A restarted server counts as gone: its data are lost."""

    def __init__(self, url: str, clock: Clock | None = None, retry_s: float = RETRY_S) -> None:
        super().__init__("vm-ps", url, clock, retry_s)
        self._address = (urlsplit(url).hostname, urlsplit(url).port)
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


class ProtocolError(ConnectionError):
    """The other end does not speak this protocol."""


def frame(header: Header, size: int) -> bytes:
    """The prefix and the header; the body follows."""
    encoded = json.dumps(header, separators=(",", ":")).encode()
    return PREFIX.pack(MAGIC, len(encoded), size) + encoded


def _sizes(prefix: bytes | bytearray) -> tuple[int, int]:
    """The lengths of header and body."""
    magic, header, body = PREFIX.unpack(prefix)
    if magic != MAGIC or header > LARGEST_HEADER or body > LARGEST_BODY:
        raise ProtocolError("it does not speak the protocol of mlcd's parameter server")
    return header, body


def _parse_header(encoded: bytes | bytearray) -> Header:
    """The header."""
    try:
        header = json.loads(encoded)
    except ValueError:
        raise ProtocolError("a header is not JSON") from None
    if not isinstance(header, dict):
        raise ProtocolError("a header is not an object")
    return header


def send_frame(to: socket.socket, header: Header, body: bytes | bytearray = b"") -> None:
    """Send a frame."""
    to.sendall(frame(header, len(body)))
    if body:
        to.sendall(body)


def receive_frame(source: socket.socket) -> tuple[Header, bytearray]:
    """Receive a frame."""
    header, body = _sizes(_exactly(source, PREFIX.size))
    return _parse_header(_exactly(source, header)), _exactly(source, body)


def _exactly(source: socket.socket, size: int) -> bytearray:
    data = bytearray(size)
    left = memoryview(data)
    while left:
        got = source.recv_into(left)
        if not got:
            raise ConnectionResetError("the connection was closed in the middle of a reply")
        left = left[got:]
    return data


async def read(source: asyncio.StreamReader) -> tuple[Header, bytes]:
    """Receive a frame."""
    header, body = _sizes(await source.readexactly(PREFIX.size))
    return _parse_header(await source.readexactly(header)), await source.readexactly(body)


def write(to: asyncio.StreamWriter, header: Header, body: bytes = b"") -> None:
    """Queue a frame; it is sent by the next drain."""
    to.write(frame(header, len(body)))
    if body:
        to.write(body)
