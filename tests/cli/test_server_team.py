"""`mlcd --server URL team`: what an admin says to a service is what they would say to its database."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from served import Service, a_team, one_person

from mlcd.service.remote.server import Server
from mlcd.service.remote.team import RemoteTeam
from mlcd.service.team.administration import Audit

pytestmark = pytest.mark.live

Mlcd = Callable[..., Any]

DEEDS = (
    ("add", "bob", "--team", "vision", "--budget", "$50", "--per", "month"),
    ("add", "cleo", "--role", "admin", "-o", "json"),
    ("change", "bob", "--role", "viewer", "--budget", "0"),
    ("change", "bob", "--team", "none", "--budget", "none", "-o", "json"),
    ("change", "bob", "--team", "vision", "--role", "runner", "--per", "total"),
    ("token", "bob"),
    ("token", "bob", "-o", "json"),
    ("budget", "vision", "1,200", "--per", "month"),
    ("budget", "vision", "20", "-o", "json"),
    ("link", "bob", "https://sso.example.org", "bob-1"),
    ("link", "cleo", "https://sso.example.org", "cleo's", "-o", "json"),
    ("link", "bob", "https://other.example.org", "b"),
    ("unlink", "bob"),
    ("unlink", "cleo", "-o", "json"),
    ("list",),
    ("list", "-o", "json"),
    ("remove", "cleo"),
    ("remove", "bob", "-o", "json"),
    ("budget", "vision", "none", "--per", "total"),
    ("list",),
)
MISTAKES = (
    ("add", "Ada B"),
    ("add", "ada"),
    ("change", "adda", "--role", "viewer"),
    ("change", "root", "--role", "viewer"),
    ("token", "zoe"),
    ("remove", "root"),
    ("link", "zoe", "https://sso.example.org", "z"),
    ("link", "ada", "https://sso.example.org", "two\nlines"),
    ("unlink", "ada"),
    ("unlink", "zoe"),
    ("remove", "zoe/../ada"),
    ("remove", ""),
    ("budget", "A team", "3"),
    ("budget", "a/b", "3"),
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with members, and nothing else."""
    with a_team(tmp_path_factory.mktemp("ruled")) as served:
        yield served


@pytest.fixture
def there(service: Service, mlcd: Mlcd, monkeypatch: pytest.MonkeyPatch) -> Mlcd:
    """`mlcd team`, of the admin, against the service."""

    def run(*arguments: object, who: str = "root") -> Any:
        monkeypatch.setenv("MLCD_TOKEN", service.tokens[who])
        return mlcd("--server", service.url, "team", *arguments)

    return run


@pytest.fixture
def on_its_database(service: Service, mlcd: Mlcd) -> Mlcd:
    """The same on the database of that service."""
    return lambda *arguments: mlcd("team", *arguments, "--database", f"sqlite:///{service.ledger.path}")


def test_every_deed_prints_the_same_there_as_on_the_database(there: Mlcd, on_its_database: Mlcd) -> None:
    said = [[_without_tokens(team(*deed)) for deed in DEEDS] for team in (on_its_database, there)]
    assert all(code == 0 for told in said for code, *_ in told), said
    assert said[1] == said[0]
    written = on_its_database("audit", "-o", "json").document["entries"]
    words = [tuple(each[name] for name in ("action", "about", "outcome", "detail")) for each in written]
    many = len([deed for deed in DEEDS if deed[0] != "list"])
    assert words[:many] == words[many:]
    assert {each["who"] for each in written[:many]} == {"root"}
    assert all("command line" in each["who"] for each in written[many:])


@pytest.mark.parametrize("mistake", MISTAKES, ids=" ".join)
def test_every_mistake_is_the_same_line_there(mistake: tuple[str, ...], there: Mlcd, on_its_database: Mlcd) -> None:
    expected = on_its_database(*mistake).complaint
    assert there(*mistake).complaint == expected


