"""Logs on their way from a worker's disk into the database."""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlcd_fixtures.ledgers import SPACE

from mlcd.clouds.launches import Launches
from mlcd.core.backend import Launch, Purpose
from mlcd.core.database import open_database
from mlcd.core.database.files import LogPieces
from mlcd.core.ledger import Ledger
from mlcd.service.workers.log_copies import USAGE, LogCopies, logs_copied

MOST = 40


@pytest.fixture(scope="module")
def ledger(running_postgres):
    """A team's, for all tests: each has runs of its own."""
    with closing(Ledger(running_postgres.new_database())) as ledger:
        yield ledger


def order(label: str) -> Launch:
    return Launch(label, SPACE.configurations[0], Purpose.PROBE, 1.0, None, 0)


def copied(pieces: LogPieces, label: str, process: int = 0) -> bytes:
    return pieces.read(label, process, 0, 1 << 30)


@given(st.lists(st.tuples(st.binary(max_size=15), st.sampled_from(["go on", "look", "die"])), max_size=8))
def test_a_log_is_copied_as_it_grows_and_of_a_long_one_the_beginning_and_where_the_rest_is(steps):
    with tempfile.TemporaryDirectory() as root, closing(open_database(None)) as database:
        kept, pieces = Launches(Path(root)), LogPieces(database)
        folder, whole = kept.open(order("run-1-1")), b""
        copies = LogCopies("run-1", pieces, kept, MOST)
        for body, then in steps:
            whole += body
            (folder / "0.log").write_bytes(whole)
            if then == "die":  # another process goes on
                copies = LogCopies("run-1", pieces, kept, MOST)
            elif then == "look":
                copies.copy_new()
                assert copied(pieces, "run-1-1")[:MOST] == whole[:MOST]
        (folder / "0.log").write_bytes(whole)
        (folder / "ended").write_text("1.0")
        copies.copy_new()
        copies.copy_new()
        found = copied(pieces, "run-1-1")
        assert pieces.end("run-1-1", 0) == (len(found), True)
        rest = found[MOST:].decode()
        assert found[:MOST] == whole[:MOST]
        assert (str(folder / "0.log") in rest) == (len(whole) > MOST)
        assert bool(rest) == (len(whole) > MOST)


def test_only_a_runs_own_launches_are_copied_and_each_process_for_itself(tmp_path):
    with closing(open_database(None)) as database:
        kept, pieces = Launches(tmp_path), LogPieces(database)
        for label in ("run-1-1", "run-1-2", "run-1-1-1", "run-10-1"):
            folder = kept.open(order(label))
            for process in range(2):
                (folder / f"{process}.log").write_text(f"{label} {process}")
        (tmp_path / "run-1-3").mkdir()  # was never ordered
        LogCopies("run-1", pieces, kept).copy_new()
        assert copied(pieces, "run-1-2", 1) == b"run-1-2 1"
        assert pieces.with_log(["run-1-1", "run-1-2", "run-1-1-1", "run-10-1"], 1) == {"run-1-1", "run-1-2"}
        assert [each.name for each in kept.of_run("run-1")] == ["run-1-1", "run-1-2"]


def test_what_machines_used_is_copied_beside_the_logs_as_it_is(tmp_path):
    with closing(open_database(None)) as database:
        kept, pieces = Launches(tmp_path), LogPieces(database)
        folder = kept.open(order("run-1-1"))
        (folder / "0.log").write_text("words")
        (folder / "usage.jsonl").write_text("measured")
        copies = LogCopies("run-1", pieces, kept)
        copies.copy_new()
        (folder / "usage.jsonl").write_text("measured again")
        (folder / "ended").write_text("1.0")
        copies.copy_new()
        assert pieces.read("run-1-1", USAGE, 0, 100) == b"measured again"
        assert pieces.processes("run-1-1") == [USAGE, 0]
        assert pieces.delete("run-1-1") == len(b"words" + b"measured again")


def test_what_was_written_last_is_there_when_the_driver_leaves_and_on_sqlite_nothing_is_copied(home, ledger):
    with closing(Ledger(home / "ledger.db")) as own:
        for each, expected in ((ledger, b"last words"), (own, b"")):
            with logs_copied("run-1", each):
                (Launches(home / "launches").open(order("run-1-1")) / "0.log").write_text("last words")
            assert copied(LogPieces(each.database), "run-1-1") == expected


def test_a_log_that_cannot_be_copied_does_not_disturb_the_run(home, postgres_server, ledger):
    (Launches(home / "launches").open(order("run-2-1")) / "0.log").write_text("words")
    with logs_copied("run-2", ledger):
        postgres_server.kill()
