"""The protocol of the parameter server: a frame is a fixed prefix, a small JSON header, and bytes.

    prefix   "mlps", the length of the header (4 bytes), the length of the body (8 bytes), both big-endian

A request's header has `do` and its arguments; a reply's has `is`, the kind of reply, and `life`, an id that changes
with each start of the server. Clients send the `life` that they know: a restarted server then refuses the request.
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


class ProtocolError(ConnectionError):
    """The other end does not speak this protocol."""


def frame(header: Header, size: int) -> bytes:
    """The prefix and the header; the body follows."""
    encoded = json.dumps(header, separators=(",", ":")).encode()
    return PREFIX.pack(MAGIC, len(encoded), size) + encoded


def sizes(prefix: bytes | bytearray) -> tuple[int, int]:
    """The lengths of header and body."""
    magic, header, body = PREFIX.unpack(prefix)
    if magic != MAGIC or header > LARGEST_HEADER or body > LARGEST_BODY:
        raise ProtocolError("it does not speak the protocol of mlcd's parameter server")
    return header, body


def parse_header(encoded: bytes | bytearray) -> Header:
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
    header, body = sizes(_exactly(source, PREFIX.size))
    return parse_header(_exactly(source, header)), _exactly(source, body)


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
    header, body = sizes(await source.readexactly(PREFIX.size))
    return parse_header(await source.readexactly(header)), await source.readexactly(body)


def write(to: asyncio.StreamWriter, header: Header, body: bytes = b"") -> None:
    """Queue a frame; it is sent by the next drain."""
    to.write(frame(header, len(body)))
    if body:
        to.write(body)
