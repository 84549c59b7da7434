"""The time and the memory of one synchronous data-parallel training step, from published facts alone.

Used by the simulated cloud and by `mlcd plan`; whatever it says is labelled 'simulated' or 'modelled'.
The shape is Paleo's (Qi et al., ICLR 2017): computing + communicating, with parts that overlap.

Symbols   n      nodes                          g     devices in a node (1 for a CPU type)
          B      global batch, samples          F     FLOP for one sample, forward and backward
          M      model size, bytes of gradient  R     published rate of one node, FLOP/s
          e      efficiency, share of R kept    W     network of one node, bytes/s
          V      bandwidth inside a node, bytes/s
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from mlcd.catalog.files import known_accelerators
from mlcd.catalog.gpus import known_gpu
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
WITHOUT_TENSOR_CORES = ("K80", "M60", "P4", "P100")
"""GPUs older than Volta. `catalog/gpus.csv` does not have them."""
FLOPS_PER_PARAMETER = 500
"""Where a job gives no flops_per_sample: about what a ResNet-50 has at 224 pixels."""
ACTIVATION_BYTES_PER_FLOP = 0.008
"""Likewise about that of a ResNet-50: 100 MB for 12 GFLOP."""


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


@lru_cache(maxsize=8)
def rates(model: Model, communication: Communication, space: Space, efficiency: float) -> Floats:
    """s(m, n) of every configuration, whatever memory it has."""
    found = np.empty(len(space))
    for i, offer in enumerate(space.offers):
        rows = space.offer_index == i
        found[rows] = samples_per_s(model, communication, offer, space.nodes[rows], efficiency)
    return found


def fits(model: Model, space: Space) -> Mask:
    """Whether each configuration has the memory. Memory that nobody states is enough."""
    found = np.empty(len(space), dtype=bool)
    for i, offer in enumerate(space.offers):
        rows = space.offer_index == i
        found[rows] = needed_gb(model, offer, space.nodes[rows]) <= (device_gb(offer) or np.inf)
    return found


def rates_that_fit(model: Model, communication: Communication, space: Space, efficiency: float) -> Floats:
    """s(m, n) of every configuration; zero where the job does not fit."""
    return np.where(fits(model, space), rates(model, communication, space, efficiency), 0.0)


@lru_cache(maxsize=8)
def on_tensor_cores(space: Space) -> Space:
    """The same machines at their rate in bf16; CPUs, and GPUs without tensor cores, at that in fp32.

    What an offer says of its rate in fp32 holds, such as that of a part of a GPU: the catalog says how many times that
    a GPU has in bf16. One that it does not know is taken to gain as much as the known ones do, in the mean.
    """
    gains = {offer.accelerator: _tensor_gain(offer.accelerator) for offer in space.offers}
    stated = [gain for gain in gains.values() if gain is not None and gain > 1]
    usual = float(np.exp(np.mean(np.log(stated)))) if stated else 1.0

    def faster(offer: Offer) -> Offer:
        gain = gains[offer.accelerator]
        return replace(offer, tflops_per_accelerator=offer.tflops_per_accelerator * (usual if gain is None else gain))

    return replace(space, choices=tuple(replace(choice, offer=faster(choice.offer)) for choice in space.choices))


@lru_cache(maxsize=256)
def _tensor_gain(accelerator: str) -> float | None:
    """How many times its published rate in fp32 it has in bf16, dense; None where the catalog does not say."""
    if accelerator in ("", *WITHOUT_TENSOR_CORES):
        return 1.0
    gpu = known_gpu(accelerator)
    fp32, _ = known_accelerators().get(gpu.name, (0.0, 0.0)) if gpu is not None else (0.0, 0.0)
    return gpu.tflops("bf16") / fp32 if gpu is not None and fp32 > 0 else None


def _inside_bytes_per_s(offer: Offer) -> float:
    """NVLink where the accelerators have it, PCIe elsewhere."""
    gpu = known_gpu(offer.accelerator) if offer.accelerators > 1 else None
    return 100e9 if gpu is not None and gpu.nvlink_gb_s else 10e9
