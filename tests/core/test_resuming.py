"""A run that ended before its work was done continues from its checkpoint; nothing is paid twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlcd_fixtures.examples import SLOW

from mlcd.clouds.virtual import play
from mlcd.core import drive
from mlcd.core.backend import Events, Launch, Provenance, Purpose
from mlcd.core.clock import VirtualClock
from mlcd.core.decision import Decision, Relaxation
from mlcd.core.errors import MlcdError, UserError, WrongState
from mlcd.core.forecasts import remaining_job
from mlcd.core.job import Goal, Job, Objective
from mlcd.core.ledger import Account, Book, Decided, Ledger, LimitsChanged, Line, Settled, Started, Status
from mlcd.core.ledger.entries import from_json, to_json
from mlcd.core.ledger.resuming import resume_entry
from mlcd.core.measurement import Ended, Event, Outcome, Sample
from mlcd.planners.profilers.training import TrainingProfiler
from mlcd.planners.train.completion import RunToCompletion
from mlcd.planners.train.net_value import NetValue
from mlcd.reports.document import run_document
from mlcd.reports.entries import ledger_rows, line_words
from mlcd.reports.story import Story
from mlcd.reports.terminal_run import ledger_table
from mlcd.testing.clouds import small_recording

WORK = 3_600_000.0
CLOUD = small_recording([[100.0]], [1.0], work_samples=WORK, probe_s=300.0)
"""One node does it in ten hours, for ten dollars."""
FOURTEEN = Goal(Objective.CHEAPEST, budget_usd=14.0)


@dataclass(frozen=True)
class Slower:
    """A cloud on which the job itself turns out so much slower than its probes, or fails after so long."""

    clock: VirtualClock
    factor: float = 1.0
    fails_s: float | None = None

    provenance = Provenance.RECORDED

    def run(self, job: Job, launch: Launch) -> Events:
        return play(self._events(launch), job, launch, self.clock)

    def reclaim(self, label: str) -> None:
        return None

    def _events(self, launch: Launch) -> Iterator[Event]:
        runs = launch.purpose is Purpose.RUN
        rate, done, now_s = 100.0 * (self.factor if runs else 1.0), 0.0, 0.0
        yield Sample(0.0, 0.0)
        while not runs or done < launch.samples:
            now_s += 120.0
            done = min(done + 120.0 * rate, launch.samples)
            if runs and self.fails_s is not None and now_s > self.fails_s:
                yield Ended(now_s, Outcome.FAILED, "no space left on device", "| OSError")
                return
            yield Sample(now_s, done)
        yield Ended(now_s, Outcome.OK)


def job_of(goal: Goal = FOURTEEN, checkpoints: bool = True) -> Job:
    return Job("long", WORK, goal, checkpoints=checkpoints)


def begin(backend: Slower, job: Job) -> Book:
    first = Started(job, CLOUD.space, "test", backend.provenance, "test")
    return Ledger(None).begin(job.name, backend.clock, first)


def to_the_end(book: Book, backend: Slower) -> Account:
    """From wherever the run stands: what `Run.search` and `Run.launch` do."""
    profiler, job = TrainingProfiler(backend), book.account.job
    if book.account.decision is None:
        drive.search(NetValue(), job, CLOUD.space, profiler, book)
    decision = book.account.decision
    assert decision is not None
    if decision.configuration is not None and book.account.ended is None:
        drive.launch(RunToCompletion(decision.configuration), job, CLOUD.space, profiler, book)
    return book.account


def go_on(book: Book, goal: Goal | None = None) -> None:
    entry = resume_entry(book.run, book.account, goal, book.clock.elapsed_s())
    if entry is not None:
        book.write(entry)


def entries_of(book: Book) -> list[Line]:
    return book._ledger.lines(book.run)


def is_paid_once(lines: Sequence[Line]) -> None:
    settled = [line.entry for line in lines if isinstance(line.entry, Settled)]
    labels = [entry.launch.label for entry in settled]
    assert len(labels) == len(set(labels)), "a launch was booked twice"
    account = Account.replay((line.entry, line.elapsed_s) for line in lines)
    assert account.history.spent_usd == pytest.approx(sum(entry.measurement.usd for entry in settled))


def is_continuous(lines: Sequence[Line]) -> None:
    """Every launch began where the last checkpoint was, and together they did the work once."""
    saved = 0.0
    for entry in (line.entry for line in lines if isinstance(line.entry, Settled)):
        assert entry.launch.saved_samples == pytest.approx(saved), "work was lost, or counted twice"
        assert entry.measurement.saved_samples == pytest.approx(saved + entry.measurement.samples_done)
        saved = entry.measurement.saved_samples
    assert saved == pytest.approx(WORK)


def ended_at_its_limit() -> tuple[Book, Slower]:
    backend = Slower(VirtualClock(), factor=0.5)
    book = begin(backend, job_of())
    account = to_the_end(book, backend)
    assert account.status is Status.FAILED
    assert account.history.runs[-1].outcome is Outcome.AT_THE_LIMIT
    return book, backend


def test_a_run_that_ended_at_its_limit_goes_on_from_its_checkpoint_when_the_limit_is_raised():
    book, backend = ended_at_its_limit()
    before = book.account
    go_on(book, replace(FOURTEEN, budget_usd=25.0))
    assert book.account.status is Status.SEARCHING
    account = to_the_end(book, backend)
    assert account.status is Status.FINISHED
    assert account.history.measurements == before.history.measurements, "no probe is made, or paid for, again"
    assert before.history.spent_usd < account.history.spent_usd <= 25.0
    is_continuous(entries_of(book))
    is_paid_once(entries_of(book))


def test_the_new_certificate_uses_the_rate_of_the_job_itself():
    """Its probe promised twice the rate: a certificate from that would be wrong again."""
    book, backend = ended_at_its_limit()
    spent_usd, saved = book.account.history.spent_usd, book.account.history.saved_samples
    left_usd = (WORK - saved) / 50.0 / 3_600  # at what it really does
    go_on(book, replace(FOURTEEN, budget_usd=spent_usd + 0.7 * left_usd))
    account = to_the_end(book, backend)
    assert account.status is Status.INFEASIBLE, "at the probe's rate it would have seemed to fit"
    assert account.decision is not None
    needs_usd = account.decision.relaxations[0].budget_usd
    assert needs_usd is not None
    go_on(book, replace(FOURTEEN, budget_usd=needs_usd))
    assert to_the_end(book, backend).status is Status.FINISHED
    assert book.account.history.spent_usd <= needs_usd
    is_continuous(entries_of(book))


def test_an_infeasible_search_goes_on_with_its_probes_when_the_limit_is_raised():
    backend = Slower(VirtualClock())
    book = begin(backend, job_of(replace(FOURTEEN, budget_usd=2.0)))
    assert to_the_end(book, backend).status is Status.INFEASIBLE
    probes = book.account.history.measurements
    with pytest.raises(WrongState, match=r"raise them: mlcd resume long-1 --budget \d"):
        go_on(book)
    go_on(book, FOURTEEN)
    account = to_the_end(book, backend)
    assert account.status is Status.FINISHED
    assert account.history.measurements[: len(probes)] == probes
    is_paid_once(entries_of(book))


def test_a_search_that_only_max_probe_blocked_gets_no_advice_to_raise_its_budget():
    book = begin(Slower(VirtualClock()), job_of())
    way = Relaxation(configuration=CLOUD.space.configurations[0], max_probe_usd=9.175)
    book.write(Decided(Decision(None, "nothing is left to try", binding="max_probe", relaxations=(way,))))
    with pytest.raises(WrongState) as refused:
        go_on(book)
    assert str(refused.value) == (
        "run 'long-1' cannot be certified within its limits; raise them: mlcd train JOB --max-probe 9.18"
    )


@pytest.mark.parametrize(("stated", "most_usd"), [(False, 4.0), (True, 2.0)])
def test_max_probe_follows_the_budget_unless_its_owner_set_it(stated, most_usd):
    search = replace(job_of().search, max_probe_usd=2.0, max_probe_stated=stated)
    book = begin(Slower(VirtualClock()), replace(job_of(), search=search))
    go_on(book, replace(FOURTEEN, budget_usd=28.0))
    assert book.account.job.search.max_probe_usd == most_usd
    go_on(book, FOURTEEN)
    assert book.account.job.search.max_probe_usd == 2.0


def test_a_limit_that_is_used_up_already_is_refused_in_one_line():
    book, _ = ended_at_its_limit()
    spent = book.account.history.spent_usd
    for goal in (replace(FOURTEEN, budget_usd=0.99 * spent), replace(FOURTEEN, deadline_s=book.clock.elapsed_s())):
        with pytest.raises(UserError, match=r"is for the whole run, so name more than that"):
            go_on(book, goal)
    with pytest.raises(WrongState, match=r"ended at its limit, with .* saved samples kept; raise it: mlcd resume"):
        go_on(book)


def test_a_job_that_failed_by_itself_goes_on_from_its_checkpoint():
    backend = Slower(VirtualClock(), fails_s=7_200.0)
    book = begin(backend, job_of())
    assert to_the_end(book, backend).status is Status.FAILED
    go_on(book)  # its owner has made room on the disk
    account = to_the_end(book, Slower(backend.clock))
    assert account.status is Status.FINISHED
    assert account.history.spent_usd <= 14.0
    is_continuous(entries_of(book))
    is_paid_once(entries_of(book))


def test_a_job_that_failed_and_saved_nothing_is_not_begun_again_unasked():
    backend = Slower(VirtualClock(), fails_s=7_200.0)
    book = begin(backend, job_of(checkpoints=False))
    assert to_the_end(book, backend).status is Status.FAILED
    with pytest.raises(WrongState, match="saved no work"):
        go_on(book)


def test_a_run_that_has_finished_is_over_whatever_its_limits():
    backend = Slower(VirtualClock())
    book = begin(backend, job_of())
    assert to_the_end(book, backend).status is Status.FINISHED
    with pytest.raises(WrongState, match="is finished; there is nothing to resume"):
        go_on(book, replace(FOURTEEN, budget_usd=50.0))


def test_every_report_tells_the_change_and_the_new_limit():
    book, backend = ended_at_its_limit()
    go_on(book, replace(FOURTEEN, budget_usd=25.0))
    to_the_end(book, backend)
    lines = entries_of(book)
    change = next(line for line in lines if isinstance(line.entry, LimitsChanged))
    assert from_json(to_json(change.entry)) == change.entry
    assert "the budget from $14.00 to $25.00, $1" in line_words(change, job_of())
    assert "limits_changed" in [row["kind"] for row in ledger_rows(lines)]
    assert ledger_table(lines).row_count == len(lines)
    assert run_document(lines)["goal"]["budget_usd"] == 25.0
    assert Story.of(lines).goal.budget_usd == 25.0


@SLOW
@given(
    st.lists(st.tuples(st.floats(0.3, 4.0), st.sampled_from(["budget", "deadline", "same"])), min_size=1, max_size=4),
    st.floats(0.3, 1.2),
)
def test_however_often_its_limits_change_a_run_keeps_the_newest_and_pays_once(
    changes: list[tuple[float, str]], factor: float
):
    backend = Slower(VirtualClock(), factor)
    book = begin(backend, job_of())
    goal = FOURTEEN
    to_the_end(book, backend)
    for times, which in changes:
        before = book.account
        wanted = {
            "budget": replace(goal, budget_usd=14.0 * times),
            "deadline": replace(goal, deadline_s=40_000 * times),
        }
        try:
            go_on(book, wanted.get(which))
        except MlcdError:
            assert book.account == before, "what was refused has left no trace"
            continue
        goal = wanted.get(which, goal)
        account = to_the_end(book, backend)
        assert account.job.goal == goal
        assert account.history.spent_usd <= (goal.budget_usd or 0) + 1e-9
        assert goal.deadline_s is None or account.history.elapsed_s <= goal.deadline_s + 1e-6
    is_paid_once(entries_of(book))
    if book.account.status is Status.FINISHED:
        is_continuous(entries_of(book))


def test_killed_after_any_entry_it_ends_as_if_it_had_not_been():
    """The whole story, from its start over the limit to its end, cut off after each entry and gone on with."""
    more = replace(FOURTEEN, budget_usd=25.0)
    book, backend = ended_at_its_limit()
    go_on(book, more)
    whole, lines = to_the_end(book, backend), entries_of(book)
    for count in range(1, len(lines)):
        again = cut_after(lines[:count])
        machine = Slower(again.clock, 0.5)  # type: ignore[arg-type]
        if again.account.status is not Status.FAILED:
            drive.reclaim(TrainingProfiler(machine), again)
            to_the_end(again, machine)
        if again.account.status is Status.FAILED:
            go_on(again, more)
            to_the_end(again, machine)
        assert again.account.status is Status.FINISHED
        assert again.account.history.spent_usd == pytest.approx(whole.history.spent_usd)
        assert remaining_job(again.account.job, again.account.history).work_samples == 1.0
        is_continuous(entries_of(again))
        is_paid_once(entries_of(again))


def cut_after(lines: Sequence[Line]) -> Book:
    """A ledger that has these entries and no more, and a clock that stands where the last of them was written."""
    clock = VirtualClock()
    book = Ledger(None).begin("long", clock, lines[0].entry)
    for line in lines[1:]:
        clock.advance_to(max(clock.elapsed_s(), line.elapsed_s))
        book.write(line.entry)
    return book
