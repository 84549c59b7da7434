"""The control groups (cgroups, version 1 or 2) of a node: they limit its CPU and its memory.

If the processes of a node use more memory than it has, the kernel kills one of them and counts that.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mlcd.clouds.local.teardown import CPU_GROUPS, GROUPS, MEMORY_GROUPS
from mlcd.core.errors import BackendError

PERIOD_US = 20_000
"""Period of a CPU quota: short, so that a training step does not wait long for its next share."""
MAX_WEIGHTS = {"cpu.shares": "262144", "cpu.weight": "10000"}
"""CPU priority of all nodes together over other work on this machine, so that they get their full quotas."""


@dataclass(frozen=True)
class NodeGroups:
    """The groups of a node, all with this name: one for each limit in version 1, one for both in version 2."""

    name: str

    def create(self, vcpus: float, memory_gb: float) -> None:
        """Create them with their limits. Memory is not limited if its groups cannot be written."""
        root, quota = group_root(), int(vcpus * PERIOD_US)
        assert root is not None
        try:
            group = root / self.name
            group.mkdir(parents=True, exist_ok=True)
            if (group / "cpu.cfs_quota_us").exists():
                (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
                (group / "cpu.cfs_quota_us").write_text(str(quota))
            else:
                (group / "cpu.max").write_text(f"{quota} {PERIOD_US}")
        except OSError as error:
            raise BackendError(f"no control group for a node: {error}") from error
        for file, weight in MAX_WEIGHTS.items():
            if (root / file).exists():
                with suppress(OSError):
                    (root / file).write_text(weight)
        with suppress(OSError):
            self._limit_memory(int(memory_gb * 1e9))

    @property
    def procs(self) -> list[Path]:
        """The files to which a process id is written to put the process into the node."""
        return [group / "cgroup.procs" for group in self._created]

    def processes(self) -> set[int]:
        """The processes of the node."""
        processes: set[int] = set()
        for procs in self.procs[:1]:  # all groups of a node have the same processes
            with suppress(OSError, ValueError):
                processes |= {int(process) for process in procs.read_text(encoding="ascii").split()}
        return processes

    def memory_kills(self) -> int:
        """How many of the node's processes the kernel has killed because the node's memory was full."""
        return sum(
            _counts(group / file).get("oom_kill", 0)
            for group in self._created
            for file in ("memory.events", "memory.oom_control")
        )

    def memory_bytes(self) -> int | None:
        """The memory that the node's processes use now, without cached files, which the kernel can reclaim."""
        for group in self._created:
            for file in ("memory.current", "memory.usage_in_bytes"):
                with suppress(OSError, ValueError):
                    used, of_files = int((group / file).read_text()), _counts(group / "memory.stat")
                    return max(0, used - of_files.get("inactive_file", 0) - of_files.get("active_file", 0))
        return None

    def _limit_memory(self, most: int) -> None:
        group = (GROUPS if group_root() == GROUPS else MEMORY_GROUPS) / self.name
        if group.parent == MEMORY_GROUPS and MEMORY_GROUPS.parent.is_dir():
            group.mkdir(parents=True, exist_ok=True)
        for file in ("memory.max", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"):  # the last includes swap
            if (group / file).exists():
                (group / file).write_text(str(most))
        if (group / "memory.swap.max").exists():
            (group / "memory.swap.max").write_text("0")

    @property
    def _created(self) -> list[Path]:
        return [root / self.name for root in (CPU_GROUPS, MEMORY_GROUPS, GROUPS) if (root / self.name).is_dir()]


def _counts(file: Path) -> dict[str, int]:
    """The counters of a file with lines such as `oom_kill 1`; empty if it cannot be read."""
    with suppress(OSError, ValueError):
        return {name: int(count) for name, count in map(str.split, file.read_text(encoding="ascii").splitlines())}
    return {}


def group_root() -> Path | None:
    """The folder in which groups with a CPU quota can be created; None if there is none."""
    if os.access(CPU_GROUPS.parent, os.W_OK):
        return CPU_GROUPS
    controllers = GROUPS.parent / "cgroup.controllers"
    if not os.access(GROUPS.parent, os.W_OK) or not controllers.exists():
        return None
    offered = controllers.read_text().split()
    if "cpu" not in offered:
        return None
    controllers_on = " ".join(f"+{name}" for name in ("cpu", "memory") if name in offered)
    try:  # in version 2 each level has to enable a controller for the next one
        GROUPS.mkdir(exist_ok=True)
        for level in (GROUPS.parent, GROUPS):
            (level / "cgroup.subtree_control").write_text(controllers_on)
    except OSError:
        return None
    return GROUPS
