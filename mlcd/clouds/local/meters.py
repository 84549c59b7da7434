"""What the processes of a node use of its machine, read from /proc.

Memory is what the kernel cannot take back: private and shared pages, each page divided by the processes that share it
(`Pss` of smaps_rollup), without cached files. So workers that were forked count once, and a full cache is no full
memory. A process that begins and ends between two readings is not seen.
"""

import os
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

GIB = 1024**3
_KEPT = re.compile(r"^Pss_(?:Anon|Shmem): +(\d+) kB$", re.MULTILINE)


@dataclass
class Meter:
    """A machine, and the processes on it that are measured. `memory_gib`: as much as they may use."""

    name: str
    cores: float
    memory_gib: float
    processes: Callable[[], Iterable[int]]
    proc: Path = Path("/proc")
    _seen: dict[tuple[int, str], float] = field(default_factory=dict)

    def cpu_s(self) -> float:
        """Seconds of CPU time since the last reading."""
        now: dict[tuple[int, str], float] = {}
        used_s = 0.0
        for process in self.processes():
            with suppress(OSError, IndexError, ValueError):  # it has ended meanwhile
                facts = (self.proc / str(process) / "stat").read_text(errors="replace").rpartition(")")[2].split()
                key = process, facts[19]  # with its start: a number may be used again
                now[key] = (int(facts[11]) + int(facts[12])) / os.sysconf("SC_CLK_TCK")
                used_s += now[key] - self._seen.get(key, 0.0)
        self._seen = now
        return used_s

    def used_gib(self) -> float:
        """The memory that the processes of the last reading use. It takes some 12 ms for each GiB."""
        kept_kib = 0
        for process, _ in self._seen:
            with suppress(OSError, ValueError):
                rollup = (self.proc / str(process) / "smaps_rollup").read_text(encoding="ascii")
                kept_kib += sum(map(int, _KEPT.findall(rollup)))
        return kept_kib / 1024**2


def this_machine(processes: Callable[[], Iterable[int]]) -> Meter:
    """Processes that may use all of this machine."""
    return Meter("this machine", len(os.sched_getaffinity(0)), _memory_gib(), processes)


def _memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GIB
