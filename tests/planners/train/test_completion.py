"""Steering the job itself: what happens when it slows down, is lost, or meets its limit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlcd_fixtures.examples import SLOW

from mlcd.clouds.recording import Recording
from mlcd.clouds.virtual import play
from mlcd.core.backend import Launch, Provenance, Purpose
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Configuration, Space
from mlcd.core.drive import launch, search
from mlcd.core.forecasts import certified_rates, remaining_job
from mlcd.core.history import History
from mlcd.core.job import CONFIDENCE, Goal, Job, Objective
from mlcd.core.ledger import Ledger, Started
from mlcd.core.measurement import Ended, Event, Measurement, Mismatch, Outcome, Sample
from mlcd.core.place import Cloud
from mlcd.core.strategy import Finish, Probe, Step
from mlcd.core.units import format_rate
from mlcd.planners.profilers.training import TrainingProfiler
from mlcd.planners.train.completion import (
    MOST_SETBACKS,
    MOST_SLOWDOWNS,
    RunToCompletion,
    chance_of_run,
    chances_if_launched,
    is_worth_leaving,
    long_run_shift,
)
from mlcd.planners.train.net_value import NetValue
from mlcd.testing.clouds import small_recording
from mlcd.testing.promises import check_books, search_and_run

RECORDING = small_recording([[100.0], [95.0]], [1.0, 1.2], work_samples=3_600_000, probe_s=300.0)
FIRST, SECOND = RECORDING.space.configurations
TEN_HOURS = 36_000.0
LIMIT = 14 * 3_600.0


@dataclass(frozen=True)
class Changing:
    """A recorded cloud whose first configuration changes its rate by `factor` so long after a run's start.

    `lost_s`: a run is lost then, as long as fewer than `until_samples` are saved. `report_s`: between its reports.
    """

    clock: VirtualClock
    at_s: float
    factor: float
    lost_s: float | None = None
    until_samples: float = 1_000_000.0
    recording: Recording = RECORDING
    report_s: float = 30.0  # ten reports to a run's window are enough

    provenance = Provenance.RECORDED

    def run(self, job: Job, launch: Launch):
        return play(self._events(launch), job, launch, self.clock)

    def reclaim(self, label: str) -> None:
        return None

    def _events(self, launch: Launch) -> Iterator[Event]:
        rate = self.recording.points[launch.configuration].samples_per_s
        assert rate is not None
        step_s = 10.0 if launch.purpose is Purpose.PROBE else self.report_s
        done = now_s = 0.0
        yield Sample(0.0, 0.0)
        while launch.purpose is Purpose.PROBE or done < launch.samples:
            slowed = launch.purpose is Purpose.RUN and launch.configuration == FIRST and now_s >= self.at_s
            pace = rate * (self.factor if slowed else 1.0)
            took_s = step_s if launch.purpose is Purpose.PROBE else min(step_s, (launch.samples - done) / pace)
            now_s += took_s
            done += pace * took_s
            if self.lost_s is not None and launch.purpose is Purpose.RUN and now_s >= self.lost_s:
                if launch.saved_samples < self.until_samples:
                    yield Ended(now_s, Outcome.PREEMPTED, "node 0 was lost")
                    return
            yield Sample(now_s, done)
        yield Ended(now_s, Outcome.OK)


def run(goal: Goal, backend: Changing, *, checkpoints: bool = True, recording=RECORDING):
    job = Job("steered", recording.work_samples, goal, checkpoints=checkpoints)
    cloud = Cloud(recording.space, backend, TrainingProfiler(backend), backend.clock)
    ledger, name, decision = search_and_run(NetValue(), job, cloud)
    check_books(goal, ledger.lines(name))
    return ledger.account(name), decision


def test_a_run_that_slows_down_resumes_elsewhere_from_its_checkpoint():
    account, decision = run(Goal(), Changing(VirtualClock(), TEN_HOURS / 4, 0.2))
    assert decision.configuration == FIRST
    slowed, rest = account.history.runs
    assert slowed.outcome is Outcome.SLOWED
    assert 20.0 <= slowed.rate < 80.0  # it is heard before all of the window is slow
    assert rest.configuration == SECOND
    assert rest.outcome is Outcome.OK
    assert slowed.samples_done + rest.samples_done == pytest.approx(
        RECORDING.work_samples - max(m.saved_samples for m in account.history.measurements)
    )
    assert account.history.elapsed_s < 1.15 * TEN_HOURS  # at a fifth of the rate it would be four times as long


@pytest.mark.parametrize("after", [1 / 8, 1 / 4])
def test_a_run_late_for_its_deadline_moves_and_not_to_a_configuration_that_slows_down_every_time(after):
    goal = Goal(Objective.CHEAPEST, deadline_s=1.25 * TEN_HOURS)
    account, _ = run(goal, Changing(VirtualClock(), TEN_HOURS * after, 0.5))
    *slowed, last = account.history.runs
    assert [m.outcome for m in slowed] == [Outcome.SLOWED] * len(slowed)
    assert (last.outcome, last.configuration) == (Outcome.OK, SECOND)
    assert len(slowed) <= 1 + MOST_SLOWDOWNS
    assert account.ended.finished
    assert account.history.elapsed_s <= goal.deadline_s


def test_a_configuration_that_broke_down_is_not_launched_again_even_under_a_generous_limit():
    goal = Goal(Objective.CHEAPEST, deadline_s=20 * TEN_HOURS)
    account, _ = run(goal, Changing(VirtualClock(), TEN_HOURS / 4, 0.5))
    assert [(m.configuration, m.outcome) for m in account.history.runs] == [
        (FIRST, Outcome.SLOWED),
        (SECOND, Outcome.OK),
    ]


def test_a_small_slow_down_does_not_move_the_run():
    account, _ = run(Goal(), Changing(VirtualClock(), TEN_HOURS / 4, 0.97))
    assert [m.outcome for m in account.history.runs] == [Outcome.OK]


def test_without_checkpoints_a_late_slow_down_is_not_worth_a_new_start():
    account, _ = run(Goal(), Changing(VirtualClock(), 0.9 * TEN_HOURS, 0.5), checkpoints=False)
    assert [m.outcome for m in account.history.runs] == [Outcome.OK]


def test_without_an_alternative_it_stops_at_the_limit_with_its_work_saved():
    goal = Goal(deadline_s=1.2 * TEN_HOURS)
    backend = Changing(VirtualClock(), TEN_HOURS / 2, 0.1)
    one = small_recording([[100.0]], [1.0], work_samples=RECORDING.work_samples, probe_s=300.0)
    account, decision = run(goal, backend, recording=replace(one, points={FIRST: RECORDING.points[FIRST]}))
    assert decision.certified
    last = account.history.runs[-1]
    assert last.outcome is Outcome.AT_THE_LIMIT
    assert last.saved_samples > 0.5 * RECORDING.work_samples
    assert "samples are saved" in account.ended.because
    assert account.history.elapsed_s <= goal.deadline_s


def test_a_run_slower_than_certified_is_reported_at_once_even_without_an_alternative():
    goal = Goal(deadline_s=1.2 * TEN_HOURS)
    one = small_recording([[100.0]], [1.0], work_samples=RECORDING.work_samples, probe_s=300.0)
    backend = Changing(VirtualClock(), TEN_HOURS / 2, 0.1)
    account, _ = run(goal, backend, recording=replace(one, points={FIRST: RECORDING.points[FIRST]}))
    (warning,) = account.warnings
    assert "samples that" not in warning
    assert warning.startswith("slower than the ")
    assert "past the deadline; it is stopped at the limit, with what it has saved" in warning


def test_a_run_that_moves_was_reported_as_slow_before():
    account, _ = run(Goal(), Changing(VirtualClock(), TEN_HOURS / 4, 0.2))
    probed = account.at_decision
    counted_on = certified_rates(CONFIDENCE, probed)(next(m for m in probed.good if m.configuration == FIRST))
    (warning,) = account.warnings
    assert warning.startswith(f"slower than the {format_rate(counted_on)} that the certificate counts on")


def test_a_steady_run_causes_no_warning():
    assert run(Goal(), Changing(VirtualClock(), TEN_HOURS / 4, 1.0))[0].warnings == ()


@dataclass(frozen=True)
class ProbeAll:
    """A strategy that measures everything once."""

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        untried = [each for each in space.configurations if each not in history.tried]
        return Probe(untried[0], "all of them") if untried else Finish("all of them")


def rescued(
    factor: float, *, other=200.0, after_s=0.0, checkpoints=True, limit_s=LIMIT, lost_s=None, report_s=30.0, waits_s=0.0
):
    """The cheaper of two, chosen to be done in 14 hours, whose run is so much slower than its probe from then on.

    `lost_s`: its first launch is lost then. `waits_s`: its user takes so long to say yes.
    """
    recording = small_recording([[100.0], [other]], [1.0, 4.0], work_samples=3_600_000, probe_s=300.0)
    backend = Changing(VirtualClock(), after_s, factor, lost_s, 50_000.0, recording, report_s)
    job = Job("late", recording.work_samples, Goal(Objective.CHEAPEST, deadline_s=limit_s), checkpoints=checkpoints)
    profiler, ledger = TrainingProfiler(backend), Ledger(None)
    started = Started(job, recording.space, "test", Provenance.RECORDED, "test")
    book = ledger.begin(job.name, backend.clock, started)
    decision = search(ProbeAll(), job, recording.space, profiler, book)
    assert decision.certified
    assert decision.configuration == FIRST
    backend.clock.wait(waits_s)
    launch(RunToCompletion(FIRST), job, recording.space, profiler, book)
    check_books(job.goal, ledger.lines(book.run))
    return ledger.account(book.run)


@pytest.mark.parametrize("checkpoints", [True, False])
@pytest.mark.parametrize("factor", [0.5, 0.65, 0.7])
def test_a_run_too_slow_for_its_deadline_moves_before_it_is_too_late(factor, checkpoints):
    account = rescued(factor, checkpoints=checkpoints)  # it would end after 14.3 hours and more
    assert [m.outcome for m in account.history.runs] == [Outcome.SLOWED, Outcome.OK]
    assert account.history.runs[-1].configuration != FIRST
    assert account.ended.finished
    assert account.history.elapsed_s <= LIMIT


def test_a_run_that_slows_down_near_its_end_stays():
    account = rescued(0.7, after_s=9 * 3_600.0)
    assert [m.outcome for m in account.history.runs] == [Outcome.OK]


def test_a_run_stays_if_no_other_configuration_would_be_in_time_either():
    account = rescued(0.5, other=20.0, after_s=5 * 3_600.0, checkpoints=False)
    assert [(m.outcome, m.configuration) for m in account.history.runs] == [(Outcome.AT_THE_LIMIT, FIRST)]


ON_TRIAL_S = 11.5 * 3_600.0
"""Ten hours on the first one probably fit, but not certainly: it starts on trial, with the second as fallback."""


@pytest.mark.parametrize("after_s", [0.0, 900.0])
@pytest.mark.parametrize("factor", [0.7, 0.85, 0.88])
def test_a_run_on_trial_that_is_too_slow_moves_to_its_fallback_in_time(factor, after_s):
    account = rescued(factor, after_s=after_s, checkpoints=False, limit_s=ON_TRIAL_S)
    fallback = account.decision.forecast.fallback
    assert fallback is not None
    assert [(m.outcome, m.configuration) for m in account.history.runs] == [
        (Outcome.SLOWED, FIRST),
        (Outcome.OK, fallback),
    ]
    assert account.ended.finished
    assert account.history.elapsed_s <= ON_TRIAL_S


@pytest.mark.parametrize("report_s", [60.0, 240.0])
def test_a_run_on_trial_that_reports_seldom_is_watched_too(report_s):
    account = rescued(0.85, checkpoints=False, limit_s=ON_TRIAL_S, report_s=report_s)
    assert [m.outcome for m in account.history.runs] == [Outcome.SLOWED, Outcome.OK]


def test_a_decision_on_trial_that_is_launched_too_late_runs_on_the_certain_configuration():
    account = rescued(1.0, checkpoints=False, limit_s=ON_TRIAL_S, waits_s=3 * 3_600.0)
    (only,) = account.history.runs
    assert (only.outcome, only.configuration) == (Outcome.OK, account.decision.forecast.fallback)
    assert account.history.elapsed_s <= ON_TRIAL_S


def test_the_time_until_a_user_approves_counts_towards_the_deadline():
    account = rescued(0.8, other=20.0, checkpoints=False, waits_s=3 * 3_600.0)
    assert account.history.runs[-1].outcome is Outcome.AT_THE_LIMIT
    assert account.history.elapsed_s <= LIMIT


def test_the_progress_of_a_run_on_trial_names_its_fallback():
    account = rescued(0.85, checkpoints=False, limit_s=ON_TRIAL_S)
    (warning, *_) = account.warnings
    fallback = account.decision.forecast.fallback
    assert f"it is left while another configuration, such as {fallback}, still ends in time for sure" in warning


@pytest.mark.parametrize("factor", [0.95, 1.0, 1.1])
def test_a_run_on_trial_that_is_fast_enough_stays_without_a_warning(factor):
    account = rescued(factor, checkpoints=False, limit_s=ON_TRIAL_S)
    assert account.decision.forecast.fallback is not None
    assert [(m.outcome, m.configuration) for m in account.history.runs] == [(Outcome.OK, FIRST)]
    assert account.warnings == ()


def test_a_run_on_trial_that_is_lost_to_bad_luck_is_launched_again_there():
    account = rescued(1.0, limit_s=ON_TRIAL_S, lost_s=600.0)
    assert account.decision.forecast.fallback is not None
    assert [(m.outcome, m.configuration) for m in account.history.runs] == [
        (Outcome.PREEMPTED, FIRST),
        (Outcome.OK, FIRST),
    ]


def test_without_a_limit_no_run_is_left_for_being_late():
    then = History((measured(FIRST, 100.0), measured(SECOND, 95.0)), (measured(FIRST, 80.0),))
    free, limited = (Job("j", 3.6e6, goal) for goal in (Goal(), Goal(deadline_s=1.0)))
    assert not is_worth_leaving(free, free, RECORDING.space, then, then.runs[0])
    assert chance_of_run(limited, then, then.runs[0]) < 0.01


def test_a_run_that_has_just_begun_is_as_sure_as_another_launch_of_its_configuration():
    """Its first reports scatter. That alone is no reason to start again and lose the work so far."""
    job = Job("j", 3.6e6, Goal(deadline_s=12.5 * 3_600.0))
    so_far = replace(measured(FIRST, 98.0), rel_error=0.15, seconds=1_000.0, samples_done=98_000.0)
    then = History((measured(FIRST, 100.0), measured(FIRST, 101.0)), (so_far,), elapsed_s=2_200.0)
    assert chance_of_run(job, then, so_far) > 0.97
    assert not is_worth_leaving(job, job, RECORDING.space, then, so_far)


def test_a_run_is_not_left_while_another_one_is_as_sure_later():
    """Waiting costs nothing then; leaving would lose all work so far."""
    job = Job("j", 3.6e6, Goal(Objective.CHEAPEST, deadline_s=11.3 * 3_600.0))
    so_far = replace(measured(FIRST, 98.0), rel_error=0.05, seconds=1_200.0, samples_done=117_600.0)
    probes = (replace(measured(FIRST, 100.0), rel_error=0.04), measured(SECOND, 150.0), measured(SECOND, 151.0))
    then = History(probes, (so_far,), elapsed_s=3_000.0)
    now, later = (chances_if_launched(job, RECORDING.space, then, later_s) for later_s in (0.0, 900.0))
    assert chance_of_run(job, then, so_far) < CONFIDENCE
    assert max(now.values()) > max(later.values()) > CONFIDENCE
    assert not is_worth_leaving(job, job, RECORDING.space, then, so_far)


def test_one_slow_launch_does_not_outweigh_the_other_measurements_of_its_configuration():
    """If launches differ by 8 %, the next one may be as fast as the probes, however well the slow rate is known."""
    probes = tuple(replace(measured(FIRST, rate), rel_error=0.03) for rate in (92.0, 108.0, 90.0, 110.0))
    slow = replace(measured(FIRST, 80.0), rel_error=0.005, seconds=3_600.0, samples_done=80.0 * 3_600)
    then = History(probes, (slow,), elapsed_s=6_000.0)
    job = Job("j", 3.6e6, Goal(deadline_s=6_000.0 + 3.6e6 / 88))
    (again,) = chances_if_launched(job, RECORDING.space, then).values()
    assert again > 0.3
    assert is_worth_leaving(job, job, RECORDING.space, then, slow)


@given(st.floats(60.0, 110.0), st.floats(60.0, 110.0))
def test_the_faster_a_run_the_likelier_it_ends_in_time(one, other):
    job = Job("j", 3.6e6, Goal(deadline_s=12 * 3_600.0))
    runs = [replace(measured(FIRST, rate), rel_error=0.03, samples_done=1e5) for rate in sorted((one, other))]
    slow, fast = (chance_of_run(job, History((measured(FIRST, 90.0),), (run,), elapsed_s=1_800.0), run) for run in runs)
    assert 0.0 <= slow <= fast + 1e-9
    assert fast <= 1.0 + 1e-9


def measured(where: Configuration, rate: float) -> Measurement:
    return Measurement(where, Outcome.OK, 600.0, 1.0, rate, 0.01)


@given(st.floats(0.7, 1.0))
def test_a_run_slower_than_its_probe_lowers_the_expected_rate_of_every_configuration(factor):
    probes = (measured(FIRST, 100.0), measured(SECOND, 95.0))
    shift, error = long_run_shift(History(probes, (measured(FIRST, 100.0 * factor),)))
    assert log(factor) <= shift <= 0
    assert error > 0
    assert long_run_shift(History(probes, (measured(FIRST, 110.0),)))[0] == 0, "a fast run promises nothing of others"


@dataclass(frozen=True)
class Ending(Changing):
    """A cloud on which the job itself ends after this share of its work, whatever was stated."""

    share: float = 1.0

    def run(self, job: Job, launch: Launch):
        own = replace(launch, samples=launch.samples * self.share)
        return play(self._events(own), job, launch, self.clock)


def test_a_job_that_ends_before_its_work_is_done_has_not_finished():
    account, _ = run(Goal(), Ending(VirtualClock(), 1e9, 1.0, share=0.13), checkpoints=False)
    (last,) = account.history.runs
    assert last.outcome is Outcome.OK
    assert account.status == "failed"
    assert account.ended.because == (
        "the job ended by itself (exit code 0) after 468,000 samples, 13 % of the 3,600,000 that `work` states: "
        "either `work` is too large, or it reports too few (see `batch`)"
    )


def test_a_job_that_does_more_than_its_work_has_finished_and_is_reported_at_once():
    account, _ = run(Goal(), Ending(VirtualClock(), 1e9, 1.0, share=4.0), checkpoints=False)
    assert account.status == "finished"
    assert account.ended.because.startswith("the job ran to its end, but has reported 14,400,000")
    assert "14,400,000 samples, 400 % of the 3,600,000 that `work` states" in account.ended.because
    (warning,) = account.warnings
    assert "105 % of the 3,600,000" in warning
    assert "when it ends is not known: there is no limit to stop it" in warning


def test_a_job_that_does_more_than_its_work_is_stopped_at_the_limit_with_the_reason():
    goal = Goal(deadline_s=1.5 * TEN_HOURS)
    account, _ = run(goal, Ending(VirtualClock(), 1e9, 1.0, share=4.0), checkpoints=False)
    assert account.history.runs[-1].outcome is Outcome.AT_THE_LIMIT
    assert "samples done when the limit was reached; it has reported" in account.ended.because
    assert "either `work` is too small" in account.ended.because


def test_work_saved_while_the_driver_was_dead_does_not_fail_the_job():
    """The driver was killed, and the job ran on to its end. What it saved meanwhile was never reported."""
    job = Job("steered", 1e6, checkpoints=True)
    unseen = Measurement(FIRST, Outcome.INTERRUPTED, 9_000.0, 2.5, saved_samples=3e5)
    rest = Measurement(FIRST, Outcome.OK, 60.0, 0.1, saved_samples=3e5, mismatch=Mismatch(3e5, 1e6))
    history = History(runs=(unseen, rest))
    step = RunToCompletion(FIRST).next_step(remaining_job(job, history), RECORDING.space, history)
    assert step == Finish(
        "the job ran to its end; it reported 300,000 samples, 30 % of the 1,000,000 that `work` states, and may have "
        "saved more while MLCD was not running",
        FIRST,
    )
    for seen in (History(runs=(rest,)), History(runs=(replace(unseen, samples_done=3e5), rest))):
        assert RunToCompletion(FIRST).next_step(job, RECORDING.space, seen).configuration is None


def test_a_run_that_slows_down_after_its_limit_was_raised_moves_too():
    def measured(where: Configuration, outcome: Outcome, rate: float) -> Measurement:
        return Measurement(where, outcome, 300.0, 1.0, rate, 0.01)

    probes = (measured(FIRST, Outcome.OK, 100.0), measured(SECOND, Outcome.OK, 95.0))
    before = History(probes, (measured(FIRST, Outcome.AT_THE_LIMIT, 100.0),)).ended()
    history = before.with_run(measured(FIRST, Outcome.SLOWED, 20.0))
    step = RunToCompletion(FIRST).next_step(Job("steered", 1e6), RECORDING.space, history)
    assert step.configuration == SECOND


def test_a_lost_run_is_launched_again_from_its_checkpoint():
    account, _ = run(Goal(), Changing(VirtualClock(), 1e9, 1.0, lost_s=TEN_HOURS / 2))
    lost, rest = account.history.runs
    assert lost.outcome is Outcome.PREEMPTED
    assert rest.outcome is Outcome.OK
    assert rest.samples_done == pytest.approx(RECORDING.work_samples - lost.saved_samples)


def test_a_run_that_is_lost_repeatedly_goes_on_while_it_makes_progress():
    spot = Changing(VirtualClock(), 1e9, 1.0, lost_s=TEN_HOURS / 10, until_samples=0.85 * RECORDING.work_samples)
    account, _ = run(Goal(), spot)
    *lost, last = account.history.runs
    assert {each.outcome for each in lost} == {Outcome.PREEMPTED}
    assert len(lost) > MOST_SETBACKS
    assert last.outcome is Outcome.OK
    assert account.history.setbacks == 1, "only the last one"
    nothing_saved, _ = run(Goal(), spot, checkpoints=False)
    assert len(nothing_saved.history.runs) == nothing_saved.history.setbacks == MOST_SETBACKS
    assert nothing_saved.ended is not None
    assert nothing_saved.ended.because == "5 launches did not end the job, the last one: preempted, node 0 was lost"


@SLOW
@given(
    at=st.floats(0.0, 1.2),
    factor=st.floats(0.01, 1.5),
    lost=st.one_of(st.none(), st.floats(0.0, 1.0)),
    deadline=st.one_of(st.none(), st.floats(1.05, 4.0)),
    budget=st.one_of(st.none(), st.floats(1.05, 4.0)),
    checkpoints=st.booleans(),
)
def test_whatever_changes_the_limits_hold_and_the_ledger_balances(at, factor, lost, deadline, budget, checkpoints):
    goal = Goal(
        Objective.FASTEST,
        None if budget is None else 10.0 * budget,
        None if deadline is None else TEN_HOURS * deadline,
    )
    lost_s = None if lost is None else lost * TEN_HOURS
    backend = Changing(VirtualClock(), at * TEN_HOURS, factor, lost_s)
    account, decision = run(goal, backend, checkpoints=checkpoints)
    assert not account.open
    assert isinstance(decision.configuration, Configuration | None)
