"""Measures CPU time and memory of a node's processes, from /proc.

Memory is what the kernel cannot reclaim: private and shared pages, without cached files. A shared page is divided
among the processes that share it (`Pss` in smaps_rollup), so forked workers are not counted twice. A process that
begins and ends between two readings is missed.
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
    """Measures the given processes of a machine. `memory_gib`: their limit."""

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
            with suppress(OSError, IndexError, ValueError):  # it has ended in the meantime
                facts = (self.proc / str(process) / "stat").read_text(errors="replace").rpartition(")")[2].split()
                key = process, facts[19]  # with its start time, because process ids are reused
                now[key] = (int(facts[11]) + int(facts[12])) / os.sysconf("SC_CLK_TCK")
                used_s += now[key] - self._seen.get(key, 0.0)
        self._seen = now
        return used_s

    def used_gib(self) -> float:
        """The memory of the processes of the last reading. It takes about 12 ms for each GiB."""
        kept_kib = 0
        for process, _ in self._seen:
            with suppress(OSError, ValueError):
                rollup = (self.proc / str(process) / "smaps_rollup").read_text(encoding="ascii")
                kept_kib += sum(map(int, _KEPT.findall(rollup)))
        return kept_kib / 1024**2


def this_machine(processes: Callable[[], Iterable[int]]) -> Meter:
    """A meter of processes that may use all of this machine."""
    return Meter("this machine", len(os.sched_getaffinity(0)), _memory_gib(), processes)


def _memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GIB
