"""The contract of a backend. Subclass it and say how to make yours, and what to run on it.

class TestRecorded(BackendContract):
    def backend(self, clock): return Recorded(recording, clock)
    def job(self): ...
    def configuration(self): ...       # one on which the job runs
    def failing(self): ...             # one on which it does not, or None
"""

from contextlib import closing
from dataclasses import replace

import pytest

from mlcd.core.backend import Backend, Launch, Purpose
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Configuration
from mlcd.core.job import Job
from mlcd.core.measurement import Ended, Event, Outcome, Sample


class BackendContract:
    """What every backend keeps to."""

    def backend(self, clock: VirtualClock) -> Backend:
        """The backend under test."""
        raise NotImplementedError

    def job(self) -> Job:
        """A job to run on it."""
        raise NotImplementedError

    def configuration(self) -> Configuration:
        """A configuration on which the job runs."""
        raise NotImplementedError

    def failing(self) -> Configuration | None:
        """A configuration on which it does not, or None if there is no such thing here."""
        raise NotImplementedError

    def test_progress_only_goes_forward(self) -> None:
        events = self._run(self._probe())
        samples = [event for event in events if isinstance(event, Sample)]
        assert len(samples) > 2
        assert [s.elapsed_s for s in samples] == sorted({s.elapsed_s for s in samples})
        assert [s.samples for s in samples] == sorted(s.samples for s in samples)

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
