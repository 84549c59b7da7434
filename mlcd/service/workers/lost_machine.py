"""A run whose machine is gone for good: its open launches are settled at their worst-case cost."""

from __future__ import annotations

from mlcd.core.clock import WallClock
from mlcd.core.errors import WrongState
from mlcd.core.ledger import Ended, Entry, Ledger, Line, Reserved, Settled, Stopped
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.runs.machine import elsewhere, forget, is_the_machine
from mlcd.core.units import format_usd


def give_up_machine(run: str, ledger: Ledger) -> str:
    """Give up the machine that has a run's launches; return one sentence on what happens to the run.

    The end of its launches is unknown. Each is billed until now, but at most for its lifetime: it cannot have cost
    more. A run on rented machines can then be resumed anywhere; one on nodes of the lost machine itself is over.
    """
    name = ledger.find(run)
    with ledger.hold(name):
        account, host = ledger.account(name), elsewhere(name, ledger)
        if host is None:
            raise WrongState(f"run '{name}' is {account.status} and waits for no other machine; see: mlcd show {name}")
        lines = ledger.lines(name)
        book = ledger.book(name, WallClock(lines[0].written_at))
        closed: list[Entry] = [_worst_case(each, lines, book.clock.elapsed_s(), host) for each in account.open]
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


def _worst_case(reserved: Reserved, lines: list[Line], now_s: float, host: str) -> Settled:
    """Settle a launch whose end is unknown at its worst-case cost."""
    order = reserved.launch
    began_s = next(line.elapsed_s for line in lines if line.entry == reserved)
    seconds = max(0.0, now_s - began_s)
    if order.lifetime_s is not None:  # its machines end by themselves after that
        seconds = min(seconds, order.lifetime_s)
    detail = f"its machine {host} is gone; counted at the most that it can have cost"
    return Settled(
        order, Measurement(order.configuration, Outcome.INTERRUPTED, seconds, order.bill_usd(seconds), detail=detail)
    )
