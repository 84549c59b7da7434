from __future__ import annotations

import tracemalloc
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from mlcd_fixtures.ledgers import begin
from sqlalchemy import insert, select

from mlcd.core.clock import VirtualClock
from mlcd.core.database import open_database
from mlcd.core.database.copy import copy, main
from mlcd.core.database.schema import METADATA, members, upload_parts
from mlcd.core.errors import WrongState
from mlcd.core.ledger import Ledger, Stopped
from mlcd.service.notifications.receivers import NewReceiver, Receivers


def webhook(ledger: Ledger) -> int:
    """The number of a new one."""
    asked = NewReceiver("json", "https://ops.example/hook")
    return Receivers(ledger.database, lambda: datetime(2026, 11, 19, tzinfo=UTC)).add(asked, None)[0]


def filled(where: Path | str) -> None:
    with closing(Ledger(where)) as ledger:
        run = begin(ledger, "moved")
        ledger.append(run, VirtualClock(0.1), [Stopped(f"ünïcode {number} \0") for number in range(600)])
        ledger.submit("moved", '{"x": 1}', owner="ada", team="vision")
        webhook(ledger)
        with ledger.database.write() as db:
            db.execute(insert(members).values(name="ada", role="runner", token_hash="ff", created_at="now"))
            for part in range(9):
                db.execute(insert(upload_parts).values(digest="d", part=part, written_at="now", body=bytes([part])))


def test_a_copy_has_every_row_and_goes_on_with_new_numbers(tmp_path: Path, postgres_url: str) -> None:
    filled(tmp_path / "ledger.db")
    with closing(Ledger(tmp_path / "ledger.db")) as old, closing(Ledger(postgres_url)) as new:
        assert copy(old.database, new.database) == 614
        for table in METADATA.sorted_tables:
            query = select(table).order_by(*table.primary_key)
            with old.database.read() as there, new.database.read() as here:
                assert here.execute(query).all() == there.execute(query).all()
        with closing(open_database(tmp_path / "back.db")) as back:
            assert copy(new.database, back) == 614
        assert new.lines("moved-1") == old.lines("moved-1")
        assert new.waiting() == old.waiting()
        assert begin(new, "moved") == "moved-3"
        assert new.last_seq() == old.last_seq() + 1
        assert webhook(new) == 2
        with pytest.raises(WrongState, match="table 'entries' is not empty"):
            copy(old.database, new.database)


def test_the_command_says_what_it_did_and_shows_no_password(
    tmp_path: Path, postgres_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    filled(tmp_path / "ledger.db")
    main([str(tmp_path / "ledger.db"), postgres_url])
    with closing(open_database(postgres_url)) as target:
        assert capsys.readouterr().out == f"614 rows are now in {target.name}; {tmp_path}/ledger.db is unchanged\n"
    with pytest.raises(SystemExit, match="is not empty"):
        main([str(tmp_path / "ledger.db"), postgres_url])
    with pytest.raises(SystemExit, match="no such file"):
        main([str(tmp_path / "no.db"), postgres_url])
    with pytest.raises(SystemExit, match="FROM TO"):
        main([])


def test_models_are_copied_a_few_parts_at_a_time(tmp_path: Path) -> None:
    parts, size = 24, 1 << 20
    with closing(open_database(tmp_path / "ledger.db")) as old, closing(open_database(tmp_path / "new.db")) as new:
        for part in range(parts):
            with old.write() as db:
                db.execute(insert(upload_parts).values(digest="d", part=part, written_at="now", body=bytes(size)))
        tracemalloc.start()
        try:
            assert copy(old, new) == parts
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert most < 16 * size
