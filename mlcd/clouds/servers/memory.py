"""The peak memory of a process, and a limit that ends it.

The measure is the peak resident memory (VmHWM): weights, tensors, and the interpreter with its libraries, as a
container's limit counts them. The kernel has no such limit for a single process (RLIMIT_RSS has no effect; RLIMIT_AS
and RLIMIT_DATA count address space, which ONNX Runtime reserves without using), so the process checks itself every
20 ms. A much higher hard limit on its address space stops a runaway process.
"""

from __future__ import annotations

import os
import resource
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

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
