"""mlcd check: what is installed, which backends can run here, what is missing and how to get it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from mlcd.cli.options import consoles, output, print_json
from mlcd.cli.server import chosen_server

if TYPE_CHECKING:
    from mlcd.cli.support import Check
    from mlcd.service.remote import Server


@click.command()
@click.argument("backend", required=False)
@output
def check(backend: str | None, output: str) -> int:
    """What works here, what is missing and how to get it.

    BACKEND: what that backend needs: ray, skypilot or functions.

    \b
    mlcd check
    """
    from mlcd.cli.support import checks

    results = checks(backend)
    if (server := chosen_server()) is not None:
        results.append(_server(server))
    if output == "json":
        print_json({"checks": [{"what": c.what, "ok": c.ok, "found": c.found, "to_do": c.to_do} for c in results]})
    else:
        from rich.markup import escape

        console, _ = consoles()
        for c in results:
            mark = "[green]✔[/green]" if c.ok else "[yellow]-[/yellow]"
            console.print(f"{mark} [bold]{c.what}[/bold]  {escape(c.found)}", highlight=False)
            if c.to_do:
                console.print(f"    {c.to_do}", style="dim", highlight=False, markup=False)
    return 0 if all(c.ok for c in results if c.needed) else 1


def _server(server: Server) -> Check:
    """Whether the chosen server answers, and which member the token belongs to."""
    from mlcd.cli.support import Check
    from mlcd.core.errors import MlcdError
    from mlcd.core.units import format_usd

    try:
        with server.reading():
            me = server.get("/me")
            who = f"as {me['name']}, {me['role']}" if me["name"] is not None else "for one user"
            left = f", {format_usd(me['left_usd'])} left" if me["left_usd"] is not None else ""
            found = f"{server.url}: MLCD {me['version']}, {who}{left}; jobs run on {_places(me)}"
            return Check("server", True, found)
    except MlcdError as error:
        what, _, to_do = str(error).partition("; ")
        return Check("server", False, what, to_do)


def _places(me: Mapping[str, Any]) -> str:
    """The possible values of `--on` there: a recording by its name."""
    named = [f"recorded:{name}" for name in me["recordings"]]
    return ", ".join([*(place for place in me["places"] if place != "recorded"), *named])
