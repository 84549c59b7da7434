"""Tears down a local launch: its processes, control groups and network namespaces.

Also a program, the watchdog: `python teardown.py FOLDER LIFETIME_S` waits until its standard input closes, which
happens when MLCD ends in any way, or until the lifetime is over; then it tears down. So a killed MLCD leaves nothing
behind. As a program it imports only the standard library, to start at once.
"""

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
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

CPU_GROUPS, MEMORY_GROUPS = Path("/sys/fs/cgroup/cpu/mlcd"), Path("/sys/fs/cgroup/memory/mlcd")
"""Control groups of version 1."""
GROUPS = Path("/sys/fs/cgroup/mlcd")
"""Control groups of version 2."""
CGROUP_ROOTS = (CPU_GROUPS, MEMORY_GROUPS, GROUPS)
NAMESPACES = Path("/var/run/netns")
GRACE_S = 1.0
"""Time between SIGTERM and SIGKILL, to save a checkpoint."""

OWN_FOLDERS = ("work", "changes", "overlay", "copy", "tmp")
"""Folders of a launch that are deleted with it."""
FIRST_USER, USERS = 0x78000000, 0x7F00000
"""The range of user ids for jobs. No person, package, systemd container (UIDS-GIDS.md) or SSSD account (up to
2,000,200,000) has such an id.
"""
USER = "user"
"""The file in a launch's folder with the id of its job's separate user, if it has one."""
CGROUP_TIMEOUT_S = 5.0
"""How long the kernel may take to empty a control group whose processes have ended."""
SETTLE_S = 0.5
"""Pause before a second teardown: a command that MLCD started just before it was killed may outlast the first one."""


class Watchdog:
    """Runs this file as a process that outlives MLCD, while the `with` block runs.

    `holds`: file descriptors that it keeps open, so that GPUs are not free before everything is torn down.
    """

    def __init__(self, folder: Path, lifetime_s: float | None, holds: Sequence[int] = ()) -> None:
        from mlcd.clouds.environment import inherited

        lifetime = "none" if lifetime_s is None else repr(lifetime_s)
        self._folder = folder
        command = [sys.executable, "-I", "-S", __file__, str(folder), lifetime]
        self._popen = subprocess.Popen(
            command, stdin=subprocess.PIPE, env=inherited(), start_new_session=True, pass_fds=holds
        )

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        # After a complete teardown the watchdog is not needed. After an interrupted one (Ctrl-C), closing its standard
        # input makes it tear down.
        if (self._folder / "ended").exists():
            self._popen.kill()
        self._popen.communicate()


def tear_down(folder: Path, grace_s: float = GRACE_S, reap: Callable[[], object] = lambda: None) -> float:
    """End the launch of this folder and return the seconds that it was up. Idempotent.

    `reap` is called after its processes have ended: child processes stay as zombies until they are waited for.
    """
    mark = mark_of(folder)
    end_processes(mark, grace_s, user_of(folder))
    reap()
    until_s = time.monotonic() + CGROUP_TIMEOUT_S
    while (groups := _groups(mark)) and time.monotonic() < until_s:
        for group in groups:
            with contextlib.suppress(OSError):  # busy until the last thread of a process is gone
                group.rmdir()
        if _groups(mark):
            time.sleep(0.02)
    _remove_work(folder)
    for namespace in NAMESPACES.glob(f"mlcd.{mark}.*"):
        subprocess.run(["ip", "netns", "del", namespace.name], check=False, capture_output=True)
    if not (folder / "ended").exists():
        record_end(folder, time.time())
    return up_s(folder)


def _remove_work(folder: Path) -> None:
    """Delete the launch's own working folder: a copy, an overlay, or that of a separate user."""
    if os.path.ismount(folder / "work"):
        subprocess.run(["umount", "--lazy", str(folder / "work")], check=False, capture_output=True)
    remaining = [str(folder / name) for name in (*OWN_FOLDERS, USER) if not os.path.ismount(folder / name)]
    # Not shutil.rmtree, which fails on very deep folders. PATH is fixed, so that the caller's does not matter.
    subprocess.run(["rm", "-rf", "--", *remaining], check=False, capture_output=True, env={"PATH": os.defpath})


def _groups(mark: str) -> list[Path]:
    return [group for root in CGROUP_ROOTS for group in root.glob(f"{mark}.*") if group.is_dir()]


def mark_of(folder: Path) -> str:
    """The tag in the name of everything that belongs to a launch: its label, and a checksum of its state folder."""
    return f"{folder.name}~{zlib.crc32(str(folder.parent.resolve()).encode()):08x}"


