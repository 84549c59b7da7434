"""Who drives a run: a lock of the operating system's, which goes with the process, however it dies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mlcd.core.database.failures import explained_files
from mlcd.core.errors import WrongState


@contextmanager
def hold(folder: Path, run: str) -> Iterator[None]:
    """Be the only process that drives this run."""
    with explained_files(str(folder)):
        folder.mkdir(exist_ok=True)
        handle = os.open(_file(folder, run), os.O_CREAT | os.O_RDWR, 0o644)
    try:
        if not _take(handle):
            raise WrongState(f"run '{run}' is being driven by another process; wait for it, or: mlcd stop {run}")
        with explained_files(str(folder)):
            os.ftruncate(handle, 0)
            os.write(handle, str(os.getpid()).encode())
        yield
    finally:
        os.close(handle)


def holder(folder: Path, run: str) -> int | None:
    """The process that drives this run now, or None; 0: it has not said which it is."""
    try:
        handle = os.open(_file(folder, run), os.O_RDONLY)
    except OSError:  # never driven, or not ours to see
        return None
    try:
        if _lock(handle, fcntl.LOCK_SH):  # any number may look at once
            return None
        told = os.read(handle, 20)
        return int(told) if told.isdigit() else 0
    finally:
        os.close(handle)


def held(folder: Path) -> set[str]:
    """The runs that some process drives now."""
    return {path.stem for path in folder.glob("*.lock") if holder(folder, path.stem) is not None}


def _take(handle: int) -> bool:
    """Whether it is ours now. Who only looks has it for a moment, shared: that is no driver, and is waited for."""
    while not _lock(handle, fcntl.LOCK_EX):
        if not _lock(handle, fcntl.LOCK_SH):
            return False
        fcntl.flock(handle, fcntl.LOCK_UN)
    return True


def _lock(handle: int, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _file(folder: Path, run: str) -> Path:
    return folder / f"{run}.lock"
