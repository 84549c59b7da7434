"""What earlier runs of the same job have shown of its speed.

It tells a search where to look. It never certifies anything: machines, data and code may have changed, so
what is promised rests on this run's own probes.
"""

from __future__ import annotations

from collections.abc import Iterable

from mlcd.configuration import Configuration, Space
from mlcd.history import History
from mlcd.job import Job
from mlcd.ledger import Ledger
from mlcd.measurement import Measurement, Outcome

MOST_RUNS = 20
"""Of the same job that are looked at, the newest first."""


def known_from(ledger: Ledger, job: Job, space: Space) -> tuple[Measurement, ...]:
    """One measurement for each configuration of the space that an earlier run of this job has measured."""
    here = {_place(configuration): configuration for configuration in space.configurations}
    found: dict[tuple[str, str, bool, int], Measurement] = {}
    for account in ledger.accounts(job.name, MOST_RUNS):
        if _same(account.job, job):
            for measurement in _telling(account.history):
                place = _place(measurement.configuration)
                if place in here:
                    found.setdefault(place, measurement)
    return tuple(_at(found[place], configuration) for place, configuration in here.items() if place in found)


def _same(one: Job, other: Job) -> bool:
    """Whether two jobs do the same work in the same place. How much of it, and within what limits, does not matter."""
    if one.on == "simulated" and one.search.seed != other.search.seed:
        return False  # each seed is a cloud of its own
    parts = ((job.on, job.communication, job.hints, job.task.get("setup"), job.task.get("run")) for job in (one, other))
    return next(parts) == next(parts)


def _telling(history: History) -> Iterable[Measurement]:
    """What says something of a configuration: its rate, or that the job does not fit."""
    yield from history.good
    yield from (m for m in history.measurements if m.outcome is Outcome.OUT_OF_MEMORY)


def _place(configuration: Configuration) -> tuple[str, str, bool, int]:
    """What makes the same machines, whatever they cost today."""
    offer = configuration.offer
    return offer.cloud, offer.instance_type, offer.spot, configuration.nodes


def _at(measurement: Measurement, configuration: Configuration) -> Measurement:
    """The measurement, told of the configuration at today's price; its own cost was another run's."""
    return Measurement(configuration, measurement.outcome, 0.0, 0.0, measurement.samples_per_s, measurement.rel_error)
