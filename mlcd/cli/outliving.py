"""A driver whose terminal goes away, or who is told to end: the run goes on.

SIGHUP    the terminal is gone (a closed shell or laptop): this process goes on, and writes to a file instead
SIGTERM   this process is to end (kill, a shutdown): another one, without a terminal, takes the run over
SIGQUIT   `mlcd down`, or Ctrl-\\: it ends now, and nobody takes over
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any, TextIO, cast

import click


@dataclass
class Agreed:
    """What a driver that nobody can ask any more may do. `launch`: run what is decided."""

    launch: bool


@contextmanager
def outliving(run: str, launch: bool) -> Iterator[Agreed]:
    """For as long as this process drives the run."""
    agreed = Agreed(launch)
    terminals = [number for number in (0, 1, 2) if _is_terminal(number)]

    def leave() -> None:
        _leave_terminal(run, terminals)

    def hung_up(number: int, frame: FrameType | None) -> None:
        leave()

    def told_to_end(number: int, frame: FrameType | None) -> None:
        from mlcd.service.workers.detached import hand_over

        successor = hand_over(run, agreed.launch)
        with suppress(OSError, RuntimeError):  # it is to end, whoever reads this
            click.echo(
                f"mlcd: told to end; process {successor} goes on with run '{run}'. "
                f"Follow it: mlcd attach {run}; stop it: mlcd stop {run}",
                err=True,
            )
        os._exit(128 + number)  # as if killed: what is open is settled, or joined again, by whoever goes on

    def end_now(number: int, frame: FrameType | None) -> None:
        os._exit(128 + number)

    handlers = {signal.SIGHUP: hung_up, signal.SIGTERM: told_to_end, signal.SIGQUIT: end_now}
    # What somebody ignores on purpose (nohup) stays ignored.
    heard = {each: handler for each, handler in handlers.items() if signal.getsignal(each) is not signal.SIG_IGN}
    before = {each: signal.signal(each, handler) for each, handler in heard.items()}
    try:
        with redirect_stdout(_outliving(sys.stdout, leave)), redirect_stderr(_outliving(sys.stderr, leave)):
            yield agreed
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


class OutlivingStream:
    """A stream to a terminal that may be gone before SIGHUP is heard: a write that fails for it goes where it left to.

    What could not be written is still in the stream's buffer, but for what is longer than that: it is flushed, not
    written again.
    """

    def __init__(self, stream: TextIO, leave: Callable[[], None]) -> None:
        self._stream, self._leave = stream, leave

    def write(self, text: str) -> int:
        """As the stream's."""
        with self._left_if_gone():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """As the stream's."""
        with self._left_if_gone():
            self._stream.flush()

    @contextmanager
    def _left_if_gone(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            self._leave()
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _outliving(stream: TextIO, leave: Callable[[], None]) -> TextIO:
    return cast(TextIO, OutlivingStream(stream, leave))


def _is_terminal(number: int) -> bool:
    try:
        return os.isatty(number)
    except OSError:
        return False


def _leave_terminal(run: str, terminals: list[int]) -> None:
    """Write to a file from now on, and read nothing: a terminal that is gone fails every write."""
    from mlcd.service.workers.detached import log_of

    nothing = os.open(os.devnull, os.O_RDONLY)
    log = os.open(log_of(run), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(log, f"the terminal is gone; process {os.getpid()} goes on with run '{run}'\n".encode())
    for number in terminals:
        os.dup2(nothing if number == 0 else log, number)
    os.close(nothing)
    os.close(log)
