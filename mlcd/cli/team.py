"""mlcd team: who may use a service, and what each may spend; on the service's database, or by asking the service."""

from __future__ import annotations

import getpass
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from mlcd.cli.options import F, consoles, output, print_json, with_options, written
from mlcd.cli.server import asked_server
from mlcd.core.options import NO_LIMIT
from mlcd.core.units import parse_usd

if TYPE_CHECKING:
    from mlcd.service.remote import Server
    from mlcd.service.remote.team import RemoteTeam
    from mlcd.service.team import Budget, Member, Team, Used


def _parse_limit(text: str) -> float:
    """Dollars; here zero is a limit too."""
    return 0.0 if text.strip().removeprefix("$") in ("0", "0.00") else parse_usd(text)


_limit = written(_parse_limit, or_none=True)
_role = click.Choice(["viewer", "runner", "admin"])
_on_database: Sequence[Callable[[F], F]] = (
    click.option(
        "--database",
        metavar="URL",
        envvar="MLCD_DATABASE_URL",
        help="The service's database: postgresql://...; this machine's ledger without it.",
    ),
    output,
)
_name = click.argument("name")
_per = click.option(
    "--per",
    type=click.Choice(["total", "month"]),
    help="The budget is over everything, as it is first, or over each month anew (UTC).",
)


@click.group()
def team() -> None:
    """Who may use a service, and what each may do and spend."""


@team.command()
@_name
@click.option("--role", type=_role, default="runner", show_default=True, help="What they may do.")
@click.option("--team", "team_name", metavar="TEAM", help="The team that their runs count for.")
@click.option("--budget", metavar="USD", callback=_limit, help="Dollars for all their runs together; no limit without.")
@_per
@with_options(_on_database)
def add(
    name: str, role: str, team_name: str | None, budget: Any, per: str | None, database: str | None, output: str
) -> None:
    """A new member; prints their token, this once.

    \b
    mlcd team add ada --budget 200 --per month
    """
    from mlcd.service.team import Per, Role

    _show_token(*_open(database).add(name, Role(role), team_name, _usd(budget), Per(per or "total")), output)


@team.command(name="list")
@with_options(_on_database)
def list_(database: str | None, output: str) -> None:
    """The members, their roles and budgets, and what each has left.

    \b
    mlcd team list
    """
    from mlcd.cli.tables import plain_table
    from mlcd.core.units import format_usd

    asked = _open(database)
    rows, teams = asked.members(), asked.teams()
    if output == "json":
        listed = [{**_document(member), **_use(use), "left_usd": left_usd} for member, use, left_usd in rows]
        told = [{"name": name, **_budget(budget), **_use(use)} for name, (budget, use) in teams.items()]
        print_json({"members": listed, "teams": told})
        return
    results, _ = consoles()
    if not rows:
        results.print("No member yet. Add one: mlcd team add NAME --role admin", highlight=False)
        return
    table = plain_table(["NAME", "ROLE", "TEAM"], ["SPENT", "BUDGET", "TEAM'S", "LEFT"])
    for member, use, left_usd in rows:
        own, of_team = member.budget, teams[member.team][0] if member.team in teams else None
        limits = ("-" if each is None or each.usd is None else each.amount for each in (own, of_team))
        left = "-" if left_usd is None else format_usd(left_usd)
        table.add_row(member.name, str(member.role), member.team or "-", format_usd(use.spent_usd), *limits, left)
    results.print(table)


@team.command()
@_name
@click.option("--role", type=_role, help="What they may do.")
@click.option("--team", "team_name", metavar="TEAM", help="The team that new runs count for; 'none'.")
@click.option("--budget", metavar="USD", callback=_limit, help="Dollars for all their runs together; 'none'.")
@_per
@with_options(_on_database)
def change(
    name: str, role: str | None, team_name: str | None, budget: Any, per: str | None, database: str | None, output: str
) -> None:
    """Another role, team or budget for a member.

    What is not named stays.

    \b
    mlcd team change ada --budget 500
    """
    from mlcd.core.errors import UserError
    from mlcd.service.team import Per, Role

    told: dict[str, Any] = {"role": Role(role)} if role is not None else {}
    if team_name is not None:
        told["team"] = None if team_name == NO_LIMIT else team_name
    if budget is not None:
        told["budget_usd"] = _usd(budget)
    if per is not None:
        told["budget_per"] = Per(per)
    if not told:
        raise UserError("nothing to change; give --role, --team, --budget or --per")
    member = _open(database).change(name, **told)
    _say(f"{name} is {member} now.", {"member": _document(member)}, output)


