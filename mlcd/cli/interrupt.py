"""Ctrl-C: once finishes the current measurement and keeps everything, twice stops it now."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from rich.console import Console


@contextmanager
def stop_on_ctrl_c(console: Console, step: str, *, soon: bool = False) -> Iterator[Callable[[], bool]]:
    """Yields a function that tells whether Ctrl-C was pressed. `step`: what is running, for the message.

    `soon`: the step is stopped at once, since its work is saved.
    """
    pressed = False

    def on_sigint(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        if pressed:
            raise KeyboardInterrupt
        pressed = True
        with suppress(RuntimeError):  # the stream was just being written; only the flag matters
            when = f"stopping {step}; what it has saved is kept" if soon else f"stopping after {step}"
            console.print(f"{when}; Ctrl-C again stops it now", style="yellow")

    before = signal.signal(signal.SIGINT, on_sigint)
    try:
        yield lambda: pressed
    finally:
        signal.signal(signal.SIGINT, before)
