"""A run's driver as a process of its own, which outlives the shell, the terminal and whoever started it.

`python -m mlcd.service.workers.detached RUN launch|search [after]`: with `after` it goes on where another
driver was told to end. What it has to say besides the ledger goes to `MLCD_HOME/detached/RUN.log`.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from mlcd.core.errors import WrongState
from mlcd.core.home import home, open_ledger
from mlcd.core.ledger import Ledger
from mlcd.service.workers.log import to_stderr
from mlcd.service.workers.run import see_through
from mlcd.service.workers.told import Told

LOOK_S = 0.05
LETS_GO_WITHIN_S = 30.0
"""A driver that was told to end, until its lock is free."""


def log_of(run: str) -> Path:
    """Where a detached driver writes."""
    folder = home() / "detached"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder / f"{run}.log"


def detach(run: str, ledger: Ledger, launch: bool) -> int:
    """Start a process that drives the run from where it stands, and return once it does; its number.

    `launch`: it also runs what is decided. Nobody is asked any more.
    """
    process = _start(run, "launch" if launch else "search")
    while not ledger.is_driven(run):
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended and status:
            lines = log_of(run).read_text(encoding="utf-8", errors="replace").strip().splitlines()
            raise WrongState(f"run '{run}' could not be detached: {lines[-1] if lines else 'its process ended'}")
        if ended:  # it is over already
            break
        time.sleep(LOOK_S)
    return process


def hand_over(run: str, launch: bool) -> int:
    """Start a process that goes on once this one has ended, without waiting for it; its number."""
    return _start(run, "launch" if launch else "search", "after")


def _start(run: str, *words: str) -> int:
    """Not as a `Popen`, which complains of a child that outlives it. A session of its own hears no terminal."""
    command = [sys.executable, "-m", "mlcd.service.workers.detached", run, *words]
    files = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log_of(run)), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    return os.posix_spawn(sys.executable, command, os.environ, file_actions=files, setsid=True)


def main(run: str, word: str, *after: str) -> None:
    """Drive the run to its end, or to where it is told to stop."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    to_stderr(force=True)
    ledger = open_ledger()
    try:
        wait_s = LETS_GO_WITHIN_S if after else 0.0
        see_through(run, ledger, word == "launch", Told(run, ledger), wait_s=wait_s, stopped_stays=True)
    finally:
        ledger.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
