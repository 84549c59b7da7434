"""`mlcd label`, `mlcd compare`, and `mlcd runs` filtered: on this machine, and the same with --server."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from served import Service, a_team

from mlcd.core.ledger import Ledger

pytestmark = pytest.mark.live

Mlcd = Callable[..., Any]
WriteJob = Callable[..., Path]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with a_team(tmp_path_factory.mktemp("labels")) as served:
        yield served


@pytest.fixture(params=["here", "there"])
def run(
    request: pytest.FixtureRequest, mlcd: Mlcd, service: Service, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Any]:
    """Runs a command line on this machine, or against a service as its runner."""
    if request.param == "here":
        return mlcd
    assert service.ledger.path is not None
    folder = str(service.ledger.path.parent)

    def there(*arguments: object) -> Any:
        with monkeypatch.context() as patch:
            patch.setenv("MLCD_TOKEN", service.tokens["ada"])
            patch.setenv("MLCD_HOME", folder)
            return mlcd("--server", service.url, *arguments)

    return there


def names(answer: Any) -> list[str]:
    assert answer.code == 0, answer.err
    return [each["run"] for each in answer.document["runs"]]


def test_runs_are_labelled_as_they_begin_found_by_that_compared_and_archived(run: Mlcd, write_job: WriteJob) -> None:
    path, begun = write_job("budget: $40"), []
    for goal in ("fastest", "cheapest"):
        options = ("--project", "vision", "--tag", "ci", "--tag", goal, "--goal", goal)
        begun.append(run("train", path, *options, "--decide-only", "-o", "json").document["run"])
    first, second = begun
    try:
        assert names(run("runs", "--project", "vision", "-o", "json")) == begun
        assert names(run("runs", "--tag", "ci", "--tag", "cheapest", "-o", "json")) == [second]
        assert names(run("runs", "--project", "speech", "-o", "json")) == []
        assert names(run("runs", "--tag", "ci", "--since", "7d", "--until", "2099-01-01", "-o", "json")) == begun
        assert names(run("runs", "--project", "vision", "--until", "2020-01-01", "-o", "json")) == []

        said = run("label", first, "--untag", "ci", "--note", "the best\nso far", "-o", "json").document["runs"][0]
        assert said == {
            "run": first, "project": "vision", "tags": ["fastest"], "note": "the best\nso far", "archived": False,
        }  # fmt: skip
        assert run("label", first).out == f"{first}: vision #fastest\n  the best\n  so far\n"

        compared = run("compare", first, second, "-o", "json").document
        assert [each["summary"]["project"] for each in compared["runs"]] == ["vision", "vision"]
        assert [row["name"] for row in compared["job"]["rows"] if row["differs"]] == ["goal"]
        table = run("compare", first, second).out
        assert table.splitlines()[0].split() == begun
        assert "KEYS IN WHICH THE JOBS DIFFER" in table

        assert run("label", *begun, "--archive").code == 0
        assert names(run("runs", "--project", "vision", "-o", "json")) == []
        assert names(run("runs", "--project", "vision", "--archived", "-o", "json")) == begun
    finally:
        run("label", *begun, "--project", "", "--unarchive")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("label", "RUN", "--tag", "a b"), "tag 'a b': expected a word"),
        (("label", "RUN", "--project", "-x"), "project '-x': expected a word"),
        (("label", "nobody-1", "--note", "x"), "nobody-1"),
        (("compare", "RUN"), "1 run given; name 2 to 6"),
        (("compare", "RUN", "nobody-1"), "nobody-1"),
        (("runs", "--project"), "see mlcd runs --help"),
        (("runs", "--since", "yesterday"), "write a date such as 2026-11-19"),
    ],
)
def test_a_mistake_is_one_line(mlcd: Mlcd, write_job: WriteJob, words: tuple[str, ...], expected: str) -> None:
    begun = mlcd("train", write_job(), "--decide-only", "-o", "json").document["run"]
    told = mlcd(*(begun if word == "RUN" else word for word in words))
    assert told.code == 2
    assert expected in told.err
    assert told.err.count("\n") == 1


def test_a_mistake_in_a_label_begins_nothing(mlcd: Mlcd, write_job: WriteJob) -> None:
    assert mlcd("train", write_job(), "--tag", "a,b", "--decide-only").code == 2
    assert json.loads(mlcd("runs", "-o", "json").out) == {"runs": []}


def test_what_somebody_does_on_the_teams_own_database_is_in_its_log(
    mlcd: Mlcd, postgres_url: str, write_job: WriteJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLCD_DATABASE_URL", postgres_url)
    begun = mlcd("train", write_job(), "--decide-only", "-o", "json").document["run"]
    assert mlcd("label", begun, "--tag", "kept").code == 0
    with closing(Ledger(postgres_url)) as ledger, ledger.database.read() as connection:
        row = connection.exec_driver_sql("SELECT who, action, about, detail FROM audit").one()
    assert row[0].endswith("(command line)")
    assert tuple(row[1:]) == ("label", begun, "+kept")


def test_a_damaged_run_that_is_archived_is_no_longer_in_the_way(mlcd: Mlcd, write_job: WriteJob, home: Path) -> None:
    good, bad = (mlcd("train", write_job(), "--decide-only", "-o", "json").document["run"] for _ in range(2))
    with closing(sqlite3.connect(home / "ledger.db")) as db:
        db.execute("DROP TRIGGER entries_are_never_changed")
        db.execute("UPDATE entries SET body = '{}' WHERE run = ?", (bad,))
        db.commit()
    assert mlcd("runs").code != 0
    assert mlcd("label", bad, "--archive").code == 0
    assert names(mlcd("runs", "-o", "json")) == [good]
    assert mlcd("runs", "--archived").code != 0
