"""Only the user can read MLCD's state on disk."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlcd.clouds.launches import Launches
from mlcd.core.backend import Launch, Purpose
from mlcd.core.configuration import Configuration, Offer
from mlcd.core.errors import UserError
from mlcd.core.home import open_ledger, private_text


@pytest.fixture(autouse=True)
def open_to_all() -> Iterator[None]:
    """As most systems have it: what is made is for all to read, unless it says otherwise."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_the_ledger_and_its_folder_are_closed_to_others(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "home")
    assert (mode(tmp_path / "home"), mode(tmp_path / "home" / "ledger.db")) == (0o700, 0o600)
    assert all(mode(each) == 0o600 for each in (tmp_path / "home").glob("ledger.db*"))
    ledger.close()


def test_launches_with_their_logs_are_closed_to_others(tmp_path: Path) -> None:
    order = Launch("demo-1-1", Configuration(Offer("here", 1.0, 1, 1), 1), Purpose.PROBE, 1.0, 30.0, 0)
    folder = Launches(tmp_path / "launches").open(order)
    assert (mode(folder.parent), mode(folder)) == (0o700, 0o700)


def test_the_usual_folder_is_closed_also_if_an_earlier_version_left_it_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLCD_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".mlcd").mkdir(mode=0o755)
    open_ledger().close()
    assert mode(tmp_path / ".mlcd") == 0o700


def test_a_file_with_the_databases_url_that_others_can_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "database"
    file.write_text("postgresql://ada:secret@host/mlcd\n")
    file.chmod(0o644)
    with pytest.raises(UserError, match="chmod 600"):
        private_text(file)
    file.chmod(0o400)
    assert private_text(file) == "postgresql://ada:secret@host/mlcd"
