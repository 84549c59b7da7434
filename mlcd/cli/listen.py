"""A port to listen on, and the server behind it: what `mlcd ui` and `mlcd service` share."""

from __future__ import annotations

import errno
import logging
import os
import resource
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from mlcd.core.errors import UserError

if TYPE_CHECKING:
    import uvicorn
    from fastapi import FastAPI

PORT = 8421
PORTS_TRIED = 20
GRACE_S = 2
"""For answers under way when the server ends; streams of events never end by themselves."""
MOST_FILES = 65_536

port = click.option(
    "--port", default=PORT, show_default=True, type=click.IntRange(0, 65535), help="Where to listen; 0: any free port."
)
recordings = click.option(
    "--recordings", metavar="DIR", type=click.Path(path_type=Path), help="Recordings that jobs may name: recorded:NAME."
)


def bound(host: str, number: int, tries: int = 1) -> socket.socket:
    """A socket on this port, or on the next that is free."""
    for at in range(number, min(number + tries, 65536)):
        try:
            family, *_, address = socket.getaddrinfo(host, at, type=socket.SOCK_STREAM)[0]
        except OSError:
            raise UserError(
                f"--host {host}: no such host; 127.0.0.1 is this machine alone, 0.0.0.0 all networks"
            ) from None
        listener = socket.socket(family)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
            return listener
        except OSError as error:
            listener.close()
            if error.errno != errno.EADDRINUSE:
                raise UserError(
                    f"cannot listen on {host}:{at}: {error.strerror}; choose another --port or --host"
                ) from None
    taken = f"port {number} is" if tries == 1 else f"ports {number} to {number + tries - 1} are"
    raise UserError(f"{taken} taken by another program; choose one with --port")


def address(listener: socket.socket) -> str:
    """The URL of what listens there."""
    host, number = listener.getsockname()[:2]
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{shown}:{number}"


def found_recordings(folder: Path | None) -> dict[str, Path]:
    """The recordings in a folder by the names of their own folders, or the one that it is."""
    if folder is None:
        return {}
    if not folder.is_dir():
        raise UserError(f"--recordings {folder}: no such folder")
    inside = sorted(each.resolve() for each in folder.iterdir() if each.is_dir() and any(each.glob("*.csv")))
    return {each.name: each for each in inside or [folder.resolve()]}


def serve(app: FastAPI, listener: socket.socket, begun: Callable[[], None], *, behind_proxy: bool) -> None:
    """Answer until Ctrl-C or SIGTERM. `begun` is called once the first request can come.

    After it a command only tears down, and no further signal cuts that short: machines would be left behind.
    """
    logging.getLogger("uvicorn.error").addFilter(_worth_saying)
    _take_as_many_connections_as_allowed()
    signal.signal(signal.SIGTERM, _as_ctrl_c)  # uvicorn raises it again when it is done
    try:
        with suppress(KeyboardInterrupt):
            _server(app, begun, behind_proxy).run(sockets=[listener])
    finally:
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_IGN)


def has_display() -> bool:
    """Whether a browser would be seen here."""
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")) or os.uname().sysname == "Darwin"


def _server(app: FastAPI, begun: Callable[[], None], behind_proxy: bool) -> uvicorn.Server:
    import uvicorn

    from mlcd.service.web.safety.silent import LOOKS_EVERY_S, Silent

    silent = Silent()

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            begun()

        async def on_tick(self, counter: int) -> bool:  # ten times a second
            if counter % (10 * LOOKS_EVERY_S) == 0:
                silent.look(self.server_state.connections)
            return await super().on_tick(counter)

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            super().handle_exit(sig, frame)
            self.force_exit = False  # for who presses Ctrl-C again: it ends within seconds, and ends properly

    settings: Any = {
        "access_log": False,
        "log_level": "warning",
        "server_header": False,
        # Who believes this header from anybody lets anybody say who they are.
        "proxy_headers": behind_proxy,
        "timeout_graceful_shutdown": GRACE_S,
        "ws": "none",
    }
    return Server(uvicorn.Config(app, **settings))


def _take_as_many_connections_as_allowed() -> None:
    """Each open page holds one; systems begin with 1,024 files for a process, and let it have more."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # macOS says 'unlimited', and does not mean it
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, MOST_FILES), most))


def _as_ctrl_c(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _worth_saying(record: logging.LogRecord) -> bool:
    """Not that open streams were cut off at the end: they always are."""
    return not record.getMessage().startswith("Cancel ")
