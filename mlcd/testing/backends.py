"""Contract tests for backends. Subclass one, and define how to make your backend and what to run on it.

class TestRecorded(BackendContract):
    def backend(self, clock): return Recorded(recording, clock)
    def job(self): ...
    def configuration(self): ...       # one on which the job runs
    def failing(self): ...             # one on which it does not, or None

Real machines, in real time:

class TestLocal(LiveBackendContract):
    @pytest.fixture
    def backend(self, tmp_path): return Local(...)
    def configuration(self): ...       # two nodes, on which a small Python program runs

A place that rents, while it cannot be used:

class TestNoNetwork(OutageContract):
    @pytest.fixture
    def cloud(self, tmp_path): return Cloud(space, MyBackend(unreachable, tmp_path), profiler, clock)
"""

from contextlib import closing
from dataclasses import replace

import pytest

from mlcd.core.backend import Backend, Launch, LiveBackend, Purpose
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Configuration, Space
from mlcd.core.drive import search
from mlcd.core.errors import Outage
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.launching import MOST_FAILED_LAUNCHES
from mlcd.core.ledger import Ledger, Settled, Started, Status, Voided
from mlcd.core.measurement import Ended, Event, Outcome, Sample
from mlcd.core.place import Cloud
from mlcd.core.strategy import Finish, Probe, Step

STEPS = """
import time, mlcd_tracker
for step in range({steps}):
    time.sleep(0.02)
    mlcd_tracker.step(10)
"""
"""A job that reports ten samples every 20 ms and uses almost no CPU."""


def python_job(program: str, name: str = "contract") -> Job:
    """A job that runs a Python program on every node."""
    return Job(name, 1_000.0, task={"run": f"python3 - <<'PROGRAM'\n{program}\nPROGRAM"})


def _going_forward(events: list[Event]) -> list[Sample]:
    """The samples; asserts that their time and work never decrease."""
    samples = [event for event in events if isinstance(event, Sample)]
    assert [s.elapsed_s for s in samples] == sorted({s.elapsed_s for s in samples})
    assert [s.samples for s in samples] == sorted(s.samples for s in samples)
    return samples


class BackendContract:
    """The contract of every backend with a virtual clock."""

    def backend(self, clock: VirtualClock) -> Backend:
        raise NotImplementedError

    def job(self) -> Job:
        raise NotImplementedError

    def configuration(self) -> Configuration:
        raise NotImplementedError

    def failing(self) -> Configuration | None:
        raise NotImplementedError

    def test_progress_only_goes_forward(self) -> None:
        events = self._run(self._probe())
        assert len(_going_forward(events)) > 2

    def test_a_probe_is_over_when_its_lifetime_is(self) -> None:
        probe = self._probe()
        assert probe.lifetime_s is not None
        assert max(event.elapsed_s for event in self._run(probe)) <= probe.lifetime_s

    def test_the_clock_shows_what_the_events_say(self) -> None:
        clock = VirtualClock(1_000.0)
        probe = replace(self._probe(), lifetime_s=10_000.0)
        for event in self.backend(clock).run(self.job(), probe):
            assert clock.elapsed_s() == pytest.approx(1_000.0 + event.elapsed_s)

    def test_the_same_launch_shows_the_same_again(self) -> None:
        assert self._run(self._probe()) == self._run(self._probe())

    def test_another_launch_of_the_same_configuration_may_differ_but_runs(self) -> None:
        assert any(isinstance(event, Sample) for event in self._run(replace(self._probe(), ordinal=7)))

    def test_it_can_be_closed_at_any_moment(self) -> None:
        with closing(self.backend(VirtualClock()).run(self.job(), self._probe())) as events:
            next(events)
        assert next(events, None) is None

    def test_a_run_ends_with_all_its_work_done(self) -> None:
        events = self._run(self._whole())
        ended = events[-1]
        assert isinstance(ended, Ended)
        assert ended.outcome is Outcome.OK
        done = [event.samples for event in events if isinstance(event, Sample)][-1]
        assert done == pytest.approx(self._whole().samples)

    def test_a_run_stops_by_itself_at_its_lifetime(self) -> None:
        whole_s = self._run(self._whole())[-1].elapsed_s
        events = self._run(replace(self._whole(), lifetime_s=whole_s / 2))
        assert events[-1].elapsed_s <= whole_s / 2
        assert not any(isinstance(event, Ended) and event.outcome is Outcome.OK for event in events)

    def test_a_failure_is_an_event_with_a_time(self) -> None:
        configuration = self.failing()
        if configuration is None:
            pytest.skip("nothing fails on this backend")
        ended = self._run(replace(self._probe(), configuration=configuration))[-1]
        assert isinstance(ended, Ended)
        assert ended.outcome is not Outcome.OK
        assert ended.elapsed_s > 0

    def test_reclaiming_what_never_was_finds_nothing(self) -> None:
        assert self.backend(VirtualClock()).reclaim("never-launched-1") is None

    def _run(self, launch: Launch) -> list[Event]:
        return list(self.backend(VirtualClock()).run(self.job(), launch))

    def _probe(self) -> Launch:
        return Launch("contract-1", self.configuration(), Purpose.PROBE, self.job().work_samples, 600.0, 0)

    def _whole(self) -> Launch:
        return Launch("contract-2", self.configuration(), Purpose.RUN, self.job().work_samples, None, 1)


