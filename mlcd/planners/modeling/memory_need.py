"""Memory that a job needs on one device: the prior, and what running out of memory rules out.

need(D) = state + batch share(D)                  D fits where need(D) <= m

      D      a configuration: n nodes with g devices each, m GB of memory on a device
      state  GB that every device holds, however many there are: weights, gradients, optimizer
      batch  GB for the activations of one global batch; a state that is sharded over the devices is included here
      share  part of the global batch on one device: ceil(B / (n g)) / B, or 1 / (n g) if B is not known
      K      number of prior samples of (state, batch)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mlcd.core.configuration import Floats, Mask, Offer, Space
from mlcd.core.job import Hints
from mlcd.planners.modeling.physics import ACTIVATION_BYTES_PER_FLOP, STATE_BYTES_PER_PARAMETER, Model, device_gb

Rows = NDArray[np.intp]
NO_HINTS = Hints()
NO_WALL = 0.5
"""Without hints: probability that a job fits everywhere."""
REPLICATED = 0.3
"""Without hints: probability that a job which does not fit everywhere has a state replicated on each device."""
HINTS_MISLEAD = 0.1
"""With hints: probability that they do not predict the job's memory."""
TRANSFORMER_PARAMETERS = 3e8
"""With hints: at this size a model is as likely a transformer as a convolutional network."""
SHARDED, SHARDED_TRANSFORMER = 0.25, 0.5
"""With hints: probability that the state is sharded over all devices."""
FROZEN = 0.15
"""Probability that a transformer's weights are frozen and an adapter is trained."""
FROZEN_BYTES_PER_PARAMETER = 2
STATE_SPREAD = 0.5
"""Standard deviation of log state: 8 to 20 bytes a parameter are usual, depending on precision and optimizer."""
BATCH_SPREAD = 1.2
"""Standard deviation of log batch: precision, kernels and checkpointing change it by up to a factor of ten."""
CHANCE_DRAWS = 400
"""Prior samples for the probability to fit."""


@dataclass(frozen=True)
class MemoryNeed:
    """Samples of state and batch, (K, 1) each; m and share of each configuration, (N,) each."""

    state: Floats
    batch: Floats
    memory: Floats
    share: Floats

    def too_small(self, draws: Rows, at: Rows) -> Mask:
        """Whether the job would run out of memory, by sample (rows) and configuration (columns)."""
        return self.state[draws] + self.batch[draws] * self.share[at] > self.memory[at]


def draw_memory_need(space: Space, hints: Hints, rng: np.random.Generator, draws: int) -> MemoryNeed:
    """Samples of the prior: near the hints, or anything between the smallest and the largest configuration."""
    offers = space.offers
    memory = np.array([_device_gb(offer) for offer in offers])[space.offer_index]
    devices, batch = _devices(space), hints.global_batch
    share = 1 / devices if batch is None else np.ceil(batch / devices) / batch
    total = np.log(memory * devices)
    anything = np.exp(rng.uniform(total.min() - np.log(2), total.max(), (draws, 1)))
    anything = np.where(rng.random((draws, 1)) < NO_WALL, 0.0, anything)
    held = np.exp(rng.uniform(np.log(memory.min() / 4), np.log(memory.max()), (draws, 1)))
    held = np.where((rng.random((draws, 1)) < REPLICATED) & (anything > 0), held, 0.0)
    if hints.parameters is None or not all(device_gb(offer) > 0 for offer in offers):
        return MemoryNeed(held, anything, memory, share)
    state, activations, sharded = _from_hints(hints, rng, draws)
    hinted = rng.random((draws, 1)) >= HINTS_MISLEAD
    return MemoryNeed(
        np.where(hinted, np.where(sharded, 0.0, state), held),
        np.where(hinted, np.where(sharded, activations + state, activations), anything),
        memory,
        share,
    )


def _from_hints(hints: Hints, rng: np.random.Generator, draws: int) -> tuple[Floats, Floats, Mask]:
    """Samples of the state and of the activations of a global batch, in GB, and whether the state is sharded."""
    model = Model.of(hints)
    transformer = rng.random((draws, 1)) < model.parameters / (model.parameters + TRANSFORMER_PARAMETERS)
    frozen = transformer & (rng.random((draws, 1)) < FROZEN)
    state = np.where(frozen, FROZEN_BYTES_PER_PARAMETER, STATE_BYTES_PER_PARAMETER) * model.parameters
    per_flop = np.where(transformer, _transformer_bytes_per_flop(model.parameters), ACTIVATION_BYTES_PER_FLOP)
    activations = per_flop * model.flops_per_sample * model.global_batch
    return (
        state / 1e9 * np.exp(STATE_SPREAD * rng.standard_normal((draws, 1))),
        activations / 1e9 * np.exp(BATCH_SPREAD * rng.standard_normal((draws, 1))),
        rng.random((draws, 1)) < np.where(transformer, SHARDED_TRANSFORMER, SHARDED),
    )


def _transformer_bytes_per_flop(parameters: float) -> float:
    """Bytes of activations: a layer of width h stores 34 h bytes of a token (Korthikanti et al., 2022) for 72 h^2 FLOP.

    The width follows from the number of parameters, with 12 h^2 a layer and the usual h / 128 layers.
    """
    width: float = (128 / 12 * parameters) ** (1 / 3)
    return 34 / (72 * width)


@lru_cache(maxsize=8)
def chance_to_fit(space: Space, hints: Hints) -> Floats:
    """Prior probability of each configuration to have enough memory."""
    need, every = draw_memory_need(space, hints, np.random.default_rng(0), CHANCE_DRAWS), np.arange(len(space))
    short = np.zeros(len(space))
    for draw in range(CHANCE_DRAWS):  # one at a time: all at once take half a gigabyte in a large space
        short += need.too_small(np.array([draw]), every)[0]
    return 1 - short / CHANCE_DRAWS


def cannot_fit(space: Space, ran: Rows, out_of_memory: Rows) -> Mask:
    """The configurations that out-of-memory failures rule out.

    A configuration that ran out of memory rules out every other with no more devices and no more memory on each. That
    is right if need(D) does not grow with the number of devices, as with a fixed global batch that is divided among
    them. Memory is compared only between accelerators or between CPUs, and only if it is published for both types;
    otherwise a failure rules out sizes of its own type alone. A failure that would rule out something that ran had
    another cause, and rules out nothing.
    """
    name = np.array([offer.instance_type for offer in space.offers])
    accelerated = np.array([offer.accelerators > 0 for offer in space.offers])
    published_gb = np.array([device_gb(offer) for offer in space.offers])
    devices, offer_of = _devices(space), space.offer_index
    closed = np.zeros(len(space), dtype=bool)
    for row in out_of_memory:
        at = offer_of[row]
        known = (published_gb > 0) & (published_gb[at] > 0) & (accelerated == accelerated[at])
        no_more = (name == name[at]) | (known & (published_gb <= published_gb[at]))
        small: Mask = no_more[offer_of] & (devices <= devices[row])
        if not small[ran].any():
            closed |= small
    return closed


def _devices(space: Space) -> Floats:
    """Devices of each configuration, on all of its nodes."""
    return np.asarray(space.nodes * np.array([float(offer.workers) for offer in space.offers])[space.offer_index])


def _device_gb(offer: Offer) -> float:
    """Memory of a device; if unpublished, its part of the node's memory."""
    return device_gb(offer) or max(offer.memory_gb, 0.1) / offer.workers
