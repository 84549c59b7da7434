"""Models in the database: complete or absent, the same bytes everywhere, and never entirely in memory."""

from __future__ import annotations

import hashlib
import random
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import delete, insert, select, update

from mlcd.core.database import Database, open_database
from mlcd.core.database.files import PART_BYTES, UploadedModels
from mlcd.core.database.schema import upload_parts, uploads
from mlcd.core.errors import UnknownName, UserError

MB = 1 << 20


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """One for all tests: each sends bytes of its own."""
    if request.param == "sqlite":
        where: Path | str = tmp_path_factory.mktemp("sqlite") / "ledger.db"
    else:
        where = request.getfixturevalue("running_postgres").new_database()
    with closing(open_database(where)) as database:
        yield database


def written(folder: Path, size: int) -> tuple[Path, str]:
    """A file to be sent, and its hash."""
    folder.mkdir(parents=True, exist_ok=True)
    body = random.Random(size).randbytes(size)
    (folder / "model").write_bytes(body)
    return folder / "model", hashlib.sha256(body).hexdigest()


def note(database: Database, digest: str, size: int = 0) -> None:
    """Its row, as the service writes it last."""
    with database.write() as connection:
        row = {"digest": digest, "name": "m", "size": size, "created_at": "now", "facts": "{}"}
        connection.execute(insert(uploads).values(row))


def digests(database: Database) -> set[str]:
    with database.read() as connection:
        return set(connection.execute(select(upload_parts.c.digest)).scalars())


def files(home: Path) -> list[str]:
    return sorted(each.name for each in (home / "uploads").glob("*"))


@pytest.mark.parametrize("size", [1, PART_BYTES - 1, PART_BYTES, 2 * PART_BYTES + 7])
def test_a_model_uploaded_by_one_machine_is_fetched_by_another(database: Database, tmp_path: Path, size: int) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    file, digest = written(here / "uploads", size)
    body = file.read_bytes()
    path = UploadedModels(database, here).store(file, digest)
    assert (path.read_bytes(), files(here)) == (body, [f"{digest}.onnx"])
    assert UploadedModels(database, here).is_whole(digest, size)
    note(database, digest)
    for _ in range(2):  # fetched, and then found
        assert UploadedModels(database, there).path(digest).read_bytes() == body
        assert files(there) == [f"{digest}.onnx"]


def test_a_model_without_its_row_is_absent_and_can_be_uploaded_again(database: Database, tmp_path: Path) -> None:
    file, digest = written(tmp_path / "here" / "uploads", 2 * MB)
    UploadedModels(database, tmp_path / "here").store(file, digest)
    with database.write() as connection:  # as if it had died before the last part
        connection.execute(delete(upload_parts).where(upload_parts.c.digest == digest, upload_parts.c.part == 1))
    there = UploadedModels(database, tmp_path / "there")
    for unknown in (digest, "../../etc/passwd", ""):
        with pytest.raises(UnknownName, match="unknown upload"):
            there.path(unknown)
    assert not there.is_whole(digest, 2 * MB)
    file, _ = written(tmp_path / "there" / "uploads", 2 * MB)
    there.store(file, digest)
    assert there.is_whole(digest, 2 * MB)


def test_bytes_that_are_not_those_that_were_sent_are_refused_and_leave_no_file(
    database: Database, tmp_path: Path
) -> None:
    file, digest = written(tmp_path / "here" / "uploads", 100)
    UploadedModels(database, tmp_path / "here").store(file, digest)
    note(database, digest)
    with database.write() as connection:
        connection.execute(update(upload_parts).where(upload_parts.c.digest == digest).values(body=b"x" * 100))
    with pytest.raises(UserError, match="do not match its hash"):
        UploadedModels(database, tmp_path / "there").path(digest)
    assert files(tmp_path / "there") == []


def test_parts_that_somebody_left_behind_are_gone_after_a_day_and_nothing_else_is(
    database: Database, tmp_path: Path
) -> None:
    ages = {"kept": timedelta(days=9), "left": timedelta(days=2), "coming": timedelta(hours=1)}
    with database.write() as connection:
        for digest, age in ages.items():
            at = (datetime.now(UTC) - age).isoformat()
            connection.execute(insert(upload_parts).values(digest=digest, part=0, written_at=at, body=b"x"))
    note(database, "kept")
    file, digest = written(tmp_path / "uploads", 10)
    UploadedModels(database, tmp_path).store(file, digest)
    assert digests(database) & {*ages, digest} == {"kept", "coming", digest}


def test_who_send_the_same_bytes_at_once_do_not_disturb_each_other(database: Database, tmp_path: Path) -> None:
    def send(number: int) -> None:
        home = tmp_path / str(number)
        file, digest = written(home / "uploads", 3 * MB)
        models = UploadedModels(database, home)
        models.store(file, digest)
        assert models.is_whole(digest, 3 * MB)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(send, range(3)))


def test_a_large_model_is_never_all_in_memory(database: Database, tmp_path: Path) -> None:
    file, digest = written(tmp_path / "here" / "uploads", 16 * MB)
    note(database, digest)
    tracemalloc.start()
    try:
        UploadedModels(database, tmp_path / "here").store(file, digest)
        UploadedModels(database, tmp_path / "there").path(digest)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 6 * MB
