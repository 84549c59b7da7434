"""A run whose machine never comes back: its books are closed at the most that can have been spent."""

from __future__ import annotations

from mlcd.core.clock import WallClock
from mlcd.core.errors import WrongState
from mlcd.core.ledger import Ended, Entry, Ledger, Line, Reserved, Settled, Stopped
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.runs.machine import elsewhere, forget, is_the_machine
from mlcd.core.units import format_usd


def give_up_machine(run: str, ledger: Ledger) -> str:
    """Somebody says that the machine which keeps a run's launches is gone for good; what becomes of it, in words.

    When its launches ended, nobody can tell. Each counts until now, but no longer than it was allowed to live: more it
    cannot have cost. A run on rented machines may go on anywhere then; one on nodes of the machine itself is over.
    """
    name = ledger.find(run)
    with ledger.hold(name):
        account, host = ledger.account(name), elsewhere(name, ledger)
        if host is None:
            raise WrongState(f"run '{name}' is {account.status} and waits for no other machine; see: mlcd show {name}")
        lines = ledger.lines(name)
        book = ledger.book(name, WallClock(lines[0].written_at))
        closed: list[Entry] = [_at_the_most(each, lines, book.clock.elapsed_s(), host) for each in account.open]
        usd = sum(each.measurement.usd for each in closed if isinstance(each, Settled))
        if is_the_machine(account.job):
            words = f"its machine {host} is gone, and with it what it measured and saved there; begin it anew"
            closed.append(Ended(False, words))
        else:
            closed.append(Stopped(f"its machine {host} is gone"))
            words = f"its machine {host} is gone; go on with: mlcd resume {name}"
        book.write(*closed)
        ledger.set_progress(name, None)
        forget(name, ledger)
    return f"{name}: {words}. What was open there counts {format_usd(usd)}, the most it can have cost"


def _at_the_most(reserved: Reserved, lines: list[Line], now_s: float, host: str) -> Settled:
    """A launch that nobody saw the end of."""
    order = reserved.launch
    began_s = next(line.elapsed_s for line in lines if line.entry == reserved)
    seconds = max(0.0, now_s - began_s)
    if order.lifetime_s is not None:  # its machines end by themselves then
        seconds = min(seconds, order.lifetime_s)
    detail = f"its machine {host} is gone; counted at the most that it can have cost"
    return Settled(
        order, Measurement(order.configuration, Outcome.INTERRUPTED, seconds, order.bill_usd(seconds), detail=detail)
    )
