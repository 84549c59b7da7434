"""mlcd team: the members of a service, their roles and budgets; over its API, or on its database."""

from __future__ import annotations

import getpass
import math
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from rich.text import Text

from mlcd.cli.console import plain_table
from mlcd.cli.options import consoles, output, parsed_by, print_answer, print_json, with_options
from mlcd.cli.server import chosen_server
from mlcd.core.errors import UserError
from mlcd.core.home import open_ledger
from mlcd.core.ledger import Ledger
from mlcd.core.options import NO_LIMIT
from mlcd.core.units import format_usd, parse_usd
from mlcd.service.remote.server import Server
from mlcd.service.remote.team import RemoteTeam
from mlcd.service.sign_in.identities import Account
from mlcd.service.team.administration import AuditedAction, AuditFilter, Team
from mlcd.service.team.allowance import Used
from mlcd.service.team.audit_export import PAGE, Format, exported
from mlcd.service.team.budget import Budget, Per
from mlcd.service.team.members import Member, Role


def _parse_limit(text: str) -> float | str:
    """Dollars, or 'none'; zero is a valid limit here."""
    if text.lower() == NO_LIMIT:
        return NO_LIMIT
    return 0.0 if text.strip().removeprefix("$") in ("0", "0.00") else parse_usd(text)


MOST_AUDIT_ROWS = 200
_limit = parsed_by(_parse_limit)
_role = click.Choice([*map(str, Role)])
_on_database = (
    click.option(
        "--database",
        metavar="URL",
        envvar="MLCD_DATABASE_URL",
        help="PostgreSQL URL of the service's database. Default: this machine's ledger.",
    ),
    output,
)
_name = click.argument("name")
_per = click.option(
    "--per",
    type=click.Choice([*map(str, Per)]),
    help="Period of the budget: total, or each month (UTC). Default: total.",
)


@click.group()
def team() -> None:
    """Manage the members of a service, their roles and budgets."""


@team.command()
@_name
@click.option("--role", type=_role, default="runner", show_default=True, help="Their role.")
@click.option("--team", "team_name", metavar="TEAM", help="The team whose budget their runs count against.")
@click.option("--budget", metavar="USD", callback=_limit, help="Most dollars for all their runs. Default: no limit.")
@_per
@with_options(_on_database)
def add(
    name: str, role: str, team_name: str | None, budget: Any, per: str | None, database: str | None, output: str
) -> None:
    """Add a member; their token is shown only once.

    \b
    mlcd team add ada --budget 200 --per month
    """
    _show_token(*_open(database).add(name, Role(role), team_name, _usd(budget), Per(per or "total")), output)


@team.command(name="list")
@with_options(_on_database)
def list_(database: str | None, output: str) -> None:
    """List the members, their roles and budgets, and what each has left.

    \b
    mlcd team list
    """
    opened = _open(database)
    rows, teams = opened.members(), opened.teams()
    if output == "json":
        listed = [{**_document(member), **_use(use), "left_usd": left_usd} for member, use, left_usd in rows]
        team_rows = [{"name": name, **_budget(budget), **_use(use)} for name, (budget, use) in teams.items()]
        print_json({"members": listed, "teams": team_rows})
        return
    results, _ = consoles()
    if not rows:
        results.print("No members yet. Add one: mlcd team add NAME --role admin")
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
@click.option("--role", type=_role, help="Their new role.")
@click.option("--team", "team_name", metavar="TEAM", help="Their team, for new runs; 'none' for no team.")
@click.option("--budget", metavar="USD", callback=_limit, help="Most dollars for all their runs; 'none' for no limit.")
@_per
@with_options(_on_database)
def change(
    name: str, role: str | None, team_name: str | None, budget: Any, per: str | None, database: str | None, output: str
) -> None:
    """Change a member's role, team or budget.

    Options that are not given stay as they are.

    \b
    mlcd team change ada --budget 500
    """
    changes: dict[str, Any] = {"role": Role(role)} if role is not None else {}
    if team_name is not None:
        changes["team"] = None if team_name == NO_LIMIT else team_name
    if budget is not None:
        changes["budget_usd"] = _usd(budget)
    if per is not None:
        changes["budget_per"] = Per(per)
    if not changes:
        raise UserError("nothing to change: give --role, --team, --budget or --per")
    member = _open(database).change(name, **changes)
    print_answer(output, f"{name} is {member} now.", {"member": _document(member)})


@team.command()
@_name
@with_options(_on_database)
def token(name: str, database: str | None, output: str) -> None:
    """Make a new token for a member.

    The old token and all their sessions end.

    \b
    mlcd team token ada
    """
    _show_token(*_open(database).renew(name), output)


@team.command()
@_name
@with_options(_on_database)
def remove(name: str, database: str | None, output: str) -> None:
    """Remove a member: their token and sessions end; their runs stay.

    \b
    mlcd team remove ada
    """
    _open(database).remove(name)
    print_answer(output, f"{name} is no longer a member; their runs stay.", {"removed": name})


@team.command()
@_name
@click.argument("issuer")
@click.argument("subject")
@with_options(_on_database)
def link(name: str, issuer: str, subject: str, database: str | None, output: str) -> None:
    """Let a member sign in with an account of the sign-in provider.

    \b
    mlcd team link ada https://sso.example.org 248289761001
    """
    _open(database).link(name, Account(issuer, subject))
    print_answer(output, f"{name} can sign in as {subject} of {issuer}.", {"linked": name, "subject": subject})


@team.command()
@_name
@with_options(_on_database)
def unlink(name: str, database: str | None, output: str) -> None:
    """Let a member no longer sign in with an account of the provider.

    \b
    mlcd team unlink ada
    """
    _open(database).unlink(name)
    print_answer(output, f"{name} can no longer sign in with an account; their token stays.", {"unlinked": name})


