"""State folders of every format that ever landed still open, and killed runs in them go on; see formats/README.md."""

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

from mlcd.ledger import Ledger
from mlcd.ledger.entries import from_json, to_json

Mlcd = Callable[..., Any]
FORMATS = Path(__file__).parent / "formats"
WRITTEN = sorted(file.parent.name for file in FORMATS.glob("*/ledger.sql.gz"))
LEFT_OUT = (None, False, 0, "")
"""What a field holds of which nothing was said: such a field may come and go."""


@pytest.fixture(params=WRITTEN)
def old_home(request: pytest.FixtureRequest, home: Path, tmp_path: Path) -> Path:
    """The state folder that an MLCD of then left behind."""
    folder = FORMATS / request.param
    shutil.copytree(folder, home, ignore=shutil.ignore_patterns("ledger.sql.gz"))
    shutil.copytree(FORMATS / "recorded", tmp_path / "recorded")
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
    elif document not in LEFT_OUT:
        yield document


def test_every_value_that_was_written_is_read(old_home: Path) -> None:
    for seq, body in stored(old_home, "seq, body"):
        then, now = (Counter(values(json.loads(text))) for text in (body, to_json(from_json(body))))
        assert not then - now, f"entry {seq} has lost values"


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
    killed = [
        run
        for (run,) in stored(
            old_home, "run", "seq IN (SELECT max(seq) FROM entries GROUP BY run) AND kind = 'reserved'"
        )
    ]
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
