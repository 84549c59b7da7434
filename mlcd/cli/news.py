"""mlcd news: who gets news of a service's runs."""

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
    """Manage where a service sends news of runs: mail, webhooks."""


@news.command(name="list")
@output
def list_(output: str) -> None:
    """List who gets news, of which events, and whether it arrives.

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
            consoles()[0].print("Nobody gets news. Get yours by mail: mlcd news add YOU@EXAMPLE.ORG")
            return
        table = plain_table(["NUMBER", "NAME", "KIND", "TO", "RUNS OF", "EVENTS", "LAST ERROR"], [])
        for each in found:
            words = (each["name"] or "-", each["kind"], each["shown"], _whose(each), _events(each), _trouble(each))
            table.add_row(str(each["number"]), *words)
        consoles()[0].print(table)


@news.command()
@click.argument("address")
@click.option(
    "--event", "events", multiple=True, type=click.Choice([*EVENTS]), help="Only this event; repeatable. Default: all."
)
@click.option("--slack", is_flag=True, help="The webhook takes text, as those of Slack and Mattermost do.")
@click.option("--name", default="", help="A name for the receiver.")
@click.option("--team", metavar="TEAM", help="News of this team's runs. For admins.")
@click.option("--member", metavar="NAME", help="News of this member's runs. For admins.")
@click.option("--everybody", is_flag=True, help="News of all runs. For admins; the default of webhooks.")
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
    """Send news of your own runs to a mail address.

    Admins can also name other people's runs, and give the https://... address of a webhook. A webhook gets signed
    JSON; the secret is shown only once.

    \b
    mlcd news add ada@example.org --event failed --event waiting
    """
    if everybody and (team is not None or member is not None):
        raise UserError("--everybody means all runs; leave out --team and --member")
    is_mail = not address.startswith(("https://", "http://"))
    if is_mail and slack:
        raise UserError("--slack needs the address of a webhook, such as https://hooks.slack.com/...")
    whose = {"own": is_mail and not everybody and team is None and member is None, "team": team, "member": member}
    kind = "mail" if is_mail else "slack" if slack else "json"
    body = {"kind": kind, "address": address, "name": name, "events": list(events) or None, **whose}
    server = _server()
    made = server.post("/news", body)
    with server.reading():
        number, secret = int(made["number"]), str(made["secret"])
    words = f"Added as receiver {number}. Test it: mlcd news test {number}"
    shown = f"{words}\nThe secret that signs the news is shown only once:\n{secret}" if secret else words
    print_answer(output, shown, {"number": number, "secret": secret})


@news.command()
@_number
@output
def remove(number: int, output: str) -> None:
    """Stop sending news to a receiver.

    \b
    mlcd news remove 3
    """
    _server().send("DELETE", f"/news/{number}")
    print_answer(output, f"Receiver {number} gets no more news.", {"removed": number})


@news.command()
@_number
@output
def test(number: int, output: str) -> None:
    """Send a test message to a receiver now.

    \b
    mlcd news test 3
    """
    server = _server()
    answer = server.post(f"/news/{number}/test")
    with server.reading():
        trouble = str(answer["trouble"])
    if trouble:
        raise UserError(f"the test message did not arrive: {trouble}")
    print_answer(output, "The test message was accepted.", {"trouble": ""})


def _server() -> Server:
    server = chosen_server()
    if server is None:
        raise UserError("news needs a service: mlcd --server URL news ..., or set MLCD_SERVER")
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
