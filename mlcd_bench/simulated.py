"""The simulated cloud as a recording: 62 types x 50 nodes, the size of the HeterBO paper's AWS, for named jobs.

Rates are those of the `simulated` backend without random failures and preemptions, so that methods are compared on the
same speeds that a user gets there. Model sizes are the paper's where it states them; the others are typical.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mlcd.catalog import load_offers
from mlcd.clouds.recording import Point, Recording
from mlcd.clouds.simulated import Simulated
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Configuration, Offer
from mlcd.core.errors import UnknownName
from mlcd.core.job import Communication, Hints, Job
from mlcd.core.measurement import Outcome
from mlcd.planners.modeling.physics import Model, device_gb, needed_gb, samples_per_s

NAME = "simulated"
TYPES, NODES = 62, 50


@dataclass(frozen=True)
class SimulatedRecording(Recording):
    """A recording of simulated rates, with the hints that a user would write into a job file."""

    hints: Hints = field(default_factory=Hints)


JOBS = {
    job.name: job
    for job in (
        Job("char-rnn", 20e6, communication=Communication.PARAMETER_SERVER, hints=Hints(3.3e6, 1e9, 1024)),
        Job("alexnet", 60e6, communication=Communication.PARAMETER_SERVER, hints=Hints(6.4e6, 0.6e9, 1024)),
        Job("resnet", 10e6, communication=Communication.PARAMETER_SERVER, hints=Hints(60.3e6, 7e9, 512)),
        Job("inception", 25e6, communication=Communication.ALL_REDUCE, hints=Hints(23.8e6, 34e9, 512)),
        Job("bert", 4e6, communication=Communication.ALL_REDUCE, hints=Hints(340e6, 260e9, 256)),
    )
}
"""Jobs by name: parameters, FLOP of a sample forward and backward, samples in a global batch."""


def simulated(name: str, seed: int = 0) -> SimulatedRecording:
    """The recording of one of `JOBS`; the seed determines how efficient each type is."""
    if name not in JOBS:
        raise UnknownName("simulated job", name, JOBS)
    return recorded_from(Simulated(VirtualClock(), seed), JOBS[name], offers(), NODES)


def simulated_recordings(written: str) -> list[SimulatedRecording]:
    """'simulated' is all of them, 'simulated:bert' one."""
    _, _, name = written.partition(":")
    return [simulated(job) for job in ([name] if name else JOBS)]


def offers() -> tuple[Offer, ...]:
    """The 62 cheapest packaged AWS types, without the memory-optimised ones."""
    suited = [offer for offer in load_offers(("aws",)) if not offer.instance_type.startswith("r")]
    kept = set(sorted(suited, key=lambda offer: offer.usd_per_hour)[:TYPES])
    return tuple(offer for offer in suited if offer in kept)


def recorded_from(backend: Simulated, job: Job, types: tuple[Offer, ...], most_nodes: int) -> SimulatedRecording:
    """The backend's true rates for every type and node count, without noise or failures."""
    model, nodes = Model.of(job.hints), np.arange(1.0, most_nodes + 1)
    points: dict[Configuration, Point] = {}
    for offer in types:
        rates = samples_per_s(model, job.communication, offer, nodes, backend.efficiency(offer))
        fits = needed_gb(model, offer, nodes) <= device_gb(offer)
        for i in range(most_nodes):
            point = Point(Outcome.OK, float(rates[i])) if fits[i] else Point(Outcome.OUT_OF_MEMORY)
            points[Configuration(offer, i + 1)] = point
    return SimulatedRecording(
        f"{NAME}-{job.name}",
        job.work_samples,
        points,
        communication=str(job.communication),
        global_batch=job.hints.global_batch,
        source="simulated: a model of a cloud, not measurements",
        hints=job.hints,
    )
