"""`mlcd --server URL`: the chosen server, and the options as typed, which are sent to it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from mlcd.core.errors import UserError

if TYPE_CHECKING:
    from mlcd.service.remote.server import Server
    from mlcd.service.remote.tokens import Tokens

LOCAL_ONLY = {
    "bench": "measures on this machine",
    "learn": "measures on this machine",
    "record": "writes a recording on this machine",
    "catalog": "stores prices on this machine",
    "schema": "describes the MLCD of this machine",
    "clean": "cleans up this machine",
    "ui": "is a server itself",
    "service": "is a server itself",
    "worker": "works on a database",
    "mcp": "is a server itself (for a team's service use mcp --service URL)",
    "yes": "answers agents of this machine",
}
"""Commands that work only on this machine, and why."""
_TYPED, _OPEN = "mlcd.typed", "mlcd.server"
_OPTION_NAMES = {"storages": "storage", "shapes": "shape"}
"""Options whose parameter has another name than the option."""

server_option = click.option(
    "--server",
    metavar="URL",
    envvar="MLCD_SERVER",
    help="Use the MLCD service at this address instead of this machine; also MLCD_SERVER. The token is MLCD_TOKEN, or "
    "the one stored by `mlcd login`.",
)


def refuse_local_only(command: str | None, server: str | None) -> None:
    """Refuse --server for a command that works only on this machine."""
    if server and command in LOCAL_ONLY:
        without = "without --server" if not os.environ.get("MLCD_SERVER") else "with MLCD_SERVER unset"
        raise UserError(f"mlcd {command} {LOCAL_ONLY[command]}: run it {without}")


def chosen_server() -> Server | None:
    """The server of the command line, opened once and closed when the command ends; None for this machine.

    The token is MLCD_TOKEN, or else the stored one.
    """
    ctx = click.get_current_context()
    url = ctx.find_root().params.get("server")
    if not url:
        return None
    if _OPEN not in ctx.meta:
        from mlcd.service.remote.server import FROM_ENVIRONMENT, Server

        token, stored = os.environ.get(FROM_ENVIRONMENT), tokens()
        ctx.meta[_OPEN] = Server(url, token) if token else Server(url, stored.get(url), f"the token in {stored.path}")
        ctx.call_on_close(ctx.meta[_OPEN].close)
    server: Server = ctx.meta[_OPEN]
    return server


def tokens() -> Tokens:
    """The tokens stored on this machine."""
    from mlcd.core.home import home
    from mlcd.service.remote.tokens import Tokens

    return Tokens(home() / "servers.json")


def remember_option(ctx: click.Context, param: click.Parameter, written: Any) -> None:
    """Remember an option as typed, before it is parsed: a server parses it itself."""
    ctx.meta.setdefault(_TYPED, {})[param.name] = written


def typed_options(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """The options as typed, without those that were not given."""
    typed = click.get_current_context().meta.get(_TYPED, {})
    given = {name: typed.get(name, value) for name, value in chosen.items() if value not in (None, (), {}, False)}
    return {
        _OPTION_NAMES.get(name, name): list(value) if isinstance(value, tuple) else value
        for name, value in given.items()
    }
