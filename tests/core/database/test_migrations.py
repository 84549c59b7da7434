"""Every migration path leads to the same tables, and keeps all data."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier

import psycopg
import pytest
from mlcd_fixtures.ledgers import begin
from mlcd_fixtures.postgres import PostgresServer, binaries
from sqlalchemy import Engine, make_url

from mlcd.core.database import schema
from mlcd.core.database.engine import postgres_engine, sqlite_engine, transaction
from mlcd.core.database.preparation import upgrade
from mlcd.core.database.schema import FORMAT
from mlcd.core.errors import LedgerCorrupt, LedgerTooNew
from mlcd.core.job import Goal, Job, Objective, Search
from mlcd.core.ledger import Ledger, Line
from mlcd.core.runs.run import start
from mlcd.service.notifications.receivers import NewReceiver, Receivers
from mlcd.service.team.members import Member, Role

BEFORE_MIGRATIONS = """
CREATE TABLE entries (
    seq           INTEGER PRIMARY KEY AUTOINCREMENT,
    run           TEXT NOT NULL,
    written_at    TEXT NOT NULL,
    elapsed_s     REAL NOT NULL,
    kind          TEXT NOT NULL,
    instance_type TEXT,
    nodes         INTEGER,
    usd           REAL,
    seconds       REAL,
    because       TEXT,
    body          TEXT NOT NULL
);
CREATE INDEX entries_by_run ON entries (run, seq);
CREATE TRIGGER entries_are_never_changed BEFORE UPDATE ON entries
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER entries_are_never_removed BEFORE DELETE ON entries
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
PRAGMA user_version = 1;
"""
"""What MLCD 0.1 wrote, to the letter."""


@pytest.fixture
def earlier(tmp_path: Path, recording: Path) -> tuple[Path, list[Line]]:
    """A ledger of before migrations with two runs, the second with a search and a final run, and its lines."""
    path = tmp_path / "earlier" / "ledger.db"
    path.parent.mkdir()
    with closing(Ledger(tmp_path / "now" / "ledger.db")) as ledger:
        begin(ledger, "first")
        goal = Goal(Objective.CHEAPEST, budget_usd=30.0)
        place = f"recorded:{recording}"
        run = start(Job("tiny", 2_000_000, goal, search=Search("heterbo", nodes=(1, 8)), on=place), ledger)
        run.search()
        run.launch()
        lines = ledger.since(0)
    with closing(sqlite3.connect(path)) as db:
        db.executescript(BEFORE_MIGRATIONS)
        db.execute(f"ATTACH '{tmp_path}/now/ledger.db' AS now")
        db.execute("INSERT INTO entries SELECT * FROM now.entries")
        db.commit()
    return path, lines


def table_facts(path: Path) -> dict[str, object]:
    """Columns, keys, indexes and triggers of a SQLite file, as SQLite tells them."""
    with closing(sqlite3.connect(path)) as db:
        facts: dict[str, object] = {}
        for kind, name, sql in db.execute("SELECT type, name, sql FROM sqlite_master").fetchall():
            if kind == "table":
                # A row's own number is never empty, whether it was said or not.
                columns = [row[:3] + row[4:] if row[5] else row for row in db.execute(f"PRAGMA table_info({name})")]
                facts[name] = (columns, "AUTOINCREMENT" in sql, "WITHOUT ROWID" in sql)
            elif kind == "index":
                facts[name] = db.execute(f"PRAGMA index_xinfo({name})").fetchall()
            else:
                facts[name] = " ".join(sql.split())
        return facts


def migrate(engine: Engine) -> None:
    """Take every step of the migrations, from nothing."""
    with engine.connect() as connection, transaction(connection):
        upgrade(connection, 0)
    engine.dispose()


def dumped(url: str) -> list[str]:
    """What PostgreSQL itself says of a database's tables; its comments and its own settings aside."""
    programs = binaries()
    assert programs is not None
    done = subprocess.run([programs / "pg_dump", "--schema-only", url], capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if not line.startswith(("--", "\\", "SET", "SELECT"))]


def test_a_ledger_of_before_migrations_is_adopted_without_loss(earlier: tuple[Path, list[Line]]) -> None:
    path, lines = earlier
    with closing(Ledger(path)) as ledger:
        assert ledger.since(0) == lines
        assert ledger.runs() == ["first-1", "tiny-1"]
        assert ledger.owners() == {"first-1": (None, None), "tiny-1": (None, None)}
        assert ledger.account("tiny-1").ended is not None
        assert begin(ledger, "tiny") == "tiny-2"
        assert ledger.last_seq() == lines[-1].seq + 1
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (FORMAT,)
        created = db.execute("SELECT name, created_at FROM runs ORDER BY number LIMIT 2").fetchall()
        assert created == [(line.run, line.written_at.isoformat()) for line in lines if line.entry.kind == "started"]
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            db.execute("DELETE FROM entries")


def test_an_adopted_file_has_the_tables_of_a_new_one(earlier: tuple[Path, list[Line]], tmp_path: Path) -> None:
    path, _ = earlier
    Ledger(path).close()
    assert table_facts(path) == table_facts(tmp_path / "now" / "ledger.db")
    assert set(schema.METADATA.tables) <= set(table_facts(path))


def test_many_may_open_an_older_file_at_once(earlier: tuple[Path, list[Line]]) -> None:
    path, lines = earlier
    together = Barrier(4)

    def read(_: int) -> list[Line]:
        together.wait()
        with closing(Ledger(path)) as ledger:
            return ledger.since(0)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(read, range(4))) == [lines] * 4


