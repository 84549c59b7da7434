"""The lock of a run: only its driver has it, readers never take it away, and a full disk is reported."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlcd.core.errors import LedgerFull, WrongState
from mlcd.core.ledger.lock import held, hold, holder


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder of locks with one of them, and no byte left for more."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a small disk (root)")
    try:
        (disk / "locks").mkdir()
        (disk / "locks" / "old-1.lock").touch()
        with pytest.raises(OSError, match="No space left"):
            (disk / "ballast").write_bytes(bytes(1 << 20))
        yield disk / "locks"
    finally:
        subprocess.run(["umount", str(disk)], check=True, timeout=300)


@pytest.fixture
def looking(tmp_path: Path) -> int:
    """Somebody who is looking whether a run is held, in the middle of it."""
    with hold(tmp_path, "seen-1"):
        pass
    handle = os.open(tmp_path / "seen-1.lock", os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_SH)
    return handle


def test_who_looks_is_not_taken_for_a_driver(tmp_path: Path, looking: int) -> None:
    assert (holder(tmp_path, "seen-1"), held(tmp_path)) == (None, set())
    os.close(looking)


def test_who_looks_keeps_no_driver_out(tmp_path: Path, looking: int) -> None:
    done = threading.Timer(0.01, os.close, [looking])
    done.start()
    with hold(tmp_path, "seen-1"):
        assert holder(tmp_path, "seen-1") == os.getpid()
    done.join(timeout=300)


def test_a_run_is_held_once_and_is_free_again(tmp_path: Path) -> None:
    with hold(tmp_path, "one-1"):
        assert (holder(tmp_path, "one-1"), held(tmp_path)) == (os.getpid(), {"one-1"})
        with pytest.raises(WrongState, match="driven by another process"), hold(tmp_path, "one-1"):
            pass
        assert holder(tmp_path, "one-1") == os.getpid()
    assert (holder(tmp_path, "one-1"), held(tmp_path)) == (None, set())


def test_a_driver_that_has_not_yet_written_its_id_is_waited_for(tmp_path: Path) -> None:
    with hold(tmp_path, "new-1"):
        (tmp_path / "new-1.lock").write_bytes(b"")
        says = threading.Timer(0.01, (tmp_path / "new-1.lock").write_text, [str(os.getpid())])
        says.start()
        assert holder(tmp_path, "new-1") == os.getpid()
        says.join(timeout=300)


def test_a_lock_file_does_not_name_who_held_it_before(tmp_path: Path) -> None:
    with hold(tmp_path, "old-1"):
        pass
    assert (tmp_path / "old-1.lock").read_bytes() == b""


def test_a_lock_file_that_says_nothing_sensible_is_held_by_some_process(tmp_path: Path) -> None:
    with hold(tmp_path, "odd-1"):
        (tmp_path / "odd-1.lock").write_bytes(b"\xff not a number")
        assert holder(tmp_path, "odd-1") == 0


@pytest.mark.parametrize("run", ["old-1", "new-1"])
def test_a_full_disk_is_reported_and_the_run_can_be_driven_once_there_is_room(full_disk: Path, run: str) -> None:
    with pytest.raises(LedgerFull, match="the disk is full; nothing that was written is lost"), hold(full_disk, run):
        raise AssertionError("was held")
    assert holder(full_disk, run) is None
    (full_disk.parent / "ballast").unlink()
    with hold(full_disk, run):
        assert holder(full_disk, run) == os.getpid()
