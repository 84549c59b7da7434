from __future__ import annotations

import errno
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mlcd.core.backend import Provenance
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Choice, Offer, Space
from mlcd.core.database import engine
from mlcd.core.database.failures import _explain, _explain_os
from mlcd.core.database.schema import FORMAT
from mlcd.core.errors import (
    LedgerCorrupt,
    LedgerError,
    LedgerFull,
    LedgerLocked,
    LedgerReadOnly,
    LedgerTooNew,
    MlcdError,
    UnknownName,
    WrongState,
)
from mlcd.core.job import Goal, Job, Objective, Search
from mlcd.core.ledger import Ledger, Started, Stopped
from mlcd.core.runs.run import Run, start

SPACE = Space((Choice(Offer("small", 1.0, 4, 16), (1, 2)),))
PATH = Path("/state/ledger.db")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with closing(Ledger(tmp_path / "ledger.db")) as opened:
        yield opened


@pytest.fixture
def searched(ledger: Ledger, recording: Path) -> Run:
    """A run that was searched, decided and run to its end."""
    goal = Goal(Objective.CHEAPEST, budget_usd=30.0)
    run = start(
        Job("tiny", 2_000_000, goal, search=Search("heterbo", nodes=(1, 8)), on=f"recorded:{recording}"), ledger
    )
    run.search()
    run.launch()
    return run


def begin(ledger: Ledger, name: str) -> str:
    clock = VirtualClock()
    return ledger.begin(name, clock, Started(Job(name, 1.0), SPACE, "simulated", Provenance.SIMULATED, "0")).run


def plain(ledger: Ledger, sql: str) -> list[Any]:
    """What sqlite3 alone answers, without our code."""
    assert ledger.path is not None
    with closing(sqlite3.connect(ledger.path)) as db:
        return db.execute(sql).fetchall()


@pytest.mark.parametrize(
    "sql", ["UPDATE entries SET usd = 0", "DELETE FROM entries", "DELETE FROM entries WHERE seq = 1"]
)
def test_entries_can_be_neither_changed_nor_removed(ledger: Ledger, searched: Run, sql: str) -> None:
    before = plain(ledger, "SELECT * FROM entries")
    with pytest.raises(sqlite3.IntegrityError, match="the ledger is append-only"):
        plain(ledger, sql)
    assert plain(ledger, "SELECT * FROM entries") == before


def test_the_readable_columns_tell_the_story_without_our_code(ledger: Ledger, searched: Run) -> None:
    history = searched.book.account.history
    kinds = [kind for (kind,) in plain(ledger, "SELECT kind FROM entries ORDER BY seq")]
    assert kinds[0] == "started"
    assert kinds[-1] == "ended"
    assert kinds.count("reserved") == kinds.count("settled") == len(history.measurements) + 1
    ((paid,),) = plain(ledger, "SELECT sum(usd) FROM entries WHERE kind = 'settled'")
    assert paid == pytest.approx(history.spent_usd)
    placed = plain(ledger, "SELECT instance_type, nodes, seconds FROM entries WHERE kind = 'settled' ORDER BY seq")
    measured = [*history.measurements, *history.runs]
    assert placed == [(m.configuration.offer.name, m.configuration.nodes, m.seconds) for m in measured]
    reasons = plain(ledger, "SELECT because FROM entries WHERE kind IN ('reserved', 'ended')")
    assert all(reason for (reason,) in reasons)
    reserved = plain(ledger, "SELECT seq, usd FROM entries WHERE kind = 'reserved'")
    settled = dict(plain(ledger, "SELECT seq, usd FROM entries WHERE kind = 'settled'"))
    assert all(settled[seq + 1] <= worst + 1e-9 for seq, worst in reserved), "more was paid than was reserved"


def test_stored_entries_replay_to_the_live_state(ledger: Ledger, searched: Run) -> None:
    assert ledger.account(searched.name) == searched.book.account


def test_runs_are_named_after_their_job_and_count_up(ledger: Ledger) -> None:
    assert [begin(ledger, "ResNet 50!") for _ in range(3)] == ["resnet-50-1", "resnet-50-2", "resnet-50-3"]
    assert begin(ledger, "resnet") == "resnet-1"
    assert begin(ledger, "???") == "run-1"
    assert len(begin(ledger, "x" * 300)) <= 64
    assert ledger.runs()[:2] == ["resnet-50-1", "resnet-50-2"]


def test_last_is_the_newest_run(ledger: Ledger) -> None:
    with pytest.raises(UnknownName, match="unknown run 'last': there is none yet"):
        ledger.find("last")
    begin(ledger, "a")
    begin(ledger, "b")
    assert ledger.find("last") == "b-1"


def test_only_one_process_at_a_time_drives_a_run(ledger: Ledger) -> None:
    run = begin(ledger, "a")
    refused = pytest.raises(WrongState, match="run 'a-1' is being driven by another process")
    with ledger.hold(run), refused, ledger.hold(run):
        pass
    with ledger.hold(run):
        pass


def named(kind: type[sqlite3.Error], name: str | None) -> sqlite3.Error:
    error = kind("what SQLite said")
    if name is not None:
        error.sqlite_errorname = name
    return error


