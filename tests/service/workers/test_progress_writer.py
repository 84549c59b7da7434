"""What a live job reports is noted: the newest, not too often, gone when it is over; and it never holds the run up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlcd_fixtures.scale_runs import JOB, SPACE

from mlcd.core.backend import Launch, Provenance, Purpose
from mlcd.core.clock import VirtualClock
from mlcd.core.errors import LedgerError
from mlcd.core.ledger import Ledger, Line, Reserved, Settled, Started
from mlcd.core.measurement import Measurement, Outcome, Sample
from mlcd.reports.launch_progress import from_json
from mlcd.service.workers.progress_writer import EVERY_S, ProgressWriter

PLACE = SPACE.configurations[0]
LAUNCH = Launch("digits-1-1", PLACE, Purpose.RUN, 1_000.0, None, 1)
SOON_S = 300.0


class Remembering(Ledger):
    """A ledger that remembers its notes, and can be slow or away."""

    def __init__(self) -> None:
        super().__init__(None)
        self.notes: list[str | None] = []
        self.away = False
        self.written, self.open = threading.Semaphore(0), threading.Event()
        self.open.set()

    def set_progress(self, run: str, told: str | None) -> None:
        assert self.open.wait(SOON_S)
        if self.away:
            self.written.release()
            raise LedgerError("the database cannot be reached")
        super().set_progress(run, told)
        self.notes.append(told)
        self.written.release()


@contextmanager
def opened() -> Iterator[tuple[Remembering, str]]:
    ledger = Remembering()
    run = ledger.begin("digits", VirtualClock(), Started(JOB, SPACE, "local", Provenance.LIVE, "0")).run
    try:
        yield ledger, run
    finally:
        ledger.close()


def line(ledger: Ledger, run: str, launch: Launch) -> Line:
    """The settlement of a launch, as whoever listens to the books is told it."""
    measured = Measurement(PLACE, Outcome.OK, 3.0, 0.1, 100.0)
    ledger.append(run, VirtualClock(), [Reserved(launch, "why not", 1.0, 10.0)])
    return ledger.append(run, VirtualClock(), [Settled(launch, measured)])[0]


def wrote(ledger: Remembering) -> None:
    assert ledger.written.acquire(timeout=SOON_S)


def labels(told: dict[str, str], run: str) -> list[str]:
    return [each.label for each in from_json(told.get(run, "[]"))]


def test_the_first_report_is_noted_at_once_and_what_is_settled_is_gone() -> None:
    with opened() as (ledger, run):
        noted = ProgressWriter(ledger)
        with noted.writing(run):
            noted.report(JOB, LAUNCH, Sample(1.0, 250.0))
            wrote(ledger)
            (shown,) = from_json(ledger.progress([run])[run])
            assert (shown.label, shown.share, shown.elapsed_s) == (LAUNCH.label, 0.25, 1.0)
            noted.on_entry(line(ledger, run, LAUNCH))
            wrote(ledger)
            assert ledger.progress([run]) == {}


@given(gaps_s=st.lists(st.floats(0.0, 3.0), max_size=10))
def test_however_often_a_job_reports_it_is_noted_every_two_seconds_at_most(gaps_s: list[float]) -> None:
    with opened() as (ledger, run):
        now = [0.0]
        noted = ProgressWriter(ledger, now=lambda: now[0])
        noted_at: list[float] = []
        with noted.writing(run):
            for number, gap_s in enumerate(gaps_s, 1):
                now[0] += gap_s
                noted.report(JOB, LAUNCH, Sample(now[0], float(number)))
                if not noted_at or now[0] - noted_at[-1] >= EVERY_S:
                    noted_at.append(now[0])
                    wrote(ledger)
                else:
                    assert not ledger.written.acquire(timeout=0.002), "too soon"
        told = [from_json(note)[0].elapsed_s for note in ledger.notes if note is not None]
        assert told == noted_at
        assert ledger.notes[len(told) :] == [None] * min(1, len(gaps_s)), "nothing is under way when the run rests"


def test_launches_that_are_under_way_together_are_noted_side_by_side() -> None:
    with opened() as (ledger, run):
        noted = ProgressWriter(ledger, every_s=0.0)
        four = [replace(LAUNCH, label=f"digits-1-{number}") for number in range(1, 5)]

        def work(launch: Launch) -> None:
            for step in range(50):
                noted.report(JOB, launch, Sample(0.1 * step, 10.0 * step))

        with noted.writing(run):
            with ThreadPoolExecutor(4) as pool:
                list(pool.map(work, four))
            while labels(ledger.progress([run]), run) != [launch.label for launch in four]:
                wrote(ledger)
            noted.on_entry(line(ledger, run, four[1]))
            while len(labels(ledger.progress([run]), run)) == 4:
                wrote(ledger)
            assert labels(ledger.progress([run]), run) == [four[0].label, four[2].label, four[3].label]


@pytest.mark.parametrize("trouble", ["slow", "away"])
def test_a_database_that_is_slow_or_away_neither_holds_a_run_up_nor_fails_it(trouble: str) -> None:
    with opened() as (ledger, run):
        noted = ProgressWriter(ledger, every_s=0.0)
        with noted.writing(run):
            if trouble == "slow":
                ledger.open.clear()
            ledger.away = trouble == "away"
            for step in range(100):
                noted.report(JOB, LAUNCH, Sample(float(step), 10.0 * step))  # would hang here, or raise
            ledger.open.set()
            wrote(ledger)
            ledger.away = False
            noted.report(JOB, LAUNCH, Sample(100.0, 999.0))
            while labels(ledger.progress([run]), run) != [LAUNCH.label]:
                wrote(ledger)
        assert ledger.progress([run]) == {}


def test_what_a_process_that_was_killed_has_noted_is_taken_back_by_the_next() -> None:
    with opened() as (ledger, run):
        ledger.set_progress(run, "[]")
        with ProgressWriter(ledger).writing(run):
            assert ledger.progress([run]) == {}


def test_a_run_that_only_computes_writes_nothing_and_starts_no_thread() -> None:
    def threads(work: Callable[[], Any]) -> int:
        before = threading.active_count()
        work()
        return threading.active_count() - before

    with opened() as (ledger, run):
        noted = ProgressWriter(ledger)
        with noted.writing(run):
            assert threads(lambda: noted.on_entry(line(ledger, run, LAUNCH))) == 0
        assert ledger.notes == []
