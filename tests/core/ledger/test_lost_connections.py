"""A run on PostgreSQL, while connections break and the server dies: nothing is lost or written twice."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from itertools import count

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mlcd_fixtures.ledgers import begin
from mlcd_fixtures.postgres import PostgresServer

from mlcd.core.clock import VirtualClock
from mlcd.core.errors import LedgerUnreachable, WrongState
from mlcd.core.ledger import Ledger, Resumed, Stopped
from mlcd.core.ledger.entries import Line, draft
from mlcd.core.ledger.lock import RECONNECT_S, HeldRun

STATEMENTS = 5
"""Of an append of two entries: BEGIN, the writers' lock, INSERT, INSERT, COMMIT."""


class Wire:
    """A stretch of network before the server, which can be cut at a statement, before or after it got there."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.statements_left = 0
        self.arrives = False
        self.on_cut: Callable[[], object] = lambda: None
        self.before_hanging_up: Callable[[], object] = lambda: None
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, statement: int, arrives: bool) -> None:
        """Cut at this statement, counted from now; if it still arrives, only its answer is lost."""
        self.statements_left, self.arrives = statement, arrives

    def close(self) -> None:
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near = self._listening.accept()[0]
                threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        with near, suppress(OSError), closing(socket.create_connection(("127.0.0.1", self._port))) as far:
            back = threading.Thread(target=self._pump_back, args=(far, near), daemon=True)
            back.start()
            while data := near.recv(65_536):
                if self.statements_left and not data.startswith(b"X"):
                    self.statements_left -= 1
                    if not self.statements_left:
                        self.cuts += 1
                        self._cut(near, far, data)
                        return
                far.sendall(data)

    def _cut(self, near: socket.socket, far: socket.socket, data: bytes) -> None:
        # From here on nothing goes back: the pump ends when it finds that it may not write.
        near.shutdown(socket.SHUT_WR)
        if self.arrives:
            far.sendall(data)
            self.before_hanging_up()
            far.shutdown(socket.SHUT_WR)  # the server does what it was sent, then finds that nobody is there
            with suppress(OSError):
                while far.recv(65_536):
                    pass
        hang_up(far)
        self.on_cut()

    def _pump_back(self, far: socket.socket, near: socket.socket) -> None:
        with suppress(OSError):
            while data := far.recv(65_536):
                near.sendall(data)
        hang_up(near)


def hang_up(line: socket.socket) -> None:
    """End a connection also for a thread that waits at it: closing alone would not."""
    with suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def wire(postgres_server: PostgresServer) -> Iterator[Wire]:
    with closing(Wire(postgres_server.port)) as made:
        yield made


@pytest.fixture
def ledger(postgres_server: PostgresServer, wire: Wire, postgres_url: str) -> Iterator[Ledger]:
    """A ledger at the other end of the wire."""
    with closing(Ledger(postgres_url.replace(f":{postgres_server.port}/", f":{wire.port}/"))) as opened:
        yield opened


@pytest.fixture
def nearby(postgres_url: str) -> Iterator[Ledger]:
    """The same ledger, not over the wire."""
    with closing(Ledger(postgres_url)) as opened:
        yield opened


def held(ledger: Ledger, run: str, **seams: Callable[..., object]) -> HeldRun:
    taken = HeldRun(ledger.database, run, **seams)  # type: ignore[arg-type]
    taken.take()
    return taken


def drafts(run: str, *texts: str) -> list[Line]:
    return [draft(run, VirtualClock(), Stopped(text)) for text in texts]


def told(ledger: Ledger, run: str) -> list[str]:
    return [line.entry.because for line in ledger.lines(run) if isinstance(line.entry, Stopped | Resumed)]


CUTS = st.none() | st.tuples(st.integers(1, STATEMENTS), st.booleans())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(CUTS, min_size=1, max_size=4))
def test_wherever_the_wire_is_cut_every_entry_is_written_once(
    ledger: Ledger, nearby: Ledger, wire: Wire, cuts: list[tuple[int, bool] | None]
) -> None:
    run = begin(nearby, "cut")
    before = wire.cuts
    with ledger.hold(run):
        book = ledger.book(run, VirtualClock())
        for number, cut in enumerate(cuts):
            if cut is not None:
                wire.cut(*cut)
            book.write(Stopped(f"{number} stopped"), Resumed(f"{number} resumed"))
        assert nearby.is_driven(run)
    assert told(nearby, run) == [f"{number} {what}" for number in range(len(cuts)) for what in ("stopped", "resumed")]
    assert ledger.account(run) == book.account
    assert wire.cuts - before == sum(cut is not None for cut in cuts)


def test_entries_committed_by_a_living_connection_are_not_written_again(
    ledger: Ledger, nearby: Ledger, wire: Wire
) -> None:
    run, is_over = begin(nearby, "lingers"), threading.Event()

    def wait(_: float) -> None:
        is_over.set()  # tried once: the old connection had the lock, and its entry was there to be seen

    taken = held(ledger, run, wait=wait)
    wire.before_hanging_up = lambda: is_over.wait(60)
    wire.cut(STATEMENTS - 1, arrives=True)  # one entry less
    written = taken.append(drafts(run, "once"))
    assert is_over.is_set()
    assert told(nearby, run) == ["once"]
    assert written == nearby.lines(run)[-1:]
    taken.append(drafts(run, "twice"))
    assert told(nearby, run) == ["once", "twice"]
    taken.release()


@pytest.mark.parametrize("arrives", [True, False], ids=["only the answer is lost", "it never arrives"])
def test_a_commit_during_which_the_server_dies_is_written_once(
    ledger: Ledger, nearby: Ledger, wire: Wire, postgres_server: PostgresServer, arrives: bool
) -> None:
    run, is_back = begin(ledger, "killed"), threading.Event()
    with ledger.hold(run):
        book = ledger.book(run, VirtualClock())
        book.write(Stopped("before"))

        def die() -> None:
            postgres_server.kill()
            postgres_server.start()
            is_back.set()

        wire.on_cut = die
        wire.cut(STATEMENTS, arrives)
        book.write(Resumed("in the middle"), Stopped("of it"))
    assert wire.cuts == 1
    assert is_back.wait(60)  # the entry may have been found before the server died
    assert told(nearby, run) == ["before", "in the middle", "of it"]  # not over the wire, which may still be closing


def test_a_server_that_died_while_nothing_was_written_is_waited_for(
    nearby: Ledger, postgres_server: PostgresServer
) -> None:
    run = begin(nearby, "idle")
    mine = held(nearby, run, wait=lambda _: postgres_server.start())
    postgres_server.kill()
    mine.append(drafts(run, "after all"))
    assert nearby.driven() == {run}
    mine.release()
    assert told(nearby, run) == ["after all"]


def test_a_server_that_stays_away_is_given_up_and_the_ledger_works_again_when_it_is_back(
    nearby: Ledger, postgres_server: PostgresServer
) -> None:
    run, clock = begin(nearby, "away"), VirtualClock()
    mine = held(nearby, run, now=clock.elapsed_s, wait=clock.wait)
    postgres_server.stop()
    with pytest.raises(LedgerUnreachable, match="the database cannot be reached"):
        mine.append(drafts(run, "in vain"))
    assert RECONNECT_S <= clock.elapsed_s() < RECONNECT_S + 5
    for use in (nearby.runs, nearby.last_seq, lambda: begin(nearby, "x"), lambda: nearby.requested_action(run)):
        with pytest.raises(LedgerUnreachable, match="the database cannot be reached"):
            use()
    postgres_server.start()
    assert nearby.runs() == [run]
    assert told(nearby, run) == []
    mine.append(drafts(run, "at last"))
    mine.release()
    assert told(nearby, run) == ["at last"]


def cut_off(url: str) -> None:
    """End every other connection to the database, as the server does for one that is long silent."""
    with psycopg.connect(url, autocommit=True) as db:
        others = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid != pg_backend_pid()"
        db.execute(f"SELECT pg_terminate_backend(pid, 5000) FROM ({others}) AS other")


def test_a_driver_with_nothing_to_write_for_hours_takes_its_run_again(
    nearby: Ledger, postgres_server: PostgresServer, postgres_url: str
) -> None:
    run = begin(nearby, "long")
    mine = held(nearby, run)
    mine.keep()
    postgres_server.kill()
    with pytest.raises(LedgerUnreachable):
        mine.keep()
    postgres_server.start()
    assert nearby.driven() == set()
    mine.keep()
    assert nearby.driven() == {run}
    cut_off(postgres_url)
    with closing(Ledger(postgres_url)) as other:
        theirs = held(other, run)
        with pytest.raises(WrongState, match="was taken over by another process"):
            mine.keep()
        theirs.release()
    mine.keep()
    mine.release()
    mine.keep()
    assert nearby.driven() == set()


@pytest.mark.parametrize("wrote", [True, False])
@pytest.mark.parametrize("still_there", [True, False])
def test_a_run_that_was_taken_over_is_left_to_the_other(
    nearby: Ledger, postgres_url: str, wrote: bool, still_there: bool
) -> None:
    run, clock = begin(nearby, "taken"), VirtualClock()
    mine = held(nearby, run, now=clock.elapsed_s, wait=clock.wait)
    mine.append(drafts(run, "mine"))
    cut_off(postgres_url)
    with closing(Ledger(postgres_url)) as other:
        theirs = held(other, run)
        if wrote:
            theirs.append(drafts(run, "theirs"))
        if not still_there:
            theirs.release()
        if wrote or still_there:
            with pytest.raises(WrongState, match="run 'taken-1' was taken over by another process"):
                mine.append(drafts(run, "mine again"))
        else:  # it looked, and left everything as it was
            mine.append(drafts(run, "theirs"))
        theirs.release()
    mine.release()
    assert told(nearby, run) == ["mine", *["theirs"] * (wrote or not still_there)]


class Interrupting(list[Line]):
    """Drafts during whose writing Ctrl-C is pressed."""

    def __iter__(self) -> Iterator[Line]:
        yield self[0]
        raise KeyboardInterrupt


def test_a_write_that_was_interrupted_leaves_nothing_and_the_run_goes_on(nearby: Ledger, postgres_url: str) -> None:
    run = begin(nearby, "interrupted")
    mine = held(nearby, run)
    for number in count():
        with pytest.raises(KeyboardInterrupt):
            mine.append(Interrupting(drafts(run, "never", "never")))
        if number == 1:
            cut_off(postgres_url)
        mine.append(drafts(run, f"{number}"))
        if number == 2:
            break
    mine.release()
    assert told(nearby, run) == ["0", "1", "2"]
