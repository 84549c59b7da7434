"""Where a request comes from: not from a page of another site, nor, in ui mode, from another user of this machine.

A page of another site can make a browser send requests to a service on loopback. It cannot set a custom header without
a CORS preflight, which is never granted: so requests that change state must carry `X-MLCD`. And a foreign DNS name that
points to 127.0.0.1 (DNS rebinding) is not an accepted host.

All users of a machine share loopback. The kernel knows who opened each connection (sock_diag(7), /proc/net/tcp):
connections of other users are refused, like access to a file of mode 0600.
"""

import os
import socket
import struct
import sys
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.types import Scope

from mlcd.service.web.errors import Refusal
from mlcd.service.web.state import Settings

HEADER = "x-mlcd"
COOKIE = "mlcd_session"
SIGN_IN = ("/session", "/sign-in", "/sign-in/callback")
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
PROC = Path("/proc/net")
ROOT = 0
_UID = 7  # index of the user id in a line of /proc/net/tcp
_SOCK_DIAG, _BY_FAMILY = 4, 20
_HEAD = struct.Struct("=IHHII")
_UID_AT = _HEAD.size + 4 + 48 + 12  # offset of the user id in a reply: after the state, both ends and three counters
Address = IPv4Address | IPv6Address
End = tuple[Address, int]


def check_host(request: Request, settings: Settings) -> None:
    """Refuse unknown hosts: all but loopback and the service's configured names."""
    host = _host(request.headers.get("host", ""))
    if host is None:
        raise Refusal(400, "the Host header is missing or malformed")
    ours = {name.lower() for name in (urlsplit(settings.public_url or "").hostname, *settings.hosts) if name}
    if _is_loopback(host) or host in ours or (settings.mode == "service" and not ours):
        return
    raise Refusal(403, f"this service is not called '{host[:80]}'; use {', '.join(sorted(ours)) or 'localhost'}")


def check_origin(request: Request, settings: Settings) -> None:
    """Refuse requests that a page of another site sent, or may have sent."""
    if request.method in SAFE_METHODS:
        return
    origin = request.headers.get("origin")
    if origin is not None and not _is_ours(origin, request, settings):
        raise Refusal(403, "the request comes from a page of another site")
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Refusal(403, "the request comes from a page of another site")
    if _needs_header(request, settings) and request.headers.get(HEADER) != "1":
        raise Refusal(403, "the header `X-MLCD: 1` is missing; it proves that no page of another site sent this")


def _needs_header(request: Request, settings: Settings) -> bool:
    """A browser sends cookies by itself, and needs none in ui mode; it never sends a token by itself."""
    if settings.mode == "ui":
        return True
    signs_in = request.url.path.endswith(SIGN_IN)
    return "authorization" not in request.headers and (COOKIE in request.cookies or signs_in)


def _is_ours(origin: str, request: Request, settings: Settings) -> bool:
    """Whether the origin is the request's own host; with a public https URL, an http origin of it is refused."""
    try:
        sent, public = urlsplit(origin), urlsplit(settings.public_url or "")
    except ValueError:
        return False
    if sent.netloc and sent.netloc.lower() == public.netloc.lower():
        return sent.scheme == public.scheme
    return sent.scheme in ("http", "https") and sent.netloc.lower() == request.headers.get("host", "").lower()


def _host(written: str) -> str | None:
    """The name in 'name:port'; None if it is malformed."""
    try:
        parts = urlsplit(f"//{written}")
        _ = parts.port
    except ValueError:
        return None
    return parts.hostname if parts.netloc == written and "@" not in written else None


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


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
    """The user who opened a request's connection, None if there is none. `proc`: read these tables of the kernel."""
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
