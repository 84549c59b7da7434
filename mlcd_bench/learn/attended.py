"""Run a function in a process of its own and watch it: a crash or a hang there is an answer here."""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

Tell = Callable[[Any], None]
"""How the function says where it is."""


def attended(function: Callable[..., None], *arguments: Any, silent_s: float, start: str) -> tuple[Any, int | str]:
    """Call function(*arguments, tell) there. The last thing it told, and how it ended: 0 is well.

    It is ended if it tells nothing for `silent_s`. `start`: 'fork' inherits the libraries that are loaded here, 'spawn'
    begins anew.
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
