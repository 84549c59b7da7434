"""Drives a run in a detached process, which outlives the shell, the terminal and its parent process.

`python -m mlcd.service.workers.detached RUN launch|search [after]`: with `after` it waits for another driver to
end. Its messages go to `MLCD_HOME/detached/RUN.log`.
"""

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
from mlcd.service.workers.stop_requests import StopRequests

MODULE = "mlcd.service.workers.detached"
POLL_S = 0.05
LOCK_TIMEOUT_S = 30.0  # how long to wait for the lock of a driver that was told to end


def log_of(run: str) -> Path:
    """The log file of a detached driver."""
    folder = home() / "detached"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder / f"{run}.log"


def detach(run: str, ledger: Ledger, launch: bool) -> int:
    """Start a process that continues the run; return its id as soon as it holds the run's lock.

    `launch`: launch the decision without asking.
    """
    process = spawn(MODULE, run, "launch" if launch else "search")
    while not ledger.is_driven(run):
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended and status:
            lines = log_of(run).read_text(encoding="utf-8", errors="replace").strip().splitlines()
            raise WrongState(f"run '{run}' could not be detached: {lines[-1] if lines else 'its process ended'}")
        if ended:  # the run is already over
            break
        time.sleep(POLL_S)
    return process


def hand_over(run: str, launch: bool) -> int:
    """Start a process that continues the run after this process has ended; return its process id at once."""
    return spawn(MODULE, run, "launch" if launch else "search", "after")


def spawn(module: str, run: str, *words: str) -> int:
    """Start a process of a module that outlives this one, and writes to the run's log; its id.

    Not `Popen`, which warns about a child that outlives it. A new session gets no signals from the terminal.
    """
    command = [sys.executable, "-m", module, run, *words]
    files = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log_of(run)), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    return os.posix_spawn(sys.executable, command, os.environ, file_actions=files, setsid=True)


def main(run: str, word: str, *after: str) -> None:
    """Drive the run until it ends or is told to stop."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    to_stderr(force=True)
    ledger = open_ledger()
    try:
        wait_s = LOCK_TIMEOUT_S if after else 0.0
        see_through(run, ledger, word == "launch", StopRequests(run, ledger), wait_s=wait_s, stopped_stays=True)
    finally:
        ledger.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
