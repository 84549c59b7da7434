"""The child's side: give up what is not needed, do the work, answer in one message, end."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection

from mlcd.core.errors import MlcdError

OPEN_FILES = 64
KEPT = ("PATH", "HOME", "LANG", "MLCD_HOME", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Of the environment: a database's password is none of its business."""


@dataclass(frozen=True)
class Limits:
    """What reading may take. `memory_mb`: more than the process has at its start. `file_mb`: of each file it writes."""

    memory_mb: int
    cpu_s: int
    wall_s: float
    file_mb: int = 0


def answer(out: Connection, limits: Limits, work: Callable[..., str], arguments: tuple[object, ...]) -> None:
    """Send '=' and the text that the work gives, or '!' and why there is none."""
    _give_up(limits)
    try:
        told = "=" + work(*arguments)
    except MlcdError as error:
        told = f"!{error}"
    except (MemoryError, RecursionError):
        os._exit(1)  # as good as killed: there may be no memory left to say so
    except Exception as error:  # whatever a parser trips over is the sender's
        told = f"!it cannot be read ({type(error).__name__})"
    out.send_bytes(told.encode("utf-8", "replace"))
    out.close()
    os._exit(0)  # without the ends of modules that were loaded for something else


def _give_up(limits: Limits) -> None:
    """Limits that hold whatever is read from now on; nothing can raise them again but root."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    for name in set(os.environ) - set(KEPT):
        del os.environ[name]
    most = _size() + (limits.memory_mb << 20)
    for kind, value in (
        (resource.RLIMIT_AS, most),
        (resource.RLIMIT_CPU, limits.cpu_s),
        (resource.RLIMIT_FSIZE, limits.file_mb << 20),
        (resource.RLIMIT_NOFILE, OPEN_FILES),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (value, value))


def _size() -> int:
    """Bytes of address space that this process has now."""
    try:
        with open("/proc/self/statm", encoding="ascii") as told:
            return int(told.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # no Linux: what a process with the models' libraries takes, and some more
        return 4 << 30
