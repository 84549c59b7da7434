"""How a launch is closed in the ledger."""

from __future__ import annotations

from mlcd.core.backend import Launch, Provenance, Purpose
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Choice, Configuration, Offer, ProbeTime, Space
from mlcd.core.job import Goal, Job
from mlcd.core.launching import close_launch, reserve
from mlcd.core.ledger import Ledger, Settled, Started
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.strategy import Probe

ONE = Configuration(Offer("a", 1.0, 2, 4), 1)


class SavesWhileItIsEnded:
    """A profiler whose job saved more in the seconds between the end of its probe and the end of its machine."""

    def measure(self) -> Measurement:
        return Measurement(ONE, Outcome.OK, 60.0, 0.1, samples_per_s=10.0, saved_samples=1_500.0)

    def saved(self, label: str) -> float:
        return 550.0


def test_a_shorter_probe_is_reserved_and_ended_as_such() -> None:
    space = Space((Choice(ONE.offer, (1,)),), ProbeTime(600.0, 0.0))
    job = Job("job", 2_400.0, Goal())
    for share, seconds, whole_s in ((1.0, 600.0, None), (0.3, 180.0, 600.0)):
        book = Ledger(None).begin("job", VirtualClock(), Started(job, space, "recorded", Provenance.RECORDED, "1"))
        reserved = reserve(Probe(ONE, "to see", share=share), 0, job, space, book)
        assert reserved.worst_s == reserved.launch.lifetime_s == seconds
        assert reserved.worst_usd == ONE.usd(seconds)
        assert reserved.launch.whole_s == whole_s


def test_work_that_a_probe_saves_while_it_ends_is_settled() -> None:
    order = Launch("job-1", ONE, Purpose.PROBE, 2_400.0, 60.0, 0, saved_samples=1_000.0)
    for keeps, saved in ((True, 1_550.0), (False, 1_500.0)):
        job = Job("job", 2_400.0, Goal(), checkpoints=keeps)
        profiler = SavesWhileItIsEnded()
        entry, error = close_launch(job, order, profiler, profiler.measure, lambda: 60.0)  # type: ignore[arg-type]
        assert error is None
        assert isinstance(entry, Settled)
        assert entry.measurement.saved_samples == saved
