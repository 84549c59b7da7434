"""Tearing down a local launch: its processes, control groups and network namespaces, whatever is left of them.

Also a program: `python teardown.py FOLDER LIFETIME_S` waits until its standard input closes, which it does
when MLCD ends in any way, or until the lifetime is over, and then tears down. So a killed MLCD leaves nothing
behind. It imports nothing but the standard library, to be up at once.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

CGROUP_ROOTS = (Path("/sys/fs/cgroup/cpu/mlcd"), Path("/sys/fs/cgroup/mlcd"))
"""Of version 1 and version 2."""
NAMESPACES = Path("/var/run/netns")
GRACE_S = 1.0
"""Between asking a process to end and killing it: time to save a checkpoint."""

OWN_FOLDERS = ("work", "changes", "overlay", "copy", "tmp")
"""Of a launch, which go with it."""
FIRST_USER, USERS = 0x78000000, 0x7F00000
"""Numbers of the users that jobs run as. Neither people, packages nor systemd's containers get them (UIDS-GIDS.md), nor
accounts of a directory, which SSSD numbers up to 2,000,200,000.
"""
USER = "user"
"""The file of a launch that has the number of its job's user, where that is one of its own."""
GONE_S = 5.0
"""How long a control group may take to be free of processes that have ended."""
SETTLE_S = 0.5
"""A command that MLCD had begun when it was killed may end after all was torn down: it is looked for once more."""


def tear_down(folder: Path, grace_s: float = GRACE_S, reap: Callable[[], object] = lambda: None) -> float:
    """End the launch of this folder; safe to call again. The seconds that it was up.

    `reap` is called once its processes have ended: those of one's own are there until they are asked for their status.
    """
    mark = mark_of(folder)
    end_processes(mark, grace_s, user_of(folder))
    reap()
    until_s = time.monotonic() + GONE_S
    while (left := _groups(mark)) and time.monotonic() < until_s:
        for group in left:
            with contextlib.suppress(OSError):  # busy while the last thread of a process is on its way out
                group.rmdir()
        if _groups(mark):
            time.sleep(0.02)
    _remove_work(folder)
    for namespace in NAMESPACES.glob(f"mlcd.{mark}.*"):
        subprocess.run(["ip", "netns", "del", namespace.name], check=False, capture_output=True)
    if not (folder / "ended").exists():
        note_end(folder, time.time())
    return up_s(folder)


def _remove_work(folder: Path) -> None:
    """The working folder of the launch's own: a copy, an overlay with its changes, or that of a user of its own."""
    if os.path.ismount(folder / "work"):
        subprocess.run(["umount", "--lazy", str(folder / "work")], check=False, capture_output=True)
    left = [str(folder / name) for name in (*OWN_FOLDERS, USER) if not os.path.ismount(folder / name)]
    # However deep: rmtree is recursive. And wherever PATH leads: a teardown does not depend on the caller's.
    subprocess.run(["rm", "-rf", "--", *left], check=False, capture_output=True, env={"PATH": os.defpath})


def _groups(mark: str) -> list[Path]:
    return [group for root in CGROUP_ROOTS for group in root.glob(f"{mark}.*") if group.is_dir()]


def mark_of(folder: Path) -> str:
    """What everything of a launch carries in its name: its label, and which of the machine's ledgers it belongs to."""
    return f"{folder.name}~{zlib.crc32(str(folder.parent.resolve()).encode()):08x}"


def note_end(folder: Path, at: float) -> None:
    """Everything of the launch is gone since then."""
    partial = folder / f"ended.{os.getpid()}"  # whole or not at all, on a full disk too
    partial.write_text(repr(at), encoding="utf-8")
    partial.replace(folder / "ended")


def up_s(folder: Path) -> float:
    """The seconds that a launch was up which has ended."""
    return max(0.0, _told_at(folder / "ended", float) - started_at(folder))


def started_at(folder: Path) -> float:
    """When the launch was ordered."""
    return _told_at(folder / "order.json", lambda order: float(json.loads(order)["started_at"]))


