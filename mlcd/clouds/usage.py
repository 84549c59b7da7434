"""What the machines of a launch have used, as it was recorded: `usage.jsonl` in the launch's folder.

The first line: when it began, and what is measured. Each further line: `t`, the seconds since then, and what was used
since the line before, machine by machine: `cpu` in cores, `memory` and its `peak` in GiB; GPU by GPU: `gpu` in percent
busy, the most `gpu_memory` in GiB; `logs`: how long each process's log was, so when a line was written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FILE = "usage.jsonl"
MOST_BYTES = 8 << 20
"""More than any record has: so much is read of one."""
FEW_BUSY = 60.0
"""Percent. A GPU that is busy less than this is said to wait, where it is known what for."""
ALL_CORES = 0.9
"""The share of its cores from which on a machine's CPU is said to be full."""
FEWEST_LINES = 10
"""From so many lines on a mean says something about a job, and not only about its start."""

Values = tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Measured:
    """A machine or a GPU. `cores`: of a machine; 0 of a GPU."""

    name: str
    memory_gib: float
    cores: float = 0.0


@dataclass(frozen=True, slots=True)
class Line:
    """What was used since the line before; a value for each machine, or for each GPU."""

    t: float
    cpu: Values
    memory: Values
    peak: Values
    gpu: Values
    gpu_memory: Values
    logs: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MemoryPeak:
    """The most memory that a machine was seen to use, of what it may use."""

    machine: str
    used_gib: float
    of_gib: float

    @property
    def share(self) -> float:
        """Of the limit: at 1 the kernel kills a process."""
        return self.used_gib / self.of_gib


@dataclass(frozen=True)
class Usage:
    """A record. Without machines nothing was measured, and only the growth of the logs is known."""

    started_at: float
    machines: tuple[Measured, ...]
    gpus: tuple[Measured, ...]
    lines: tuple[Line, ...]

    @property
    def cpu_share(self) -> float | None:
        """The mean share of all machines' cores that was busy."""
        cores = sum(machine.cores for machine in self.machines)
        return None if (busy := self.busy_cores) is None or not cores else busy / cores

    @property
    def busy_cores(self) -> float | None:
        """How many cores of all machines together were busy, on average."""
        means = [_mean(self.lines, "cpu", i) for i in range(len(self.machines))]
        known = [mean for mean in means if mean is not None]
        return sum(known) if known else None

    @property
    def memory_peak(self) -> MemoryPeak | None:
        """That of the machine that came closest to its limit."""
        peaks = [
            MemoryPeak(machine.name, most, machine.memory_gib)
            for i, machine in enumerate(self.machines)
            if machine.memory_gib > 0 and (most := _most(line.peak[i] for line in self.lines)) is not None
        ]
        return max(peaks, key=lambda peak: peak.share, default=None)

    @property
    def gpu_percent(self) -> float | None:
        """How busy the GPUs were, on average."""
        means = [_mean(self.lines, "gpu", i) for i in range(len(self.gpus))]
        known = [mean for mean in means if mean is not None]
        return sum(known) / len(known) if known else None

    @property
    def gpu_peak_gib(self) -> float | None:
        """The most memory that one of the GPUs used."""
        return _most(used for line in self.lines for used in line.gpu_memory)

    @property
    def gpu_kinds(self) -> str:
        """'2 x NVIDIA A100-SXM4-80GB, 1 x Tesla T4'."""
        names = [gpu.name for gpu in self.gpus]
        return ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names))

    @property
    def sentence(self) -> str:
        """In one line; empty where nothing was measured. What a GPU waits for is asked only where the CPUs are full."""
        said = []
        if (gpu := self.gpu_percent) is not None:
            waits = gpu < FEW_BUSY and (self.cpu_share or 0.0) >= ALL_CORES and len(self.lines) >= FEWEST_LINES
            said.append(f"GPU {gpu:.0f} % busy{': waits for data? The CPUs are full' if waits else ''}")
        if (busy := self.busy_cores) is not None:
            said.append(f"CPU {busy:.3g} of {sum(machine.cores for machine in self.machines):.3g} cores busy")
        if (peak := self.memory_peak) is not None:
            where = f" on {peak.machine}" if len(self.machines) > 1 else ""
            said.append(f"memory at most {peak.used_gib:.3g} of {peak.of_gib:.3g} GiB{where} ({peak.share:.0%})")
        return " · ".join(said)

    def thinned(self, most: int) -> Usage:
        """The same in at most so many lines: means of means, and peaks of peaks."""
        size = -(-len(self.lines) // most)
        if size <= 1:
            return self
        groups = [self.lines[i : i + size] for i in range(0, len(self.lines), size)]
        starts = [0.0, *(group[-1].t for group in groups)]
        lines = tuple(_joined(group, start) for group, start in zip(groups, starts, strict=False))
        return Usage(self.started_at, self.machines, self.gpus, lines)


def usage_in(folder: Path) -> Usage | None:
    """What was recorded of a launch on this machine; None if nothing was."""
    try:
        with (folder / FILE).open("rb") as file:
            return usage_of(file.read(MOST_BYTES))
    except OSError:
        return None


def usage_of(record: bytes) -> Usage | None:
    """What a record says; as far as it goes, if its end is missing."""
    first, *rest = record.split(b"\n")
    try:
        told = json.loads(first)
        machines = tuple(Measured(each["name"], each["memory_gib"], each["cores"]) for each in told["machines"])
        gpus = tuple(Measured(each["name"], each["memory_gib"]) for each in told["gpus"])
        lines = tuple(line for each in rest if (line := _line(each, len(machines), len(gpus))) is not None)
        return Usage(float(told["started_at"]), machines, gpus, lines) if lines else None
    except (ValueError, KeyError, TypeError):
        return None


def _line(text: bytes, machines: int, gpus: int) -> Line | None:
    try:
        told: dict[str, Any] = json.loads(text)
        return Line(
            float(told["t"]),
            **{name: _values(told[name], machines) for name in ("cpu", "memory", "peak")},
            **{name: _values(told[name], gpus) for name in ("gpu", "gpu_memory")},
            logs={process: int(size) for process, size in told["logs"].items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _values(told: Sequence[float | None], count: int) -> Values:
    values = tuple(None if value is None else float(value) for value in told)
    if len(values) != count:
        raise ValueError(f"{count} values expected")
    return values


def _joined(lines: Sequence[Line], start: float) -> Line:
    def means(name: str) -> Values:
        return tuple(_mean(lines, name, i, start) for i in range(len(getattr(lines[0], name))))

    def peaks(name: str) -> Values:
        return tuple(_most(each) for each in zip(*(getattr(line, name) for line in lines), strict=True))

    of_machines = (means("cpu"), means("memory"), peaks("peak"))
    return Line(lines[-1].t, *of_machines, means("gpu"), peaks("gpu_memory"), lines[-1].logs)


def _mean(lines: Sequence[Line], name: str, i: int, start: float = 0.0) -> float | None:
    """Of one machine, over the time of the lines, which differ in length."""
    seconds = total = 0.0
    for line in lines:
        if (read := getattr(line, name)[i]) is not None:
            seconds += line.t - start
            total += read * (line.t - start)
        start = line.t
    return total / seconds if seconds > 0 else None


def _most(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
