"""Runs a function on untrusted input in a child process with few rights and little time.

The child is forked from multiprocessing's fork server, which has the modules loaded: it takes about 20 ms. Its answer
is text that is parsed as JSON, never a pickle: a compromised child could send anything. It is killed after its timeout.
"""

from __future__ import annotations

import logging
import os
import resource
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection

from mlcd.core.errors import MlcdError, UserError
from mlcd.service.web.failures import Refusal
from mlcd.service.workers.process import forkserver


@dataclass(frozen=True)
class Limits:
    """The limits. `memory_mb`: beyond what the process has at its start. `file_mb`: of each file that it writes."""

    memory_mb: int
    cpu_s: int
    wall_s: float
    file_mb: int = 0


TEXT = Limits(memory_mb=256, cpu_s=2, wall_s=10.0)
"""For a job file: at most 64 KB; a long one has 2 KB."""
SPACE = Limits(memory_mb=512, cpu_s=10, wall_s=30.0)
"""For the search space of a job."""
MODEL = Limits(memory_mb=1_024, cpu_s=15, wall_s=30.0)
"""For a model's file: protobuf needs about three times its size."""
PASSES = Limits(memory_mb=1_024, cpu_s=30, wall_s=60.0, file_mb=64)
"""For passes of a small model, of which ONNX Runtime writes a profile."""
PASSES_MOST_MB, PASSES_TIMES_FILE = 4_096, 16
LONGEST_ANSWER = 16 << 20
AT_ONCE = 4
SLOT_TIMEOUT_S = 20.0
"""How long a request waits for a free slot."""

OPEN_FILES = 64
KEPT_VARIABLES = ("PATH", "HOME", "LANG", "MLCD_HOME", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Variables that the child keeps: it must not see a database's password."""
Work = Callable[..., str]
_LOG = logging.getLogger("mlcd.service.web")
_slots = threading.BoundedSemaphore(AT_ONCE)


def passes_limits(file_bytes: int) -> Limits:
    """For passes of a model with a file of this size: its weights and results grow with it."""
    return replace(PASSES, memory_mb=min(PASSES_MOST_MB, PASSES.memory_mb + PASSES_TIMES_FILE * (file_bytes >> 20)))


def in_child_process(what: str, limits: Limits, work: Work, *arguments: object) -> str:
    """Run `work` in a child process and return its text; `UserError` if it fails or exceeds a limit.

    `what`: name of the input, for messages.
    """
    if not _slots.acquire(timeout=SLOT_TIMEOUT_S):
        raise Refusal(429, "too many requests are being read at the moment; try again in 5 s", {"Retry-After": "5"})
    try:
        reply, exit_code = _run_child(limits, work, arguments)
    finally:
        _slots.release()
    if reply is None:
        _LOG.warning("reading %r: the child ended with %s, and no answer", what, exit_code)
        most = f"{limits.cpu_s} s or {limits.memory_mb} MB"
        raise UserError(f"{what}: reading it takes more than {most}, or breaks the reader; it is refused")
    if reply.startswith("!"):
        raise UserError(" ".join(reply[1:].split()))
    return reply[1:]


def _run_child(limits: Limits, work: Work, arguments: tuple[object, ...]) -> tuple[str | None, int | None]:
    """The answer of a child, None if it ends without one; and its exit code."""
    context = forkserver()
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_answer, args=(sender, limits, work, arguments), daemon=True)
    child.start()
    sender.close()
    alarm = threading.Timer(limits.wall_s, child.kill)
    alarm.daemon = True
    alarm.start()
    try:
        reply = _received(receiver)
    finally:
        alarm.cancel()
        alarm.join()
        child.kill()
        child.join()
        receiver.close()
    exit_code = child.exitcode
    child.close()
    return reply, exit_code


def _received(receiver: Connection) -> str | None:
    with suppress(EOFError, OSError, UnicodeError):  # it died, or its answer is malformed
        reply = receiver.recv_bytes(LONGEST_ANSWER).decode("utf-8")
        if reply[:1] in ("=", "!"):
            return reply
    return None


def _answer(out: Connection, limits: Limits, work: Work, arguments: tuple[object, ...]) -> None:
    """The child: drop its rights, do the work, end. Sends '=' and the result, or '!' and an error message."""
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
