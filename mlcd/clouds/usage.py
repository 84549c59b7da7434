"""Reads the CPU, GPU and memory use of a launch's machines from `usage.jsonl` in the launch's folder.

The first line has the start time, the machines and the GPUs. Each further line covers the time since the line before:
`t`                      end of this time, in seconds since the start
`cpu` `memory` `peak`    for each machine: busy cores, mean and maximum memory in GiB
`gpu` `gpu_memory`       for each GPU: percent busy, maximum memory in GiB
`logs`                   size of each process's log, from which one knows when a log line was written
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FILE = "usage.jsonl"
MAX_BYTES = 8 << 20
"""At most so much of a record is read; no record is that large."""
IDLE_GPU_PERCENT = 60.0
"""A GPU that is busy less than this may be waiting for data."""
FULL_CPU_SHARE = 0.9
"""A machine's CPU counts as full if this share of its cores is busy."""
MIN_LINES = 10
"""With fewer lines, a mean is dominated by the job's start."""

Values = tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Measured:
    """A machine or a GPU. `cores`: 0 for a GPU."""

    name: str
    memory_gib: float
    cores: float = 0.0


@dataclass(frozen=True, slots=True)
class Line:
    """Use since the line before; a value for each machine or for each GPU."""

    t: float
    cpu: Values
    memory: Values
    peak: Values
    gpu: Values
    gpu_memory: Values
    logs: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MemoryPeak:
    """The maximum memory use that was measured on a machine, and the machine's limit."""

    machine: str
    used_gib: float
    of_gib: float

    @property
    def share(self) -> float:
        """Share of the limit; at 1 the kernel kills a process."""
        return self.used_gib / self.of_gib


@dataclass(frozen=True)
class Usage:
    """The record of a launch. Without machines nothing was measured; only the log sizes are known."""

    started_at: float
    machines: tuple[Measured, ...]
    gpus: tuple[Measured, ...]
    lines: tuple[Line, ...]

    @property
    def cpu_share(self) -> float | None:
        """The mean busy share of all machines' cores."""
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
        """The memory peak of the machine that came closest to its limit."""
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
        """The maximum memory use of any GPU."""
        return _most(used for line in self.lines for used in line.gpu_memory)

    @property
    def gpu_kinds(self) -> str:
        """'2 x NVIDIA A100-SXM4-80GB, 1 x Tesla T4'."""
        names = [gpu.name for gpu in self.gpus]
        return ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names))

    @property
    def sentence(self) -> str:
        """A one-line summary; empty if nothing was measured. It suggests a wait for data only if the CPUs are full."""
        parts = []
        if (gpu := self.gpu_percent) is not None:
            is_cpu_full = (self.cpu_share or 0.0) >= FULL_CPU_SHARE
            waits = gpu < IDLE_GPU_PERCENT and is_cpu_full and len(self.lines) >= MIN_LINES
            parts.append(f"GPU {gpu:.0f} % busy{': waits for data? The CPUs are full' if waits else ''}")
        if (busy := self.busy_cores) is not None:
            parts.append(f"CPU {busy:.3g} of {sum(machine.cores for machine in self.machines):.3g} cores busy")
        if (peak := self.memory_peak) is not None:
            where = f" on {peak.machine}" if len(self.machines) > 1 else ""
            parts.append(f"memory at most {peak.used_gib:.3g} of {peak.of_gib:.3g} GiB{where} ({peak.share:.0%})")
        return " · ".join(parts)

    def thinned(self, most: int) -> Usage:
        """The same record with at most `most` lines: means of means, and maxima of maxima."""
        size = -(-len(self.lines) // most)
        if size <= 1:
            return self
        groups = [self.lines[i : i + size] for i in range(0, len(self.lines), size)]
        starts = [0.0, *(group[-1].t for group in groups)]
        lines = tuple(_joined(group, start) for group, start in zip(groups, starts, strict=False))
        return Usage(self.started_at, self.machines, self.gpus, lines)


def usage_in(folder: Path) -> Usage | None:
    """The record in a launch's folder; None if there is none."""
    try:
        with (folder / FILE).open("rb") as file:
            return usage_of(file.read(MAX_BYTES))
    except OSError:
        return None


def usage_of(record: bytes) -> Usage | None:
    """Parse a record. Lines that are incomplete or damaged are skipped."""
    first, *rest = record.split(b"\n")
    try:
        header = json.loads(first)
        machines = tuple(Measured(each["name"], each["memory_gib"], each["cores"]) for each in header["machines"])
        gpus = tuple(Measured(each["name"], each["memory_gib"]) for each in header["gpus"])
        lines = tuple(line for each in rest if (line := _line(each, len(machines), len(gpus))) is not None)
        return Usage(float(header["started_at"]), machines, gpus, lines) if lines else None
    except (ValueError, KeyError, TypeError):
        return None


def _line(text: bytes, machines: int, gpus: int) -> Line | None:
    try:
        fields: dict[str, Any] = json.loads(text)
        return Line(
            float(fields["t"]),
            **{name: _values(fields[name], machines) for name in ("cpu", "memory", "peak")},
            **{name: _values(fields[name], gpus) for name in ("gpu", "gpu_memory")},
            logs={process: int(size) for process, size in fields["logs"].items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _values(numbers: Sequence[float | None], count: int) -> Values:
    values = tuple(None if number is None else float(number) for number in numbers)
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
    """The mean of one column of one machine, weighted by the time that each line covers."""
    seconds = total = 0.0
    for line in lines:
        if (read := getattr(line, name)[i]) is not None:
            seconds += line.t - start
            total += read * (line.t - start)
        start = line.t
    return total / seconds if seconds > 0 else None


def _most(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
