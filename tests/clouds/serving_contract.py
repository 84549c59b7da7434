"""What every backend of live servers keeps to. Subclass it and say how to make yours."""

from __future__ import annotations

import os
import signal
import socket
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from mlcd.clouds.local import teardown
from mlcd.clouds.serving.trial import Timing
from mlcd.core.backend import Launch, LiveBackend, Purpose
from mlcd.core.clock import WallClock
from mlcd.core.configuration import Configuration, Offer
from mlcd.core.job import Job
from mlcd.core.measurement import Ended, Event, Outcome, Sample
from mlcd.planners.serve.nouns import Knob, ServerSettings

RUN = f"serve{uuid4().hex[:8]}"
"""Another name in every process of the tests."""
TIMING = Timing(startup_s=30.0, every_s=0.1)
OFFER = Offer("here", 1.0, 1, 1)


def saved_model(folder: Path) -> Path:
    """A small recurrent model, of sequences of any length."""
    onnx = pytest.importorskip("onnx", reason="pip install 'mlcd[serve]'")
    pytest.importorskip("onnxruntime", reason="pip install 'mlcd[serve]'")
    pytest.importorskip("aiohttp", reason="pip install 'mlcd[serve]'")
    from mlcd_bench.learn.zoo import recurrent

    onnx.save(recurrent(width=8, sequence=None), str(folder / "lstm.onnx"))
    return folder / "lstm.onnx"


def clock() -> WallClock:
    """Real time, from now on."""
    return WallClock(datetime.now(UTC))


def launch(number: int = 1, lifetime_s: float | None = 60.0, **knobs: Knob) -> Launch:
    """An order for a server with these knobs."""
    configuration = Configuration(OFFER, 1, ServerSettings(tuple(knobs.items())))
    return Launch(f"{RUN}-{number}", configuration, Purpose.PROBE, 1.0, lifetime_s, number)


def events_of(backend: LiveBackend, job: Job, order: Launch, most: int = 5) -> list[Event]:
    """The first things that happen in a trial."""
    with closing(backend.run(job, order)) as events:
        return [event for event, _ in zip(events, range(most), strict=False)]


def until_answered(backend: LiveBackend, job: Job, order: Launch, fewest: int = 6) -> list[Event]:
    """What happens in a trial until something was answered; a busy machine may take long to."""
    seen = []
    with closing(backend.run(job, order)) as events:
        for event in events:
            seen.append(event)
            if not isinstance(event, Sample) or (len(seen) >= fewest and event.samples > 0):
                break
    return seen


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


class ServingContract:
    """What every live server keeps to."""

    @pytest.fixture
    def backend(self, tmp_path: Path, model: Path) -> LiveBackend:
        raise NotImplementedError

    @pytest.fixture
    def job(self, model: Path) -> Job:
        raise NotImplementedError

    def launch(self, number: int = 1, lifetime_s: float | None = 60.0, **knobs: Knob) -> Launch:
        """An order; every knob that a server cannot do without is set."""
        return launch(number, lifetime_s, **knobs)

    def test_answers_only_go_forward_and_every_one_is_timed(self, backend, job):
        events = until_answered(backend, job, self.launch(batch=2))
        assert all(isinstance(event, Sample) for event in events), events
        assert events[0].samples == 0
        assert events[0].elapsed_s > 0  # the start of the server is part of the trial
        assert [e.elapsed_s for e in events] == sorted({e.elapsed_s for e in events})
        timed = [len(event.evidence.latencies_s) for event in events]
        assert [e.samples for e in events] == [sum(timed[: i + 1]) for i in range(len(events))]
        assert events[-1].samples > 0
        assert not any(event.evidence.failures for event in events), events
        assert 0.01 < events[-1].evidence.peak_gb < 10

    def test_a_trial_is_over_and_gone_when_its_lifetime_is(self, backend, job):
        order = self.launch(lifetime_s=6.0)
        events = events_of(backend, job, order, most=1_000)
        assert all(isinstance(event, Sample) for event in events), events
        up_s = backend.reclaim(order.label)
        assert up_s is not None
        assert up_s <= 6.0
        assert backend.leftovers() == set()

    def test_closing_ends_the_server_and_reclaiming_twice_tells_the_same(self, backend, job):
        order = self.launch()
        with closing(backend.run(job, order)) as events:
            next(events)
            assert backend.leftovers() == {order.label}
        assert backend.leftovers() == set()
        assert next(events, None) is None
        assert backend.reclaim(order.label) == backend.reclaim(order.label) is not None

    def test_an_exception_of_whoever_listens_ends_the_server(self, backend, job):
        events = backend.run(job, self.launch())
        next(events)
        with pytest.raises(KeyboardInterrupt):
            events.throw(KeyboardInterrupt())
        assert backend.leftovers() == set()

    def test_a_server_that_is_killed_is_an_event(self, backend, job):
        with closing(backend.run(job, self.launch())) as events:
            next(events)
            for process in teardown.processes_of(teardown.mark_of(backend.home / "launches" / self.launch().label)):
                os.kill(process, signal.SIGKILL)
            last = list(zip(events, range(20), strict=False))[-1][0]
        assert isinstance(last, Ended), last
        assert last.outcome is Outcome.OUT_OF_MEMORY
        assert "killed from outside" in last.detail

    def test_reclaiming_what_never_was_finds_nothing(self, backend):
        assert backend.reclaim("never-launched-1") is None
