"""Contract tests of a ledger, on any database. Subclass it, and define where a new ledger is for each test.

class TestOnSQLite(LedgerContract):
    @pytest.fixture
    def where(self, tmp_path): return f"sqlite:///{tmp_path / 'ledger.db'}"
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from threading import Barrier
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mlcd.core.backend import Provenance
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Choice, Offer, Space
from mlcd.core.database import open_database
from mlcd.core.errors import LedgerError, UnknownName, WrongState
from mlcd.core.job import Job
from mlcd.core.ledger import Ledger, Line, Resumed, Started, Stopped, Unreadable

SHARED = [HealthCheck.function_scoped_fixture, HealthCheck.differing_executors]
"""All examples of a test share one ledger, and all subclasses one test."""
SPACE = Space((Choice(Offer("small", 1.0, 4, 16), (1, 2)),))
WRITER = """
import sys
from mlcd.core.clock import VirtualClock
from mlcd.core.ledger import Ledger, Stopped
ledger = Ledger(sys.argv[1])
print('ready', flush=True)
run = sys.stdin.readline().strip()
for turn in range(40):
    ledger.append(run, VirtualClock(turn), [Stopped(f'{run} {turn}')])
print(*(ledger.submit('asked', '{}') for _ in range(10)), flush=True)
"""
HOLDER = """
import sys
from mlcd.core.ledger import Ledger
with Ledger(sys.argv[1]).hold('held-1'):
    print('holding', flush=True)
    sys.stdin.readline()
