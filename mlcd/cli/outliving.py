"""A driver whose terminal goes away, or who is told to end: the run goes on.

SIGHUP    the terminal is gone (a closed shell or laptop): this process goes on, and writes to a file instead
SIGTERM   this process is to end (kill, a shutdown): another one, without a terminal, takes the run over
SIGQUIT   `mlcd down`, or Ctrl-\\: it ends now, and nobody takes over
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType

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

    def hung_up(number: int, frame: FrameType | None) -> None:
        _leave_terminal(run, terminals)

    def told_to_end(number: int, frame: FrameType | None) -> None:
        from mlcd.workers.detached import hand_over

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
        yield agreed
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _is_terminal(number: int) -> bool:
    try:
        return os.isatty(number)
    except OSError:
        return False


def _leave_terminal(run: str, terminals: list[int]) -> None:
    """Write to a file from now on, and read nothing: a terminal that is gone fails every write."""
    from mlcd.workers.detached import log_of

    nothing = os.open(os.devnull, os.O_RDONLY)
    log = os.open(log_of(run), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(log, f"the terminal is gone; process {os.getpid()} goes on with run '{run}'\n".encode())
    for number in terminals:
        os.dup2(nothing if number == 0 else log, number)
    os.close(nothing)
    os.close(log)
