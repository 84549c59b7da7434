"""The feed: whoever watches is told every entry once and in order, however slow they are, whatever breaks meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlcd_fixtures.api import Event, events
from mlcd_fixtures.scale_runs import JOB, SPACE
from sqlalchemy import insert
from stage import Idle, staged

from mlcd.core.backend import Provenance
from mlcd.core.clock import VirtualClock
from mlcd.core.database.schema import entries
from mlcd.core.decision import Decision
from mlcd.core.errors import LedgerError, UnknownName
from mlcd.core.ledger import Book, Decided, Ended, Ledger, Line, Refused, Resumed, Started, Stopped, Submission
from mlcd.reports.view.summary import summary_of
from mlcd.service.team.administration import Audit
from mlcd.service.web import feed as feed_module
from mlcd.service.web.app import create_app
from mlcd.service.web.feed import Feed
from mlcd.service.web.routes.watch import of_all, of_run
from mlcd.service.web.run_cache import RecentEvents
from mlcd.service.web.state import Settings, State
from mlcd.service.workers.submissions import to_json

FIRST = Started(JOB, SPACE, "simulated", Provenance.SIMULATED, "0")
PLACE = SPACE.configurations[0]
SOON_S = 300.0
"""However busy the machine is: nothing here takes so long unless it is lost."""


class Watched(Ledger):
    """A ledger that counts its readers, and can be taken away."""

    def __init__(self, where: Path | None = None) -> None:
        super().__init__(where)
        self.reads, self.gone = 0, False

    def since(self, seq: int, most: int = 1_000) -> list[Line]:
        self._read()
        return super().since(seq, most)

    def lines(self, run: str) -> list[Line]:
        self._read()
        return super().lines(run)

    def driven(self) -> set[str]:
        self._read(0)  # asked by the clock, whoever watches
        return super().driven()

    def _read(self, times: int = 1) -> None:
        self.reads += times
        if self.gone:
            raise LedgerError("the database cannot be reached")


@contextmanager
def opened(**how: Any) -> Iterator[tuple[Watched, Feed]]:
    ledger = Watched()
    feed = Feed(ledger, **how)
    try:
        yield ledger, feed
    finally:
        feed.close()
        ledger.close()


def begun(ledger: Ledger, name: str = "demo") -> Book:
    return ledger.begin(name, VirtualClock(), FIRST)


def busy(book: Book, times: int = 1) -> None:
    for number in range(times):
        book.write(Refused(PLACE, f"number {number}"))


def finished(book: Book) -> None:
    book.write(Decided(Decision(PLACE, "the best")), Ended(True, "done"))


async def soon(stream: AsyncIterator[bytes]) -> list[Event]:
    """What comes next, within a time that nothing takes."""
    return events(await asyncio.wait_for(anext(stream), SOON_S))


async def all_of(stream: AsyncIterator[bytes]) -> list[Event]:
    found: list[Event] = []
    async with asyncio.timeout(SOON_S):
        async for sent in stream:
            found += events(sent)
    return found


def numbers(told: list[Event]) -> list[int]:
    return [event.number for event in told if event.number is not None]


def run(scenario: Callable[[], Any]) -> Any:
    return asyncio.run(scenario())


def test_a_run_is_told_as_it_happens_and_its_stream_ends_with_it() -> None:
    async def scenario() -> None:
        with opened() as (ledger, feed):
            book = begun(ledger)
            await feed.catch_up(with_state=True)
            stream = of_run(feed, book.run)
            assert numbers(await soon(stream)) == [1]
            waits = asyncio.ensure_future(all_of(stream))
            for _ in range(3):
                busy(book)
                await feed.catch_up()
            finished(book)
            await feed.catch_up(with_state=True)
            told = await waits
            assert numbers(told) == [2, 3, 4, 5, 6]
            assert [event.name for event in told[-2:]] == ["entry", "end"]
            assert told[-1].data["status"] == "finished"

    run(scenario)


def test_the_task_of_the_app_finds_what_others_write() -> None:
    async def scenario() -> None:
        with opened(poll_s=0.0) as (ledger, feed):
            book = begun(ledger)
            async with feed.running():
                stream = of_run(feed, book.run)
                assert numbers(await soon(stream)) == [1]
                waits = asyncio.ensure_future(all_of(stream))
                await asyncio.to_thread(busy, book, 20)
                await asyncio.to_thread(finished, book)
                assert numbers(await waits) == list(range(2, 24))

    run(scenario)


@given(data=st.data())
def test_nobody_misses_an_entry_or_sees_one_twice_however_slow_and_however_little_is_kept(data: st.DataObject) -> None:
    """Runs are written, the feed looks and watchers read in any order, while hardly anything stays in memory."""

    async def scenario() -> None:
        with opened(most_lines=data.draw(st.integers(1, 12))) as (ledger, feed):
            feed.recent = RecentEvents(most=data.draw(st.integers(1, 4)))
            books = [begun(ledger, f"r{i}") for i in range(3)]
            await feed.catch_up(with_state=True)
            watchers: list[tuple[str | None, int, AsyncIterator[bytes], list[int]]] = []
            waiting: dict[int, asyncio.Task[bytes]] = {}
            for _ in range(data.draw(st.integers(5, 25))):
                match data.draw(st.sampled_from(["write", "write", "look", "watch", "read", "read"])):
                    case "write":
                        busy(data.draw(st.sampled_from(books)), data.draw(st.integers(1, 4)))
                    case "look":
                        await feed.catch_up()
                    case "watch":
                        which = data.draw(st.sampled_from([None, *(book.run for book in books)]))
                        after = data.draw(st.integers(0, feed.last))
                        stream = of_all(feed, after) if which is None else of_run(feed, which, after)
                        watchers.append((which, after, stream, []))
                    case "read" if watchers:
                        at = data.draw(st.integers(0, len(watchers) - 1))
                        await read_some(at, watchers, waiting)
            for book in books:
                finished(book)
            await feed.catch_up(with_state=True)
            everything = ledger.since(0)
            for at, (which, after, _, seen) in enumerate(watchers):
                expected = [line.seq for line in everything if line.seq > after and which in (None, line.run)]
                while seen[-1:] != expected[-1:]:
                    assert await read_some(at, watchers, waiting, patient=True), (seen, expected)
                assert seen == expected
            for task in waiting.values():
                task.cancel()
            await asyncio.gather(*waiting.values(), return_exceptions=True)

    async def read_some(
        at: int,
        watchers: list[tuple[str | None, int, AsyncIterator[bytes], list[int]]],
        waiting: dict[int, asyncio.Task[bytes]],
        patient: bool = False,
    ) -> bool:
        """Let one watcher read what there is; it may go on waiting."""
        _, _, stream, seen = watchers[at]
        task = waiting.pop(at, None) or asyncio.ensure_future(anext(stream))
        done, _ = await asyncio.wait([task], timeout=SOON_S if patient else 0.002)
        if not done:
            waiting[at] = task
            return False
        seen += numbers(events(task.result()))
        return True

    run(scenario)


def test_a_run_that_leaves_the_queue_while_it_is_looked_up_is_found() -> None:
    class Begins(Watched):
        """What waits is begun by a worker in the moment in which the queue is read."""

        def waiting(self) -> list[Submission]:
            if not self.has_begun("demo-1"):
                self.begin("demo", VirtualClock(), FIRST, run="demo-1")
            return super().waiting()

    async def scenario() -> None:
        ledger = Begins()
        feed = Feed(ledger)
        assert ledger.submit("demo", to_json(JOB, True)) == "demo-1"
        assert await feed.find("demo-1") == "demo-1"
        feed.close()
        ledger.close()

    run(scenario)


def test_five_hundred_watchers_read_the_ledger_no_more_than_one_does() -> None:
    async def reads(watchers: int) -> int:
        with opened() as (ledger, feed):
            book = begun(ledger)
            await feed.catch_up(with_state=True)
            streams = [of_run(feed, book.run) for _ in range(watchers)]
            first = ledger.reads
            waits = [asyncio.ensure_future(all_of(stream)) for stream in streams]
            for _ in range(10):
                busy(book)
                await feed.catch_up(with_state=True)  # else now and then, by the clock
            finished(book)
            await feed.catch_up(with_state=True)
            for told in await asyncio.gather(*waits):
                assert numbers(told) == list(range(1, 14))
            return ledger.reads - first

    assert asyncio.run(reads(500)) == asyncio.run(reads(1))


def test_what_is_kept_in_memory_is_bounded_and_the_rest_is_read_again() -> None:
    async def scenario() -> None:
        with opened(most_lines=50) as (ledger, feed):
            books = [begun(ledger, f"r{i}") for i in range(20)]
            for book in books:
                busy(book, 9)
            await feed.catch_up(with_state=True)
            assert feed._cache.lines() <= 50
            assert len(feed.summaries()) == 20
            for book in books:
                whole = await feed.whole(book.run)
                assert whole is not None
                assert whole.lines == ledger.lines(book.run)
            assert feed._cache.lines() <= 50

    run(scenario)


def test_summaries_kept_entry_by_entry_are_those_of_a_replay() -> None:
    async def scenario() -> None:
        with opened(most_lines=3) as (ledger, feed):
            books = [begun(ledger, f"r{i}") for i in range(3)]
            await feed.catch_up(with_state=True)
            for book in books * 3:
                busy(book)
                await feed.catch_up()
            books[0].write(Stopped("by hand"))
            finished(books[1])
            await feed.catch_up(with_state=True)
            for book in books:
                first, account = ledger.lines(book.run)[0], ledger.account(book.run)
                told = next(each for each in feed.summaries() if each.run == book.run)
                assert told == summary_of(book.run, first.written_at, account, False, reason=told.because)
            reasons = {each.run: each.because for each in feed.summaries()}
            assert reasons == {"r0-1": "by hand", "r1-1": "done", "r2-1": "number 0"}

    run(scenario)


def test_a_database_that_is_away_is_waited_for_and_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "LONGEST_BACKOFF_S", 0.001)

    async def scenario() -> None:
        with opened(poll_s=0.0) as (ledger, feed):
            book = begun(ledger)
            async with feed.running():
                stream = of_run(feed, book.run)
                assert numbers(await soon(stream)) == [1]
                waits = asyncio.ensure_future(all_of(stream))
                ledger.gone = True
                while not feed.read_error:
                    await asyncio.sleep(0)
                assert feed.summaries()[0].run == book.run
                ledger.gone = False
                busy(book, 5)
                finished(book)
                assert numbers(await waits) == list(range(2, 9))
                while feed.read_error:
                    await asyncio.sleep(0)

    run(scenario)


def test_an_entry_is_read_again_where_the_database_went_away_in_the_middle_of_it() -> None:
    async def scenario() -> None:
        with opened(most_lines=1) as (ledger, feed):
            first, other = begun(ledger, "a"), begun(ledger, "b")
            await feed.catch_up(with_state=True)
            busy(first)
            whole = ledger.lines

            def breaks(run: str) -> list[Line]:
                raise LedgerError("gone")

            ledger.lines = breaks  # type: ignore[method-assign]
            with pytest.raises(LedgerError):
                await feed.catch_up()
            ledger.lines = whole  # type: ignore[method-assign]
            busy(other)
            stream = of_all(feed, 2)
            await feed.catch_up()
            assert numbers(await soon(stream)) == [3, 4]

    run(scenario)


def test_a_run_that_waits_is_watched_from_before_it_begins() -> None:
    async def scenario() -> None:
        with opened() as (ledger, feed):
            name = ledger.submit("demo", to_json(JOB, False), owner="ada")
            assert await feed.find(name) == name
            assert feed.summaries()[0].status == "queued"
            stream = of_run(feed, name)
            waits = asyncio.ensure_future(all_of(stream))
            await asyncio.sleep(0)
            book = ledger.begin("demo", VirtualClock(), FIRST, run=name)
            finished(book)
            await feed.catch_up(with_state=True)
            assert numbers(await waits) == [1, 2, 3]
            assert feed.summaries()[0].owner == "ada"

    run(scenario)


def test_a_run_that_is_refused_while_it_is_watched_ends_with_the_reason() -> None:
    async def scenario() -> None:
        with opened() as (ledger, feed):
            name = ledger.submit("demo", to_json(JOB, False))
            await feed.catch_up(with_state=True)
            waits = asyncio.ensure_future(all_of(of_run(feed, name)))
            await asyncio.sleep(0)
            ledger.refuse(name, "no such cloud")
            await feed.catch_up(with_state=True)
            (end,) = await waits
            assert (end.name, end.data["status"], end.data["because"]) == ("end", "refused", "no such cloud")

    run(scenario)


def test_a_decision_that_is_to_be_launched_is_not_the_end() -> None:
    async def scenario() -> None:
        with opened() as (ledger, feed):
            name = ledger.submit("demo", to_json(JOB, True))
            book = ledger.begin("demo", VirtualClock(), FIRST, run=name)
            book.write(Decided(Decision(PLACE, "the best")))
            await feed.catch_up(with_state=True)
            assert not feed.run_states[name].over
            book.write(Ended(True, "done"))
            await feed.catch_up(with_state=True)
            assert feed.run_states[name].over

    run(scenario)


@pytest.mark.parametrize("stopped", [True, False])
def test_a_run_whose_worker_was_lost_is_not_over_another_one_goes_on(stopped: bool) -> None:
    async def scenario() -> None:
        with opened() as (ledger, feed):
            book = begun(ledger)
            if stopped:
                book.write(Stopped("interrupted by the user"))
            await feed.catch_up(with_state=True)
            assert feed.run_states[book.run].over is stopped
            book.write(Resumed("a worker went on"))
            finished(book)
            await feed.catch_up(with_state=True)
            assert feed.run_states[book.run].over

    run(scenario)


def test_who_was_sent_to_go_on_with_a_run_is_expected() -> None:
    async def scenario() -> None:
        with opened() as (ledger, feed):
            book = begun(ledger)
            book.write(Stopped("by hand"))
            await feed.catch_up(with_state=True)
            assert feed.run_states[book.run].over
            await asyncio.to_thread(feed.expect, book.run)
            await feed.catch_up(with_state=True)
            stream = of_run(feed, book.run, after=2)
            waits = asyncio.ensure_future(all_of(stream))
            await asyncio.sleep(0)
            book.write(Resumed("again"))
            finished(book)
            await feed.catch_up(with_state=True)
            assert numbers(await waits) == [3, 4, 5]

    run(scenario)


def test_a_run_that_is_resumed_over_the_api_is_not_over_before_its_worker_has_come(tmp_path: Path) -> None:
    with staged(tmp_path, mode="ui") as stage:
        book, feed = begun(stage.state.ledger), stage.state.feed
        book.write(Stopped("by hand"))
        stage.look()
        assert feed.run_states[book.run].over
        assert stage.ask("POST", f"/api/v1/runs/{book.run}/resume").status == 202
        assert stage.executor.asked == [("send", book.run, "False")]
        stage.look()
        assert not feed.run_states[book.run].over


def test_who_drives_a_run_is_told_when_it_changes(tmp_path: Path) -> None:
    async def scenario() -> None:
        ledger = Watched(tmp_path / "ledger.db")
        feed = Feed(ledger)
        book = begun(ledger)
        with ledger.hold(book.run):
            await feed.catch_up(with_state=True)
            stream = of_run(feed, book.run)
            assert numbers(await soon(stream)) == [1]
            waits = asyncio.ensure_future(soon(stream))
            await asyncio.sleep(0)
            assert feed.summaries()[0].driven
        await feed.catch_up(with_state=True)
        (told,) = await waits
        assert (told.name, told.data["driven"], told.data["status"]) == ("state", False, "searching")
        assert not feed.summaries()[0].driven
        feed.close()
        ledger.close()

    run(scenario)


def test_a_run_is_driven_from_its_first_entry_on_and_never_seems_interrupted(tmp_path: Path) -> None:
    async def scenario() -> None:
        ledger = Watched(tmp_path / "ledger.db")
        feed = Feed(ledger)
        name = ledger.submit("demo", to_json(JOB, False))
        await feed.catch_up(with_state=True)  # who drives what is asked again in a while only
        with ledger.hold(name):
            ledger.begin("demo", VirtualClock(), FIRST, run=name)
            await feed.catch_up()
            (told,) = feed.summaries()
            assert (told.status, told.driven) == ("searching", True)
        feed.close()
        ledger.close()

    run(scenario)


def contradict(ledger: Ledger, damaged: str) -> None:
    ledger.append(damaged, VirtualClock(), [FIRST])


def garble(ledger: Ledger, damaged: str) -> None:
    row = {"run": damaged, "written_at": datetime.now(UTC).isoformat(), "elapsed_s": 1.0, "kind": "settled"}
    with ledger.database.write() as connection:
        connection.execute(insert(entries).values({**row, "body": "{"}))


@pytest.mark.parametrize("damage", [contradict, garble])
def test_a_run_that_cannot_be_replayed_does_not_stop_the_others(damage: Callable[[Ledger, str], None]) -> None:
    async def scenario() -> None:
        with opened() as (ledger, feed):
            damaged, good = begun(ledger, "bad"), begun(ledger, "good")
            damage(ledger, damaged.run)
            busy(good)
            await feed.catch_up(with_state=True)
            assert {each.run for each in feed.summaries()} == {damaged.run, good.run}
            assert feed.run_states[damaged.run].damaged
            (told,) = (each for each in feed.summaries() if each.run == damaged.run)
            assert told.because == "damaged: restore the ledger from a copy"
            assert numbers(await soon(of_run(feed, good.run))) == [2, 4]
            with pytest.raises(LedgerError, match="restore"):
                await feed.whole(damaged.run)

    run(scenario)


def test_a_name_that_nobody_has_is_unknown() -> None:
    async def scenario() -> None:
        with opened() as (_, feed), pytest.raises(UnknownName):
            await feed.find("nobody-1")

    run(scenario)


def test_who_watches_and_hears_nothing_is_told_that_the_line_is_open() -> None:
    async def scenario() -> None:
        with opened() as (ledger, feed):
            book = begun(ledger)
            await feed.catch_up(with_state=True)
            for stream in (of_run(feed, book.run, after=1, ping_s=0.0), of_all(feed, ping_s=0.0)):
                assert (await anext(stream)).startswith(b":")

    run(scenario)


def test_the_streams_of_the_app_are_live_and_end_when_who_watches_leaves(tmp_path: Path) -> None:
    """Over ASGI, as a server would ask: the first entries, then one that is written meanwhile, then the end."""

    async def scenario() -> None:
        ledger = Ledger(tmp_path / "ledger.db")
        feed, told = Feed(ledger), Settings("ui", tmp_path, same_user=False)
        state = State(
            ledger, ledger.database, Idle(), None, Audit(ledger.database, lambda: datetime.now(UTC)), told, feed
        )
        app, book = create_app(state), begun(ledger)
        await feed.catch_up(with_state=True)
        async with aclosing(asked(app, f"/api/v1/runs/{book.run}/events")) as stream:
            assert numbers(await soon(stream)) == [1]
            busy(book)
            await feed.catch_up()
            assert numbers(await soon(stream)) == [2]
        async with aclosing(asked(app, "/api/v1/events?after=1")) as stream:
            assert numbers(await soon(stream)) == [2]
            finished(book)
            await feed.catch_up(with_state=True)
            assert numbers(await soon(stream)) == [3, 4]
        feed.close()
        ledger.close()

    run(scenario)


async def asked(app: Any, path: str) -> AsyncIterator[bytes]:
    """The body of an answer, piece by piece; who asks leaves when this is closed."""
    where, _, query = path.partition("?")
    left, pieces = asyncio.Event(), asyncio.Queue[bytes]()
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
        "path": where, "raw_path": where.encode(), "query_string": query.encode(), "root_path": "", "state": {},
        "headers": [(b"host", b"localhost")], "client": ("127.0.0.1", 40_000), "server": ("127.0.0.1", 8421),
    }  # fmt: skip

    coming = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> dict[str, Any]:
        if coming:
            return coming.pop()
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            assert message["status"] == 200
        elif message.get("body"):
            await pieces.put(message["body"])

    task = asyncio.ensure_future(app(scope, receive, send))
    try:
        while True:
            yield await pieces.get()
    finally:
        left.set()
        await asyncio.wait_for(task, SOON_S)