@pytest.mark.parametrize(
    "error, expected",
    [
        (named(sqlite3.OperationalError, "SQLITE_BUSY"), LedgerLocked),
        (named(sqlite3.OperationalError, "SQLITE_BUSY_RECOVERY"), LedgerLocked),
        (named(sqlite3.OperationalError, "SQLITE_LOCKED"), LedgerLocked),
        (named(sqlite3.OperationalError, "SQLITE_READONLY"), LedgerReadOnly),
        (named(sqlite3.OperationalError, "SQLITE_READONLY_DBMOVED"), LedgerReadOnly),
        (named(sqlite3.OperationalError, "SQLITE_PERM"), LedgerReadOnly),
        (named(sqlite3.DatabaseError, "SQLITE_AUTH"), LedgerReadOnly),
        (named(sqlite3.OperationalError, "SQLITE_CANTOPEN"), LedgerReadOnly),
        (named(sqlite3.OperationalError, "SQLITE_CANTOPEN_ISDIR"), LedgerReadOnly),
        (named(sqlite3.OperationalError, "SQLITE_FULL"), LedgerFull),
        (named(sqlite3.DatabaseError, "SQLITE_NOTADB"), LedgerCorrupt),
        (named(sqlite3.DatabaseError, "SQLITE_CORRUPT"), LedgerCorrupt),
        (named(sqlite3.DatabaseError, "SQLITE_CORRUPT_INDEX"), LedgerCorrupt),
        (named(sqlite3.OperationalError, "SQLITE_ERROR"), LedgerCorrupt),
        (named(sqlite3.OperationalError, None), LedgerCorrupt),
        (named(sqlite3.OperationalError, "SQLITE_IOERR_WRITE"), LedgerError),
        (named(sqlite3.OperationalError, "SQLITE_NOMEM"), LedgerError),
        (named(sqlite3.OperationalError, "SQLITE_PROTOCOL"), LedgerError),
    ],
    ids=lambda value: getattr(value, "sqlite_errorname", None),
)
def test_errors_of_sqlite_become_mlcds_and_name_the_file(error: sqlite3.Error, expected: type[LedgerError]) -> None:
    told = _explain(error, str(PATH))
    assert type(told) is expected
    assert str(told).startswith(f"{PATH}: ")
    assert ";" in str(told), "the message says what to do"


@pytest.mark.parametrize(
    "number, expected",
    [
        (errno.ENOSPC, LedgerFull), (errno.EDQUOT, LedgerFull), (errno.EROFS, LedgerReadOnly),
        (errno.EACCES, LedgerReadOnly), (errno.ENOTDIR, LedgerReadOnly), (errno.EEXIST, LedgerReadOnly),
    ],
)  # fmt: skip
def test_errors_of_the_operating_system_become_mlcds(number: int, expected: type[LedgerError]) -> None:
    told = _explain_os(OSError(number, "said so"), str(PATH))
    assert type(told) is expected
    assert str(told).startswith(f"{PATH}: ")


def test_a_newer_ledger_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {FORMAT + 1}")
    before = path.read_bytes()
    with pytest.raises(LedgerTooNew, match="written by a newer MLCD"):
        Ledger(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("version", range(FORMAT + 1))
def test_a_file_of_another_program_is_not_touched(tmp_path: Path, version: int) -> None:
    path = tmp_path / "ledger.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE songs (title TEXT)")
        db.execute(f"PRAGMA user_version = {version}")
    before = path.read_bytes()
    with pytest.raises(LedgerCorrupt, match="a SQLite file, but not a ledger; move it away"):
        Ledger(path)
    assert path.read_bytes() == before


def test_a_locked_ledger_is_reported_and_works_once_it_is_free(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "BUSY_TIMEOUT_S", 0.0)
    begin(ledger, "a")
    with closing(Ledger(tmp_path / "ledger.db")) as second:
        with closing(sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            with pytest.raises(LedgerLocked, match="locked by another process; try again when it is done"):
                second.append("a-1", VirtualClock(), [Stopped("x")])
        second.append("a-1", VirtualClock(), [Stopped("x")])
        assert [line.entry.kind for line in second.lines("a-1")] == ["started", "stopped"]


def test_a_missing_entry_is_detected(ledger: Ledger, searched: Run, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.db"
    with closing(sqlite3.connect(damaged)) as db:
        plain(ledger, f"VACUUM INTO '{tmp_path}/copy.db'")
        db.execute(f"ATTACH '{tmp_path}/copy.db' AS copy")
        db.execute("CREATE TABLE entries AS SELECT * FROM copy.entries WHERE kind != 'reserved'")
        db.execute("PRAGMA user_version = 1")
        db.commit()
    with closing(Ledger(damaged)) as opened, pytest.raises(LedgerCorrupt, match="damaged in run 'tiny-1'"):
        opened.lines("last")


def test_random_damage_is_reported_or_harmless(ledger: Ledger, searched: Run, tmp_path: Path) -> None:
    assert ledger.path is not None
    good, rng = ledger.path.read_bytes(), random.Random(0)
    path, told = tmp_path / "damaged.db", []
    for _ in range(150):
        bad = bytearray(good)
        at = rng.randrange(len(bad))
        bad[at : at + 64] = rng.randbytes(64)
        path.write_bytes(bad[: rng.choice((len(bad), at + 64))])
        try:
            with closing(Ledger(path)) as opened:
                for run in opened.runs():
                    opened.account(run)
        except MlcdError as error:
            told.append(str(error))
    assert len(told) > 75
    assert all(str(path) in line for line in told)
