"""mlcd news: where a service sends news of runs."""

from __future__ import annotations

from typing import Any

import click

from mlcd.cli.console import plain_table
from mlcd.cli.options import consoles, output, print_answer, print_json
from mlcd.cli.server import chosen_server
from mlcd.core.errors import UserError
from mlcd.service.notifications.events import EVENTS
from mlcd.service.remote.server import Server

_number = click.argument("number", type=click.IntRange(1))


@click.group()
def news() -> None:
    """Where a service sends news of runs: your mail, webhooks."""


@news.command(name="list")
@output
def list_(output: str) -> None:
    """Where news goes, of what, and whether it arrives.

    \b
    mlcd news list
    """
    server = _server()
    answer = server.get("/news")
    with server.reading():
        found = answer["receivers"]
        if output == "json":
            print_json({"receivers": found})
            return
        if not found:
            consoles()[0].print("News goes nowhere. Have yours mailed: mlcd news add YOU@EXAMPLE.ORG")
            return
        table = plain_table(["NUMBER", "NAME", "KIND", "TO", "OF", "EVENTS", "TROUBLE"], [])
        for each in found:
            words = (each["name"] or "-", each["kind"], each["shown"], _whose(each), _events(each), _trouble(each))
            table.add_row(str(each["number"]), *words)
        consoles()[0].print(table)


@news.command()
@click.argument("address")
@click.option("--event", "events", multiple=True, type=click.Choice([*EVENTS]), help="Only this one; all without.")
@click.option("--slack", is_flag=True, help="A webhook that takes a text, as Slack and Mattermost do.")
@click.option("--name", default="", help="What you call it.")
@click.option("--team", metavar="TEAM", help="Of the runs of this team. For admins.")
@click.option("--member", metavar="NAME", help="Of the runs of this member. For admins.")
@click.option("--everybody", is_flag=True, help="Of all runs. For admins; a webhook's default.")
@output
def add(
    address: str,
    events: tuple[str, ...],
    slack: bool,
    name: str,
    team: str | None,
    member: str | None,
    everybody: bool,
    output: str,
) -> None:
    """Send news to ADDRESS: of your own runs, by mail.

    An admin may also say of whose runs, or give a webhook, https://... It gets signed JSON, and its secret is printed
    only once.

    \b
    mlcd news add ada@example.org --event failed --event waiting
    """
    if everybody and (team is not None or member is not None):
        raise UserError("--everybody: all runs are not only those of a --team or --member")
    is_mail = not address.startswith(("https://", "http://"))
    if is_mail and slack:
        raise UserError("--slack: give the address of its webhook, https://hooks.slack.com/...")
    whose = {"own": is_mail and not everybody and team is None and member is None, "team": team, "member": member}
    kind = "mail" if is_mail else "slack" if slack else "json"
    body = {"kind": kind, "address": address, "name": name, "events": list(events) or None, **whose}
    server = _server()
    made = server.post("/news", body)
    with server.reading():
        number, secret = int(made["number"]), str(made["secret"])
    words = f"News goes there as receiver {number}. See that it arrives: mlcd news test {number}"
    shown = f"{words}\nThe secret that signs it is shown only once:\n{secret}" if secret else words
    print_answer(output, shown, {"number": number, "secret": secret})


@news.command()
@_number
@output
def remove(number: int, output: str) -> None:
    """Send nothing there any more.

    \b
    mlcd news remove 3
    """
    _server().send("DELETE", f"/news/{number}")
    print_answer(output, f"Receiver {number} gets no more news.", {"removed": number})


@news.command()
@_number
@output
def test(number: int, output: str) -> None:
    """Send a test message there now.

    \b
    mlcd news test 3
    """
    server = _server()
    answer = server.post(f"/news/{number}/test")
    with server.reading():
        trouble = str(answer["trouble"])
    if trouble:
        raise UserError(f"it did not arrive: {trouble}")
    print_answer(output, "It was taken.", {"trouble": ""})


def _server() -> Server:
    server = chosen_server()
    if server is None:
        raise UserError("news is sent by a service: mlcd --server URL news ..., or set MLCD_SERVER")
    return server


def _whose(receiver: Any) -> str:
    if receiver["owner"] is not None:
        return "yourself"
    parts = [receiver["member"], f"team {receiver['team']}" if receiver["team"] is not None else None]
    return ", ".join(part for part in parts if part is not None) or "everybody"


def _events(receiver: Any) -> str:
    return "all" if receiver["events"] is None else ", ".join(receiver["events"])


def _trouble(receiver: Any) -> str:
    return f"{receiver['trouble']} ({receiver['tries']} tries)" if receiver["trouble"] else "-"
