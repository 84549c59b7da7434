"""What earlier runs have shown: of the same job its speed, and at the same place how far launches differ.

The speed tells a search where to look. It never certifies anything: machines, data and code may have changed, so
what is promised rests on this run's own probes.
"""

from __future__ import annotations

from collections.abc import Iterable

from mlcd.core.configuration import Configuration, Space
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.launch_spread import NOTHING_SEEN, LogLikelihoods, repeated_launches
from mlcd.core.ledger import Ledger
from mlcd.core.measurement import Measurement, Outcome

MOST_RUNS = 20
"""Of the same job, or at the same place, that are looked at, the newest first."""


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


def seen_before(ledger: Ledger, job: Job, owner: str | None = None) -> LogLikelihoods:
    """What launches that earlier runs of any job made twice at this place say of how far such launches differ.

    `owner`: of whom the runs are, where members share a ledger. What others run must not move one's certificates.
    """
    total = NOTHING_SEEN
    for account in ledger.accounts_at(job.on, MOST_RUNS, owner):
        ask = account.job.ask
        if (ask is None or ask.launches_compare) and _same_cloud(account.job, job):
            shown = repeated_launches((*account.history.measurements, *account.history.runs))
            total = tuple(map(sum, zip(total, shown, strict=True)))
    return total


def _same(one: Job, other: Job) -> bool:
    """Whether two jobs do the same work in the same place. How much of it, and within what limits, does not matter."""
    if not _same_cloud(one, other):
        return False
    parts = ((job.on, job.communication, job.hints, job.task.get("setup"), job.task.get("run")) for job in (one, other))
    return next(parts) == next(parts)


def _same_cloud(one: Job, other: Job) -> bool:
    """Of two jobs at one place: each seed is a simulated cloud of its own."""
    return one.on != "simulated" or one.search.seed == other.search.seed


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
