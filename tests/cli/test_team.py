"""mlcd team: members and budgets by command, on this machine's database and on a real PostgreSQL."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import click
import pytest

from mlcd.cli.team import team as team_group
from mlcd.core.database import open_database
from mlcd.core.ledger import Ledger
from mlcd.service.team.allowance import remaining_budget, submit
from mlcd.service.team.budget import Per
from mlcd.service.team.members import Role


@pytest.fixture(params=["this machine's", "postgresql", "sqlite's URL"])
def team(request: pytest.FixtureRequest, mlcd: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """`mlcd team`, with the database named in each of the ways that there are."""
    more: list[str] = []
    if request.param == "postgresql":
        monkeypatch.setenv("MLCD_DATABASE_URL", request.getfixturevalue("postgres_url"))
    elif request.param == "sqlite's URL":
        more = ["--database", f"sqlite:///{home}/team.db"]
    return lambda command, *arguments: mlcd("team", command, *arguments, *more)


def token_of(answer: Any) -> str:
    assert answer.code == 0, answer
    return str(answer.document["token"])


def test_a_member_is_added_changed_renewed_and_removed(team: Callable[..., Any]):
    added = team("add", "ada", "--team", "vision", "--budget", "$50")
    assert added.code == 0
    words, token = added.out.splitlines()
    assert words == "ada is runner of team vision, at most $50.00. The token is shown only once:"
    assert token.startswith("mlcd_")
    renewed = token_of(team("token", "ada", "-o", "json"))
    assert renewed != token
    assert token_of(team("add", "grace", "--role", "admin", "-o", "json")) != renewed
    changed = team("change", "ada", "--role", "viewer", "--team", "none", "--budget", "none", "-o", "json")
    nobody = {"name": "ada", "role": "viewer", "team": None, "budget_usd": None, "budget_per": "total"}
    assert changed.document == {"member": nobody}
    assert team("change", "ada", "--budget", "0").out == "ada is viewer, at most $0.00 now.\n"
    assert team("remove", "ada").out == "ada is no longer a member; their runs stay.\n"
    assert [each["name"] for each in team("list", "-o", "json").document["members"]] == ["grace"]
    told = team("audit", "-o", "json")
    actions = [(each["action"], each["about"], each["outcome"]) for each in told.document["entries"]]
    assert actions == [
        ("remove member", "ada", "ok"),
        ("change member", "ada", "ok"),
        ("change member", "ada", "ok"),
        ("add member", "grace", "ok"),
        ("renew token", "ada", "ok"),
        ("add member", "ada", "ok"),
    ]
    assert all("command line" in each["who"] for each in told.document["entries"])
    assert not any(secret in told.out for secret in (token, renewed))
    newest = told.document["entries"][0]["seq"]
    older = team("audit", "--most", 1, "--before", newest, "-o", "json").document["entries"]
    assert [each["seq"] for each in older] == [newest - 1]
    assert "remove member" in team("audit").out


def test_the_list_tells_what_each_has_left(team: Callable[..., Any]):
    assert team("list").out == "No members yet. Add one: mlcd team add NAME --role admin\n"
    team("add", "ada", "--team", "vision", "--budget", 50)
    team("add", "bob", "--role", "viewer")
    assert team("budget", "vision", "1,200").out == "Team vision may spend at most $1,200.00.\n"
    told = team("budget", "vision", "20", "--per", "month", "-o", "json").document
    assert told == {"team": "vision", "budget_usd": 20.0, "budget_per": "month"}
    nothing = {"spent_usd": 0.0, "claimed_usd": 0.0}
    ada = {"name": "ada", "role": "runner", "team": "vision", "budget_usd": 50.0, "budget_per": "total"}
    bob = {"name": "bob", "role": "viewer", "team": None, "budget_usd": None, "budget_per": "total"}
    assert team("list", "-o", "json").document == {
        "members": [ada | nothing | {"left_usd": 20.0}, bob | nothing | {"left_usd": None}],
        "teams": [{"name": "vision", "budget_usd": 20.0, "budget_per": "month"} | nothing],
    }
    rows = [re.split("  +", line) for line in team("list").out.splitlines()]
    assert rows[1:] == [
        ["ada", "runner", "vision", "$0.00", "$50.00", "$20.00 a month", "$20.00"],
        ["bob", "viewer", "-", "$0.00", "-", "-", "-"],
    ]
    assert team("budget", "vision", "none").out == "Team vision may spend without limit.\n"


def test_a_budget_is_by_the_month_when_that_is_said_and_stays_so(team: Callable[..., Any]):
    words = team("add", "ada", "--budget", 500, "--per", "month").out.splitlines()[0]
    assert words == "ada is runner, at most $500.00 a month. The token is shown only once:"
    assert team("change", "ada", "--budget", 80).out == "ada is runner, at most $80.00 a month now.\n"
    assert team("change", "ada", "--per", "total").out == "ada is runner, at most $80.00 now.\n"
    assert team("budget", "vision", 400, "--per", "month").out == "Team vision may spend at most $400.00 a month.\n"
    assert team("budget", "vision", 500).out == "Team vision may spend at most $500.00 a month.\n"
    details = [each["detail"] for each in team("audit", "--most", 2, "-o", "json").document["entries"]]
    assert details == ["at most $500.00 a month", "at most $400.00 a month"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("add", "Ada B"), "small letters"),
        (("add", "ada"), "'ada' is a member already; a new token: mlcd team token ada"),
        (("add", "bob", "--budget", "much"), "expected dollars"),
        (("add", "bob", "--budget", "-3"), "more than zero"),
        (("add", "bob", "--role", "boss"), "'boss' is not one of"),
        (("change", "ada"), "nothing to change: give --role, --team, --budget or --per"),
        (("change", "ada", "--per", "week"), "'week' is not one of"),
        (("change", "adda", "--role", "viewer"), "unknown member 'adda': did you mean 'ada'?"),
        (("token", "zoe"), "unknown member 'zoe'"),
        (("remove", "ada"), "'ada' is the only admin; make another member an admin first"),
        (("budget", "vision", "nan"), "expected dollars"),
        (("audit", "--most", "0"), "0 is not in the range"),
        (("list", "--database", "mysql://u:hidden@h/d"), "mysql"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(mlcd: Any, arguments: tuple[str, ...], complaint: str):
    mlcd("team", "add", "ada", "--role", "admin")
    answer = mlcd("team", *arguments)
    assert complaint in answer.complaint
    assert "hidden" not in answer.complaint


@pytest.mark.parametrize(("option", "kind"), [("role", Role), ("per", Per)])
def test_the_words_of_the_command_line_are_the_words_there_are(option: str, kind: Any):
    (found,) = [each for each in team_group.commands["add"].params if each.name == option]
    assert isinstance(found.type, click.Choice)
    assert list(found.type.choices) == [str(each) for each in kind]


def test_a_budget_of_the_command_line_is_kept_by_submissions(mlcd: Any, home: Path):
    from mlcd.core.job import Goal, Job
    from mlcd.service.team.members import Member

    mlcd("team", "add", "ada", "--budget", 10)
    job = Job("resnet", 1.0, Goal(budget_usd=4.0))
    asked = json.dumps({"job": {"goal": {"budget_usd": 4.0}}, "launch": False})
    with closing(open_database(home / "ledger.db")) as database, closing(Ledger(database)) as ledger:
        ada = Member("ada", Role.RUNNER)
        submit(ledger, ada, job, asked)
        assert remaining_budget(ledger, ada).usd == 6.0
    assert mlcd("team", "list", "-o", "json").document["members"][0]["left_usd"] == 6.0
