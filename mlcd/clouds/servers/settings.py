"""The knobs of the embedded server, and how its process is limited to certain cores and an amount of memory.

It uses the last cores of this machine, the load generator the others. Its memory is the peak resident memory (VmHWM):
weights, tensors, and the interpreter with its libraries, as a container's limit counts them. The kernel has no such
limit for a single process (RLIMIT_RSS has no effect; RLIMIT_AS and RLIMIT_DATA count address space, which ONNX Runtime
reserves without using), so the process checks itself every 20 ms. A much higher hard limit on its address space stops a
runaway process.
"""

from __future__ import annotations

import os
import resource
import sys
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import NoReturn

from mlcd.core.errors import UnknownName, UserError
from mlcd.planners.serve.nouns import Knob

PRECISIONS = ("fp32", "int8")
UNSUPPORTED = 95
"""Exit code of a server whose model does not support its knobs (EOPNOTSUPP)."""


@dataclass(frozen=True)
class Settings:
    """`threads`: cores that the server is pinned to, and computing threads. `batch`: most requests in one pass of the
    model; `max_wait_ms`: how long the first of a batch waits for the others. `memory_gb`: memory limit of its process,
    in 1e9 bytes; None for no limit. `precision`: of the weights; 'fp32' leaves the model unchanged.
    """

    threads: int = 1
    batch: int = 1
    max_wait_ms: float = 5.0
    memory_gb: float | None = None
    precision: str = "fp32"

    @classmethod
    def of(cls, knobs: Mapping[str, Knob]) -> Settings:
        """The settings of these knobs; the others have their defaults."""
        known = [each.name for each in fields(cls)]
        for name in knobs:
            if name not in known:
                raise UnknownName("knob of the embedded server", name, known)
        precision = str(knobs.get("precision", cls.precision))
        if precision not in PRECISIONS:
            raise UnknownName("precision of the embedded server", precision, PRECISIONS)
        memory_gb = _number("memory_gb", knobs["memory_gb"], 0.0) if "memory_gb" in knobs else None
        if memory_gb == 0:
            raise UserError("knob memory_gb = 0: expected more than zero")
        return cls(
            _count("threads", knobs.get("threads", cls.threads)),
            _count("batch", knobs.get("batch", cls.batch)),
            _number("max_wait_ms", knobs.get("max_wait_ms", cls.max_wait_ms), 0.0),
            memory_gb,
            precision,
        )

    @property
    def arguments(self) -> list[str]:
        """The settings as command-line arguments of the server."""
        options = {f"--{each.name.replace('_', '-')}": getattr(self, each.name) for each in fields(self)}
        return [word for name, value in options.items() if value is not None for word in (name, str(value))]


def _count(name: str, value: Knob) -> int:
    number = _number(name, value, 1.0)
    if number != int(number):
        raise UserError(f"knob {name} = {value}: expected a whole number")
    return int(number)


def _number(name: str, value: Knob, least: float) -> float:
    try:
        number = float(value)
    except ValueError:
        raise UserError(f"knob {name} = {value}: expected a number") from None
    if not least <= number < float("inf"):
        raise UserError(f"knob {name} = {value}: expected {least:g} or more")
    return number


def server_cores(threads: int) -> set[int]:
    """The cores for a server with this many threads, among those that this process may use."""
    cores = sorted(os.sched_getaffinity(0))
    if threads > len(cores):
        raise UserError(f"knob threads = {threads}: there are {len(cores)} cores here")
    return set(cores[-threads:])


def other_cores(threads: int) -> set[int]:
    """The cores that a server with this many threads does not use; all cores if it uses all."""
    cores = os.sched_getaffinity(0)
    return (cores - server_cores(threads)) or cores


OUT_OF_MEMORY = 12
"""Exit code of a process that exceeded its memory limit (ENOMEM)."""
CHECK_EVERY_S = 0.02
RUNAWAY_GB, RUNAWAY = 16.0, 4.0
"""Allowed address space: a constant, plus a multiple of the limit."""


def peak_gb(processes: Iterable[int]) -> float | None:
    """The sum of the processes' peak memory, in 1e9 bytes; None if none of them exists."""
    peaks = [peak for process in processes if (peak := _peak_kib(process)) is not None]
    return sum(peaks) * 1_024 / 1e9 if peaks else None


def limit(memory_gb: float) -> None:
    """End this process when its peak memory exceeds this."""
    allowed = int((RUNAWAY_GB + RUNAWAY * memory_gb) * 1e9)
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (allowed if hard == resource.RLIM_INFINITY else min(allowed, hard), hard))
    threading.Thread(target=_watch, args=(memory_gb,), daemon=True, name="memory").start()


def end(memory_gb: float | None, why: str) -> NoReturn:
    """End this process at once, as out of memory."""
    allowed = "" if memory_gb is None else f" of the {memory_gb:g} GB that it may hold"
    print(f"out of memory: {why}{allowed}", file=sys.stderr, flush=True)
    os._exit(OUT_OF_MEMORY)


def _watch(memory_gb: float) -> None:
    never = threading.Event()
    while not never.wait(CHECK_EVERY_S):
        held_gb = peak_gb([os.getpid()])
        if held_gb is not None and held_gb > memory_gb:
            end(memory_gb, f"the server held {held_gb:.2f} GB")


def _peak_kib(process: int) -> int | None:
    try:
        lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), None)