def _told_at(file: Path, read: Callable[[str], float]) -> float:
    """The time that a file tells; if it is damaged, as a loss of power does, the time when it was written."""
    try:
        at = read(file.read_text(encoding="utf-8"))
    except (ValueError, TypeError, KeyError):
        at = math.nan
    return at if math.isfinite(at) else file.stat().st_mtime


def processes_of(mark: str) -> set[int]:
    """The processes of a launch: those in its control groups, and those that carry its mark."""
    found: set[int] = set()
    for group in _groups(mark):
        with contextlib.suppress(OSError):
            found |= {int(pid) for pid in (group / "cgroup.procs").read_text().split()}
    variable = f"MLCD_LAUNCH={mark}\0".encode()
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if variable in environ.read_bytes() + b"\0":
                found.add(int(environ.parent.name))
    return found - {os.getpid()}


def marks() -> set[str]:
    """Of the launches of which anything is left on this machine."""
    groups = [group for root in CGROUP_ROOTS for group in root.glob("*.*") if group.is_dir()]
    found = {group.name.rpartition(".")[0] for group in groups}
    found |= {namespace.name.removeprefix("mlcd.").rpartition(".")[0] for namespace in NAMESPACES.glob("mlcd.*")}
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            for variable in environ.read_bytes().split(b"\0"):
                if variable.startswith(b"MLCD_LAUNCH="):
                    found.add(variable.partition(b"=")[2].decode(errors="replace"))  # anybody may write there
    return found


def user_of(folder: Path) -> int | None:
    """The user that the job of a launch runs as, if it is one of its own."""
    with contextlib.suppress(OSError, ValueError):
        return int((folder / USER).read_text(encoding="ascii"))
    return None


def end_processes(mark: str, grace_s: float, user: int | None = None) -> None:
    """End the processes of a launch on this machine, and return when they are gone.

    `user`: whose processes all belong to it. A job may drop the mark, or fork faster than it is looked for.
    """
    until_s = time.monotonic() + grace_s
    _signal(_processes(mark, user), signal.SIGTERM)
    while time.monotonic() < until_s and _alive(_processes(mark, user)):
        time.sleep(0.02)
    _kill_all_of(user)
    while processes := _alive(_processes(mark, user)):
        _signal(processes, signal.SIGKILL)
        time.sleep(0.02)


def _processes(mark: str, user: int | None) -> set[int]:
    return processes_of(mark) | (set() if user is None else _processes_of_user(user))


def _processes_of_user(user: int) -> set[int]:
    found: set[int] = set()
    for status in Path("/proc").glob("[0-9]*/status"):  # not its owner: that is root where a process says so
        with contextlib.suppress(OSError, IndexError):
            if int(status.read_text(errors="replace").partition("\nUid:")[2].split()[0]) == user:
                found.add(int(status.parent.name))
    return found


def _kill_all_of(user: int | None) -> None:
    """All at once, so that none can fork meanwhile: that is what -1 means to kill(2), from that user's own process."""
    if user is not None:
        ids: dict[str, Any] = {"user": user, "group": user, "extra_groups": []}
        subprocess.run(["bash", "-c", "kill -KILL -1"], check=False, capture_output=True, cwd="/", **ids)


def _signal(processes: set[int], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)


def _alive(processes: set[int]) -> set[int]:
    """Without those that have ended and only wait to be asked for their status."""
    found = set()
    for process in processes:
        with contextlib.suppress(OSError, IndexError):
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
                found.add(process)
    return found


def wait_for_the_end(left_s: float | None) -> None:
    """Wait until standard input closes, as it does when whoever opened it ends, or for the time to be over."""
    ready, _, _ = select.select([sys.stdin], [], [], left_s)
    while ready and os.read(0, 1):
        pass


def _watch(folder: Path, lifetime_s: float | None) -> None:
    wait_for_the_end(None if lifetime_s is None else max(0.0, started_at(folder) + lifetime_s - time.time()))
    for settle_s in (SETTLE_S, 0.0):
        with contextlib.suppress(OSError):  # the disk is full, or the folder is gone: all that runs was ended before
            tear_down(folder, grace_s=0.0)
        time.sleep(settle_s)


if __name__ == "__main__":
    _watch(Path(sys.argv[1]), None if sys.argv[2] == "none" else float(sys.argv[2]))
