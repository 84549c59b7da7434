"""The control groups (cgroups) of an environment: its share of the CPUs, and its memory.

Versions 1 and 2 are supported; version 2 is not tested yet.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
ALL = "mlcd-box"
PERIOD_US = 20_000
EMPTY_WITHIN_S = 5.0


@dataclass(frozen=True)
class ControlGroups:
    """The groups called `name` of a box."""

    box: str
    name: str

    def make(self, memory_mb: int, vcpus: float) -> list[Path]:
        """Create the groups and return their folders. A process enters by writing 0 to their `cgroup.procs`."""
        for group in self._groups:
            group.mkdir(parents=True, exist_ok=True)
            if _is_version_2():
                _enable_controllers(group)
        memory = self._groups[-1]
        limit = memory / ("memory.max" if _is_version_2() else "memory.limit_in_bytes")
        limit.write_text(str(memory_mb * 1_024 * 1_024))
        self.set_vcpus(vcpus)
        return self._groups

    def set_vcpus(self, vcpus: float) -> None:
        """Change the share of the CPUs."""
        quota = max(1_000, int(vcpus * PERIOD_US))
        if _is_version_2():
            (self._groups[0] / "cpu.max").write_text(f"{quota} {PERIOD_US}")
        else:
            (self._groups[0] / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (self._groups[0] / "cpu.cfs_quota_us").write_text(str(quota))

    def remove(self) -> None:
        """Remove the groups."""
        for group in self._groups:
            _remove(group)

    @property
    def _groups(self) -> list[Path]:
        return [parent / self.name for parent in _parents(self.box)]


def remove_all(box: str) -> None:
    """Remove all groups of a box, whose processes have ended."""
    for parent in _parents(box):
        for group in [*parent.glob("*/"), parent]:
            _remove(group)


def _remove(group: Path) -> None:
    """Remove a group as soon as the kernel has noticed that it is empty."""
    until_s = time.monotonic() + EMPTY_WITHIN_S
    while group.exists() and time.monotonic() < until_s:
        with suppress(OSError):
            group.rmdir()
            return
        time.sleep(0.01)


def _parents(box: str) -> list[Path]:
    if _is_version_2():
        return [ROOT / ALL / box]
    return [ROOT / "cpu" / ALL / box, ROOT / "memory" / ALL / box]


def _is_version_2() -> bool:
    return (ROOT / "cgroup.controllers").exists()


def _enable_controllers(group: Path) -> None:
    """Enable the controllers at all levels above a group, as version 2 requires."""
    for parent in (ROOT, group.parent.parent, group.parent):
        (parent / "cgroup.subtree_control").write_text("+cpu +memory")
