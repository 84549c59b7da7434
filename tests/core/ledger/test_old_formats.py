"""State folders of every old format still open, and killed runs in them can be resumed; see formats/README.md."""

from __future__ import annotations

import gzip
import json
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from formats.orders import FUNCTIONS, SCALE
from mlcd_fixtures.examples import at_night_except

from mlcd.core.ledger import Ledger
from mlcd.core.ledger.entries import from_json, to_json

Mlcd = Callable[..., Any]
FORMATS = Path(__file__).parent / "formats"
LEFT_OUT = (None, False, 0, "")
"""What a field holds of which nothing was said: such a field may come and go."""


def written_with(pattern: str) -> list[str]:
    """The formats whose folder has such a file."""
    return sorted({file.relative_to(FORMATS).parts[0] for file in FORMATS.glob(f"[0-9]*/{pattern}")})


LEDGERS = written_with("ledger.sql.gz")


@pytest.fixture(params=LEDGERS)
def old_home(request: pytest.FixtureRequest, home: Path, tmp_path: Path) -> Path:
    """The state folder that an MLCD of then left behind."""
    folder = FORMATS / request.param
    shutil.copytree(folder, home, ignore=shutil.ignore_patterns("ledger.sql.gz"))
    shutil.copytree(FORMATS / "inputs", tmp_path / "inputs")
    sql = gzip.decompress((folder / "ledger.sql.gz").read_bytes()).decode()
    with closing(sqlite3.connect(home / "ledger.db")) as db:
        db.executescript(sql.replace("PLACE", str(tmp_path)))
    return home


def stored(home: Path, columns: str, where: str = "1") -> list[tuple[Any, ...]]:
    """What sqlite3 alone answers, without our code."""
    with closing(sqlite3.connect(home / "ledger.db")) as db:
        return db.execute(f"SELECT {columns} FROM entries WHERE {where} ORDER BY seq").fetchall()


def values(document: Any) -> Iterator[object]:
    """Every value in a JSON document that says something, under whatever name it stands there."""
    if isinstance(document, dict):
        for value in document.values():
            yield from values(value)
    elif isinstance(document, list):
        for value in document:
            yield from values(value)
    elif document not in LEFT_OUT and document is not True:  # `noise: true` is a kind of work today
        yield document


def test_every_value_that_was_written_is_read(old_home: Path) -> None:
    for seq, body in stored(old_home, "seq, body"):
        then, now = (Counter(values(json.loads(text))) for text in (body, to_json(from_json(body))))
        assert not then - now, f"entry {seq} has lost values"


@pytest.mark.parametrize("old_home", at_night_except(LEDGERS[-5:], LEDGERS), indirect=True)
def test_every_run_can_be_shown_asked_and_reported(old_home: Path, mlcd: Mlcd) -> None:
    names = [run for (run,) in stored(old_home, "run", "kind = 'started'")]
    assert {run["run"] for run in mlcd("runs", "-o", "json").document["runs"]} == set(names)
    for name in names:
        assert name in mlcd("show", name).out
        assert mlcd("show", name, "-o", "json").document["run"] == name
        assert mlcd("what-if", name, "--budget", "1000").code == 0
        assert mlcd("report", name).code == 0
        assert (old_home.parent / f"{name}.html").stat().st_size > 10_000


def test_a_run_that_was_killed_goes_on_and_pays_for_nothing_twice(old_home: Path, mlcd: Mlcd) -> None:
    last = "seq IN (SELECT max(seq) FROM entries GROUP BY run)"
    killed = [run for (run,) in stored(old_home, "run", f"{last} AND kind IN ('reserved', 'stopped')")]
    assert killed
    before = stored(old_home, "*")
    for name in killed:
        answer = mlcd("resume", name, "-y")
        assert answer.code in (0, 3), answer
        with closing(Ledger(old_home / "ledger.db")) as ledger:
            account, entries = ledger.account(name), [line.entry for line in ledger.lines(name)]
        assert account.decision is not None
        paid = stored(old_home, "usd", f"run = '{name}' AND kind = 'settled'")
        assert account.history.spent_usd == pytest.approx(sum(usd for (usd,) in paid))
        reserved = Counter(entry.launch.label for entry in entries if entry.kind == "reserved")
        closed = Counter(entry.launch.label for entry in entries if entry.kind in ("settled", "voided"))
        assert closed == reserved
        assert set(closed.values()) == {1}
        limit = account.job.goal.budget_usd
        assert limit is None or account.history.spent_usd <= limit
    assert stored(old_home, "*")[: len(before)] == before


def test_a_database_has_every_column_of_a_new_one(old_home: Path, tmp_path: Path) -> None:
    for path in (old_home / "ledger.db", tmp_path / "new.db"):
        Ledger(path).close()
    assert columns(old_home / "ledger.db") == columns(tmp_path / "new.db")


def columns(path: Path) -> set[tuple[str, str]]:
    """Every column of a database, by table."""
    with closing(sqlite3.connect(path)) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()]
        return {(table, row[1]) for table in tables for row in db.execute(f"PRAGMA table_info({table})")}


@pytest.mark.parametrize("old_home", written_with("models/*.json"), indirect=True)
def test_a_new_run_starts_from_what_old_runs_learned(old_home: Path, mlcd: Mlcd) -> None:
    found = mlcd("models", "-o", "json").document
    assert {model["name"] for model in found["models"]} == {file.stem for file in old_home.glob("models/*.json")}
    assert found["unreadable"] == []
    Path("job.yaml").write_text(f"name: scaled\n{SCALE.lstrip()}")
    assert mlcd("scale", "job.yaml", "--search", "none", "--decide-only").code == 0
    assert newest(old_home).started.lesson


@pytest.mark.parametrize("old_home", written_with("calibrations/*.json"), indirect=True)
def test_an_old_calibration_is_not_paid_for_again(old_home: Path, mlcd: Mlcd) -> None:
    Path("job.yaml").write_text(f"name: tuned\n{FUNCTIONS.lstrip()}")
    assert mlcd("tune", "job.yaml", "--budget", "1", "--decide-only").code == 0
    assert newest(old_home).history.measurements == ()


def newest(home: Path) -> Any:
    """The account of the newest run."""
    with closing(Ledger(home / "ledger.db")) as ledger:
        return ledger.account("last")


@pytest.mark.parametrize("old_home", ["10-team", "11-shared-by-workers", "12-monthly-budgets"], indirect=True)
def test_members_and_budgets_of_then_are_kept_and_can_be_changed(old_home: Path, mlcd: Mlcd) -> None:
    (ann,), (blue,) = (mlcd("team", "list", "-o", "json").document[each] for each in ("members", "teams"))
    assert (ann["name"], ann["team"], ann["budget_usd"], blue["budget_usd"]) == ("ann", "blue", 50, 100)
    assert mlcd("team", "change", "ann", "--budget", "60", "--per", "month").code == 0
    (ann,) = mlcd("team", "list", "-o", "json").document["members"]
    assert (ann["budget_usd"], ann["budget_per"]) == (60, "month")
