"""mlcd login: store the token of a server."""

from __future__ import annotations

import os
import sys
from contextlib import closing
from urllib.parse import urlsplit

import click

from mlcd.cli.options import output, print_answer
from mlcd.cli.server import tokens
from mlcd.core.errors import UserError
from mlcd.service.remote.server import LOOPBACK, Server
from mlcd.service.remote.tokens import address


@click.command()
@click.argument("url", metavar="[URL]", required=False)
@click.option("--forget", is_flag=True, help="Delete the stored token.")
@output
def login(url: str | None, forget: bool, output: str) -> None:
    """Store your token of a service, for `mlcd --server URL`.

    The token is asked for, or read from stdin, and never shown. Default of URL: --server or MLCD_SERVER.

    \b
    mlcd login https://mlcd.example.org
    """
    url = url or click.get_current_context().find_root().params.get("server")
    if not url:
        raise click.UsageError("Missing argument 'URL'.", click.get_current_context())
    place = address(url)
    if forget:
        if not tokens().forget(place):
            raise UserError(f"no token is stored for {place}")
        print_answer(output, f"Deleted the token of {place}.", {"server": place, "forgotten": True})
        return
    with closing(Server(place)) as server:  # first, so that a token is never sent to a server that is not MLCD's
        about = server.about()
    if about.get("mode") == "ui":
        raise UserError(f"{place}: this is mlcd ui, which needs no token; use it directly: mlcd --server {place} runs")
    if urlsplit(place).scheme == "http" and urlsplit(place).hostname not in LOOPBACK:
        click.echo(
            f"warning: the connection to {place} is not encrypted; use https:// unless the network is private", err=True
        )
    token = click.prompt("Token", hide_input=True, err=True) if sys.stdin.isatty() else sys.stdin.readline()
    if not token.strip():
        signs_in = f"to make one, sign in with {about.get('provider')} at {place}/tokens"
        by_admin = f"ask an admin of {place} for one: mlcd team add NAME"
        raise UserError(f"no token was given; {signs_in if about.get('provider') else by_admin}")
    with closing(Server(place, token, "the token")) as server, server.reading():
        me = server.get("/me")
        who = {name: me[name] for name in ("name", "role", "team")}
    tokens().keep(place, token)
    more = " MLCD_TOKEN is set, and overrides this token." if os.environ.get("MLCD_TOKEN") else ""
    words = f"Signed in to {place} as {who['name']}, {who['role']}.{more}"
    print_answer(output, words, {"server": place, **who})