class LiveBackendContract:
    """The contract of every live backend."""

    @pytest.fixture
    def backend(self) -> LiveBackend:
        raise NotImplementedError

    def configuration(self) -> Configuration:
        raise NotImplementedError

    def test_progress_only_goes_forward_and_ends_with_all_work_done(self, backend: LiveBackend) -> None:
        events = self.play(backend, STEPS.format(steps=60), self.whole())
        assert _going_forward(events)[-1].samples == 600
        assert isinstance(events[-1], Ended), events
        assert events[-1].outcome is Outcome.OK, events[-1]
        assert backend.leftovers() == set()

    def test_a_launch_is_over_and_gone_when_its_lifetime_is(self, backend: LiveBackend) -> None:
        for lifetime_s in (8.0, 16.0, 32.0, 64.0):  # on a busy machine a job may take long to begin
            launch = replace(self.probe(), label=f"{self.probe().label}{lifetime_s:.0f}", lifetime_s=lifetime_s)
            events = self.play(backend, STEPS.format(steps=100_000), launch)
            ended = [event for event in events if isinstance(event, Ended)]
            if [event.outcome for event in ended] == [Outcome.LAUNCH_FAILED]:
                continue  # its nodes were not even up in so short a time
            assert not ended
            up_s = backend.reclaim(launch.label)
            assert up_s is not None
            assert up_s <= lifetime_s
            assert backend.leftovers() == set()
            if any(isinstance(event, Sample) for event in events):
                return
        pytest.fail("the job never reported")

    def test_it_can_be_closed_at_any_moment_and_nothing_is_left(self, backend: LiveBackend) -> None:
        job = python_job(STEPS.format(steps=100_000))
        with closing(backend.run(job, self.probe())) as events:
            next(events)
            assert backend.leftovers() == {self.probe().label}
        assert backend.leftovers() == set()
        assert next(events, None) is None

    @pytest.mark.parametrize(
        ("program", "outcome", "advice"),
        [
            ("raise ValueError('no such layer')", Outcome.FAILED, "ValueError: no such layer"),
            ("import no_such_module", Outcome.FAILED, "pip install no_such_module"),
            ("raise MemoryError('too much')", Outcome.OUT_OF_MEMORY, "ran out of memory"),
            ("print('done')", Outcome.FAILED, "without a report of progress"),
            ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", Outcome.PREEMPTED, "killed from outside"),
        ],
        ids=["a traceback", "a missing module", "out of memory", "no report", "a lost process"],
    )
    def test_a_failure_is_an_event_with_advice(
        self, backend: LiveBackend, program: str, outcome: Outcome, advice: str
    ) -> None:
        ended = self.play(backend, program, self.probe())[-1]
        assert isinstance(ended, Ended), ended
        assert ended.outcome is outcome, ended
        assert advice in ended.detail
        assert "\n" not in ended.detail
        assert ended.elapsed_s > 0
        assert backend.leftovers() == set()

    def test_the_end_of_the_log_comes_with_a_failure(self, backend: LiveBackend) -> None:
        ended = self.play(backend, "print('the last words')\nraise SystemExit(3)", self.probe())[-1]
        assert isinstance(ended, Ended)
        assert "the last words" in ended.log

    def test_reclaiming_what_never_was_finds_nothing(self, backend: LiveBackend) -> None:
        assert backend.reclaim("never-launched-1") is None

    def test_reclaiming_twice_returns_the_same(self, backend: LiveBackend) -> None:
        self.play(backend, STEPS.format(steps=5), self.whole())
        first = backend.reclaim(self.whole().label)
        assert first is not None
        assert backend.reclaim(self.whole().label) == first

    def play(self, backend: LiveBackend, program: str, launch: Launch) -> list[Event]:
        with closing(backend.run(python_job(program), launch)) as events:
            return list(events)

    def probe(self) -> Launch:
        return Launch("contract-1-1", self.configuration(), Purpose.PROBE, 1_000.0, 60.0, 0)

    def whole(self) -> Launch:
        return Launch("contract-1-2", self.configuration(), Purpose.RUN, 600.0, None, 1)


class EveryConfiguration:
    """A strategy that tries everything once, in order."""

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        left = [each for each in space.configurations if each not in history.tried]
        return Probe(left[0], "the next one") if left else Finish("everything was tried")


class OutageContract:
    """The contract of every place that rents machines, for an outage."""

    @pytest.fixture
    def cloud(self) -> Cloud:
        raise NotImplementedError

    def job(self) -> Job:
        return Job("outage", 1e6, task={"run": "python train.py"})

    def test_it_books_nothing_and_stops_the_run_after_two_launches(self, cloud: Cloud) -> None:
        job, ledger = self.job(), Ledger(None)
        first = Started(job, cloud.space, "a place that cannot be used", cloud.provenance, "test")
        book = ledger.begin(job.name, cloud.clock, first)
        with pytest.raises(Outage) as outage:
            search(EveryConfiguration(), job, cloud.space, cloud.profiler, book)
        self.check_message(str(outage.value), book.run)
        entries = [line.entry for line in ledger.lines(book.run)]
        assert not [entry for entry in entries if isinstance(entry, Settled)]
        assert 1 <= len([entry for entry in entries if isinstance(entry, Voided)]) <= MOST_FAILED_LAUNCHES
        account = ledger.account(book.run)
        assert (account.history.spent_usd, account.open, account.decision) == (0.0, (), None)
        assert account.status is Status.STOPPED  # it can be resumed, and nothing was concluded

    def check_message(self, message: str, run: str) -> None:
        """One line: what is wrong, that it cost nothing, how to go on."""
        assert "\n" not in message
        assert "nothing is billed" in message
        assert f"mlcd resume {run}" in message
