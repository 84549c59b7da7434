"""How budgets get overrun elsewhere (docs/reference/guarantee.md lists where it was seen): each one a test here.

Failed teardowns and expired credentials need a live backend; their tests come with the first one.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mlcd.core.backend import Provenance, Purpose
from mlcd.core.clock import VirtualClock, WallClock
from mlcd.core.configuration import Choice, Configuration, Offer, ProbeTime, Space
from mlcd.core.drive import drive, launch, search
from mlcd.core.errors import BackendError, Outage, WrongState
from mlcd.core.job import Goal, Job
from mlcd.core.ledger import Ledger, Refused, Reserved, Settled, Started, Voided
from mlcd.core.ledger.resuming import resume_entry
from mlcd.core.measurement import Ended, Outcome, Sample
from mlcd.core.strategy import Finish, Probe
from mlcd.planners.profilers.training import TrainingProfiler
from mlcd.planners.train.completion import RunToCompletion
from mlcd.reports.answer import sentences
from mlcd.reports.story import Story
from mlcd_bench.baselines.train.heterbo import HeterBO

OFFER = Offer("x", 36.0, 4, 16, minimum_billed_s=60)  # a cent a second
SPACE = Space((Choice(OFFER, (1, 2)),), ProbeTime(600, 60))
ONE, TWO = SPACE.configurations
JOB = Job("job", 1e6, Goal(budget_usd=200.0))


class Fake:
    """A live-like cloud on a clock that the test moves: 100 samples a second on a node, a report every 10 s."""

    provenance = Provenance.LIVE

    def __init__(self, clock, *, endless=False, error=None, left_s=None):
        self.clock, self.endless, self.error, self.left_s = clock, endless, error, left_s
        self.launched, self.torn_down = [], []

    def run(self, job, order):
        self.launched.append(order)
        start_s, at_s = self.clock.elapsed_s(), 0.0
        try:
            while self.endless or order.lifetime_s is None or at_s < order.lifetime_s:
                yield Sample(at_s, 100.0 * order.configuration.nodes * at_s)
                at_s += 10
                self.clock.advance_to(start_s + at_s)
                if self.error is not None and at_s >= 30:
                    raise self.error
                if order.purpose is Purpose.RUN and 100.0 * order.configuration.nodes * at_s >= order.samples:
                    yield Ended(at_s, Outcome.OK)
                    return
        finally:
            self.torn_down.append(order)

    def reclaim(self, label):
        return self.left_s


class Script:
    """A strategy that asks for these probes, then finishes."""

    def __init__(self, *probes):
        self.probes = probes

    def next_step(self, job, space, history):
        done = len(history.measurements) + len(history.refusals)
        if done < len(self.probes):
            return Probe(self.probes[done], "as scripted")
        return Finish("as scripted")


def begin(job=JOB, **cloud):
    clock = VirtualClock()
    ledger = Ledger(None)
    book = ledger.begin(job.name, clock, Started(job, SPACE, "fake", Provenance.LIVE, "test"))
    backend = Fake(clock, **cloud)
    return ledger, book, backend, TrainingProfiler(backend)


def entries(ledger, book, kind):
    return [line.entry for line in ledger.lines(book.run) if isinstance(line.entry, kind)]


def test_the_worst_case_is_reserved_before_anything_is_launched():
    _, book, backend, profiler = begin()
    seen_at_launch = []
    inner = backend.run
    backend.run = lambda job, order: seen_at_launch.extend(book.account.open) or inner(job, order)
    drive(Script(ONE), JOB, SPACE, profiler, book)
    assert seen_at_launch[0] is not None
    assert seen_at_launch[0].worst_usd == pytest.approx(ONE.usd(600))


def test_the_stop_is_part_of_the_launch_not_something_set_afterwards():
    _, book, backend, profiler = begin()
    drive(Script(ONE, TWO), JOB, SPACE, profiler, book)
    assert [order.lifetime_s for order in backend.launched] == [600.0, 620.0]


def test_no_two_launches_share_a_label():
    _, book, backend, profiler = begin()
    drive(Script(ONE, ONE, TWO), JOB, SPACE, profiler, book)
    assert len({order.label for order in backend.launched}) == 3


def test_a_machine_that_a_crash_left_is_torn_down_and_paid_for_exactly():
    ledger, book, _, profiler = begin(left_s=77.0)
    book.write(Reserved(_order(book), "before the crash", 6.0, 600.0))
    drive(Script(), JOB, SPACE, profiler, book)
    (lost,) = entries(ledger, book, Settled)
    assert (lost.measurement.outcome, lost.measurement.seconds) == (Outcome.INTERRUPTED, 77.0)
    assert book.account.history.spent_usd == pytest.approx(0.77)


def test_a_launch_that_never_started_is_never_charged():
    ledger, book, _, profiler = begin(left_s=None)
    book.write(Reserved(_order(book), "before the crash", 6.0, 600.0))
    drive(Script(), JOB, SPACE, profiler, book)
    assert len(entries(ledger, book, Voided)) == 1
    assert book.account.history.spent_usd == 0.0


def test_a_cloud_that_fails_during_a_probe_is_paid_for_its_uptime():
    ledger, book, backend, profiler = begin(error=BackendError("the cloud said no"))
    with pytest.raises(Outage):
        drive(Script(ONE, TWO), JOB, SPACE, profiler, book)
    first, second = entries(ledger, book, Settled)
    assert (first.measurement.outcome, first.measurement.detail) == (Outcome.LAUNCH_FAILED, "the cloud said no")
    assert first.measurement.usd == pytest.approx(ONE.usd(60))  # thirty seconds, billed at the minimum of sixty
    assert backend.torn_down == backend.launched
    assert second.measurement.configuration == TWO


def test_a_bug_in_a_probe_is_raised_after_the_books_are_closed():
    ledger, book, backend, profiler = begin(error=ZeroDivisionError("a bug"))
    with pytest.raises(ZeroDivisionError):
        drive(Script(ONE), JOB, SPACE, profiler, book)
    assert book.account.open == ()
    assert entries(ledger, book, Settled)[0].measurement.outcome is Outcome.INTERRUPTED
    assert backend.torn_down == backend.launched


def test_a_probe_that_would_use_the_reserve_is_refused_and_the_strategy_hears_it():
    # One node needs 10,000 s and $100, at the worst $119; under $127 there is room for that, not for a second probe.
    job = Job("job", 1e6, Goal(budget_usd=127.0))
    ledger, book, backend, profiler = begin(job)
    decision = search(Script(ONE, TWO), job, SPACE, profiler, book)
    (refused,) = entries(ledger, book, Refused)
    assert refused.configuration == TWO
    assert "reserved to finish on 1 x x" in refused.because
    assert len(backend.launched) == 1
    assert decision.certified


def test_a_final_run_that_runs_long_is_stopped_at_the_limit_not_after_it():
    job = Job("job", 1e6, Goal(budget_usd=200.0))
    _, book, backend, profiler = begin(job)
    decision = search(HeterBO(), job, SPACE, profiler, book)
    assert decision.certified
    # The real run turns out to be endless: the cloud was slower than it measured.
    slow = Fake(backend.clock)
    slow.run = lambda job, order: _crawl(slow, order)
    launch(RunToCompletion(decision.configuration), job, SPACE, TrainingProfiler(slow), book)
    assert book.account.history.runs[-1].outcome is Outcome.AT_THE_LIMIT
    assert book.account.history.spent_usd <= 200.0 * (1 + 1e-9)
    assert book.account.ended is not None
    assert not book.account.ended.finished


def test_the_price_is_the_one_frozen_at_the_start_even_if_the_list_changes():
    ledger, book, _, profiler = begin()
    drive(Script(ONE), JOB, SPACE, profiler, book)
    (settled,) = entries(ledger, book, Settled)
    assert settled.measurement.configuration.offer.usd_per_hour == ledger.account(book.run).space.offers[0].usd_per_hour


def test_the_billed_minimum_is_in_the_worst_case_and_in_the_bill():
    assert Configuration(OFFER, 2).usd(1.0) == pytest.approx(2 * 0.6)
    assert Configuration(OFFER, 2).usd(61.0) == pytest.approx(2 * 0.61)
    assert Configuration(OFFER, 2).usd(0.0) == 0.0


def test_a_deadline_passes_while_a_live_run_is_not_driven():
    started = datetime.now(UTC) - timedelta(hours=5)
    assert WallClock(started).elapsed_s() == pytest.approx(5 * 3_600, abs=5)


def test_a_virtual_clock_stops_while_the_run_is_not_driven():
    clock = VirtualClock(120.0)
    assert clock.elapsed_s() == 120.0
    with pytest.raises(ValueError, match="cannot go back"):
        clock.advance_to(60.0)


def _order(book):
    from mlcd.core.backend import Launch

    return Launch(f"{book.run}-1", ONE, Purpose.PROBE, 1e6, 600.0, 0)


def _crawl(cloud, order):
    start_s = cloud.clock.elapsed_s()
    for i in range(11):
        at_s = order.lifetime_s * (i / 10)
        cloud.clock.advance_to(start_s + at_s)
        yield Sample(at_s, at_s)


@pytest.mark.parametrize(
    "details",
    [
        ("node 0: no such layer", "node 3: no such layer"),
        (
            "the calibration failed; function 1: no such layer",
            "the calibration failed 2 times; function 0: no such layer",
        ),
    ],
    ids=["machines", "functions"],
)
def test_the_same_mistake_of_the_job_twice_ends_the_search(details):
    ledger, book, backend, profiler = begin()
    left = list(details)
    inner = backend.run

    def fails(job, order):
        for event in inner(job, order):
            yield Ended(event.elapsed_s + 1.0, Outcome.FAILED, left.pop(0), "Traceback\nno such layer")

    backend.run = fails
    decision = search(Script(ONE, TWO, ONE, TWO), JOB, SPACE, profiler, book)
    assert left == []
    assert "the mistake is in the job, not in the machines: no such layer" in decision.because
    assert "no such layer" in decision.binding
    answer, then = sentences(Story.of(ledger.lines(book.run)))
    assert answer == "None of 2 probes could run the job: no such layer."
    assert "other limits would not help" in then
    with pytest.raises(WrongState, match="under any limits; in a new run, fix what ended every probe: no such layer"):
        resume_entry(book.run, book.account, None, 0.0)
