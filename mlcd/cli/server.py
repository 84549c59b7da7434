"""`mlcd --server URL`: which server a command is for, and what was written on the command line for it to read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from mlcd.core.errors import UserError

if TYPE_CHECKING:
    from mlcd.service.remote import Server, Tokens

HERE = {
    "bench": "measures on this machine",
    "learn": "measures on this machine",
    "record": "keeps a recording on this machine",
    "catalog": "fetches prices to this machine",
    "clean": "looks for what was left behind on this machine",
    "ui": "is a server itself",
    "service": "is a server itself",
    "worker": "works for a database",
}
"""Commands that are about this machine, and why a server cannot be asked."""
_SAID, _OPEN = "mlcd.said", "mlcd.server"
_WORDS = {"storages": "storage", "shapes": "shape"}
"""Options that are kept under another name than they are written."""

server_option = click.option(
    "--server",
    metavar="URL",
    envvar="MLCD_SERVER",
    help="Ask an MLCD service, not this machine: http://localhost:8421. Also MLCD_SERVER; the token is MLCD_TOKEN's, "
    "or that of `mlcd login URL`.",
)


def refuse_here(command: str | None, server: str | None) -> None:
    """A command that is about this machine is not for a server."""
    if server and command in HERE:
        without = "without --server" if not os.environ.get("MLCD_SERVER") else "with MLCD_SERVER unset"
        raise UserError(f"mlcd {command} {HERE[command]}: run it {without}")


def asked_server() -> Server | None:
    """The server that the command line names, opened once and closed when the command ends; None for this machine."""
    ctx = click.get_current_context()
    url = ctx.find_root().params.get("server")
    if not url:
        return None
    if _OPEN not in ctx.meta:
        ctx.meta[_OPEN] = open_server(url)
        ctx.call_on_close(ctx.meta[_OPEN].close)
    server: Server = ctx.meta[_OPEN]
    return server


def open_server(url: str) -> Server:
    """A server, with the token of the environment, or else the one that is kept for it."""
    from mlcd.service.remote import Server
    from mlcd.service.remote.failures import FROM_ENVIRONMENT

    token = os.environ.get(FROM_ENVIRONMENT)
    return Server(url, token) if token else Server(url, tokens().get(url), f"the token in {tokens().path}")


def tokens() -> Tokens:
    """The tokens that are kept on this machine."""
    from mlcd.core.home import home
    from mlcd.service.remote import Tokens

    return Tokens(home() / "servers.json")


def note(ctx: click.Context, param: click.Parameter, written: Any) -> None:
    """Remember an option as it was written, before it is read: a server reads it itself."""
    ctx.meta.setdefault(_SAID, {})[param.name] = written


def words(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """The options as they were written; those that were not are left out."""
    said = click.get_current_context().meta.get(_SAID, {})
    found = {name: said.get(name, value) for name, value in chosen.items() if value not in (None, (), {}, False)}
    return {
        _WORDS.get(name, name): list(value) if isinstance(value, tuple) else value
        for name, value in found.items()
        if name != "knobs"
    }
