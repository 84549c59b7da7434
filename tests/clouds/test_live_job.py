"""A job on live machines: late reports, saved work, silence and memory use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from mlcd.clouds.live_job import LiveJob, Timeouts
from mlcd.core.backend import Launch, Purpose
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Configuration, Offer
from mlcd.core.job import Goal, Job
from mlcd.core.measurement import Sample


@dataclass
class SlowToEnd:
    """A machine whose process saves while it is ended, which takes longer than the time reserved for it."""

    clock: VirtualClock
    ends_in_s: float
    addresses: tuple[str, ...] = ("127.0.0.1",)
    written: list[str] = field(default_factory=list)

    def start(self, node: int, command: str, environment: Mapping[str, str]) -> SlowToEnd:
        self.written = ["@mlcd t=0 samples=0 saved=0\n", "@mlcd t=1 samples=10 saved=10\n"]
        return self

    def status(self) -> int | None:
        return None

    def read(self) -> str:
        return self.written.pop(0) if self.written else ""

    def end(self) -> None:
        self.clock.wait(self.ends_in_s)
        self.written = [f"@mlcd t={self.clock.elapsed_s()} samples=30 saved=30\n"]


def events_of(ends_in_s: float, lifetime_s: float = 60.0) -> Iterator[object]:
    clock = VirtualClock()
    job = Job(name="late", work_samples=100.0, goal=Goal(), task={"run": "true"}, checkpoints=True)
    launch = Launch("late-1", Configuration(Offer("a", 1.0, 2, 4), 1), Purpose.RUN, 100.0, lifetime_s, 1)
    timeouts = Timeouts(100.0, 100.0, teardown_s=3.0)
    return LiveJob(job, launch, SlowToEnd(clock, ends_in_s), clock, timeouts, 0.0).events()


def test_work_saved_during_a_teardown_counts_even_after_the_lifetime() -> None:
    for ends_in_s in (1.0, 5.0):
        *_, last = events_of(ends_in_s)
        assert isinstance(last, Sample)
        assert last.saved == 30.0
        assert last.elapsed_s <= 60.0


def test_a_silent_run_repeats_its_last_sample_as_stalled() -> None:
    silent = [event for event in events_of(1.0, lifetime_s=200.0) if isinstance(event, Sample) and event.stalled]
    assert [round(event.elapsed_s) for event in silent[:3]] == [11, 21, 31]
    assert {event.samples for event in silent} == {10.0}


@dataclass
class Counting(SlowToEnd):
    """A machine that measures the memory of its processes."""

    shares: list[float | None] = field(default_factory=list)

    def memory_share(self) -> float | None:
        return self.shares.pop(0) if self.shares else 0.1


def test_samples_contain_the_maximum_memory_share_so_far() -> None:
    clock = VirtualClock()
    job = Job(name="late", work_samples=100.0, goal=Goal(), task={"run": "true"})
    launch = Launch("late-1", Configuration(Offer("a", 1.0, 2, 4), 1), Purpose.PROBE, 100.0, 60.0, 1)
    machine = Counting(clock, 1.0, shares=[None, 0.3, 0.97, 0.5])
    events = LiveJob(job, launch, machine, clock, Timeouts(100.0, 100.0, teardown_s=3.0), 0.0).events()
    first, second, *_, last = (event.memory for event in events if isinstance(event, Sample))
    assert (first, second, last) == (None, 0.3, 0.97)
