"""Ending what runs: ask it to stop, take it down now, or clean up what is left of what died."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import cast

from mlcd import drive
from mlcd.assemble import local_backend, resume
from mlcd.backend import LiveBackend
from mlcd.clock import Clock
from mlcd.errors import MlcdError, WrongState
from mlcd.ledger import Ledger, Status, Stopped

DIES_WITHIN_S = 30.0
"""A process that was told to end."""


def stop(run: str, ledger: Ledger) -> int:
    """Ask the process that drives a run to stop, as Ctrl-C does: nothing is lost.

    Its process number; 0: a worker, maybe of another machine, which finds the wish in the database.
    """
    name = ledger.find(run)
    driver = ledger.driver(name)
    if driver is None:
        raise WrongState(f"run '{name}' is not driven by any process; to free what it left behind: mlcd down {name}")
    if driver == 0:
        ledger.wish(name, "stop")
    else:
        os.kill(driver, signal.SIGINT)
    return driver


def down(run: str, ledger: Ledger, clock: Clock) -> None:
    """End a run now, whatever it is doing, and tear its machines down; what they cost is settled."""
    name = ledger.find(run)
    driver = ledger.driver(name)
    if driver is not None:
        if driver == 0:
            ledger.wish(name, "down")
        else:
            os.kill(driver, signal.SIGTERM)
        until_s = clock.elapsed_s() + DIES_WITHIN_S
        while ledger.is_driven(name):
            if clock.elapsed_s() > until_s:
                raise WrongState(f"process {driver or 'of a worker'} does not end; kill it, then: mlcd down {name}")
            clock.wait(0.05)
    with ledger.hold(name):
        gone_on = resume(name, ledger)
        drive.reclaim(gone_on.cloud.profiler, gone_on.book)
        if gone_on.book.account.status in (Status.SEARCHING, Status.RUNNING):
            gone_on.book.write(Stopped("taken down by the user"))


@dataclass(frozen=True)
class Cleaned:
    """A run or a launch that was left behind, and what became of it."""

    what: str
    outcome: str


def clean(ledger: Ledger) -> Iterator[Cleaned]:
    """Tear down and settle what dead processes left behind; runs that somebody drives are left alone."""
    driven = {name for name in ledger.runs() if ledger.is_driven(name)}
    for name in ledger.runs():
        account = ledger.account(name)
        if name in driven or not account.open:
            continue
        try:
            with ledger.hold(name):
                gone_on = resume(name, ledger)
                drive.reclaim(gone_on.cloud.profiler, gone_on.book)
        except MlcdError as error:
            yield Cleaned(name, f"not cleaned: {error}")
        else:
            yield Cleaned(name, f"{len(account.open)} launch{'es' if len(account.open) > 1 else ''} settled")
    for backend in _live_backends(ledger):
        for label in sorted(backend.leftovers()):
            if label.rpartition("-")[0] not in driven:
                backend.reclaim(label)
                yield Cleaned(label, "what was left of it is torn down")


def _live_backends(ledger: Ledger) -> list[LiveBackend]:
    """This machine's nodes, and every live place that a run of the ledger has been on and that can be reached now."""
    newest = {account.job.on: name for name in ledger.runs() if (account := ledger.account(name)).provenance == "live"}
    found: list[LiveBackend] = [local_backend()]
    for on, name in newest.items():
        if on.partition(":")[0] != "local":
            with suppress(MlcdError):
                found.append(cast(LiveBackend, resume(name, ledger).cloud.backend))
    return found
