"""The cost of a launch that was cut short, if its profiler can still find out the usage."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from mlcd_fixtures.ledgers import SPACE

from mlcd.core.backend import Launch, Provenance, Purpose, Usage
from mlcd.core.clock import VirtualClock
from mlcd.core.drive import reclaim
from mlcd.core.errors import BackendError
from mlcd.core.job import Job
from mlcd.core.launching import close_launch
from mlcd.core.ledger import Ledger, Reserved, Settled, Started
from mlcd.core.measurement import Measurement

MACHINES = SPACE.configurations[0]
HELD_S = 3_600.0


@dataclass
class Finds:
    """A profiler of launches that were up for an hour, with this use."""

    found: Usage | None
    answers: bool = True

    def measure(self, *_: object) -> Measurement:
        raise NotImplementedError

    def reclaim(self, label: str) -> float:
        if not self.answers:
            raise BackendError("the cloud does not answer")
        return HELD_S

    def usage(self, job: Job, label: str) -> Usage | None:
        assert (job.name, label) == ("job", "job-1-1")
        return self.found


def settled(found: Usage | None) -> Measurement:
    job, ledger = Job("job", 1.0), Ledger(None)
    book = ledger.begin("job", VirtualClock(), Started(job, SPACE, "somewhere", Provenance.LIVE, "0"))
    order = Launch(f"{book.run}-1", MACHINES, Purpose.RUN, 1.0, None, 0, most_usd=1e6)
    book.write(Reserved(order, "a try", 1.0, 1.0))
    reclaim(Finds(found), book)
    (measurement,) = book.history.runs
    return measurement


def test_a_launch_costs_its_usage_if_all_of_it_is_known():
    measurement = settled(Usage(0.125, known=True))
    assert (measurement.usd, measurement.metered) == (0.125, True)
    assert measurement.detail == "the process died; its machines were torn down afterwards; what they used was metered"


@pytest.mark.parametrize("found", [None, Usage(1e3, known=False)], ids=["nothing", "more than the time held"])
def test_it_costs_the_most_of_its_time_where_no_more_is_known(found):
    measurement = settled(found)
    assert (measurement.usd, measurement.metered) == (MACHINES.usd(HELD_S), False)


def test_partly_known_usage_can_lower_the_upper_bound():
    measurement = settled(Usage(0.125, known=False))
    assert (measurement.usd, measurement.metered) == (0.125, False)


def interrupted(profiler: Finds, *, lifetime_s: float | None = None, most_usd: float | None = 1e6) -> Measurement:
    """A launch that Ctrl-C ended after a second."""
    order = Launch("job-1-1", MACHINES, Purpose.RUN, 1.0, lifetime_s, 0, most_usd=most_usd)

    def measure() -> Measurement:
        raise KeyboardInterrupt

    entry, error = close_launch(Job("job", 1.0), order, profiler, measure, lambda: 1.0)
    assert isinstance(error, KeyboardInterrupt)
    assert isinstance(entry, Settled)
    return entry.measurement


def test_after_ctrl_c_it_costs_what_was_used_until_its_functions_ended():
    measurement = interrupted(Finds(Usage(0.125, known=True)))
    assert (measurement.usd, measurement.metered) == (0.125, True)


@pytest.mark.parametrize("found", [None, Usage(1e3, known=False)], ids=["nothing", "more than the time held"])
def test_after_ctrl_c_it_costs_the_most_until_its_functions_ended(found):
    measurement = interrupted(Finds(found))
    assert (measurement.usd, measurement.metered) == (MACHINES.usd(HELD_S), False)


@pytest.mark.parametrize(("lifetime_s", "most_usd"), [(600.0, MACHINES.usd(600.0)), (None, 1e6)])
def test_after_ctrl_c_it_costs_the_most_that_was_reserved_if_the_cloud_does_not_answer(lifetime_s, most_usd):
    assert interrupted(Finds(None, answers=False), lifetime_s=lifetime_s).usd == most_usd


def test_launches_billed_by_time_are_not_asked_for_usage():
    assert interrupted(Finds(Usage(0.125, known=True)), most_usd=None).usd == MACHINES.usd(1.0)
