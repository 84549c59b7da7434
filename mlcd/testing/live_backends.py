"""The contract of a live backend: real machines, real time. Subclass it and say how to make yours.

class TestLocal(LiveBackendContract):
    @pytest.fixture
    def backend(self, tmp_path): return Local(...)
    def configuration(self): ...       # two nodes, on which a small Python program runs
"""

from contextlib import closing
from dataclasses import replace

import pytest

from mlcd.core.backend import Launch, LiveBackend, Purpose
from mlcd.core.configuration import Configuration
from mlcd.core.job import Job
from mlcd.core.measurement import Ended, Event, Outcome, Sample

STEPS = """
import time, mlcd_tracker
for step in range({steps}):
    time.sleep(0.02)
    mlcd_tracker.step(10)
"""
"""A job that does ten samples in a fiftieth of a second, with next to no CPU."""


def python_job(program: str, name: str = "contract") -> Job:
    """A job that runs a Python program on every node."""
    return Job(name, 1_000.0, task={"run": f"python3 - <<'PROGRAM'\n{program}\nPROGRAM"})


class LiveBackendContract:
    """What every live backend keeps to."""

    @pytest.fixture
    def backend(self) -> LiveBackend:
        """The backend under test."""
        raise NotImplementedError

    def configuration(self) -> Configuration:
        """Two nodes on which a small Python program runs."""
        raise NotImplementedError

    def test_progress_only_goes_forward_and_ends_with_all_work_done(self, backend: LiveBackend) -> None:
        events = self.play(backend, STEPS.format(steps=60), self.whole())
        samples = [event for event in events if isinstance(event, Sample)]
        assert [s.elapsed_s for s in samples] == sorted({s.elapsed_s for s in samples})
        assert [s.samples for s in samples] == sorted(s.samples for s in samples)
        assert samples[-1].samples == 600
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
        ("program", "outcome", "told"),
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
        self, backend: LiveBackend, program: str, outcome: Outcome, told: str
    ) -> None:
        ended = self.play(backend, program, self.probe())[-1]
        assert isinstance(ended, Ended), ended
        assert ended.outcome is outcome, ended
        assert told in ended.detail
        assert "\n" not in ended.detail
        assert ended.elapsed_s > 0
        assert backend.leftovers() == set()

    def test_the_end_of_the_log_comes_with_a_failure(self, backend: LiveBackend) -> None:
        ended = self.play(backend, "print('the last words')\nraise SystemExit(3)", self.probe())[-1]
        assert isinstance(ended, Ended)
        assert "the last words" in ended.log

    def test_reclaiming_what_never_was_finds_nothing(self, backend: LiveBackend) -> None:
        assert backend.reclaim("never-launched-1") is None

    def test_reclaiming_twice_tells_the_same(self, backend: LiveBackend) -> None:
        self.play(backend, STEPS.format(steps=5), self.whole())
        first = backend.reclaim(self.whole().label)
        assert first is not None
        assert backend.reclaim(self.whole().label) == first

    def play(self, backend: LiveBackend, program: str, launch: Launch) -> list[Event]:
        """Everything that a program shows."""
        with closing(backend.run(python_job(program), launch)) as events:
            return list(events)

    def probe(self) -> Launch:
        """A launch that may take a minute."""
        return Launch("contract-1-1", self.configuration(), Purpose.PROBE, 1_000.0, 60.0, 0)

    def whole(self) -> Launch:
        """A launch without an end of its own."""
        return Launch("contract-1-2", self.configuration(), Purpose.RUN, 600.0, None, 1)
