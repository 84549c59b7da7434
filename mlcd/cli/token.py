"""mlcd token: your own tokens of a service, for programs."""

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
    """Your own tokens of a service: for CI, scripts, monitoring."""


@token.command(name="list")
@output
def list_(output: str) -> None:
    """Your named tokens: what each may, until when, and its last use.

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
            consoles()[0].print("No named token. Make one: mlcd token add NAME")
            return
        table = plain_table(["NAME", "MAY", "MADE (UTC)", "ENDS (UTC)", "LAST USED (UTC)"], [])
        for each in found:
            ends = "expired" if each["expired"] else _day(each["expires_at"], "never")
            used = _day(each["used_at"], "never", "%Y-%m-%d %H:%M")
            table.add_row(each["name"], each["scope"], _day(each["created_at"], "-"), ends, used)
        consoles()[0].print(table)


@token.command()
@_name
@click.option("--scope", type=click.Choice(["read", "run"]), default="read", show_default=True, help="What it may.")
@click.option(
    "--days", type=click.IntRange(0, 3_650), default=90, show_default=True, help="How long; 0: until it is revoked."
)
@output
def add(name: str, scope: str, days: int, output: str) -> None:
    """Make a token for a program; prints it, only once.

    It may read, or also start and end runs; never more than you, and not make tokens.

    \b
    mlcd token add ci --scope run --days 30
    """
    server = _server()
    _show(server, server.post("/tokens", {"name": name, "scope": scope, "days": days or None}), output)


@token.command()
@_name
@output
def rotate(name: str, output: str) -> None:
    """A new secret for a token of yours; the old one is void at once.

    \b
    mlcd token rotate ci
    """
    server = _server()
    _show(server, server.post(path_of("tokens", _known(server, name), "rotate")), output)


@token.command()
@_name
@output
def revoke(name: str, output: str) -> None:
    """End a token of yours at once.

    \b
    mlcd token revoke ci
    """
    server = _server()
    server.send("DELETE", path_of("tokens", _known(server, name)))
    print_answer(output, f"Token {name} is void.", {"revoked": name})


@token.command()
@output
def renew(output: str) -> None:
    """Replace the token that an admin gave you, and that you use now.

    The old one and your sessions in browsers end; named tokens stay. If `mlcd login` has stored the old one, it stores
    the new one.

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
        raise UserError("tokens are of a service: mlcd --server URL token ..., or set MLCD_SERVER")
    return server


def _known(server: Server, name: str) -> str:
    """The name, if there is such a token: an impossible name would change the path."""
    answer = server.get("/tokens")
    with server.reading():
        names = [str(each["name"]) for each in answer["tokens"]]
    if name not in names:
        raise UserError(f"no token '{name}': {', '.join(names) or 'you have none'}")
    return name


def _show(server: Server, made: Any, output: str) -> None:
    with server.reading():
        name, secret, ends = str(made["name"]), str(made["token"]), made["expires_at"]
        until = f"until {_day(ends, '')}" if ends else "until it is revoked"
    words = f"Token {name}, {until}. It is shown only once:\n{secret}"
    print_answer(output, words, {"name": name, "token": secret, "expires_at": ends})


def _day(iso: str | None, none: str, shape: str = "%Y-%m-%d") -> str:
    return datetime.fromisoformat(iso).strftime(shape) if iso else none
