"""The child's side: drop what is not needed, do the work, answer in one message, end."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection

from mlcd.core.errors import MlcdError

OPEN_FILES = 64
KEPT_VARIABLES = ("PATH", "HOME", "LANG", "MLCD_HOME", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Variables that the child keeps: it must not see a database's password."""


@dataclass(frozen=True)
class Limits:
    """The limits. `memory_mb`: beyond what the process has at its start. `file_mb`: of each file that it writes."""

    memory_mb: int
    cpu_s: int
    wall_s: float
    file_mb: int = 0


def answer(out: Connection, limits: Limits, work: Callable[..., str], arguments: tuple[object, ...]) -> None:
    """Send '=' and the result of the work, or '!' and an error message."""
    _set_limits(limits)
    try:
        reply = "=" + work(*arguments)
    except MlcdError as error:
        reply = f"!{error}"
    except (MemoryError, RecursionError):
        os._exit(1)  # like a kill: there may be no memory for a message
    except Exception as error:  # any error of a parser is the sender's mistake
        reply = f"!it cannot be read ({type(error).__name__})"
    out.send_bytes(reply.encode("utf-8", "replace"))
    out.close()
    os._exit(0)  # skips exit handlers of modules that the fork server has loaded


def _set_limits(limits: Limits) -> None:
    """Set limits that the process itself cannot raise again (unless it is root)."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    for name in set(os.environ) - set(KEPT_VARIABLES):
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
    """Bytes of address space of this process."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # not Linux: a generous estimate with the models' libraries
        return 4 << 30
