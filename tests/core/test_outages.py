"""Outages of a place: what was not ordered costs nothing, and an outage says nothing about the job."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.core.backend import Provenance, Purpose
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Choice, Offer, ProbeTime, Space
from mlcd.core.drive import launch, search
from mlcd.core.errors import BackendError, NoAccess, NoCapacity, NothingOrdered, Outage, StillUp
from mlcd.core.history import History
from mlcd.core.job import Goal, Job
from mlcd.core.launching import MOST_FAILED_LAUNCHES
from mlcd.core.ledger import Ledger, Settled, Started, Status, Voided
from mlcd.core.measurement import Ended, Measurement, Outcome, Sample
from mlcd.core.strategy import Finish, Probe, Round
from mlcd.planners.profilers.training import TrainingProfiler
from mlcd.planners.train.completion import RunToCompletion
from mlcd.testing.backends import EveryConfiguration

OFFER = Offer("x", 36.0, 4, 16, minimum_billed_s=60)  # a cent a second
SPACE = Space((Choice(OFFER, (1, 2, 3)),), ProbeTime(600, 60))
ONE, TWO, THREE = SPACE.configurations
JOB = Job("job", 1e5, Goal(budget_usd=500.0))
AWAY = NothingOrdered("no answer; check the network")
FULL = NoCapacity("no such machines free")
LOST = BackendError("the answer was lost")
BROKEN_OFF = BackendError("the connection broke off")
STUCK = StillUp("x could not be torn down")
EVERYTHING = EveryConfiguration()
FORBIDDEN = NoAccess("the credentials have expired")


class Unsteady:
    """A place whose launches meet these errors in turn; None, and all that come after them, go well."""

    provenance = Provenance.LIVE

    def __init__(self, clock, *errors):
        self.clock, self.errors, self.launched, self.ordered_s = clock, list(errors), [], {}
        self.saved_by = {}

    def run(self, job, order):
        self.launched.append(order.configuration)
        error, start_s = self.errors.pop(0) if self.errors else None, self.clock.elapsed_s()
        self.clock.wait(70.0)
        if not isinstance(error, NothingOrdered):
            self.ordered_s[order.label] = 70.0
        if error is BROKEN_OFF:
            self.saved_by[order.label] = 10_000.0
            yield Sample(70.0, 10_000.0, saved=10_000.0)
        if error is not None:
            raise error
        step = order.samples / 29 if order.purpose is Purpose.RUN else 1_000.0 * order.configuration.nodes
        for number in range(30):
            self.clock.wait(10.0)
            self.ordered_s[order.label] = self.clock.elapsed_s() - start_s
            yield Sample(self.ordered_s[order.label], step * number)
        yield Ended(self.ordered_s[order.label], Outcome.OK)

    def reclaim(self, label):
        return self.ordered_s.get(label)

    def saved(self, label):
        return self.saved_by.get(label, 0.0)


class TwoAtOnce:
    """A search that tries everything once, two at a time."""

    def next_step(self, job, space, history):
        left = [Probe(each, "the next one") for each in space.configurations if each not in history.tried]
        return Round(tuple(left[:2])) if left else Finish("everything was tried")


class Driven:
    """A run on such a place."""

    def __init__(self, *errors):
        self.clock, self.ledger = VirtualClock(), Ledger(None)
        self.place = Unsteady(self.clock, *errors)
        self.profiler = TrainingProfiler(self.place)
        self.book = self.ledger.begin("job", self.clock, Started(JOB, SPACE, "fake", Provenance.LIVE, "test"))

    def search(self, strategy=EVERYTHING):
        return search(strategy, JOB, SPACE, self.profiler, self.book)

    def launch(self, configuration, job=JOB):
        return launch(RunToCompletion(configuration), job, SPACE, self.profiler, self.book)

    def entries(self, kind):
        return [line.entry for line in self.ledger.lines("job-1") if isinstance(line.entry, kind)]

    @property
    def account(self):
        return self.ledger.account("job-1")


def test_a_place_that_cannot_be_reached_books_nothing_and_stops_the_run_after_two():
    run = Driven(*[AWAY] * 33)
    with pytest.raises(Outage, match=r"no answer; check the network.*nothing is billed.*mlcd resume job-1"):
        run.search()
    assert len(run.place.launched) == MOST_FAILED_LAUNCHES
    assert run.account.history.spent_usd == 0.0
    assert len(run.entries(Voided)) == MOST_FAILED_LAUNCHES
    assert run.account.status is Status.STOPPED


def test_a_run_stopped_by_an_outage_resumes_and_pays_for_nothing_twice():
    run = Driven(None, AWAY, AWAY)
    with pytest.raises(Outage):
        run.search()
    assert [m.configuration for m in run.account.history.good] == [ONE]
    assert run.account.decision is None  # an outage is no answer
    assert run.search().configuration is not None
    assert run.place.launched == [ONE, TWO, TWO, TWO, THREE]
    assert len(run.entries(Settled)) == 3


def test_one_failed_launch_between_good_ones_is_made_again():
    run = Driven(None, AWAY, None, LOST, None, AWAY)
    assert run.search().configuration is not None
    assert {m.configuration for m in run.account.history.good} == {ONE, TWO, THREE}


def test_requests_with_lost_answers_are_billed_and_two_stop_the_run():
    run = Driven(LOST, LOST)
    with pytest.raises(Outage, match="the answer was lost"):
        run.search()
    assert [entry.measurement.outcome for entry in run.entries(Settled)] == [Outcome.LAUNCH_FAILED] * 2
    assert run.account.history.spent_usd == pytest.approx(2 * ONE.usd(70))


def test_want_of_capacity_costs_nothing_and_other_configurations_are_tried():
    run = Driven(FULL, FULL, None)
    assert run.search().configuration is not None
    assert run.place.launched == [ONE, ONE, TWO, THREE]
    first, second, *_ = run.entries(Settled)
    for entry in (first, second):
        assert (entry.measurement.outcome, entry.measurement.usd) == (Outcome.LAUNCH_FAILED, 0.0)


def test_no_access_stops_the_run_at_once():
    run = Driven(FORBIDDEN)
    with pytest.raises(Outage, match="credentials have expired"):
        run.search()
    assert len(run.place.launched) == 1
    assert run.account.history.spent_usd == 0.0


def test_launches_whose_machines_are_still_up_stay_open_in_the_ledger():
    run = Driven(None, STUCK)
    with pytest.raises(Outage, match="could not be torn down"):
        run.search()
    (left,) = run.account.open
    run.place.ordered_s[left.launch.label] = 500.0  # they went on after we had given up
    run.search()
    assert run.account.open == ()
    assert [entry.measurement.seconds for entry in run.entries(Settled)][1] == 500.0


def test_nothing_more_is_ordered_while_machines_of_a_round_are_still_up():
    """What is reserved for them is not in what was spent: the next probe could break the limit."""
    run = Driven(None, STUCK)
    with pytest.raises(Outage, match="could not be torn down"):
        run.search(TwoAtOnce())
    assert len(run.place.launched) == 2
    assert [m.configuration for m in run.account.history.good] == [ONE]
    run.search(TwoAtOnce())
    assert run.account.open == ()


def test_the_job_itself_waits_for_the_place_to_come_back():
    run = Driven(None, None, None, LOST, AWAY)
    chosen = run.search().configuration
    with pytest.raises(Outage):
        run.launch(chosen)
    assert run.account.status is Status.STOPPED
    assert run.launch(chosen).outcome is Outcome.OK
    assert run.account.status is Status.FINISHED


def test_a_launch_that_saved_work_before_the_place_failed_was_no_launch_in_vain():
    run = Driven(None, None, None, BROKEN_OFF, BROKEN_OFF, BROKEN_OFF)
    job = replace(JOB, checkpoints=True)
    chosen = run.search().configuration
    assert run.launch(chosen, job).outcome is Outcome.OK
    *failed, last = run.account.history.runs
    assert [m.outcome for m in failed] == [Outcome.LAUNCH_FAILED] * 3
    assert [m.saved_samples for m in failed] == [10_000.0, 20_000.0, 30_000.0]
    assert last.mismatch is None


@given(st.lists(st.sampled_from([None, AWAY, FULL, LOST, STUCK, FORBIDDEN]), max_size=8))
def test_the_ledger_has_every_order_whatever_fails(errors):
    run = Driven(*errors)
    for _ in range(len(errors) + 1):
        try:
            run.search()
            break
        except Outage:
            continue
    assert run.account.decision is not None
    assert run.account.open == ()
    paid = {entry.launch.label: entry.measurement.usd for entry in run.entries(Settled) if entry.measurement.usd}
    assert paid.keys() == run.place.ordered_s.keys()
    assert run.account.history.spent_usd == pytest.approx(sum(paid.values()))


@pytest.mark.parametrize(
    ("outcome", "times", "is_answered"),
    [
        (Outcome.INTERRUPTED, 20, False),
        (Outcome.PREEMPTED, 1, False),
        (Outcome.PREEMPTED, 2, True),
        (Outcome.LAUNCH_FAILED, 2, True),
    ],
)
def test_bad_luck_twice_is_an_answer_and_being_killed_never_is(outcome, times, is_answered):
    unlucky = Measurement(ONE, outcome, 60.0, 0.6)
    assert (ONE in History((unlucky,) * times).tried) is is_answered
