"""The control groups of an environment: its share of the CPUs, and its memory.

Both versions of the kernel's groups; the second has not been tried yet.
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
class Limits:
    """Named `name` among the groups of a box."""

    box: str
    name: str

    def make(self, memory_mb: int, vcpus: float) -> list[Path]:
        """Make the groups, and say where they are: whoever writes 0 to their `cgroup.procs` is in them."""
        for group in self._groups:
            group.mkdir(parents=True, exist_ok=True)
            if _is_second():
                _let_children_be_limited(group)
        memory = self._groups[-1]
        limit = memory / ("memory.max" if _is_second() else "memory.limit_in_bytes")
        limit.write_text(str(memory_mb * 1_024 * 1_024))
        self.set_vcpus(vcpus)
        return self._groups

    def set_vcpus(self, vcpus: float) -> None:
        """Change the share of the CPUs."""
        quota = max(1_000, int(vcpus * PERIOD_US))
        if _is_second():
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
    """Remove what a box has left; its processes are gone."""
    for parent in _parents(box):
        for group in [*parent.glob("*/"), parent]:
            _remove(group)


def _remove(group: Path) -> None:
    """Once the kernel has seen its processes go."""
    until_s = time.monotonic() + EMPTY_WITHIN_S
    while group.exists() and time.monotonic() < until_s:
        with suppress(OSError):
            group.rmdir()
            return
        time.sleep(0.01)


def _parents(box: str) -> list[Path]:
    if _is_second():
        return [ROOT / ALL / box]
    return [ROOT / "cpu" / ALL / box, ROOT / "memory" / ALL / box]


def _is_second() -> bool:
    return (ROOT / "cgroup.controllers").exists()


def _let_children_be_limited(group: Path) -> None:
    """Version 2 gives a group only the controllers that all groups above it hand down."""
    for parent in (ROOT, group.parent.parent, group.parent):
        (parent / "cgroup.subtree_control").write_text("+cpu +memory")
