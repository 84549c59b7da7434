"""The time and the memory of one synchronous data-parallel training step, from published facts alone.

Used by the simulated cloud and by `mlcd plan`; whatever it says is labelled 'simulated' or 'modelled'.
The shape is Paleo's (Qi et al., ICLR 2017): computing + communicating, with parts that overlap.

Symbols   n      nodes                          g     devices in a node (1 for a CPU type)
          B      global batch, samples          F     FLOP for one sample, forward and backward
          M      model size, bytes of gradient  R     published rate of one node, FLOP/s
          e      efficiency, share of R kept    W     network of one node, bytes/s
          V      bandwidth inside a node, bytes/s

How much memory a job needs on one device: what is believed before it ran, and what running out of it rules out.

    need(D) = state + batch share(D)                  D fits where need(D) <= m

          D      a configuration: n nodes with g devices each, m GB of memory on a device
          state  GB that every device holds, however many there are: weights, gradients, optimizer
          batch  GB for the activations of one global batch; where state is sharded over the devices, it is in here
          share  part of the global batch on one device: ceil(B / (n g)) / B, or 1 / (n g) where B is not known
          K      draws of (state, batch)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlcd.core.configuration import Floats, Mask, Offer, Space
from mlcd.core.job import Communication, Hints

STEP_OVERHEAD_S = 0.004
"""Kernel launches and input of a step that no device makes faster."""
HOP_LATENCY_S = 0.0005
"""Of one hop round the ring, over the ten or so gradient buckets of a step."""
OVERLAP = 0.5
"""Share of computing under which communication can hide: most of the backward pass."""
STRAGGLER = 0.03
"""Relative scatter of a node's step; all wait for the slowest of n."""
INCAST = 0.02
"""Slow-down of a sharded parameter server for each further node that pushes at the same time."""
SLOWEST_GBPS = 0.01
"""What a network is taken for that nobody states."""
BYTES_PER_PARAMETER = 4
STATE_BYTES_PER_PARAMETER = 16
"""Weights, gradients and the two moments of Adam, in fp32."""
FLOPS_PER_PARAMETER = 500
"""Where a job gives no flops_per_sample: about what a ResNet-50 has at 224 pixels."""
ACTIVATION_BYTES_PER_FLOP = 0.008
"""Likewise about that of a ResNet-50: 100 MB for 12 GFLOP."""
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


@dataclass(frozen=True, slots=True)
class Model:
    """What physics needs to know of a job."""

    parameters: float
    flops_per_sample: float
    global_batch: int

    @staticmethod
    def of(hints: Hints) -> Model:
        """From the user's hints, with a ResNet-50 where they say nothing."""
        parameters = hints.parameters or 25e6
        flops = hints.flops_per_sample or FLOPS_PER_PARAMETER * parameters
        return Model(parameters, flops, hints.global_batch or 256)


def step_s(model: Model, communication: Communication, offer: Offer, nodes: Floats, efficiency: float) -> Floats:
    """Seconds of one step of B samples on n nodes of an offer."""
    n, g = nodes, offer.workers
    compute = model.global_batch * model.flops_per_sample / (n * offer.tflops * 1e12 * efficiency)
    compute = compute * (1 + STRAGGLER * np.sqrt(2 * np.log(np.maximum(n, 1))))
    size = BYTES_PER_PARAMETER * model.parameters
    network = max(offer.network_gbps, SLOWEST_GBPS) / 8 * 1e9
    between = 2 * size * (n - 1) / n / network
    if communication is Communication.PARAMETER_SERVER:
        between = between * (1 + INCAST * (n - 1)) + HOP_LATENCY_S * np.log2(n + 1)
    else:
        between = between + HOP_LATENCY_S * (n - 1)
    inside = 2 * size * (g - 1) / g / _inside_bytes_per_s(offer)
    exposed: Floats = np.maximum(0.0, between + inside - OVERLAP * compute)
    total: Floats = STEP_OVERHEAD_S + compute + exposed
    return total


def samples_per_s(model: Model, communication: Communication, offer: Offer, nodes: Floats, efficiency: float) -> Floats:
    """s(m, n): the rate that goes with `step_s`."""
    return model.global_batch / step_s(model, communication, offer, nodes, efficiency)


def needed_gb(model: Model, offer: Offer, nodes: Floats) -> Floats:
    """Memory one device needs: the model's state, and the activations of its share of the batch."""
    share = np.ceil(model.global_batch / (nodes * offer.workers))
    activations = share * ACTIVATION_BYTES_PER_FLOP * model.flops_per_sample
    return (STATE_BYTES_PER_PARAMETER * model.parameters + activations) / 1e9


def device_gb(offer: Offer) -> float:
    """Memory one device has."""
    return offer.accelerator_memory_gb if offer.accelerators else offer.memory_gb


def rates_that_fit(model: Model, communication: Communication, space: Space, efficiency: float) -> Floats:
    """s(m, n) of every configuration; zero where the job does not fit. Memory that nobody states is enough."""
    rates = np.empty(len(space))
    for i, offer in enumerate(space.offers):
        rows = space.offer_index == i
        nodes = space.nodes[rows]
        fits = needed_gb(model, offer, nodes) <= (device_gb(offer) or np.inf)
        rates[rows] = np.where(fits, samples_per_s(model, communication, offer, nodes, efficiency), 0.0)
    return rates


def _inside_bytes_per_s(offer: Offer) -> float:
    """NVLink where the accelerator is of a class that has it, PCIe elsewhere."""
    linked = offer.accelerators > 1 and offer.accelerator.split("-")[0] in {"V100", "A100", "H100", "H200", "B200"}
    return 100e9 if linked else 10e9


@dataclass(frozen=True)
class MemoryNeed:
    """Draws of state and batch, (K, 1) each, and of each configuration its m and share, (N,) each."""

    state: Floats
    batch: Floats
    memory: Floats
    share: Floats

    def too_small(self, draws: Rows, at: Rows) -> Mask:
        """Whether the job would run out of memory: a row for each draw, a column for each configuration."""
        return self.state[draws] + self.batch[draws] * self.share[at] > self.memory[at]


def draw_memory_need(space: Space, hints: Hints, rng: np.random.Generator, draws: int) -> MemoryNeed:
    """The prior: anything between the smallest and the largest configuration, or near what the hints say."""
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
    """Of each configuration, on all of its nodes."""
    return np.asarray(space.nodes * np.array([float(offer.workers) for offer in space.offers])[space.offer_index])


def _device_gb(offer: Offer) -> float:
    """Memory of a device; where it is not published, its part of the node's memory stands for it."""
    return device_gb(offer) or max(offer.memory_gb, 0.1) / offer.workers