def test_a_token_that_was_made_there_is_one_and_the_old_one_is_none(
    there: Mlcd, service: Service, mlcd: Mlcd, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = there("add", "dora", "-o", "json").document["token"]
    second = there("token", "dora", "-o", "json").document["token"]
    monkeypatch.setenv("MLCD_TOKEN", second)
    assert mlcd("--server", service.url, "runs").code == 0
    monkeypatch.setenv("MLCD_TOKEN", first)
    assert "the token" in mlcd("--server", service.url, "runs").complaint
    assert there("remove", "dora").code == 0
    monkeypatch.setenv("MLCD_TOKEN", second)
    assert "the token" in mlcd("--server", service.url, "runs").complaint


def test_the_audit_is_read_from_there(there: Mlcd, on_its_database: Mlcd) -> None:
    for usd in (1, 2, 3):
        assert there("budget", "vision", usd).code == 0
    expected = on_its_database("audit", "-o", "json").document["entries"]
    assert there("audit", "-o", "json").document["entries"] == expected
    assert there("audit", "--most", 3, "--before", expected[1]["seq"]).out == (
        on_its_database("audit", "--most", 3, "--before", expected[1]["seq"]).out
    )
    assert [(each["action"], each["detail"]) for each in expected[:2]] == [
        ("team budget", "at most $3.00"),
        ("team budget", "at most $2.00"),
    ]
    assert "mlcd_" not in on_its_database("audit").out


def test_a_long_audit_comes_in_pages_without_a_gap(service: Service) -> None:
    audit = Audit(service.ledger.database, lambda: datetime.now(UTC))
    for number in range(9):
        audit.write("somebody", "something", str(number))
    with closing(Server(service.url, service.tokens["root"])) as server:
        for page in (1, 2, 3, 9, 100):
            team = RemoteTeam(server, page)
            for most in (1, 4, 9, 1_000):
                assert team.audit(most) == audit.entries(most)
            middle = audit.entries()[4].seq
            assert team.audit(3, middle) == audit.entries(3, middle)


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_part_of_the_audit_and_all_of_it_as_a_file_are_the_same_there_and_here(
    kind: str, there: Mlcd, on_its_database: Mlcd, tmp_path: Path
) -> None:
    for usd in (1, 2, 3):
        there("budget", "vision", usd)
    chosen = ("--action", "team budget", "--who", "root", "--outcome", "ok", "--since", "2026-01-01")
    expected = on_its_database("audit", *chosen, "-o", "json").document["entries"]
    assert [each["action"] for each in expected[:3]] == 3 * ["team budget"]
    assert there("audit", *chosen, "-o", "json").document["entries"] == expected
    assert there("audit", *chosen, "--until", "2026-01-01", "-o", "json").document["entries"] == []
    here, from_there = tmp_path / f"here.{kind}", tmp_path / f"there.{kind}"
    assert on_its_database("audit", *chosen, "--to", here).code == 0
    assert f"Wrote {len(expected)} entries to {from_there}" in there("audit", *chosen, "--to", from_there).out
    assert here.read_text() == from_there.read_text()
    assert len(here.read_text().splitlines()) == len(expected) + (kind == "csv")
    assert there("audit", "--most", 2, "--to", from_there).code == 0
    assert len(from_there.read_text().splitlines()) == 2 + (kind == "csv")
    assert ".csv or .jsonl" in there("audit", "--to", tmp_path / "audit.txt").complaint
    assert "2026-11-19" in there("audit", "--since", "yesterday").complaint


def test_only_admins_rule_and_only_where_there_is_a_team(
    there: Mlcd, mlcd: Mlcd, tmp_path: Path, on_its_database: Mlcd
) -> None:
    before = on_its_database("list").out
    for deed in (("list",), ("add", "eve", "--role", "admin"), ("token", "root"), ("remove", "vic"), ("audit",)):
        assert "not allowed: ada is a runner; this needs an admin" in there(*deed, who="ada").complaint
    assert on_its_database("list").out == before
    with one_person(tmp_path / "ui") as alone:
        assert "`mlcd ui` has one user and no team" in mlcd("--server", alone.url, "team", "list").complaint


def test_a_database_and_a_server_are_told_apart_by_who_said_so(
    there: Mlcd, service: Service, mlcd: Mlcd, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = f"sqlite:///{home}/own.db"
    both = "both a database and a server are given"
    assert both in there("list", "--database", own).complaint
    monkeypatch.setenv("MLCD_DATABASE_URL", own)
    assert "root" in there("list").out
    monkeypatch.setenv("MLCD_SERVER", service.url)
    assert both in mlcd("team", "list").complaint
    assert "No members yet" in mlcd("team", "list", "--database", own).out
    monkeypatch.delenv("MLCD_DATABASE_URL")
    assert "root" in mlcd("team", "list").out


def _without_tokens(answer: Any) -> tuple[int, str, str]:
    return answer.code, re.sub(r"mlcd_[\w-]{43}", "TOKEN", answer.out), answer.err
