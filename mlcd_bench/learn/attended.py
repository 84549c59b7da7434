"""Run a function in its own process and watch it: a crash or a hang becomes a result."""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

Tell = Callable[[Any], None]
"""With which the function reports its progress."""


def attended(function: Callable[..., None], *arguments: Any, silent_s: float, start: str) -> tuple[Any, int | str]:
    """Call function(*arguments, tell) there. Returns its last report, and its exit status (0: success) or a reason.

    The process is killed after `silent_s` without a report. `start`: 'fork' inherits the loaded libraries, 'spawn'
    starts a fresh interpreter.
    """
    context: Any = get_context(start)
    hear, speak = context.Pipe(duplex=False)
    child = context.Process(target=_call, args=(function, arguments, speak))
    child.start()
    speak.close()
    last: Any = None
    while hear.poll(silent_s):
        try:
            last = hear.recv()
        except EOFError:
            child.join()
            return last, child.exitcode
    child.kill()
    child.join()
    return last, "no sign of life"


def _call(function: Callable[..., None], arguments: tuple[Any, ...], speak: Connection) -> None:
    function(*arguments, speak.send)
