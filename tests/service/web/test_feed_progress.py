"""How far live jobs are: told to whoever watches a run, the newest alone; no entry is lost or told twice for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from mlcd_fixtures.api import Event, events
from mlcd_fixtures.scale_runs import JOB, SPACE
from stage import API, staged

from mlcd.core.backend import Provenance, Purpose
from mlcd.core.clock import VirtualClock
from mlcd.core.decision import Decision
from mlcd.core.ledger import Book, Decided, Ended, Ledger, Refused, Started
from mlcd.reports.launch_progress import Headway, to_json
from mlcd.service.web.feed import Feed
from mlcd.service.web.routes.watch import of_run

PLACE = SPACE.configurations[0]
AT = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)
SOON_S = 300.0


class Driven(Ledger):
    """A ledger whose runs are all driven, until they are let go; it counts what is asked about their progress."""

    def __init__(self, where: Path | None = None) -> None:
        super().__init__(where)
        self.asked, self.let_go = 0, False

    def driven(self) -> set[str]:
        return set() if self.let_go else set(self.runs())

    def progress(self, names: Iterable[str]) -> dict[str, str]:
        self.asked += 1
        return super().progress(names)


@contextmanager
def opened() -> Iterator[tuple[Driven, Feed]]:
    ledger = Driven()
    feed = Feed(ledger)
    try:
        yield ledger, feed
    finally:
        feed.close()
        ledger.close()


def begun(ledger: Ledger, provenance: Provenance = Provenance.LIVE) -> Book:
    return ledger.begin("live", VirtualClock(), Started(JOB, SPACE, "local", provenance, "0"))


def standing(share: float) -> str:
    return to_json([Headway("live-1-1", Purpose.RUN, "2 x node", AT, 60.0, 1.5, f"{share:.0%} done", share, 500.0)])


def shares(told: Iterable[Event]) -> list[list[float]]:
    return [[each["share"] for each in event.data["progress"]] for event in told if event.name == "progress"]


async def soon(stream: AsyncIterator[bytes]) -> list[Event]:
    return events(await asyncio.wait_for(anext(stream), SOON_S))


def run(scenario: Callable[[], Any]) -> Any:
    return asyncio.run(scenario())


def test_who_watches_a_run_is_told_how_far_its_job_is_whenever_that_changes() -> None:
    async def scenario() -> None:
        with opened() as (ledger, feed):
            book = begun(ledger)
            await feed.catch_up(with_state=True)
            stream = of_run(feed, book.run)
            assert [event.name for event in await soon(stream)] == ["entry"]
            for share in (0.1, 0.2):
                waits = asyncio.ensure_future(soon(stream))
                ledger.set_progress(book.run, standing(share))
                await feed.catch_up(with_state=True)
                (told,) = await waits
                assert (told.name, told.number, told.data["run"]) == ("progress", None, book.run)
                assert shares([told]) == [[share]]
            waits = asyncio.ensure_future(soon(stream))
            ledger.set_progress(book.run, None)
            await feed.catch_up(with_state=True)
            assert shares(await waits) == [[]]

    run(scenario)


def test_who_comes_later_or_again_is_told_at_once_and_only_the_newest() -> None:
    async def scenario() -> None:
        with opened() as (ledger, feed):
            book = begun(ledger)
            for share in (0.1, 0.2, 0.3):
                ledger.set_progress(book.run, standing(share))
                await feed.catch_up(with_state=True)
            for after, names in ((0, ["entry", "progress"]), (1, ["progress"])):
                stream = of_run(feed, book.run, after)
                told = [event for _ in names for event in await soon(stream)]
                assert [event.name for event in told] == names
                assert shares(told) == [[0.3]]

    run(scenario)


def test_when_nobody_drives_a_run_nothing_of_it_is_under_way_whatever_a_killed_process_has_noted() -> None:
    async def scenario() -> None:
        with opened() as (ledger, feed):
            book = begun(ledger)
            ledger.set_progress(book.run, standing(0.5))
            await feed.catch_up(with_state=True)
            book.write(Decided(Decision(PLACE, "the best")), Ended(True, "done"))
            ledger.let_go = True
            stream = of_run(feed, book.run)
            await soon(stream)
            assert shares(await soon(stream)) == [[0.5]]
            await feed.catch_up(with_state=True)
            told = [event async for sent in stream for event in events(sent)]
            assert [event.name for event in told] == ["entry", "entry", "progress", "end"]
            assert shares(told) == [[]]

    run(scenario)


def test_five_hundred_watchers_ask_no_more_than_one_does_and_runs_that_only_compute_are_not_asked_for() -> None:
    async def asked(watchers: int, provenance: Provenance) -> int:
        with opened() as (ledger, feed):
            book = begun(ledger, provenance)
            await feed.catch_up(with_state=True)
            streams = [of_run(feed, book.run) for _ in range(watchers)]
            for stream in streams:
                await soon(stream)
            waits = [asyncio.ensure_future(soon(stream)) for stream in streams]
            for _ in range(5):
                ledger.set_progress(book.run, standing(0.1))
                await feed.catch_up(with_state=True)
            if provenance is Provenance.LIVE:
                assert all(shares(told) == [[0.1]] for told in await asyncio.gather(*waits))
            for task in waits:
                task.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
            return ledger.asked

    assert asyncio.run(asked(500, Provenance.LIVE)) == asyncio.run(asked(1, Provenance.LIVE)) == 6
    assert asyncio.run(asked(1, Provenance.SIMULATED)) == 0


@given(steps=st.lists(st.sampled_from(["entry", "progress", "look", "read"]), max_size=30))
def test_no_entry_is_missed_or_told_twice_between_reports_and_the_newest_report_is_the_last_told(
    steps: list[str],
) -> None:
    async def scenario() -> None:
        with opened() as (ledger, feed):
            book = begun(ledger)
            await feed.catch_up(with_state=True)
            told: list[Event] = []
            stream, newest = of_run(feed, book.run), 0.0
            waits: asyncio.Future[list[Event]] | None = None
            for step in [*steps, "progress", "look"]:
                match step:
                    case "entry":
                        book.write(Refused(PLACE, "no"))
                    case "progress":
                        newest += 0.01
                        ledger.set_progress(book.run, standing(newest))
                    case "look":
                        await feed.catch_up(with_state=True)
                    case "read":
                        waits = waits or asyncio.ensure_future(soon(stream))
                        await asyncio.wait([waits], timeout=0.001)
                        if waits.done():
                            told, waits = [*told, *waits.result()], None
            while shares(told)[-1:] != [[newest]] or len([e for e in told if e.number]) < feed.last:
                told += await (waits or soon(stream))
                waits = None
            assert [event.number for event in told if event.name == "entry"] == list(range(1, feed.last + 1))
            seen = [share for (share,) in shares(told)]
            assert seen == sorted(set(seen))

    run(scenario)


def test_a_page_that_opens_sees_it_at_once_and_its_tag_changes_with_it(tmp_path: Path) -> None:
    with staged(tmp_path, mode="ui") as stage:
        ledger, path = stage.state.ledger, f"{API}/runs/live-1"
        book = begun(ledger)
        with ledger.hold(book.run):
            stage.look()
            idle = stage.ask("GET", path)
            assert idle.json()["progress"] == []
            ledger.set_progress(book.run, standing(0.25))
            stage.look()
            shown = stage.ask("GET", path, headers={"If-None-Match": idle.headers["etag"]})
            assert shown.status == 200
            assert shown.json()["progress"] == json.loads(standing(0.25))
            assert {**shown.json(), "progress": []} == idle.json()
            assert stage.ask("GET", path, headers={"If-None-Match": shown.headers["etag"]}).status == 304
            ledger.set_progress(book.run, '[{"of": "another version"}]')
            stage.look()
            assert stage.ask("GET", path).json() == idle.json()
