"""Records CPU, GPU and memory use of a launch's machines, in `usage.jsonl` in the launch's folder.

The format is in `mlcd/clouds/usage.py`. The file stays small: after every `LINES_UNTIL_DOUBLED` lines, a line covers
twice the time, so a week takes about 5,000 lines. Machines are read more often than lines are written; means and maxima
are over all readings.
"""

import json
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from mlcd.clouds.local.gpus import Gpu, ask_nvidia_smi
from mlcd.clouds.usage import FILE, usage_in
from mlcd.core.errors import BackendError

EVERY_S = 1.0
LINES_UNTIL_DOUBLED = 512
SHORTEST_S = 0.2
"""A last line that covers less time has no CPU rate: the kernel counts CPU time in hundredths of a second."""
SLOWEST_READING_S = 5.0
"""Longest interval between readings, however much time a line covers: a memory peak may be short."""
MAX_CPU_SHARE, MAX_MEMORY_SHARE = 0.003, 0.005
"""Upper bound of the share of a core that readings take. Many processes, or much memory, are read less often."""
MAX_GPU_SHARE = 0.05
"""Upper bound of the share of time in which nvidia-smi runs: on a large machine one call takes a second."""
ENDS_WITHIN_S = 0.5
"""How long teardown waits for a reading in progress."""


class Metered(Protocol):
    """A machine whose use can be measured."""

    @property
    def name(self) -> str:
        """Its name for users."""

    @property
    def cores(self) -> float:
        """The number of its cores."""

    @property
    def memory_gib(self) -> float:
        """Its memory."""

    def cpu_s(self) -> float:
        """Seconds of CPU time since the last reading."""

    def used_gib(self) -> float:
        """The memory in use now."""


@dataclass
class _Sums:
    """The readings since the last line, for one machine or GPU."""

    cpu_s: float | None = None
    memory: list[float] = field(default_factory=list)
    busy: list[float] = field(default_factory=list)


class Recorder:
    """Records in a thread while the `with` block runs. Without machines, only the sizes of the logs.

    It continues the record of a launch that another process followed before.
    """

    def __init__(
        self,
        folder: Path,
        machines: Sequence[Metered] = (),
        gpus: Sequence[Gpu] = (),
        ask_gpus: Callable[[], Sequence[Gpu]] = ask_nvidia_smi,
        now: Callable[[], float] = time.monotonic,
        at: Callable[[], float] = time.time,
    ) -> None:
        self._folder, self._machines, self._gpus, self._ask_gpus, self._now = folder, machines, gpus, ask_gpus, now
        self._started_s, self._started_at = now(), at()
        self._line_s = self._ask_gpus_s = self._ask_memory_s = self._started_s
        self._lines = 0
        self._sums = [_Sums() for _ in (*machines, *gpus)]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._record, name="usage", daemon=True)

    def __enter__(self) -> None:
        if (before := usage_in(self._folder)) is None:
            self._write(self._header(), "w")
        else:
            self._started_s -= max(self._started_at - before.started_at, before.lines[-1].t)
            self._lines = len(before.lines)
        self._thread.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        self._thread.join(ENDS_WITHIN_S)
        if not self._thread.is_alive():
            self.tick(is_last=True)

    def tick(self, is_last: bool = False) -> float:
        """Read once; write a line if it is due. Returns the seconds until the next reading."""
        began_s = time.thread_time()
        for machine, sums in zip(self._machines, self._sums, strict=False):
            with suppress(OSError):
                sums.cpu_s = (sums.cpu_s or 0.0) + machine.cpu_s()
        cpu_took_s = time.thread_time() - began_s
        self._read_memory()
        self._read_gpus()
        every_s = EVERY_S * float(2 ** (self._lines // LINES_UNTIL_DOUBLED))
        if is_last or self._now() - self._line_s >= every_s * 0.99:  # a timer may be a little early
            self._write(self._line())
        return max(min(every_s, SLOWEST_READING_S), cpu_took_s / MAX_CPU_SHARE)

    def _record(self) -> None:
        wait_s = 0.0
        while not self._over.wait(wait_s):
            wait_s = self.tick()

    def _read_memory(self) -> None:
        if self._now() < self._ask_memory_s:
            return
        began_s = time.thread_time()
        for machine, sums in zip(self._machines, self._sums, strict=False):
            with suppress(OSError):
                sums.memory.append(machine.used_gib())
        self._ask_memory_s = self._now() + (time.thread_time() - began_s) / MAX_MEMORY_SHARE

    def _read_gpus(self) -> None:
        if not self._gpus or (asked_s := self._now()) < self._ask_gpus_s:
            return
        with suppress(BackendError, OSError):
            by_uuid = {gpu.uuid: gpu for gpu in self._ask_gpus()}
            for gpu, sums in zip(self._gpus, self._sums[len(self._machines) :], strict=True):
                if (now := by_uuid.get(gpu.uuid)) is not None:
                    sums.memory.append(now.used_mib / 1024)
                    sums.busy += [] if now.busy_percent is None else [now.busy_percent]
        self._ask_gpus_s = asked_s + max(2 * EVERY_S, (self._now() - asked_s) / MAX_GPU_SHARE)

    def _header(self) -> dict[str, Any]:
        machines = [
            {"name": each.name, "cores": each.cores, "memory_gib": round(each.memory_gib, 4)} for each in self._machines
        ]
        gpus = [{"name": gpu.name, "memory_gib": round(gpu.memory_mib / 1024, 3)} for gpu in self._gpus]
        return {"started_at": self._started_at, "machines": machines, "gpus": gpus}

    def _line(self) -> dict[str, Any]:
        """A line with the use since the last one; null where nothing was read."""
        now_s, sums = self._now(), self._sums
        seconds = now_s - self._line_s
        machines, gpus = sums[: len(self._machines)], sums[len(self._machines) :]
        line = {
            "t": round(now_s - self._started_s, 2),
            "cpu": [_rate(each.cpu_s, seconds) for each in machines],
            "memory": [_mean(each.memory) for each in machines],
            "peak": [_most(each.memory) for each in machines],
            "gpu": [_mean(each.busy) for each in gpus],
            "gpu_memory": [_most(each.memory) for each in gpus],
            "logs": {log.stem: log.stat().st_size for log in self._folder.glob("[0-9]*.log")},
        }
        self._line_s, self._lines, self._sums = now_s, self._lines + 1, [_Sums() for _ in sums]
        return line

    def _write(self, line: dict[str, Any], mode: str = "a") -> None:
        with suppress(OSError), (self._folder / FILE).open(mode, encoding="utf-8") as file:  # a full disk ends no job
            file.write(json.dumps(line, separators=(",", ":")) + "\n")


def _rate(cpu_s: float | None, seconds: float) -> float | None:
    return None if cpu_s is None or seconds < SHORTEST_S else round(cpu_s / seconds, 3)


def _mean(values: list[float]) -> float | None:
    return round(sum(values) / len(values), 4) if values else None


def _most(values: list[float]) -> float | None:
    return round(max(values), 4) if values else None