@team.command()
@_name
@with_options(_on_database)
def token(name: str, database: str | None, output: str) -> None:
    """A new token for a member; the old one is void at once.

    All their sessions are, too.

    \b
    mlcd team token ada
    """
    _show_token(*_open(database).renew(name), output)


@team.command()
@_name
@with_options(_on_database)
def remove(name: str, database: str | None, output: str) -> None:
    """End a membership: token and sessions are void; runs stay.

    \b
    mlcd team remove ada
    """
    _open(database).remove(name)
    _say(f"{name} is no member any more; their runs stay.", {"removed": name}, output)


@team.command()
@click.argument("team_name", metavar="TEAM")
@click.argument("usd", metavar="USD", callback=_limit)
@_per
@with_options(_on_database)
def budget(team_name: str, usd: Any, per: str | None, database: str | None, output: str) -> None:
    """What all runs of a team may spend together.

    USD is dollars, 'none' no limit.

    \b
    mlcd team budget vision 1000 --per month
    """
    from mlcd.service.team import Per

    told = {"per": Per(per)} if per is not None else {}
    budget = _open(database).set_budget(team_name, _usd(usd), **told)
    _say(f"Team {team_name} may spend {budget}.", {"team": team_name, **_budget(budget)}, output)


@team.command()
@click.option("--most", type=click.IntRange(1, 10_000), default=200, show_default=True, help="How many entries.")
@click.option("--before", metavar="SEQ", type=click.IntRange(1, 2**62), help="Only those older than this entry.")
@with_options(_on_database)
def audit(most: int, before: int | None, database: str | None, output: str) -> None:
    """Who did what, and whether it was allowed; the newest first.

    \b
    mlcd team audit --most 20
    """
    from mlcd.cli.tables import plain_table

    entries = _open(database).audit(most, before)
    if output == "json":
        names = ("who", "action", "about", "outcome", "detail")
        listed = [
            {"seq": each.seq, "at": each.at.isoformat(), **{name: getattr(each, name) for name in names}}
            for each in entries
        ]
        print_json({"entries": listed})
        return
    from rich.text import Text

    table = plain_table(["SEQ", "AT (UTC)", "WHO", "ACTION", "ABOUT", "OUTCOME", "DETAIL"], [])
    for each in entries:
        words = (each.who, each.action, each.about, each.outcome, each.detail)
        table.add_row(str(each.seq), each.at.strftime("%Y-%m-%d %H:%M:%S"), *map(Text, words))
    consoles()[0].print(table)


def _open(database: str | None) -> Team | RemoteTeam:
    """The team of the server that was named, or on a database; closed when the command ends."""
    from datetime import UTC, datetime

    if (server := _server(database)) is not None:
        from mlcd.service.remote.team import RemoteTeam

        return RemoteTeam(server)
    from mlcd.core.home import open_ledger
    from mlcd.core.ledger import Ledger
    from mlcd.service.team import Team

    ledger = Ledger(database) if database else open_ledger()
    click.get_current_context().call_on_close(ledger.close)
    return Team(ledger, whoever(), lambda: datetime.now(UTC))


def _server(database: str | None) -> Server | None:
    """The server that was named, unless a database was, too: then what the command line says counts, and no guess."""
    from mlcd.core.errors import UserError

    ctx = click.get_current_context()
    root = ctx.find_root()
    if database and root.params.get("server"):
        told = ctx.get_parameter_source("database")
        if told is root.get_parameter_source("server"):
            raise UserError("a database and a server are named: say which, by --database or by mlcd --server, not both")
        if told is ParameterSource.COMMANDLINE:
            return None
    return asked_server()


def whoever() -> str:
    """Whoever can write to the database, as their own machine calls them."""
    try:
        return f"{getpass.getuser()} (command line)"
    except (OSError, KeyError):  # a process without a user's name, as in some containers
        return "command line"


def _usd(told: Any) -> float | None:
    return None if told in (None, NO_LIMIT) else float(told)


def _document(member: Member) -> dict[str, Any]:
    return {"name": member.name, "role": member.role, "team": member.team, **_budget(member.budget)}


def _budget(budget: Budget) -> dict[str, Any]:
    return {"budget_usd": budget.usd, "budget_per": budget.per}


def _use(use: Used) -> dict[str, Any]:
    """What runs without a limit can still spend has no number."""
    claimed_usd = use.claimed_usd if math.isfinite(use.claimed_usd) else None
    return {"spent_usd": use.spent_usd, "claimed_usd": claimed_usd}


def _show_token(member: Member, token: str, output: str) -> None:
    words = f"{member.name} is {member}. The token is shown this once:\n{token}"
    _say(words, {"member": _document(member), "token": token}, output)


def _say(words: str, document: dict[str, Any], output: str) -> None:
    if output == "json":
        print_json(document)
    else:
        click.echo(words)
