"""How the parameter server and its clients talk: a frame is a fixed prefix, a small JSON header, and bytes.

    prefix   "mlps", the length of the header (4 bytes), the length of the body (8 bytes), both big-endian

A question's header has `do` and what that needs; an answer's has `is`, what the answer is, and `life`, which is another
one after each start of the server. Who knows it says it with every question: a server that has restarted does nothing.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from typing import Any

PREFIX = struct.Struct("!4sIQ")
MAGIC = b"mlps"
LARGEST_HEADER, LARGEST_BODY = 1 << 20, 1 << 33
Header = dict[str, Any]


class NotOurs(ConnectionError):
    """Whoever is at the other end does not speak this."""


def frame(header: Header, size: int) -> bytes:
    """The prefix and the header; a body of that size follows."""
    told = json.dumps(header, separators=(",", ":")).encode()
    return PREFIX.pack(MAGIC, len(told), size) + told


def sizes(prefix: bytes | bytearray) -> tuple[int, int]:
    """How long the header is, and the body."""
    magic, header, body = PREFIX.unpack(prefix)
    if magic != MAGIC or header > LARGEST_HEADER or body > LARGEST_BODY:
        raise NotOurs("it does not speak the protocol of mlcd's parameter server")
    return header, body


def parsed(told: bytes | bytearray) -> Header:
    """The header."""
    try:
        found = json.loads(told)
    except ValueError:
        raise NotOurs("a header is not JSON") from None
    if not isinstance(found, dict):
        raise NotOurs("a header is not an object")
    return found


def say(to: socket.socket, header: Header, body: bytes | bytearray = b"") -> None:
    """Send a frame."""
    to.sendall(frame(header, len(body)))
    if body:
        to.sendall(body)


def hear(source: socket.socket) -> tuple[Header, bytearray]:
    """Receive a frame."""
    header, body = sizes(_exactly(source, PREFIX.size))
    return parsed(_exactly(source, header)), _exactly(source, body)


def _exactly(source: socket.socket, size: int) -> bytearray:
    data = bytearray(size)
    left = memoryview(data)
    while left:
        got = source.recv_into(left)
        if not got:
            raise ConnectionResetError("the connection was closed in the middle of an answer")
        left = left[got:]
    return data


async def read(source: asyncio.StreamReader) -> tuple[Header, bytes]:
    """Receive a frame."""
    header, body = sizes(await source.readexactly(PREFIX.size))
    return parsed(await source.readexactly(header)), await source.readexactly(body)


def write(to: asyncio.StreamWriter, header: Header, body: bytes = b"") -> None:
    """Send a frame, some time before the next drain."""
    to.write(frame(header, len(body)))
    if body:
        to.write(body)