def test_an_adoption_that_fails_in_the_middle_changes_nothing(earlier: tuple[Path, list[Line]]) -> None:
    path, _ = earlier
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE audit (song TEXT)")
    before = path.read_bytes()
    with pytest.raises(LedgerCorrupt, match="not a ledger, or damaged"):
        Ledger(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("found", ["new", "current"])
def test_opening_imports_no_migrations_unless_there_are_any(tmp_path: Path, found: str) -> None:
    path = tmp_path / "ledger.db"
    if found == "current":
        Ledger(path).close()
    script = "import sys; from mlcd.core.ledger import Ledger; Ledger(sys.argv[1]); sys.exit('alembic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script, f"sqlite:///{path}"], check=False).returncode == 0


def test_migrations_from_nothing_give_the_tables_of_a_new_file(tmp_path: Path) -> None:
    Ledger(tmp_path / "new.db").close()
    migrate(sqlite_engine(tmp_path / "migrated.db"))
    assert table_facts(tmp_path / "migrated.db") == table_facts(tmp_path / "new.db")


def test_migrations_from_nothing_give_the_tables_of_a_new_database(postgres_server: PostgresServer) -> None:
    new, migrated = postgres_server.new_database(), postgres_server.new_database()
    Ledger(new).close()
    migrate(postgres_engine(make_url(migrated)))
    assert dumped(migrated) == dumped(new)
    assert len([line for line in dumped(new) if line.startswith("CREATE TABLE")]) == len(schema.METADATA.tables)
    with closing(Ledger(migrated)) as ledger:
        assert begin(ledger, "a") == "a-1"


def test_many_may_open_an_empty_database_at_once(postgres_url: str) -> None:
    together = Barrier(4)

    def ask(_: int) -> str:
        together.wait()
        with closing(Ledger(postgres_url)) as ledger:
            return ledger.submit("a", "{}")

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(ask, range(4))) == ["a-1", "a-2", "a-3", "a-4"]


@pytest.mark.parametrize("program", ["songs", "entries", "alembic_version"])
def test_tables_of_another_program_are_not_touched(postgres_url: str, program: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as db:
        db.execute(f"CREATE TABLE {program} (version_num text)".encode())
        db.execute(f"INSERT INTO {program} VALUES ('1975ea83b712')".encode())
    if program == "songs":  # of no concern: Procrastinate's are there, too
        Ledger(postgres_url).close()
        return
    before = dumped(postgres_url)
    with pytest.raises(LedgerCorrupt, match="has tables of another program; give MLCD a database of its own"):
        Ledger(postgres_url)
    assert dumped(postgres_url) == before


def test_a_newer_database_is_refused_and_not_changed(postgres_url: str) -> None:
    Ledger(postgres_url).close()
    with psycopg.connect(postgres_url, autocommit=True) as db:
        db.execute("UPDATE alembic_version SET version_num = '0099'")
    with pytest.raises(LedgerTooNew, match=r"written by a newer MLCD \(format 99, this one reads \d+\)"):
        Ledger(postgres_url)


def test_a_database_from_the_development_of_0002_gets_later_columns(postgres_url: str) -> None:
    with closing(Ledger(postgres_url)) as ledger:
        run = begin(ledger, "a")
    complete = dumped(postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as db:
        db.execute("ALTER TABLE runs DROP COLUMN free, DROP COLUMN progress, DROP COLUMN machine")
        db.execute("ALTER TABLE members DROP COLUMN budget_per")
        db.execute("ALTER TABLE teams DROP COLUMN budget_per")
        db.execute("DROP TABLE upload_parts, logs, models, workers, tokens, receivers, identities, sign_ins, labels")
        db.execute("UPDATE alembic_version SET version_num = '0002'")
    with closing(Ledger(postgres_url)) as ledger:
        ledger.set_progress(run, "half")
        assert ledger.progress([run]) == {run: "half"}
    # Columns that are added come last: the same lines in another order, and other commas.
    assert {line.rstrip(",") for line in dumped(postgres_url)} == {line.rstrip(",") for line in complete}


def test_a_webhook_of_0005_goes_on_as_a_receiver_of_every_event(postgres_url: str) -> None:
    Ledger(postgres_url).close()
    with psycopg.connect(postgres_url, autocommit=True) as db:
        db.execute("DROP TABLE receivers")
        db.execute(
            "CREATE TABLE hooks (name TEXT PRIMARY KEY, url TEXT NOT NULL, secret TEXT NOT NULL, style TEXT NOT NULL,"
            " member TEXT, team TEXT, sent BIGINT NOT NULL, tries INTEGER NOT NULL, next_at TEXT,"
            " trouble TEXT NOT NULL, created_at TEXT NOT NULL)"
        )
        row = (
            "ci",
            "https://ci.example/x",
            "of ours",
            "slack",
            None,
            "vision",
            7,
            1,
            None,
            "away",
            "2026-11-19T00:00:00",
        )
        db.execute("INSERT INTO hooks VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)", row)
        db.execute("UPDATE alembic_version SET version_num = '0005'")
    with closing(Ledger(postgres_url)) as ledger:
        receivers = Receivers(ledger.database, lambda: datetime.now(UTC))
        (kept,) = receivers.of(Member("ada", Role.ADMIN))
        assert (kept.name, kept.kind, kept.address, kept.secret) == ("ci", "slack", "https://ci.example/x", "of ours")
        assert (kept.events, kept.owner, kept.member, kept.team) == (None, None, None, "vision")
        assert (kept.sent, kept.tries, kept.trouble) == (7, 1, "away")
        number, _ = receivers.add(NewReceiver("json", "https://ci.example/y"), None)
        assert number > kept.number
