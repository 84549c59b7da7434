"""A job that runs out of memory after its probe did not: where it goes on, and what it goes on without."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from mlcd_fixtures.planned import machines, nodes_of, planned_job, planned_task

from mlcd.clouds.virtual import play
from mlcd.core.backend import Launch, Provenance, Purpose
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Configuration
from mlcd.core.decision import Decision
from mlcd.core.drive import launch, search
from mlcd.core.history import History
from mlcd.core.job import Goal, Job, Objective
from mlcd.core.ledger import Account, Ledger, LimitsChanged, Started
from mlcd.core.measurement import Ended, Event, Measurement, Outcome, Sample
from mlcd.core.planner import planner_named
from mlcd.core.strategy import Apply, Finish, Probe, Step, Strategy
from mlcd.memory.earlier_runs import earlier_measurements
from mlcd.planners.profilers.training import TrainingProfiler
from mlcd.planners.train.completion import RunToCompletion
from mlcd.planners.train.plans.space import plan_space
from mlcd.testing.clouds import small_recording
from mlcd.testing.promises import check_books

RECORDING = small_recording([[100.0], [95.0], [90.0]], [1.0, 1.2, 1.4], work_samples=3_600_000, probe_s=300.0)
FIRST, SECOND, THIRD = RECORDING.space.configurations
SAVED = 36_000.0


@dataclass(frozen=True)
class Leaking:
    """A recorded cloud on which every probe runs, and a run on these ends for want of memory after so long."""

    clock: VirtualClock
    lack_memory: tuple[Configuration, ...]
    after_s: float = 600.0

    provenance = Provenance.RECORDED

    def run(self, job: Job, launch: Launch):
        return play(self._events(launch), job, launch, self.clock)

    def reclaim(self, label: str) -> None:
        return None

    def _events(self, launch: Launch) -> Iterator[Event]:
        rate, now_s = RECORDING.points[launch.configuration].samples_per_s, 0.0
        assert rate is not None
        lacks = launch.purpose is Purpose.RUN and launch.configuration in self.lack_memory
        while now_s * rate < launch.samples:
            if lacks and now_s >= self.after_s:
                yield Ended(now_s, Outcome.OUT_OF_MEMORY, "node 0: it ran out of memory")
                return
            yield Sample(now_s, now_s * rate, min(now_s * rate, SAVED))
            now_s += 10.0
        yield Sample(now_s, launch.samples)
        yield Ended(now_s, Outcome.OK)


@dataclass(frozen=True)
class ProbeAll:
    def next_step(self, job: Job, space, history: History) -> Step:
        untried = [each for each in space.configurations if each not in history.tried]
        return Probe(untried[0], "all of them") if untried else Finish("all of them")


def ran(
    *lack_memory: Configuration,
    goal: Goal,
    checkpoints: bool = True,
    after_s: float = 600.0,
    by: Strategy = ProbeAll(),
    searches_on: bool = False,
    ledger: Ledger | None = None,
) -> Account:
    backend, ledger = Leaking(VirtualClock(), lack_memory, after_s), ledger or Ledger(None)
    job = Job("leaking", RECORDING.work_samples, goal, checkpoints=checkpoints)
    profiler, started = TrainingProfiler(backend), Started(job, RECORDING.space, "t", Provenance.RECORDED, "t")
    book = ledger.begin(job.name, backend.clock, started)
    decision = search(by, job, RECORDING.space, profiler, book)
    assert decision.configuration == FIRST
    launch(RunToCompletion(FIRST, by if searches_on else None), job, RECORDING.space, profiler, book)
    check_books(goal, ledger.lines(book.run))
    return ledger.account(book.run)


@dataclass(frozen=True)
class ProbeUntilOneRuns:
    """Measures in this order until something has a rate."""

    order: tuple[Configuration, ...] = (FIRST, SECOND, THIRD)

    def next_step(self, job: Job, space, history: History) -> Step:
        untried = [each for each in self.order if each not in history.tried]
        return Probe(untried[0], "the next") if untried and not history.good else Finish("one runs")


def test_if_nothing_else_was_measured_the_search_continues_within_the_remaining_limits():
    for goal in (Goal(Objective.CHEAPEST, deadline_s=40 * 3_600.0), Goal()):
        account = ran(FIRST, SECOND, goal=goal, by=ProbeUntilOneRuns(), searches_on=True)
        assert went(account) == [(FIRST, Outcome.OUT_OF_MEMORY), (SECOND, Outcome.OUT_OF_MEMORY), (THIRD, Outcome.OK)]
        assert [m.configuration for m in account.history.measurements] == [FIRST, SECOND, THIRD]
        assert account.ended.finished


def went(account: Account) -> list[tuple[Configuration, Outcome]]:
    return [(m.configuration, m.outcome) for m in account.history.runs]


def test_a_run_out_of_memory_resumes_on_the_next_certified_configuration():
    for goal in (Goal(Objective.CHEAPEST, deadline_s=40 * 3_600.0), Goal()):
        account = ran(FIRST, goal=goal)
        assert went(account) == [(FIRST, Outcome.OUT_OF_MEMORY), (SECOND, Outcome.OK)]
        assert account.ended.finished
        assert account.history.runs[0].saved_samples >= SAVED
        assert account.history.runs[1].samples_done < RECORDING.work_samples


def test_it_never_returns_to_a_configuration_that_ran_out_of_memory():
    account = ran(FIRST, SECOND, goal=Goal(Objective.CHEAPEST, deadline_s=60 * 3_600.0), checkpoints=False)
    assert went(account) == [(FIRST, Outcome.OUT_OF_MEMORY), (SECOND, Outcome.OUT_OF_MEMORY), (THIRD, Outcome.OK)]


def test_if_no_other_configuration_ends_in_time_it_says_so():
    for goal, without in ((Goal(deadline_s=14 * 3_600.0), (FIRST,)), (Goal(), (FIRST, SECOND, THIRD))):
        account = ran(*without, goal=goal, checkpoints=False, after_s=5 * 3_600.0)
        assert account.history.runs[-1].outcome is Outcome.OUT_OF_MEMORY
        assert not account.ended.finished
        assert account.ended.because.startswith("nothing else that was measured can end the job within what is left")
        assert {m.configuration for m in account.history.runs} == set(without)
        assert account.history.elapsed_s <= goal.most_s


def test_a_later_run_of_the_job_knows_what_ran_out_of_memory():
    ledger = Ledger(None)
    account = ran(FIRST, goal=Goal(), ledger=ledger)
    known = {m.configuration: m.outcome for m in earlier_measurements(ledger, account.job, RECORDING.space)}
    assert known == {FIRST: Outcome.OUT_OF_MEMORY, SECOND: Outcome.OK, THIRD: Outcome.OK}


def measured(where: Configuration, rate: float, memory: float | None = None) -> Measurement:
    return Measurement(where, Outcome.OK, 60.0, 0.1, rate, 0.01, memory=memory)


def out_of_memory(where: Configuration) -> Measurement:
    return Measurement(where, Outcome.OUT_OF_MEMORY, 600.0, 0.1, detail="node 0: it ran out of memory")


def next_run(job: Job, space, probes: list[Measurement], failed: Configuration) -> Step:
    return RunToCompletion(failed).next_step(job, space, History(tuple(probes), (out_of_memory(failed),)))


def test_a_configuration_with_free_memory_is_preferred_to_one_that_nearly_ran_out():
    probes = [measured(FIRST, 100.0, 0.97), measured(SECOND, 95.0, 0.98), measured(THIRD, 90.0, 0.7)]
    for goal in (Goal(), Goal(Objective.CHEAPEST, deadline_s=1e6)):
        step = next_run(Job("job", 1e6, goal), RECORDING.space, probes, FIRST)
        assert isinstance(step, Apply)
        assert step.configuration == THIRD
        assert step.because == f"on instead of {FIRST}, after: out of memory, node 0: it ran out of memory"


def test_a_configuration_that_nearly_ran_out_is_better_than_none():
    step = next_run(Job("job", 1e6), RECORDING.space, [measured(FIRST, 1.0, 0.97), measured(SECOND, 1.0, 0.98)], FIRST)
    assert isinstance(step, Apply)
    assert step.configuration == SECOND


def test_plans_that_need_as_much_memory_come_last():
    task = planned_task()
    space = plan_space(machines(nodes_of("H100", 8), nodes=(1,)), task)
    by_size = sorted(
        (c for c in space.configurations if c.setting.tensor == 8 and c.setting.pipeline == 1),
        key=lambda c: (c.setting.sharding, c.setting.checkpointing, c.setting.micro_batch),
    )
    same = [c for c in by_size if c.setting.sharding == "none" and c.setting.checkpointing == "full"]
    small, middle, large = same[0], same[1], same[2]
    probes = [measured(small, 10.0), measured(middle, 12.0), measured(large, 13.0)]
    step = next_run(planned_job(task, goal=Goal()), space, probes, middle)
    assert isinstance(step, Apply)
    assert step.configuration == small, "the larger micro-batch is faster, and needs more"


def test_a_resumed_run_does_not_return_to_what_ran_out_of_memory():
    probes = (measured(FIRST, 100.0), measured(SECOND, 95.0))
    history = replace(History(probes, (out_of_memory(FIRST),)), ended_runs=1, ended_probes=2)
    step = RunToCompletion(FIRST).next_step(Job("job", 1e6), RECORDING.space, history)
    assert isinstance(step, Apply)
    assert step.configuration == SECOND
    alone = replace(history, measurements=probes[:1])
    step = RunToCompletion(FIRST).next_step(Job("job", 1e6), RECORDING.space, alone)
    assert isinstance(step, Apply)
    assert step.configuration == FIRST, "its user may have made room"


def test_a_decision_under_other_limits_avoids_what_ran_out_of_memory_if_it_can():
    for by, decided in ((ProbeAll(), SECOND), (ProbeUntilOneRuns(), FIRST)):
        goal, ledger = Goal(Objective.CHEAPEST, deadline_s=13 * 3_600.0), Ledger(None)
        before = ran(FIRST, goal=goal, checkpoints=False, after_s=5 * 3_600.0, by=by, ledger=ledger)
        assert not before.ended.finished, "no time was left"
        profiler = TrainingProfiler(Leaking(VirtualClock(before.history.elapsed_s), (FIRST,)))
        book = ledger.book("last", profiler.backend.clock)
        book.write(LimitsChanged(replace(goal, deadline_s=50 * 3_600.0), "its user has more time"))
        decide = planner_named("train").decide
        decision = search(by, book.account.job, RECORDING.space, profiler, book, decide=decide)
        assert decision.certified
        assert decision.configuration == decided


def test_a_search_under_other_limits_avoids_what_ran_out_of_memory():
    job, train = Job("job", 1e6, Goal(Objective.CHEAPEST)), planner_named("train")
    before = replace(History((measured(FIRST, 100.0),), (out_of_memory(FIRST),)), ended_runs=1, ended_probes=1)
    as_it_goes_on = train.search_strategy(job).next_step(job, RECORDING.space, before)
    assert as_it_goes_on == train.search_strategy(job).next_step(job, RECORDING.space, History((out_of_memory(FIRST),)))


def test_after_out_of_memory_the_search_continues_with_and_without_spot_markets():
    train, choice = planner_named("train"), Decision(FIRST, "", certified=True)
    history = History((measured(FIRST, 100.0),), (out_of_memory(FIRST),))
    search_on = ProbeUntilOneRuns()
    for job in (Job("job", 1e6), Job("job", 1e6, task={"resources": {"use_spot": "any"}})):
        steered = train.run_strategy(job, choice, history)
        step = replace(steered, search=search_on).next_step(job, RECORDING.space, history)
        assert isinstance(step, Probe)
        assert step.configuration == SECOND
