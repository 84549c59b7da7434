"""Ends runs: `stop` asks a run to stop, `down` ends it now, `clean` tears down what dead processes left behind."""

import os
import signal
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, cast

from mlcd.clouds.launches import launches_here
from mlcd.clouds.places.local import local_backend
from mlcd.core import drive
from mlcd.core.backend import LiveBackend
from mlcd.core.clock import Clock
from mlcd.core.errors import LedgerCorrupt, MlcdError, WrongState
from mlcd.core.ledger import Account, Book, Ledger, Status, Stopped
from mlcd.core.runs.run import resume
from mlcd.core.runs.run_machine import OVER, check_on_this_machine
from mlcd.core.units import counted

END_NOW = signal.SIGQUIT
"""The signal that ends a run for good. After SIGTERM, a driver leaves its run to another process instead."""
DIES_WITHIN_S = 30.0
"""Timeout of a process that was asked to end; after it, the process is killed."""
ENDED_WITHIN_S = 120.0
"""The same timeout for a worker's process; the worker itself kills it if it does not answer."""


def stop(run: str, ledger: Ledger) -> int:
    """Ask the process that drives a run to stop, as Ctrl-C does, and return its id; 0 for a worker of a service.

    A worker is asked through the database.
    """
    name = ledger.find(run)
    driver = ledger.driver(name)
    if driver is None:
        _check_not_over(name, ledger, "stop")
    if driver is None or not _request(driver, "stop", name, ledger):
        raise WrongState(f"run '{name}' is not driven by any process; to free what it left behind: mlcd down {name}")
    return driver


def down(run: str, ledger: Ledger, clock: Clock) -> None:
    """End a run now, whatever it is doing, and tear its machines down; what they cost is settled."""
    name = ledger.find(run)
    driver = ledger.driver(name)
    if driver is None:
        _check_not_over(name, ledger, "take down")
    if driver is not None:
        _request(driver, "down", name, ledger)
        _await_end(name, driver, ledger, clock)
    with ledger.hold(name):
        book = _reclaim(name, ledger)
        if book.account.status in (Status.SEARCHING, Status.RUNNING):
            book.write(Stopped("taken down by the user"))


def _check_not_over(name: str, ledger: Ledger, verb: str) -> None:
    """Raise `WrongState` if the run has ended and left nothing behind."""
    account = ledger.account(name)
    if account.status in OVER and not account.open:
        raise WrongState(f"run '{name}' is {account.status}; there is nothing to {verb}")


def _reclaim(name: str, ledger: Ledger) -> Book:
    """Tear down and settle what is left of a run's launches."""
    check_on_this_machine(name, ledger, will_launch=False)
    run = resume(name, ledger)
    drive.reclaim(run.cloud.profiler, run.book)
    return run.book


def _await_end(run: str, driver: int, ledger: Ledger, clock: Clock) -> None:
    """Wait until nobody drives a run; a process that does not answer is killed."""
    if _is_free(run, ledger, clock, DIES_WITHIN_S if driver else ENDED_WITHIN_S):
        return
    if driver == 0:
        raise WrongState(f"the worker that drives run '{run}' does not answer; end it, then: mlcd down {run}")
    with suppress(ProcessLookupError):
        os.kill(driver, signal.SIGKILL)
    if not _is_free(run, ledger, clock, DIES_WITHIN_S):
        raise WrongState(f"process {driver}, which drives run '{run}', cannot be killed; then: mlcd down {run}")


def _is_free(run: str, ledger: Ledger, clock: Clock, within_s: float) -> bool:
    """Wait until nobody drives a run; False if that takes longer than `within_s`."""
    until_s = clock.elapsed_s() + within_s
    while ledger.is_driven(run):
        if clock.elapsed_s() > until_s:
            return False
        clock.wait(0.05)
    return True


@dataclass(frozen=True)
class Cleaned:
    """A run or a launch that was left behind, and what was done about it."""

    what: str
    outcome: str


def clean(ledger: Ledger) -> Iterator[Cleaned]:
    """Tear down and settle what dead processes left behind. Runs that a live process drives are left alone.

    Another ledger may keep launches with the same names in the same folder. So a launch that a live process ordered is
    left alone, whatever this ledger says about it.
    """
    accounts: dict[str, Account] = {}
    for name in ledger.runs():
        try:
            accounts[name] = ledger.account(name)
        except LedgerCorrupt as error:
            yield Cleaned(name, f"not cleaned: {error}")
    # List leftovers before driven runs: a launch that starts after this point is then not among the leftovers.
    leftovers: list[tuple[LiveBackend, str]] = []
    for place, backend in _live_backends(ledger, accounts).items():
        try:
            leftovers += [(backend, label) for label in sorted(backend.leftovers())]
        except MlcdError as error:
            yield Cleaned(place, f"not cleaned: {error}")
    driven, settled = ledger.driven(), set[str]()
    for name, account in accounts.items():
        if name in driven or not account.open:
            continue
        labels = {each.launch.label for each in account.open}
        try:
            with ledger.hold(name):
                _check_nobody_drives(labels)
                _reclaim(name, ledger)
        except MlcdError as error:
            yield Cleaned(name, f"not cleaned: {error}")
        else:
            settled |= labels
            yield Cleaned(name, f"{counted(len(labels), 'launch')} settled")
    for backend, label in leftovers:
        if label.rpartition("-")[0] in driven or label in settled:
            continue
        try:
            _check_nobody_drives({label})
            backend.reclaim(label)
        except MlcdError as error:
            yield Cleaned(label, f"not cleaned: {error}")
        else:
            yield Cleaned(label, "torn down")


def _check_nobody_drives(labels: Iterable[str]) -> None:
    """Raise `WrongState` if a live process ordered one of these launches, whichever ledger it writes to."""
    for label in labels:
        if (process := launches_here().driver(label)) is not None:
            raise WrongState(f"process {process} still drives launch {label}, from another ledger")


def _live_backends(ledger: Ledger, accounts: Mapping[str, Account]) -> dict[str, LiveBackend]:
    """The local backend, and the backend of every live place that the ledger's runs have used and that works now."""
    newest = {account.job.on: name for name, account in accounts.items() if account.provenance == "live"}
    backends: dict[str, LiveBackend] = {"local": local_backend()}
    for on, name in newest.items():
        if on.partition(":")[0] != "local":
            with suppress(MlcdError):
                backends[on] = cast(LiveBackend, resume(name, ledger).cloud.backend)
    return backends


def _request(driver: int, wish: Literal["stop", "down"], run: str, ledger: Ledger) -> bool:
    """Ask the process that drives a run to stop, or to end now; False if it has already ended."""
    if driver == 0:
        ledger.request_action(run, wish)
        return True
    try:
        os.kill(driver, signal.SIGINT if wish == "stop" else END_NOW)
    except ProcessLookupError:
        return False
    except PermissionError:
        raise WrongState(f"process {driver}, which drives run '{run}', is another user's: ask them") from None
    return True
