"""mlcd login: keep the token of a server, so that it need not be said again."""

from __future__ import annotations

import sys

import click

from mlcd.cli.options import output, print_json
from mlcd.cli.server import tokens


@click.command()
@click.argument("url", metavar="URL")
@click.option("--forget", is_flag=True, help="Forget the token of this server.")
@output
def login(url: str, forget: bool, output: str) -> None:
    """Keep your token of a server for `mlcd --server URL`. It is asked for, or read from stdin; never shown."""
    from mlcd.errors import UserError
    from mlcd.remote import Server
    from mlcd.remote.tokens import address

    place = address(url)
    if forget:
        if not tokens().forget(place):
            raise UserError(f"no token is kept for {place}")
        _say(output, f"Forgot the token of {place}.", server=place, forgotten=True)
        return
    token = click.prompt("Token", hide_input=True, err=True) if sys.stdin.isatty() else sys.stdin.readline()
    server = Server(place, token, "the token")
    try:
        me = server.get("/me")
        who = {name: me[name] for name in ("name", "role", "team")}
    except (KeyError, TypeError):
        raise server.unreadable() from None
    finally:
        server.close()
    tokens().keep(place, token)
    clear = "" if not _in_the_clear(place) else " The way there is not encrypted: use https:// where others can listen."
    _say(output, f"Signed in to {place} as {who['name']}, {who['role']}.{clear}", server=place, **who)


def _in_the_clear(place: str) -> bool:
    from urllib.parse import urlsplit

    from mlcd.remote.server import LOOPBACK

    parts = urlsplit(place)
    return parts.scheme == "http" and parts.hostname not in LOOPBACK


def _say(output: str, words: str, **document: object) -> None:
    if output == "json":
        print_json(document)
    else:
        click.echo(words)
