"""The signals of a process that drives a run.

SIGINT    Ctrl-C: once finishes the current measurement and keeps everything, twice stops it now
SIGHUP    the terminal is gone (a closed shell or laptop): this process continues, and writes to a file instead
SIGTERM   this process has to end (kill, a shutdown): a detached process takes the run over
SIGQUIT   `mlcd down`, or Ctrl-\\: it ends now, and no process takes over
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from types import FrameType
from typing import Any, TextIO, cast

import click
from rich.console import Console

from mlcd.cli.events import handed_over
from mlcd.core.exit_codes import ExitCode


@contextmanager
def stop_on_ctrl_c(console: Console, step: str, *, soon: bool = False) -> Iterator[Callable[[], bool]]:
    """Yields a function that says whether Ctrl-C was pressed. `step`: what is running, for the message.

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


@contextmanager
def survive_hangup(run: str, may_launch: Callable[[], bool]) -> Iterator[None]:
    """Handle the signals while this process drives the run.

    `may_launch`: whether the decision may be run now without asking the user, by a process that takes over.
    """
    terminals = [number for number in (0, 1, 2) if os.isatty(number)]

    def leave(number: int = 0, frame: FrameType | None = None) -> None:
        _leave_terminal(run, terminals)

    def on_terminate(number: int, frame: FrameType | None) -> None:
        from mlcd.service.workers.detached import hand_over

        successor = hand_over(run, may_launch())
        with suppress(OSError, RuntimeError):  # it has to end even if the message cannot be printed
            words = f"this process has to end; process {successor} continues run '{run}'. "
            words += f"Follow it: mlcd attach {run}; stop it: mlcd stop {run}"
            click.echo(f"mlcd: {words}", err=True)
            handed_over(words)
        os._exit(ExitCode.HANDED_OVER)  # like a kill: the successor settles open launches, or rejoins them

    def on_quit(number: int, frame: FrameType | None) -> None:
        os._exit(ExitCode.ENDED)

    handlers = {signal.SIGHUP: leave, signal.SIGTERM: on_terminate, signal.SIGQUIT: on_quit}
    # A signal that is ignored on purpose (nohup) stays ignored.
    handled = {each: handler for each, handler in handlers.items() if signal.getsignal(each) is not signal.SIG_IGN}
    before = {each: signal.signal(each, handler) for each, handler in handled.items()}
    try:
        out, err = (cast(TextIO, HangupSafeStream(stream, leave)) for stream in (sys.stdout, sys.stderr))
        with redirect_stdout(out), redirect_stderr(err):
            yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


class HangupSafeStream:
    """A stream to a terminal that may be gone before SIGHUP arrives: after a failed write it switches to the file.

    The text of the failed write is still in the stream's buffer (unless it is longer), so it is flushed, not written
    again.
    """

    def __init__(self, stream: TextIO, leave: Callable[[], None]) -> None:
        self._stream, self._leave = stream, leave

    def write(self, text: str) -> int:
        """Write to the stream."""
        with self._switched_if_gone():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush the stream."""
        with self._switched_if_gone():
            self._stream.flush()

    @contextmanager
    def _switched_if_gone(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            self._leave()
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _leave_terminal(run: str, terminals: list[int]) -> None:
    """Redirect output to a file and input to nothing: every write to a terminal that is gone fails."""
    from mlcd.service.workers.detached import log_of

    nothing = os.open(os.devnull, os.O_RDONLY)
    log = os.open(log_of(run), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(log, f"the terminal is gone; process {os.getpid()} continues run '{run}'\n".encode())
    for number in terminals:
        os.dup2(nothing if number == 0 else log, number)
    os.close(nothing)
    os.close(log)
