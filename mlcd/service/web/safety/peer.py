"""Which user of this machine has opened a connection.

All users of a machine share loopback. The kernel knows who opened each connection (sock_diag(7), /proc/net/tcp):
connections of other users are refused, like access to a file of mode 0600.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

from starlette.types import Scope

from mlcd.service.web.failures import Refusal

PROC = Path("/proc/net")
ROOT = 0
_UID = 7
"""Index of the user id in a line of /proc/net/tcp."""
_SOCK_DIAG, _BY_FAMILY = 4, 20
_HEAD = struct.Struct("=IHHII")
_UID_AT = _HEAD.size + 4 + 48 + 12
"""Offset of the user id in a reply: after the state, both ends and three counters."""

Address = IPv4Address | IPv6Address
End = tuple[Address, int]


def check_peer(scope: Scope, proc: Path | None = None, mine: int | None = None) -> None:
    """Refuse a connection of another user of this machine. Only on Linux; other systems are not checked."""
    if not sys.platform.startswith("linux"):
        return
    uid = uid_of(scope, proc)
    if uid is None:
        raise Refusal(403, "the user of this connection is unknown; `mlcd ui` answers only its own user, on loopback")
    if uid not in (os.getuid() if mine is None else mine, ROOT):
        raise Refusal(403, "this page belongs to another user of this machine; start your own: mlcd ui")


def uid_of(scope: Scope, proc: Path | None = None) -> int | None:
    """The user who opened a request's connection; None if there is no such connection.

    `proc`: read the kernel's tables in this folder instead of asking it.
    """
    client, server = scope.get("client"), scope.get("server")
    if not client or not server or server[1] is None:
        return None
    try:
        near, far = (ip_address(client[0]), client[1]), (ip_address(server[0]), server[1])
    except ValueError:
        return None
    if near[0].version != far[0].version:
        return None
    if proc is None:
        try:
            return _uid_by_netlink(near, far)
        except OSError:  # no sock_diag on this system; reading the tables takes milliseconds
            proc = PROC
    return _uid_in_tables(near, far, proc)


def _uid_by_netlink(near: End, far: End) -> int | None:
    """Ask the kernel by netlink: one lookup in its hash table, however many connections are open."""
    family = socket.AF_INET if near[0].version == 4 else socket.AF_INET6
    ends = b"".join(end[0].packed.ljust(16, b"\0") for end in (near, far))
    socket_id = struct.pack("!HH", near[1], far[1]) + ends + bytes(4) + b"\xff" * 8
    request = struct.pack("=BBBBI", family, socket.IPPROTO_TCP, 0, 0, 0xFFFFFFFF) + socket_id
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as netlink:
        netlink.settimeout(1.0)
        netlink.sendto(_HEAD.pack(_HEAD.size + len(request), _BY_FAMILY, 1, 1, 0) + request, (0, 0))
        answer = netlink.recv(4_096)
    if len(answer) < _UID_AT + 4 or _HEAD.unpack_from(answer)[1] != _BY_FAMILY:
        return None  # no such connection
    uid: int = struct.unpack_from("=I", answer, _UID_AT)[0]
    return uid


def _uid_in_tables(near: End, far: End, proc: Path) -> int | None:
    """Search the kernel's tables in /proc/net."""
    for name, wide in (("tcp", False), ("tcp6", True)):
        if not wide and near[0].version == 6:
            continue
        pair = f" {_kernel_notation(*near, wide)} {_kernel_notation(*far, wide)} "
        try:
            table = (proc / name).read_text(encoding="ascii")
        except OSError:
            continue
        at = table.find(pair)
        if at >= 0:
            line = table[table.rfind("\n", 0, at) + 1 :].split("\n", 1)[0]
            return int(line.split()[_UID])
    return None


def _kernel_notation(address: Address, port: int, wide: bool) -> str:
    """An end in the kernel's notation: words of 32 bits in the machine's byte order, and the port."""
    if wide and isinstance(address, IPv4Address):
        address = IPv6Address(f"::ffff:{address}")
    packed = address.packed
    words = (packed[i : i + 4] for i in range(0, len(packed), 4))
    return "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words) + f":{port:04X}"
