"""mlcd token: your own tokens of a service, for programs such as CI."""

from __future__ import annotations

import os
from datetime import datetime
from typing import Any

import click

from mlcd.cli.console import plain_table
from mlcd.cli.options import consoles, output, print_answer, print_json
from mlcd.cli.server import chosen_server, tokens
from mlcd.core.errors import UserError
from mlcd.service.remote.server import FROM_ENVIRONMENT, Server, path_of

_name = click.argument("name")


@click.group()
def token() -> None:
    """Manage your own tokens of a service: for CI, scripts, monitoring."""


@token.command(name="list")
@output
def list_(output: str) -> None:
    """List your named tokens: scope, end and last use of each.

    \b
    mlcd token list
    """
    server = _server()
    rows = server.get("/tokens")
    with server.reading():
        found = rows["tokens"]
        if output == "json":
            print_json({"tokens": found})
            return
        if not found:
            consoles()[0].print("You have no named tokens. Make one: mlcd token add NAME")
            return
        table = plain_table(["NAME", "SCOPE", "MADE (UTC)", "ENDS (UTC)", "LAST USED (UTC)"], [])
        for each in found:
            ends = "expired" if each["expired"] else _day(each["expires_at"], "never")
            used = _day(each["used_at"], "never", "%Y-%m-%d %H:%M")
            table.add_row(each["name"], each["scope"], _day(each["created_at"], "-"), ends, used)
        consoles()[0].print(table)


@token.command()
@_name
@click.option(
    "--scope", type=click.Choice(["read", "run"]), default="read", show_default=True, help="What the token allows."
)
@click.option(
    "--days", type=click.IntRange(0, 3_650), default=90, show_default=True, help="Days until it expires; 0: never."
)
@output
def add(name: str, scope: str, days: int, output: str) -> None:
    """Make a token for a program; it is shown only once.

    With the scope `read` it can only read; with `run` it can also start and end runs. It can never do more than you,
    and cannot make tokens.

    \b
    mlcd token add ci --scope run --days 30
    """
    server = _server()
    _show(server, server.post("/tokens", {"name": name, "scope": scope, "days": days or None}), output)


@token.command()
@_name
@output
def rotate(name: str, output: str) -> None:
    """Replace a named token by a new one; the old one ends at once.

    \b
    mlcd token rotate ci
    """
    server = _server()
    _show(server, server.post(path_of("tokens", _known(server, name), "rotate")), output)


@token.command()
@_name
@output
def revoke(name: str, output: str) -> None:
    """Revoke a named token at once.

    \b
    mlcd token revoke ci
    """
    server = _server()
    server.send("DELETE", path_of("tokens", _known(server, name)))
    print_answer(output, f"Token {name} is revoked.", {"revoked": name})


@token.command()
@output
def renew(output: str) -> None:
    """Replace the token that an admin gave you, which you use now.

    The old token and your browser sessions end; named tokens stay. If `mlcd login` stored the old token, the new one
    replaces it.

    \b
    mlcd token renew
    """
    server, stored = _server(), tokens()
    made = server.post("/me/token")
    with server.reading():
        secret, member = str(made["token"]), str(made["member"])
    old = stored.get(server.url)
    if old is None or (os.environ.get(FROM_ENVIRONMENT) or old) != old:
        words = f"A new token of {member}. It is shown only once:\n{secret}"
        print_answer(output, words, {"member": member, "token": secret})
        return
    stored.keep(server.url, secret)
    print_answer(output, f"Stored a new token of {member} for {server.url}.", {"member": member, "server": server.url})


def _server() -> Server:
    server = chosen_server()
    if server is None:
        raise UserError("tokens need a service: mlcd --server URL token ..., or set MLCD_SERVER")
    return server


def _known(server: Server, name: str) -> str:
    """The name, if there is such a token: an impossible name would change the path."""
    answer = server.get("/tokens")
    with server.reading():
        names = [str(each["name"]) for each in answer["tokens"]]
    if name not in names:
        raise UserError(f"you have no token '{name}'; your tokens: {', '.join(names) or 'none'}")
    return name


def _show(server: Server, made: Any, output: str) -> None:
    with server.reading():
        name, secret, ends = str(made["name"]), str(made["token"]), made["expires_at"]
        until = f"until {_day(ends, '')}" if ends else "until it is revoked"
    words = f"Token {name}, {until}. It is shown only once:\n{secret}"
    print_answer(output, words, {"name": name, "token": secret, "expires_at": ends})


def _day(iso: str | None, none: str, shape: str = "%Y-%m-%d") -> str:
    return datetime.fromisoformat(iso).strftime(shape) if iso else none
