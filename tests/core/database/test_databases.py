"""Opening a database, and the errors if it cannot be used: one line, what to do, and never the password."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier

import psycopg
import pytest
from mlcd_fixtures.postgres import PASSWORD, PostgresServer
from sqlalchemy import select

from mlcd.core.database import Database, open_database
from mlcd.core.database.failures import _explain_postgres
from mlcd.core.database.schema import teams
from mlcd.core.errors import (
    LedgerCorrupt,
    LedgerError,
    LedgerFull,
    LedgerLocked,
    LedgerReadOnly,
    LedgerUnreachable,
    MlcdError,
    UserError,
)


@pytest.fixture
def database(postgres_url: str) -> Iterator[Database]:
    with closing(open_database(postgres_url)) as opened:
        yield opened


def test_a_file_can_be_given_by_path_or_by_url(tmp_path: Path) -> None:
    path = tmp_path / "state" / "ledger.db"
    with closing(open_database(path)) as first, first.write() as db:
        db.execute(teams.insert().values(name="vision", budget_usd=5.0))
    with closing(open_database(f"sqlite:///{path}")) as second, second.read() as db:
        assert db.execute(select(teams.c.name, teams.c.budget_usd)).all() == [("vision", 5.0)]
    assert (second.dialect, second.path, second.name) == ("sqlite", path, str(path))


def test_every_memory_is_one_of_its_own() -> None:
    with closing(open_database(None)) as first, closing(open_database(None)) as second:
        with first.write() as db:
            db.execute(teams.insert().values(name="vision"))
        with second.read() as db:
            assert db.execute(select(teams)).all() == []
    assert first.path is None


def test_an_entry_is_on_disk_when_a_write_ends(tmp_path: Path) -> None:
    with closing(open_database(tmp_path / "ledger.db")) as database, database.write() as db:
        assert db.exec_driver_sql("PRAGMA synchronous").scalar_one() == 2, "FULL"
        assert db.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "delete"


def test_the_password_is_in_the_url_and_nowhere_else(database: Database, postgres_url: str) -> None:
    assert PASSWORD in database.url
    assert database.name == postgres_url.replace(f":{PASSWORD}", "")
    assert PASSWORD not in repr(database)
    with closing(open_database(f"{postgres_url.replace(PASSWORD, 'wrong')}?password={PASSWORD}")) as other:
        assert other.name == database.name


@pytest.mark.parametrize(
    "url, told",
    [
        ("mysql://ada:hidden@db/mlcd", "MLCD keeps no ledger in 'mysql'; write postgresql://USER:PASSWORD@HOST"),
        ("ledger.db", "the database's URL cannot be read; write postgresql://USER:PASSWORD@HOST/DATABASE"),
        ("postgresql://ada:hidden@db:port/mlcd", "the database's URL cannot be read; write postgresql://USER"),
        ("", "the database's URL cannot be read"),
        ("postgresql://ada:hid@den/x#y@127.0.0.1/mlcd", "write odd characters of the password as %40 for @"),
    ],
)
def test_an_invalid_url_is_reported(url: str, told: str) -> None:
    with pytest.raises(UserError, match=told) as error:
        open_database(url)
    assert "hidden" not in str(error.value)


def elsewhere(url: str) -> str:
    return f"{url}_of_nobody"


def locked_out(url: str) -> str:
    return url.replace(PASSWORD, "hidden")


def stranger(url: str) -> str:
    return url.replace("//mlcd:", "//eve:")


def closed_port(url: str) -> str:
    return url.replace(url.split("/")[2].split(":")[-1], "1")


@pytest.mark.parametrize(
    "spoil, kind, told",
    [
        (elsewhere, LedgerError, "there is no such database; make it with createdb, or check the URL"),
        (locked_out, LedgerError, "wrong user or password; check the URL"),
        (stranger, LedgerError, "wrong user or password; check the URL"),
        (closed_port, LedgerUnreachable, "the database cannot be reached; see that PostgreSQL runs there"),
    ],
)
def test_a_server_that_refuses_the_login_is_reported(
    postgres_url: str, spoil: Callable[[str], str], kind: type[LedgerError], told: str
) -> None:
    with pytest.raises(MlcdError, match=told) as error:
        open_database(spoil(postgres_url))
    assert type(error.value) is kind
    assert PASSWORD not in str(error.value)
    assert "hidden" not in str(error.value)
    assert "\n" not in str(error.value)


def test_a_database_that_takes_no_writes_can_be_read(database: Database, postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as db:
        db.execute(f"ALTER DATABASE {postgres_url.rpartition('/')[2]} SET default_transaction_read_only = on".encode())
    with closing(open_database(postgres_url)) as readable:
        with readable.read() as connection:
            assert connection.execute(select(teams)).all() == []
        with pytest.raises(LedgerReadOnly, match="read-only; give the address"), readable.write() as connection:
            connection.execute(teams.insert().values(name="vision"))


def test_a_missing_column_is_damage(database: Database, postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as db:
        db.execute("ALTER TABLE teams DROP COLUMN budget_usd")
    with pytest.raises(LedgerCorrupt, match="not a ledger, or damaged"), database.read() as connection:
        connection.execute(select(teams))


def test_a_server_without_free_connections_is_reported(postgres_server: PostgresServer, postgres_url: str) -> None:
    name = postgres_url.rpartition("/")[2]
    with psycopg.connect(postgres_url, autocommit=True) as db:
        db.execute("CREATE ROLE narrow LOGIN SUPERUSER PASSWORD 'narrow' CONNECTION LIMIT 0")
        db.execute("ALTER ROLE narrow NOSUPERUSER")
        try:
            with pytest.raises(LedgerUnreachable, match="PostgreSQL has no connection left"):
                open_database(f"postgresql://narrow:narrow@127.0.0.1:{postgres_server.port}/{name}")
        finally:
            db.execute("DROP ROLE narrow")


def test_as_many_threads_as_a_web_server_has_read_at_once(tmp_path: Path) -> None:
    all_inside = Barrier(40)
    with closing(open_database(tmp_path / "ledger.db")) as database:

        def read(_: int) -> int:
            with database.read() as connection:
                return all_inside.wait(300) >= 0 and len(connection.execute(select(teams)).all())

        with ThreadPoolExecutor(40) as pool:
            assert list(pool.map(read, range(40))) == [0] * 40


def told_by(state: str) -> psycopg.Error:
    return psycopg.errors.lookup(state)("what PostgreSQL said")


@pytest.mark.parametrize(
    "error, kind",
    [
        (told_by("53100"), LedgerFull),
        (told_by("53300"), LedgerUnreachable),
        (told_by("53200"), LedgerUnreachable),
        (told_by("55P03"), LedgerLocked),
        (told_by("40P01"), LedgerLocked),
        (told_by("25006"), LedgerReadOnly),
        (told_by("42501"), LedgerReadOnly),
        (told_by("42P01"), LedgerCorrupt),
        (told_by("XX001"), LedgerCorrupt),
        (told_by("57P01"), LedgerUnreachable),
        (told_by("57P03"), LedgerUnreachable),
        (told_by("25P03"), LedgerUnreachable),
        (told_by("08006"), LedgerUnreachable),
        (psycopg.OperationalError("consuming input failed: server closed the connection"), LedgerUnreachable),
        (psycopg.InterfaceError("the connection is closed"), LedgerUnreachable),
        (told_by("P0001"), LedgerError),
        (told_by("23505"), LedgerError),
    ],
    ids=lambda value: getattr(value, "sqlstate", None) or getattr(value, "__name__", ""),
)
def test_errors_of_postgresql_become_mlcds(error: psycopg.Error, kind: type[LedgerError]) -> None:
    told = _explain_postgres(error, "postgresql://ada@db/mlcd")
    assert type(told) is kind
    assert str(told).startswith("postgresql://ada@db/mlcd: ")
    assert ";" in str(told), "the message says what to do"


def test_errors_that_are_not_the_databases_are_unchanged(tmp_path: Path) -> None:
    database = open_database(tmp_path / "ledger.db")
    with closing(database), pytest.raises(FileNotFoundError), database.write():
        (tmp_path / "missing").read_text()
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as db:
        assert db.execute("SELECT count(*) FROM entries").fetchone() == (0,)
