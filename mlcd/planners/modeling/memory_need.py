"""How much memory a job needs on one device: what is believed before it ran, and what running out of it rules out.

    need(D) = state + batch share(D)                  D fits where need(D) <= m

Symbols   D      a configuration: n nodes with g devices each, m GB of memory on a device
          state  GB that every device holds, however many there are: weights, gradients, optimizer
          batch  GB for the activations of one global batch; where state is sharded over the devices, it is in here
          share  part of the global batch on one device: ceil(B / (n g)) / B, or 1 / (n g) where B is not known
          B      global batch in samples                K      draws of (state, batch)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlcd.core.configuration import Floats, Mask, Offer, Space
from mlcd.core.job import Hints
from mlcd.planners.modeling.physics import ACTIVATION_BYTES_PER_FLOP, STATE_BYTES_PER_PARAMETER, Model, device_gb

Rows = NDArray[np.intp]

NO_HINTS = Hints()
NO_WALL = 0.5
"""Without hints: how likely a job is to fit everything."""
REPLICATED = 0.3
"""Without hints: of the jobs that do not fit everything, those of which each device holds a part of the same size."""
HINTS_MISLEAD = 0.1
"""With hints: how likely they say nothing of the memory that the job needs."""
SHARDED = 0.25
"""With hints: how likely the state is sharded over all devices."""
STATE_SPREAD = 0.5
"""Of the log of state: 8 to 20 bytes a parameter are usual, by precision and optimizer."""
BATCH_SPREAD = 1.5
"""Of the log of batch: activations for each FLOP differ by a factor of 20 between networks."""


@dataclass(frozen=True)
class MemoryNeed:
    """Draws of state and batch, (K, 1) each, and of each configuration its m and share, (N,) each."""

    state: Floats
    batch: Floats
    memory: Floats
    share: Floats

    def too_small(self, draws: Rows, at: Rows) -> Mask:
        """Whether the job would run out of memory: a row for each draw, a column for each configuration."""
        small: Mask = self.state[draws] + self.batch[draws] * self.share[at] > self.memory[at]
        return small


def draw_memory_need(space: Space, hints: Hints, rng: np.random.Generator, draws: int) -> MemoryNeed:
    """The prior: anything between the smallest and the largest configuration, or near what the hints say."""
    offers = space.offers
    memory = np.array([_device_gb(offer) for offer in offers])[space.offer_index]
    devices = space.nodes * np.array([float(offer.workers) for offer in offers])[space.offer_index]
    batch = hints.global_batch
    share = 1 / devices if batch is None else np.ceil(batch / devices) / batch
    total = np.log(memory * devices)
    anything = np.exp(rng.uniform(total.min() - np.log(2), total.max(), (draws, 1)))
    anything = np.where(rng.random((draws, 1)) < NO_WALL, 0.0, anything)
    held = np.exp(rng.uniform(np.log(memory.min() / 4), np.log(memory.max()), (draws, 1)))
    held = np.where((rng.random((draws, 1)) < REPLICATED) & (anything > 0), held, 0.0)
    if hints.parameters is None or not all(_is_known(offer) for offer in offers):
        return MemoryNeed(held, anything, memory, share)
    state, activations = _from_hints(hints, rng, draws)
    sharded = rng.random((draws, 1)) < SHARDED
    hinted = rng.random((draws, 1)) >= HINTS_MISLEAD
    return MemoryNeed(
        np.where(hinted, np.where(sharded, 0.0, state), held),
        np.where(hinted, np.where(sharded, activations + state, activations), anything),
        memory,
        share,
    )


def _from_hints(hints: Hints, rng: np.random.Generator, draws: int) -> tuple[Floats, Floats]:
    """Draws of the state and of the activations of a global batch, in GB."""
    model = Model.of(hints)
    state = STATE_BYTES_PER_PARAMETER * model.parameters / 1e9
    activations = ACTIVATION_BYTES_PER_FLOP * model.flops_per_sample * model.global_batch / 1e9
    return (
        state * np.exp(STATE_SPREAD * rng.standard_normal((draws, 1))),
        activations * np.exp(BATCH_SPREAD * rng.standard_normal((draws, 1))),
    )


def cannot_fit(space: Space, ran: Rows, out_of_memory: Rows) -> Mask:
    """The configurations that out-of-memory failures rule out.

    A configuration that ran out of memory rules out every other with no more devices and no more memory on each. That
    holds wherever need(D) does not grow with the number of devices: the global batch is fixed and is divided among the
    devices. It is measured by GB of memory on a device only where that is published for both types, and within
    accelerators or within CPUs; types of which it is not known rule out sizes of their own type alone.
    A failure that rules out something that ran has another cause, and rules out nothing.
    """
    facts = [
        (offer.instance_type, offer.accelerators > 0, _device_gb(offer), _is_known(offer)) for offer in space.offers
    ]
    workers = np.array([float(offer.workers) for offer in space.offers])
    devices = space.nodes * workers[space.offer_index]
    closed = np.zeros(len(space), dtype=bool)
    for row in out_of_memory:
        name, accelerated, memory, known = facts[space.offer_index[row]]
        no_more = [
            other == name or (known and other_known and accelerated == kind and other_memory <= memory)
            for other, kind, other_memory, other_known in facts
        ]
        small: Mask = np.array(no_more)[space.offer_index] & (devices <= devices[row])
        if not small[ran].any():
            closed |= small
    return closed


def _is_known(offer: Offer) -> bool:
    return device_gb(offer) > 0


def _device_gb(offer: Offer) -> float:
    """Memory of a device; where it is not published, its part of the node's memory stands for it."""
    return device_gb(offer) or max(offer.memory_gb, 0.1) / offer.workers
