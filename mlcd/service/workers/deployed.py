"""Keeps a deployment running in a detached process, which outlives the shell.

`python -m mlcd.service.workers.deployed RUN HOST PORT`. Its messages go to `MLCD_HOME/detached/RUN.log`.
"""

import os
import signal
import sys
import time

from mlcd.clouds.serving.deployed import deploy, engine_here
from mlcd.core.errors import Interrupted, MlcdError, WrongState
from mlcd.core.home import home, open_ledger
from mlcd.core.ledger import Ledger, Stopped
from mlcd.core.runs.run import resume
from mlcd.service.workers.detached import POLL_S, log_of, spawn
from mlcd.service.workers.stop_requests import StopRequests

MODULE = "mlcd.service.workers.deployed"
READY = "ready: "


def detach_deployment(run: str, ledger: Ledger, host: str, port: int) -> tuple[int, str]:
    """Start a process that keeps the run's decision running; its id, and the address when the engine answers."""
    log = log_of(run)
    before = log.stat().st_size if log.exists() else 0
    process = spawn(MODULE, run, host, str(port))
    while True:
        with log.open(encoding="utf-8", errors="replace") as output:
            output.seek(before)
            lines = output.read().splitlines()
        if (ready := next((line for line in lines if line.startswith(READY)), None)) is not None:
            return process, ready.removeprefix(READY)
        if os.waitpid(process, os.WNOHANG)[0]:
            raise WrongState(f"run '{run}' could not be deployed: {lines[-1] if lines else 'its process ended'}")
        time.sleep(POLL_S)


def keep_running(run: str, ledger: Ledger, host: str, port: int) -> str:
    """Keep the decision running in this process until it ends or is told to; why it ended."""
    requests = StopRequests(run, ledger)
    with requests.listening(), ledger.hold(run):
        stored = resume(run, ledger)
        engine = engine_here(stored, home(), host, port)
        engine.check()
        try:
            return deploy(stored, engine, _say, requests.stop)
        except (KeyboardInterrupt, Interrupted):
            stored.book.write(Stopped(requests.because))
            return requests.because


def _say(words: str) -> None:
    print(words, flush=True)


def main(run: str, host: str, port: str) -> None:
    """Keep it running; one line, and exit code 2, for what cannot be."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    ledger = open_ledger()
    try:
        _say(keep_running(run, ledger, host, int(port)))
    except MlcdError as error:
        _say(str(error))
        sys.exit(2)
    finally:
        ledger.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