def record_end(folder: Path, at: float) -> None:
    """Record when the launch was completely torn down."""
    partial = folder / f"ended.{os.getpid()}"  # replaced atomically: a full disk leaves no partial file
    partial.write_text(repr(at), encoding="utf-8")
    partial.replace(folder / "ended")


def up_s(folder: Path) -> float:
    """The seconds that an ended launch was up."""
    return max(0.0, ended_at(folder) - started_at(folder))


def ended_at(folder: Path) -> float:
    """When an ended launch was completely torn down."""
    return _time_in(folder / "ended", float)


def started_at(folder: Path) -> float:
    """When the launch was ordered."""
    return _time_in(folder / "order.json", lambda order: float(json.loads(order)["started_at"]))


def _time_in(file: Path, read: Callable[[str], float]) -> float:
    """The time written in a file; if it is damaged, as after a power loss, the file's modification time."""
    try:
        at = read(file.read_text(encoding="utf-8"))
    except (ValueError, TypeError, KeyError):
        at = math.nan
    return at if math.isfinite(at) else file.stat().st_mtime


def processes_of(mark: str) -> set[int]:
    """The processes of a launch: those in its control groups, and those with its mark in their environment."""
    processes: set[int] = set()
    for group in _groups(mark):
        with contextlib.suppress(OSError):
            processes |= {int(pid) for pid in (group / "cgroup.procs").read_text().split()}
    variable = f"MLCD_LAUNCH={mark}".encode()
    return (processes | {process for process, variables in _environments() if variable in variables}) - {os.getpid()}


def marks() -> set[str]:
    """The marks of launches that have anything left on this machine."""
    names = [group.name for group in _groups("*")] + [each.name[len("mlcd.") :] for each in NAMESPACES.glob("mlcd.*")]
    marked = [each for _, variables in _environments() for each in variables if each.startswith(b"MLCD_LAUNCH=")]
    in_environments = {variable.partition(b"=")[2].decode(errors="replace") for variable in marked}  # may be any bytes
    return {name.rpartition(".")[0] for name in names} | in_environments


def _environments() -> Iterator[tuple[int, list[bytes]]]:
    """The processes whose environment can be read, with its variables."""
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            yield int(environ.parent.name), environ.read_bytes().split(b"\0")


def user_of(folder: Path) -> int | None:
    """The id of the job's separate user; None if it has none."""
    with contextlib.suppress(OSError, ValueError):
        return int((folder / USER).read_text(encoding="ascii"))
    return None


def end_processes(mark: str, grace_s: float, user: int | None = None) -> None:
    """End the processes of a launch on this machine; return when they are gone.

    `user`: all processes of this user belong to the launch, even those that dropped the mark or fork quickly.
    """
    until_s = time.monotonic() + grace_s
    _signal(_processes(mark, user), signal.SIGTERM)
    while time.monotonic() < until_s and _alive(_processes(mark, user)):
        time.sleep(0.02)
    if user is not None:  # all at once, so that none can fork meanwhile: `kill -1`, run as that user
        ids: dict[str, Any] = {"user": user, "group": user, "extra_groups": []}
        subprocess.run(["bash", "-c", "kill -KILL -1"], check=False, capture_output=True, cwd="/", **ids)
    while processes := _alive(_processes(mark, user)):
        _signal(processes, signal.SIGKILL)
        time.sleep(0.02)


def _processes(mark: str, user: int | None) -> set[int]:
    processes = processes_of(mark)
    if user is None:
        return processes
    for status in Path("/proc").glob("[0-9]*/status"):  # not the file's owner, which is root for some processes
        with contextlib.suppress(OSError, IndexError):
            if int(status.read_text(errors="replace").partition("\nUid:")[2].split()[0]) == user:
                processes.add(int(status.parent.name))
    return processes


def _signal(processes: set[int], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)


def _alive(processes: set[int]) -> set[int]:
    """The processes that still run; zombies do not count."""
    alive = set()
    for process in processes:
        with contextlib.suppress(OSError, IndexError):
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
                alive.add(process)
    return alive


def wait_for_end_of_input(timeout_s: float | None) -> None:
    """Wait until standard input closes, because the process that opened it has ended, or until the time is over."""
    ready, _, _ = select.select([sys.stdin], [], [], timeout_s)
    while ready and os.read(0, 1):
        pass


def _watch(folder: Path, lifetime_s: float | None) -> None:
    wait_for_end_of_input(None if lifetime_s is None else max(0.0, started_at(folder) + lifetime_s - time.time()))
    for settle_s in (SETTLE_S, 0.0):
        with contextlib.suppress(OSError):  # a full disk, or no folder: the processes were ended before that
            tear_down(folder, grace_s=0.0)
        time.sleep(settle_s)


if __name__ == "__main__":
    _watch(Path(sys.argv[1]), None if sys.argv[2] == "none" else float(sys.argv[2]))