"""


def begin(ledger: Ledger, name: str, run: str | None = None) -> str:
    """Begin a run of a job of this name."""
    first = Started(Job(name, 1.0), SPACE, "simulated", Provenance.SIMULATED, "0")
    return ledger.begin(name, VirtualClock(), first, run=run).run


def write_turns(ledger: Ledger, run: str, turns: int) -> None:
    """Write so many entries, each a transaction, and then as many in one."""
    for turn in range(turns):
        ledger.append(run, VirtualClock(turn), [Stopped(f"{run} {turn}")])
    ledger.append(run, VirtualClock(turns), [Resumed(f"{run} {turn}") for turn in range(turns)])


def first_word(process: subprocess.Popen[str]) -> None:
    """Wait until a process has said that it is ready."""
    assert process.stdout is not None
    assert process.stdout.readline()


def follow(ledger: Ledger, going_on: Callable[[], bool]) -> list[Line | Unreadable]:
    """What a watcher sees that asks again and again for what is new."""
    seen: list[Line | Unreadable] = []
    while True:
        last_time = not going_on()
        while new := ledger.since(seen[-1].seq if seen else 0, most=7):
            seen += new
        if last_time:
            return seen


class LedgerContract:
    """What every ledger keeps to."""

    @pytest.fixture
    def where(self) -> str:
        """The URL of a place without a ledger yet."""
        raise NotImplementedError

    @pytest.fixture
    def ledger(self, where: str) -> Iterator[Ledger]:
        with closing(Ledger(where)) as opened:
            yield opened

    @pytest.fixture
    def start(self, where: str) -> Iterator[Callable[[str], subprocess.Popen[str]]]:
        """Starts a script in a process of its own."""
        with ExitStack() as stack:

            def run(script: str) -> subprocess.Popen[str]:
                command = [sys.executable, "-c", script, where]
                process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                stack.enter_context(process)
                stack.callback(process.kill)
                return process

            yield run

    @settings(suppress_health_check=SHARED)
    @given(
        texts=st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=4),
        elapsed_s=st.floats(0, 1e12),
    )
    def test_what_was_written_is_read_back_to_the_letter(
        self, ledger: Ledger, texts: list[str], elapsed_s: float
    ) -> None:
        run = begin(ledger, "letters")
        written = ledger.append(run, VirtualClock(elapsed_s), [Stopped(text) for text in texts])
        assert ledger.lines(run)[1:] == written
        assert [line.entry for line in written] == [Stopped(text) for text in texts]
        assert ledger.since(written[0].seq - 1) == written
        assert ledger.last_seq() == written[-1].seq

    @pytest.mark.parametrize("table", ["entries", "audit"])
    @pytest.mark.parametrize("change", ["UPDATE {} SET seq = seq + 100", "DELETE FROM {}"])
    def test_entries_can_be_neither_changed_nor_removed(self, ledger: Ledger, table: str, change: str) -> None:
        begin(ledger, "a")
        columns = "at, who, action, about, outcome, detail"
        with ledger.database.write() as db:
            db.exec_driver_sql(f"INSERT INTO audit ({columns}) VALUES ('now', 'ada', 'sign in', '', 'ok', '')")
        query = f"SELECT * FROM {table}"
        with ledger.database.read() as db:
            before = db.exec_driver_sql(query).all()
        with pytest.raises(LedgerError, match="the ledger is append-only"), ledger.database.write() as db:
            db.exec_driver_sql(change.format(table))
        with ledger.database.read() as db:
            assert db.exec_driver_sql(query).all() == before != []

    def test_a_write_is_whole_or_not_at_all_and_sees_itself(self, ledger: Ledger) -> None:
        begin(ledger, "a")

        def write_and_break() -> None:
            with ledger.database.write():
                assert ledger.submit("b", "{}") == "b-1"
                assert begin(ledger, "a") == "a-2"
                assert ledger.find("a-2") == "a-2"
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            write_and_break()
        assert ledger.runs() == ["a-1"]
        assert ledger.waiting() == []
        assert begin(ledger, "a") == "a-2"

    def test_a_watcher_sees_every_entry_once_and_in_order_while_threads_write(self, ledger: Ledger) -> None:
        with ThreadPoolExecutor(4) as pool:
            works = [pool.submit(write_turns, ledger, begin(ledger, f"thread-{n}"), 25) for n in range(4)]
            seen = follow(ledger, lambda: not all(work.done() for work in works))
            assert [work.result() for work in works] == [None] * 4
        self._check_seen(ledger, seen, 4 * 51)

    def test_a_watcher_sees_every_entry_once_and_in_order_while_processes_write(
        self, ledger: Ledger, start: Callable[[str], subprocess.Popen[str]]
    ) -> None:
        processes = {begin(ledger, "process"): start(WRITER) for _ in range(2)}
        for process in processes.values():
            first_word(process)
        for run, process in processes.items():
            assert process.stdin is not None
            process.stdin.write(f"{run}\n")
            process.stdin.flush()
        seen = follow(ledger, lambda: any(process.poll() is None for process in processes.values()))
        self._check_seen(ledger, seen, 2 * 41)
        names = [process.communicate()[0].split() for process in processes.values()]
        assert sorted(names[0] + names[1]) == sorted(f"asked-{n}" for n in range(1, 21)), "a name was given twice"
        assert ledger.runs() == ["process-1", "process-2"]

    def _check_seen(self, ledger: Ledger, seen: list[Line | Unreadable], count: int) -> None:
        assert len(seen) == count
        assert seen == ledger.since(0, most=count + 1)
        assert [line.seq for line in seen] == sorted({line.seq for line in seen})
        for run in ledger.runs():
            assert [line for line in seen if line.run == run] == ledger.lines(run)

    def test_two_who_ask_at_once_get_different_names(self, ledger: Ledger, where: str) -> None:
        others = [Ledger(where) for _ in range(3)]
        together = Barrier(4)

        def ask(of: Ledger) -> list[str]:
            together.wait()
            return [of.submit("Job", "{}") for _ in range(5)]

        with ThreadPoolExecutor(4) as pool:
            names = [name for answer in pool.map(ask, [ledger, *others]) for name in answer]
        assert sorted(names) == sorted(f"job-{n}" for n in range(1, 21))
        for other in others:
            other.close()

    def test_what_was_asked_for_waits_until_it_begins(self, ledger: Ledger) -> None:
        begin(ledger, "job")
        run = ledger.submit("job", '{"x": 1}', owner="ada", team="vision")
        (waiting,) = ledger.waiting()
        assert (waiting.run, waiting.owner, waiting.team, waiting.request) == (run, "ada", "vision", '{"x": 1}')
        assert waiting.refused is None
        assert ledger.submission(run) == waiting
        assert ledger.runs() == ["job-1"]
        assert ledger.find("last") == "job-1"
        with pytest.raises(WrongState, match="run 'job-2' is waiting for a worker"):
            ledger.find(run)
        with ledger.hold(run):
            assert begin(ledger, "job", run) == run
        assert ledger.waiting() == []
        assert ledger.submission(run) == waiting
        assert ledger.find("last") == run == "job-2"
        assert ledger.owners() == {"job-1": (None, None), "job-2": ("ada", "vision")}
        assert [account.job.name for account in ledger.accounts("job", 5)] == ["job", "job"]
        with pytest.raises(WrongState, match="run 'job-2' has begun already"):
            begin(ledger, "job", run)
        with pytest.raises(WrongState, match="run 'job-2' has begun"):
            ledger.refuse(run, "too late")

    def test_what_was_refused_says_why_and_never_begins(self, ledger: Ledger) -> None:
        run = ledger.submit("job", "{}")
        ledger.refuse(run, "the model is gone")
        assert [asked.refused for asked in ledger.waiting()] == ["the model is gone"]
        with pytest.raises(WrongState, match="run 'job-1' never began: the model is gone"):
            ledger.find(run)
        with pytest.raises(WrongState, match="run 'job-1' never began: the model is gone"):
            begin(ledger, "job", run)
        assert ledger.runs() == []
        assert begin(ledger, "job") == "job-2", "a name is never given twice"

    def test_a_wish_is_kept_until_it_is_taken_back(self, ledger: Ledger) -> None:
        run = begin(ledger, "job")
        assert ledger.requested_action(run) is None
        ledger.request_action(run, "stop")
        assert ledger.requested_action(run) == "stop"
        ledger.request_action(run, None)
        assert ledger.requested_action(run) is None
        assert ledger.requested_action("nobody-1") is None
        with pytest.raises(UnknownName, match="unknown run 'job-7': did you mean 'job-1'"):
            ledger.request_action("job-7", "stop")

    def test_of_the_progress_of_runs_the_newest_is_kept_until_it_is_taken_back(
        self, ledger: Ledger, where: str
    ) -> None:
        run, other = begin(ledger, "job"), ledger.submit("job", "{}")
        assert ledger.progress([run, other, "nobody-1"]) == ledger.progress([]) == {}
        last = ledger.last_seq()
        with ledger.hold(run), closing(Ledger(where)) as elsewhere:  # whoever drives it writes, another one reads
            for told in ("[1]", '["\u2265 2"]'):
                ledger.set_progress(run, told)
                assert elsewhere.progress([run, other, "nobody-1"]) == {run: told}
        ledger.set_progress(other, "[3]")
        assert ledger.progress([other]) == {other: "[3]"}
        ledger.set_progress(run, None)
        assert ledger.progress([run, other]) == {other: "[3]"}
        assert ledger.last_seq() == last, "it is no entry"
        with pytest.raises(UnknownName, match="unknown run 'job-7'"):
            ledger.set_progress("job-7", "[]")

    def test_a_run_is_held_by_one_only(self, ledger: Ledger, where: str) -> None:
        run = begin(ledger, "held")
        with closing(Ledger(where)) as other:
            for second in (ledger, other):
                with ledger.hold(run):
                    assert other.is_driven(run)
                    assert other.driven() == {run}
                    with pytest.raises(WrongState, match="run 'held-1' is being driven by another"), second.hold(run):
                        pass
                    ledger.append(run, VirtualClock(), [Stopped("held all the while")])
            assert other.driver(run) is None
            assert other.driven() == set()
            with other.hold(run), ledger.hold(begin(ledger, "another")):
                other.append(run, VirtualClock(), [Resumed("by another")])
        assert [line.entry.kind for line in ledger.lines(run)] == ["started", "stopped", "stopped", "resumed"]

    def test_a_run_that_begins_held_is_driven_as_soon_as_it_is_seen(self, ledger: Ledger, where: str) -> None:
        seen: list[tuple[list[str], set[str]]] = []
        first = Started(Job("held", 1.0), SPACE, "simulated", Provenance.SIMULATED, "0")
        with closing(Ledger(where)) as other:
            with ExitStack() as held:
                ledger.begin(
                    "held", VirtualClock(), first, lambda _: seen.append((other.runs(), other.driven())), held=held
                )
                assert other.is_driven("held-1")
            assert not other.is_driven("held-1")
        assert seen == [(["held-1"], {"held-1"})]
        assert begin(ledger, "held") == "held-2"

    def test_a_process_that_is_killed_holds_nothing(
        self, ledger: Ledger, start: Callable[[str], subprocess.Popen[str]]
    ) -> None:
        run = begin(ledger, "held")
        process = start(HOLDER)
        first_word(process)
        assert ledger.driver(run) in (process.pid, 0)
        with pytest.raises(WrongState), ledger.hold(run):
            pass
        process.kill()
        process.wait()
        while ledger.is_driven(run):  # a server notices a moment later
            pass
        with ledger.hold(run):
            pass

    def test_many_threads_may_read_at_once(self, ledger: Ledger) -> None:
        run = begin(ledger, "a")
        write_turns(ledger, run, 5)
        expected = ledger.lines(run)
        with ThreadPoolExecutor(8) as pool:
            answers: list[Any] = list(pool.map(lambda _: ledger.lines("last"), range(40)))
        assert answers == [expected] * 40

    def test_a_database_that_is_shared_stays_open(self, where: str) -> None:
        with closing(open_database(where)) as database:
            first = Ledger(database)
            begin(first, "a")
            first.close()
            assert Ledger(database).runs() == ["a-1"]
