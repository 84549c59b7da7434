"""The HTTP server of `mlcd ui`, `mlcd service` and `mlcd mcp`, and the options that they share."""

from __future__ import annotations

import errno
import logging
import resource
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import click
import uvicorn

from mlcd.core.errors import UnknownName, UserError
from mlcd.service.web.safety.limits import CHECK_EVERY_S, IdleConnections
from mlcd.service.web.state import PLACES

PORT = 8421
PORTS_TRIED = 20
GRACE_S = 2
"""How long responses may take when the server ends; event streams never end by themselves."""
MOST_FILES = 65_536

port = click.option(
    "--port",
    default=PORT,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="The port to listen on; 0: any free port.",
)
recordings = click.option(
    "--recordings",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="A folder of recordings, which jobs may name as recorded:NAME.",
)


def listening_socket(host: str, number: int, tries: int = 1) -> socket.socket:
    """A socket on this port, or on the next free one."""
    for at in range(number, min(number + tries, 65536)):
        try:
            family, *_, address = socket.getaddrinfo(host, at, type=socket.SOCK_STREAM)[0]
        except OSError:
            raise UserError(
                f"--host {host}: no such host; use 127.0.0.1 for this machine only, 0.0.0.0 for all networks"
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
    raise UserError(f"{taken} taken by another program; choose another with --port")


def address(listener: socket.socket) -> str:
    """The URL of this socket."""
    host, number = listener.getsockname()[:2]
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{shown}:{number}"


def recordings_in(folder: Path | None) -> dict[str, Path]:
    """The recordings in a folder, by folder name; or the folder itself, if it is a recording."""
    if folder is None:
        return {}
    if not folder.is_dir():
        raise UserError(f"--recordings {folder}: no such folder")
    inside = sorted(each.resolve() for each in folder.iterdir() if each.is_dir() and any(each.glob("*.csv")))
    return {each.name: each for each in inside or [folder.resolve()]}


def places_in(text: str) -> tuple[str, ...]:
    """A comma-separated list of places."""
    places = tuple(place.strip() for place in text.split(",") if place.strip())
    for place in places:
        if place not in PLACES:
            raise UnknownName("place", place, PLACES)
    return places


def serve(app: Any, listener: socket.socket, begun: Callable[[], None], *, behind_proxy: bool) -> None:
    """Serve until Ctrl-C or SIGTERM. `begun` is called when the server is ready.

    After that a command only tears down, and ignores further signals: otherwise machines could be left running.
    """
    # uvicorn's messages about streams that are cancelled at the end: that is normal
    logging.getLogger("uvicorn.error").addFilter(lambda record: not record.getMessage().startswith("Cancel "))
    _raise_file_limit()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: uvicorn raises it again when it is done
    try:
        with suppress(KeyboardInterrupt):
            _server(app, begun, behind_proxy).run(sockets=[listener])
    finally:
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_IGN)


def _server(app: Any, begun: Callable[[], None], behind_proxy: bool) -> uvicorn.Server:
    idle = IdleConnections()

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            begun()

        async def on_tick(self, counter: int) -> bool:  # ten times a second
            if counter % (10 * CHECK_EVERY_S) == 0:
                idle.close_idle(self.server_state.connections)
            return await super().on_tick(counter)

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            super().handle_exit(sig, frame)
            self.force_exit = False  # also after a second Ctrl-C: it ends properly within seconds

    config = uvicorn.Config(
        app,
        access_log=False,
        log_level="warning",
        log_config=None if logging.getLogger().handlers else uvicorn.config.LOGGING_CONFIG,  # one format for all
        server_header=False,
        proxy_headers=behind_proxy,  # without a proxy, any client could fake these headers
        timeout_graceful_shutdown=GRACE_S,
        ws="none",
    )
    return Server(config)


def _raise_file_limit() -> None:
    """Raise the limit of open files: each open page holds a connection, and the default is 1,024."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # macOS reports 'unlimited', but has a limit
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, MOST_FILES), most))
