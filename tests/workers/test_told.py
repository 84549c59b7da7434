"""What the process of a run is told: it ends at once, but never tears a transaction of the ledger apart."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import pytest

from mlcd import assemble
from mlcd.job import Job
from mlcd.ledger import Ledger, Resumed, Stopped
from mlcd.workers import to_json
from mlcd.workers.crew import NEVER_BEGAN
from mlcd.workers.run import see_through
from mlcd.workers.told import BY_THE_USER, Told

LONG_S = 30.0


def test_sigint_only_asks_to_stop(home: Path):
    told = Told("any", assemble.open_ledger(home))
    with told.listening():
        assert not told.stop()
        signal.raise_signal(signal.SIGINT)
        assert told.stop()


def test_sigterm_ends_it_now_but_not_in_the_middle_of_an_entry_and_not_twice(home: Path, recorded: Job):
    ledger = assemble.open_ledger(home)
    run = assemble.start(recorded, ledger, lambda line: signal.raise_signal(signal.SIGTERM) if line.seq > 1 else None)
    told, written = Told(run.name, ledger), []

    def write() -> None:
        run.book.write(Stopped("while this is written, the signal comes"))
        written.append("whole")
        threading.Event().wait(LONG_S)

    with told.listening():
        with pytest.raises(KeyboardInterrupt):
            write()
        run.book.write(Resumed("and once more; tearing down is not disturbed"))
    assert written == ["whole"]
    assert len(ledger.lines(run.name)) == 3
    ledger.close()


def test_a_wish_to_take_it_down_interrupts_a_wait(home: Path, recorded: Job):
    ledger = Ledger(home / "ledger.db")
    run = assemble.start(recorded, ledger).name
    told = Told(run, ledger, every_s=0.01)
    ledger.wish(run, "down")
    with told.listening(), pytest.raises(KeyboardInterrupt):
        threading.Event().wait(LONG_S)
    assert told.because == BY_THE_USER
    ledger.close()


class EndsAtOnce(Told):
    """Told to end in the moment before the run begins."""

    def look(self) -> None:
        self._heard(self.number, None)

    number = signal.SIGTERM


class StopsAtOnce(EndsAtOnce):
    number = signal.SIGINT


@pytest.mark.parametrize(("told", "refused"), [(EndsAtOnce, None), (StopsAtOnce, NEVER_BEGAN)])
def test_a_run_that_its_worker_leaves_before_it_began_is_another_ones_to_begin(told, refused, home, simulated):
    ledger = assemble.open_ledger(home)
    run = ledger.ask(simulated.name, to_json(simulated, False))
    see_through(run, ledger, told=told(run, ledger))
    (waiting,) = ledger.waiting()
    assert (waiting.run, waiting.refused) == (run, refused)
    ledger.close()
