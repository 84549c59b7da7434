"""Ctrl-C: once finishes the measurement under way and keeps everything, twice stops it now."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from rich.console import Console


@contextmanager
def stop_on_ctrl_c(console: Console, step: str, *, soon: bool = False) -> Iterator[Callable[[], bool]]:
    """Gives a question to ask between steps: was Ctrl-C pressed? `step` says what is under way.

    `soon`: it need not be waited for, since its work is saved.
    """
    pressed = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        if pressed:
            raise KeyboardInterrupt
        pressed = True
        with suppress(RuntimeError):  # the signal came while the stream was being written; the flag is what counts
            when = f"stopping {step}; what it has saved is kept" if soon else f"stopping after {step}"
            console.print(f"{when}; Ctrl-C again stops it now", style="yellow")

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: pressed
    finally:
        signal.signal(signal.SIGINT, before)
