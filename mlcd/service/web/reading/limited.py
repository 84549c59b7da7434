"""Runs a function on untrusted input in a child process with few rights and little time.

The child is forked from multiprocessing's fork server, which has the modules loaded: it takes about 20 ms. Its answer
is text that is parsed as JSON, never a pickle: a compromised child could send anything. It is killed after its timeout.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection

from mlcd.core.errors import UserError
from mlcd.service.web.failures import Refusal
from mlcd.service.web.reading.child import Limits, answer
from mlcd.service.workers.process import forkserver

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

_LOG = logging.getLogger("mlcd.service.web")
_slots = threading.BoundedSemaphore(AT_ONCE)


def passes_limits(file_bytes: int) -> Limits:
    """For passes of a model with a file of this size: its weights and results grow with it."""
    return replace(PASSES, memory_mb=min(PASSES_MOST_MB, PASSES.memory_mb + PASSES_TIMES_FILE * (file_bytes >> 20)))


def in_child_process(what: str, limits: Limits, work: Callable[..., str], *arguments: object) -> str:
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
        raise UserError(
            f"{what}: reading it takes more than {limits.cpu_s} s or {limits.memory_mb} MB, or breaks the reader; "
            "it is refused"
        )
    if reply.startswith("!"):
        raise UserError(" ".join(reply[1:].split()))
    return reply[1:]


def _run_child(
    limits: Limits, work: Callable[..., str], arguments: tuple[object, ...]
) -> tuple[str | None, int | None]:
    """The answer of a child, None if it ends without one; and its exit code."""
    context = forkserver()
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=answer, args=(sender, limits, work, arguments), daemon=True)
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
