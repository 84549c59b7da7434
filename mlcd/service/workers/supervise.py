"""Keeps a number of workers at work: one that dies is replaced."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.process import BaseProcess

from mlcd.core.errors import MlcdError
from mlcd.service.workers.log import LOG, to_stderr
from mlcd.service.workers.pace import PACE, Pace
from mlcd.service.workers.process import LEAVES_WITHIN_S
from mlcd.service.workers.worker import HURRY, work

FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 30.0
LOOK_S = 0.5
SETTLED_S = 60.0
"""A worker that has lived so long did not die of how it was started."""


class Supervisor:
    """Starts workers as processes of their own, which end with this one. `task` is what each does."""

    def __init__(
        self, url: str, workers: int, at_once: int, pace: Pace = PACE, task: Callable[[str, int, Pace], None] = work
    ) -> None:
        self._task, self._arguments, self._pace = task, (url, at_once, pace), pace
        self._workers: dict[int, BaseProcess] = {}
        self._turn = threading.Lock()
        self._ending = threading.Event()
        self._keepers = [threading.Thread(target=self._keep, args=(i,), daemon=True) for i in range(workers)]
        for keeper in self._keepers:
            keeper.start()

    def processes(self) -> list[int]:
        """The process numbers of the workers that live now."""
        with self._turn:
            return [each.pid for each in self._workers.values() if each.pid is not None and each.is_alive()]

    def close(self) -> None:
        """End all: each leaves what it has under way to whoever comes next. Ctrl-C once more gives it no more time.

        For the main thread, as signals are.
        """
        before = signal.signal(signal.SIGINT, lambda *_: self._tell_all(HURRY))
        try:
            with self._turn:
                self._ending.set()
            self._tell_all(signal.SIGTERM)
            self._wait(time.monotonic() + self._pace.grace_s + LEAVES_WITHIN_S + 5.0)
        finally:
            signal.signal(signal.SIGINT, before)

    def _tell_all(self, number: signal.Signals) -> None:
        for worker in list(self._workers.values()):
            _tell(worker, number)

    def _wait(self, until_s: float) -> None:
        for worker in list(self._workers.values()):
            # Not in one long wait: a Ctrl-C that the system gives to another thread would be heard only after it.
            while worker.is_alive() and (left_s := until_s - time.monotonic()) > 0:
                worker.join(min(LOOK_S, left_s))
            _tell(worker, signal.SIGKILL)
        for keeper in self._keepers:
            keeper.join()

    def _keep(self, number: int) -> None:
        wait_s = FIRST_WAIT_S
        while True:
            with self._turn:
                if self._ending.is_set():
                    return
                worker = self._workers[number] = self._started()
            began = time.monotonic()
            worker.join()
            if self._ending.is_set():
                return
            wait_s = FIRST_WAIT_S if time.monotonic() - began > SETTLED_S else wait_s
            LOG.warning("a worker ended (exit code %s); another one comes in %s s", worker.exitcode, wait_s)
            self._ending.wait(wait_s)
            wait_s = min(2 * wait_s, LONGEST_WAIT_S)

    def _started(self) -> BaseProcess:
        process = multiprocessing.get_context("spawn").Process(target=_at_work, args=(self._task, *self._arguments))
        process.start()
        return process


def _at_work(task: Callable[[str, int, Pace], None], url: str, at_once: int, pace: Pace) -> None:
    """What the process of a worker does; what it cannot do, it says in one line."""
    os.setsid()  # a Ctrl-C in the terminal is for the parent, which tells it when to end
    to_stderr()
    try:
        task(url, at_once, pace)
    except MlcdError as error:
        LOG.error("a worker cannot work: %s", error)
        sys.exit(1)


def _tell(worker: BaseProcess, number: signal.Signals) -> None:
    with suppress(ValueError, ProcessLookupError):
        if worker.is_alive() and worker.pid is not None:
            os.kill(worker.pid, number)
