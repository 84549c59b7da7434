"""Run a function on what a stranger sent, in a child process that can do little and not for long.

The child comes from multiprocessing's fork server, which has the modules loaded already: it costs some 20 ms. What it
answers is text that is parsed again as JSON, never a pickle: a child that was taken over by what it read could send
anything. It is killed when its time is up, whatever it does.
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
"""For a job file: 64 KB at the most, where a long one has 2."""
SPACE = Limits(memory_mb=512, cpu_s=10, wall_s=30.0)
"""For what a job could be tried on."""
MODEL = Limits(memory_mb=1_024, cpu_s=15, wall_s=30.0)
"""For the file of a model: protobuf keeps some three times its size."""
PASSES = Limits(memory_mb=1_024, cpu_s=30, wall_s=60.0, file_mb=64)
"""For passes of a small model, which ONNX Runtime writes a profile of."""
PASSES_MOST_MB, PASSES_TIMES_FILE = 4_096, 16
LONGEST_ANSWER = 16 << 20
AT_ONCE = 4
PATIENCE_S = 20.0
"""How long one waits for a child of one's own."""

_LOG = logging.getLogger("mlcd.service.web")
_places = threading.BoundedSemaphore(AT_ONCE)


def passes_limits(file_bytes: int) -> Limits:
    """For passes of a model whose file has so many bytes: weights and results grow with it, and little else may."""
    return replace(PASSES, memory_mb=min(PASSES_MOST_MB, PASSES.memory_mb + PASSES_TIMES_FILE * (file_bytes >> 20)))


def in_a_child(what: str, limits: Limits, work: Callable[..., str], *arguments: object) -> str:
    """The text that `work` makes of its arguments; `UserError` if it refuses, or takes too much. `what`: for that."""
    if not _places.acquire(timeout=PATIENCE_S):
        raise Refusal(429, "too much is being read at this moment; come again in 5 s", {"Retry-After": "5"})
    try:
        told, ended = _asked(limits, work, arguments)
    finally:
        _places.release()
    if told is None:
        _LOG.warning("reading %r: the child ended with %s, and no answer", what, ended)
        raise UserError(
            f"{what}: reading it takes more than {limits.cpu_s} s or {limits.memory_mb} MB, or breaks the reader; "
            "it is refused"
        )
    if told.startswith("!"):
        raise UserError(" ".join(told[1:].split()))
    return told[1:]


def _asked(limits: Limits, work: Callable[..., str], arguments: tuple[object, ...]) -> tuple[str | None, int | None]:
    """What a child answers, None if it ends without one; and how it ended."""
    context = forkserver()
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=answer, args=(theirs, limits, work, arguments), daemon=True)
    child.start()
    theirs.close()
    alarm = threading.Timer(limits.wall_s, child.kill)
    alarm.daemon = True
    alarm.start()
    try:
        told = _received(ours)
    finally:
        alarm.cancel()
        alarm.join()
        child.kill()
        child.join()
        ours.close()
    ended = child.exitcode
    child.close()
    return told, ended


def _received(ours: Connection) -> str | None:
    with suppress(EOFError, OSError, UnicodeError):  # it died, or sends what no answer is
        told = ours.recv_bytes(LONGEST_ANSWER).decode("utf-8")
        if told[:1] in ("=", "!"):
            return told
    return None