@team.command()
@click.argument("team_name", metavar="TEAM")
@click.argument("usd", metavar="USD", callback=_limit)
@_per
@with_options(_on_database)
def budget(team_name: str, usd: Any, per: str | None, database: str | None, output: str) -> None:
    """Set the budget of a team, for all its runs together.

    USD is a number of dollars, or 'none' for no limit.

    \b
    mlcd team budget vision 1000 --per month
    """
    period = {"per": Per(per)} if per is not None else {}
    budget = _open(database).set_budget(team_name, _usd(usd), **period)
    print_answer(output, f"Team {team_name} may spend {budget}.", {"team": team_name, **_budget(budget)})


@team.command()
@click.option("--most", type=click.IntRange(1, 10_000), help="Most entries. Default: 200; with --to, all.")
@click.option("--before", metavar="SEQ", type=click.IntRange(1, 2**62), help="Only entries before this one.")
@click.option("--who", metavar="NAME", help="Only actions of this member, or address.")
@click.option("--action", metavar="ACTION", help="Only this action, such as 'submit'.")
@click.option("--outcome", type=click.Choice(["ok", "refused"]), help="Only actions with this outcome.")
@click.option("--since", metavar="DATE", help="Only from this day on (UTC), such as 2026-11-01.")
@click.option("--until", metavar="DATE", help="Only up to the end of this day (UTC).")
@click.option("--to", metavar="FILE", type=click.Path(path_type=Path), help="Write them to this file, .csv or .jsonl.")
@with_options(_on_database)
def audit(
    most: int | None,
    before: int | None,
    who: str | None,
    action: str | None,
    outcome: str | None,
    since: str | None,
    until: str | None,
    to: Path | None,
    database: str | None,
    output: str,
) -> None:
    """List who did what, and whether it was allowed; newest first.

    \b
    mlcd team audit --outcome refused --since 2026-11-01 --to refused.csv
    """
    only, opened = AuditFilter.read(who, action, outcome, since, until), _open(database)
    if to is not None:
        lines = _write_audit(opened, only, to, most, before)
        print_answer(output, f"Wrote {lines} entries to {to}.", {"file": str(to), "entries": lines})
        return
    entries = opened.audit(most or MOST_AUDIT_ROWS, before, only)
    if output == "json":
        print_json({"entries": [{**asdict(each), "at": each.at.isoformat()} for each in entries]})
        return
    table = plain_table(["SEQ", "AT (UTC)", "WHO", "ACTION", "ABOUT", "OUTCOME", "DETAIL"], [])
    for each in entries:
        words = (each.who, each.action, each.about, each.outcome, each.detail)
        table.add_row(str(each.seq), each.at.strftime("%Y-%m-%d %H:%M:%S"), *map(Text, words))
    consoles()[0].print(table)


def _write_audit(opened: Team | RemoteTeam, only: AuditFilter, to: Path, most: int | None, first: int | None) -> int:
    """Write the entries to a file, by its ending; return how many."""
    kinds: dict[str, Format] = {".csv": "csv", ".jsonl": "jsonl"}
    if to.suffix not in kinds:
        raise UserError(f"--to {to}: the name must end in .csv or .jsonl")
    written = 0

    def read(before: int | None) -> list[AuditedAction]:
        nonlocal written
        left = PAGE if most is None else min(PAGE, most - written)
        entries = opened.audit(left, before or first, only) if left else []
        written += len(entries)
        return entries

    try:
        with to.open("w", encoding="utf-8", newline="") as file:
            file.writelines(exported(read, kinds[to.suffix]))
    except OSError as error:
        raise UserError(f"--to {to}: cannot be written: {error.strerror}") from None
    return written


def _open(database: str | None) -> Team | RemoteTeam:
    """The team of the chosen server, or on a database; closed when the command ends."""
    if (server := _server(database)) is not None:
        return RemoteTeam(server)
    ledger = Ledger(database) if database else open_ledger()
    click.get_current_context().call_on_close(ledger.close)
    return Team(ledger, command_line_user(), lambda: datetime.now(UTC))


def _server(database: str | None) -> Server | None:
    """The chosen server. If a database is given, too, the one on the command line wins over the environment."""
    ctx = click.get_current_context()
    root = ctx.find_root()
    if database and root.params.get("server"):
        source = ctx.get_parameter_source("database")
        if source is root.get_parameter_source("server"):
            raise UserError("both a database and a server are given; use either --database or mlcd --server")
        if source is ParameterSource.COMMANDLINE:
            return None
    return chosen_server()


def command_line_user() -> str:
    """The user's name on this machine, for the audit log."""
    try:
        return f"{getpass.getuser()} (command line)"
    except (OSError, KeyError):  # no user name, as in some containers
        return "command line"


def _usd(value: Any) -> float | None:
    return None if value in (None, NO_LIMIT) else float(value)


def _document(member: Member) -> dict[str, Any]:
    return {"name": member.name, "role": member.role, "team": member.team, **_budget(member.budget)}


def _budget(budget: Budget) -> dict[str, Any]:
    return {"budget_usd": budget.usd, "budget_per": budget.per}


def _use(use: Used) -> dict[str, Any]:
    """An unlimited claim is null."""
    claimed_usd = use.claimed_usd if math.isfinite(use.claimed_usd) else None
    return {"spent_usd": use.spent_usd, "claimed_usd": claimed_usd}


def _show_token(member: Member, token: str, output: str) -> None:
    words = f"{member.name} is {member}. The token is shown only once:\n{token}"
    print_answer(output, words, {"member": _document(member), "token": token})
