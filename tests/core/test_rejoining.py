"""A launch that still runs after a crash is followed again, and its time is counted once, from its reservation."""

from __future__ import annotations

from dataclasses import dataclass, field

from mlcd.core.backend import Launch, Provenance
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Space
from mlcd.core.decision import Decision
from mlcd.core.drive import launch
from mlcd.core.history import History
from mlcd.core.job import Goal, Job
from mlcd.core.launching import reserve
from mlcd.core.ledger import Decided, Ledger, Started, Warned
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.strategy import Apply, Finish, Look, Step, Watch
from mlcd.testing.clouds import small_recording

RECORDING = small_recording([[100.0]], [1.0], work_samples=3_600_000, probe_s=300.0)
(WHERE,) = RECORDING.space.configurations


@dataclass
class Remembers:
    """Runs the job, and keeps what it was told of the time that is gone."""

    elapsed_s: list[float] = field(default_factory=list)

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        self.elapsed_s.append(history.elapsed_s)
        return Finish("done", WHERE) if history.runs else Apply(WHERE, "as decided", job.work_samples)


@dataclass
class StillRunning:
    """A profiler whose one launch goes on without anybody."""

    def still_runs(self, label: str) -> bool:
        return True

    def rejoin(self, job: Job, order: Launch, watch: Watch | None = None) -> Measurement:
        return Measurement(WHERE, Outcome.OK, 36_000.0, 10.0, 100.0, 0.01, samples_done=order.samples)

    def measure(self, job: Job, order: Launch, look: Look | None = None, watch: Watch | None = None) -> Measurement:
        raise AssertionError("nothing is launched anew")

    def reclaim(self, label: str) -> float | None:
        return 36_000.0  # so long it was up


def test_entries_written_while_it_runs_take_no_time():
    job, clock = Job("long", RECORDING.work_samples, Goal(deadline_s=50_000.0)), VirtualClock(600.0)
    book = Ledger(None).begin(job.name, clock, Started(job, RECORDING.space, "test", Provenance.RECORDED, "test"))
    book.write(Decided(Decision(WHERE, "the only one", certified=True)))
    strategy = Remembers()
    step = strategy.next_step(job, RECORDING.space, book.history)
    assert isinstance(step, Apply)
    book.write(reserve(step, 0, job, RECORDING.space, book))
    clock.wait(7_200.0)
    book.write(Warned("slower than it should be"))
    launch(strategy, job, RECORDING.space, StillRunning(), book)
    before, again, _ = strategy.elapsed_s
    assert before == again == 600.0
