"""Runs with what no quick command brings about: made from runs that are there, with the code that is on the path."""

from __future__ import annotations

from dataclasses import replace

from mlcd.assemble import open_ledger
from mlcd.backend import Purpose
from mlcd.clock import VirtualClock
from mlcd.job import LearningRate
from mlcd.ledger import Decided, Entry, Settled, Started
from mlcd.measurement import Outcome

from mlcd.service import Profile


def trained(entry: Entry) -> Entry:
    """A probe whose end nobody saw, and a final run that was left because it was slow."""
    if not isinstance(entry, Settled):
        return entry
    if entry.launch.purpose is Purpose.RUN:
        return replace(entry, measurement=replace(entry.measurement, outcome=Outcome.SLOWED))
    lost = replace(entry.measurement, outcome=Outcome.INTERRUPTED, samples_per_s=None, rel_error=0.0)
    return replace(entry, measurement=lost) if entry.launch.ordinal == 1 else entry


def scaled(entry: Entry) -> Entry:
    """Noise as Scavenger measures it, not yet stable; a launch that was moved elsewhere."""
    if isinstance(entry, Started) and entry.job.elastic is not None:
        return replace(
            entry, job=replace(entry.job, elastic=replace(entry.job.elastic, learning_rate=LearningRate.NONE))
        )
    if not isinstance(entry, Settled):
        return entry
    seen = entry.measurement
    if seen.noise is not None:
        seen = replace(seen, noise=replace(seen.noise, stable=False, gamma=2.5))
    return replace(entry, measurement=replace(seen, outcome=Outcome.SWITCHED))


def tuned(entry: Entry) -> Entry:
    """Epochs that were tried again, on a machine with a limit, planned from figures that were not measured."""
    if isinstance(entry, Started) and entry.job.serverless is not None:
        return replace(entry, job=replace(entry.job, serverless=replace(entry.job.serverless, memory_at_once_mb=4_096)))
    if isinstance(entry, Decided) and (known := entry.decision.calibration) is not None:
        links = {name: replace(link, start=(1.5, 0.25)) for name, link in known.links.items()}
        known = replace(known, modelled=True, links=links)
        return replace(entry, decision=replace(entry.decision, calibration=known))
    if isinstance(entry, Settled) and entry.measurement.epochs:
        epochs = tuple(replace(each, retries=1, detail="a function was lost") for each in entry.measurement.epochs)
        return replace(entry, measurement=replace(entry.measurement, epochs=epochs))
    return entry


def served(entry: Entry) -> Entry:
    """Requests that failed, to a model that was profiled in another precision."""
    if isinstance(entry, Started) and (service := entry.job.service) is not None:
        profiles = tuple(replace(each, precision="int8") for each in service.model.profiles) or (
            Profile(1, (), "int8"),
        )
        return replace(
            entry, job=replace(entry.job, service=replace(service, model=replace(service.model, profiles=profiles)))
        )
    if isinstance(entry, Settled) and entry.measurement.served is not None:
        return replace(
            entry, measurement=replace(entry.measurement, served=replace(entry.measurement.served, failures=3))
        )
    return entry


if __name__ == "__main__":
    ledger = open_ledger()
    for source, change in (("recorded-1", trained), ("scaled-1", scaled), ("tuned-1", tuned), ("net-a-1", served)):
        first, *others = (change(line.entry) for line in ledger.lines(source))
        book = ledger.begin(f"rare {change.__name__}", VirtualClock(), first)
        for entry in others:
            book.write(entry)
