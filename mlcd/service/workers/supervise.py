"""Keeps a number of workers running: one that dies is replaced."""

import multiprocessing
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from multiprocessing.process import BaseProcess

from mlcd.core.errors import MlcdError
from mlcd.service.workers.limits import EXIT_TIMEOUT_S, TIMING, Timing
from mlcd.service.workers.log import LOG
from mlcd.service.workers.worker import HURRY, work

FIRST_BACKOFF_S, LONGEST_BACKOFF_S = 0.5, 30.0
POLL_S = 0.5
SETTLED_S = 60.0  # the backoff is reset after a worker has run for so long: its start was not the problem


class Supervisor:
    """Starts workers as child processes, which end with this one."""

    def __init__(self, url: str, workers: int, at_once: int, timing: Timing = TIMING) -> None:
        self._arguments, self._timing = (url, at_once, timing), timing
        self._workers: dict[int, BaseProcess] = {}
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._keepers = [threading.Thread(target=self._keep_running, args=(i,), daemon=True) for i in range(workers)]
        for keeper in self._keepers:
            keeper.start()

    def processes(self) -> list[int]:
        """The process ids of live workers."""
        with self._lock:
            return [each.pid for each in self._workers.values() if each.pid is not None and each.is_alive()]

    def close(self) -> None:
        """End all workers; others will resume their runs. A second Ctrl-C ends them at once. For the main thread."""
        before = signal.signal(signal.SIGINT, lambda *_: self._signal_all(HURRY))
        try:
            with self._lock:
                self._ending.set()
            self._signal_all(signal.SIGTERM)
            self._wait(time.monotonic() + self._timing.grace_s + EXIT_TIMEOUT_S + 5.0)
        finally:
            signal.signal(signal.SIGINT, before)

    def _signal_all(self, number: signal.Signals) -> None:
        for worker in list(self._workers.values()):
            _signal(worker, number)

    def _wait(self, until_s: float) -> None:
        for worker in list(self._workers.values()):
            # Not in one long wait: a Ctrl-C that the system delivers to another thread would be handled only after it.
            while worker.is_alive() and (left_s := until_s - time.monotonic()) > 0:
                worker.join(min(POLL_S, left_s))
            _signal(worker, signal.SIGKILL)
        for keeper in self._keepers:
            keeper.join()

    def _keep_running(self, number: int) -> None:
        backoff_s = FIRST_BACKOFF_S
        while True:
            with self._lock:
                if self._ending.is_set():
                    return
                worker = multiprocessing.get_context("spawn").Process(target=_worker_main, args=self._arguments)
                worker.start()
                self._workers[number] = worker
            began = time.monotonic()
            worker.join()
            if self._ending.is_set():
                return
            backoff_s = FIRST_BACKOFF_S if time.monotonic() - began > SETTLED_S else backoff_s
            LOG.warning("a worker ended (exit code %s); a new one starts in %s s", worker.exitcode, backoff_s)
            self._ending.wait(backoff_s)
            backoff_s = min(2 * backoff_s, LONGEST_BACKOFF_S)


def _worker_main(url: str, at_once: int, timing: Timing) -> None:
    """The main function of a worker process; an error is logged in one line."""
    os.setsid()  # a Ctrl-C in the terminal goes to the parent only
    try:
        work(url, at_once, timing)
    except MlcdError as error:
        LOG.error("a worker cannot work: %s", error)
        sys.exit(1)


def _signal(worker: BaseProcess, number: signal.Signals) -> None:
    with suppress(ValueError, ProcessLookupError):
        if worker.is_alive() and worker.pid is not None:
            os.kill(worker.pid, number)
