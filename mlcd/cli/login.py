"""mlcd login: keep the token of a server, so that it need not be said again."""

from __future__ import annotations

import os
import sys
from contextlib import closing

import click

from mlcd.cli.options import output, print_json
from mlcd.cli.server import tokens


@click.command()
@click.argument("url", metavar="[URL]", required=False)
@click.option("--forget", is_flag=True, help="Forget the token of this server.")
@output
def login(url: str | None, forget: bool, output: str) -> None:
    """Keep your token of a server, for `mlcd --server URL`.

    It is asked for, or read from stdin; never shown. URL: the server; that of --server or MLCD_SERVER without it.

    \b
    mlcd login https://mlcd.example.org
    """
    from mlcd.core.errors import UserError
    from mlcd.service.remote import Server
    from mlcd.service.remote.tokens import address

    url = url or click.get_current_context().find_root().params.get("server")
    if not url:
        raise click.UsageError("Missing argument 'URL'.", click.get_current_context())
    place = address(url)
    if forget:
        if not tokens().forget(place):
            raise UserError(f"no token is kept for {place}")
        _say(output, f"Forgot the token of {place}.", server=place, forgotten=True)
        return
    with closing(Server(place)) as asked:  # before a token is typed, and without it: a stranger must not get it
        if asked.about().get("mode") == "ui":
            raise UserError(f"{place}: of one person, who needs no token; use it at once: mlcd --server {place} runs")
    if _in_the_clear(place):
        click.echo(f"{place}: the way there is not encrypted; use https:// where others can listen", err=True)
    token = click.prompt("Token", hide_input=True, err=True) if sys.stdin.isatty() else sys.stdin.readline()
    if not token.strip():
        raise UserError(f"no token was given; an admin of {place} makes one: mlcd team add NAME")
    with closing(Server(place, token, "the token")) as server, server.reading():
        me = server.get("/me")
        who = {name: me[name] for name in ("name", "role", "team")}
    tokens().keep(place, token)
    more = " MLCD_TOKEN is set, and comes before this token." if os.environ.get("MLCD_TOKEN") else ""
    _say(output, f"Signed in to {place} as {who['name']}, {who['role']}.{more}", server=place, **who)


def _in_the_clear(place: str) -> bool:
    from urllib.parse import urlsplit

    from mlcd.service.remote.server import LOOPBACK

    parts = urlsplit(place)
    return parts.scheme == "http" and parts.hostname not in LOOPBACK


def _say(output: str, words: str, **document: object) -> None:
    if output == "json":
        print_json(document)
    else:
        click.echo(words)
