"""Time and memory of one synchronous data-parallel training step, computed from datasheets.

Used by the simulated cloud and by `mlcd plan`; its results are labelled 'simulated' or 'modelled'.
The form is Paleo's (Qi et al., ICLR 2017): computation + communication, with overlap.

Symbols   n      nodes                          g     devices in a node (1 for a CPU type)
          B      global batch, samples          F     FLOP for one sample, forward and backward
          M      model size, bytes of gradient  R     published rate of one node, FLOP/s
          e      efficiency, reached share of R W     network of one node, bytes/s
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
"""Kernel launches and input of a step, the same on every device."""
HOP_LATENCY_S = 0.0005
"""Latency of one hop of the ring, over about ten gradient buckets of a step."""
OVERLAP = 0.5
"""Share of computation that can hide communication: most of the backward pass."""
STRAGGLER = 0.03
"""Relative standard deviation of a node's step time; all wait for the slowest of n."""
INCAST = 0.02
"""Slow-down of a sharded parameter server for each further node that pushes at the same time."""
SLOWEST_GBPS = 0.01
"""Assumed bandwidth of a network without a published one."""
BYTES_PER_PARAMETER = 4
STATE_BYTES_PER_PARAMETER = 16
"""Weights, gradients and the two moments of Adam, in fp32."""
WITHOUT_TENSOR_CORES = ("K80", "M60", "P4", "P100")
"""GPUs older than Volta. `catalog/gpus.csv` does not have them."""
FLOPS_PER_PARAMETER = 500
"""Used if a job gives no flops_per_sample: about that of a ResNet-50 at 224 pixels."""
ACTIVATION_BYTES_PER_FLOP = 0.008
"""About that of a ResNet-50: 100 MB for 12 GFLOP."""


@dataclass(frozen=True, slots=True)
class Model:
    """The sizes of a job that the formulas need."""

    parameters: float
    flops_per_sample: float
    global_batch: int

    @staticmethod
    def of(hints: Hints) -> Model:
        """From the user's hints; missing ones are those of a ResNet-50."""
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
    """s(m, n): samples a second by `step_s`."""
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
    """s(m, n) of every configuration, whatever its memory."""
    found = np.empty(len(space))
    for i, offer in enumerate(space.offers):
        rows = space.offer_index == i
        found[rows] = samples_per_s(model, communication, offer, space.nodes[rows], efficiency)
    return found


def fits(model: Model, space: Space) -> Mask:
    """Whether each configuration has enough memory. Unpublished memory counts as enough."""
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
    """The same machines at their bf16 rate; CPUs and GPUs without tensor cores at their fp32 rate.

    The fp32 rate is that of the offer, which may be a slice of a GPU; the catalog gives the ratio of bf16 to fp32. A
    GPU that it does not know gets the geometric mean of the known ratios.
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
    """Ratio of dense bf16 to fp32 rate; None if the catalog does not know it."""
    if accelerator in ("", *WITHOUT_TENSOR_CORES):
        return 1.0
    gpu = known_gpu(accelerator)
    fp32, _ = known_accelerators().get(gpu.name, (0.0, 0.0)) if gpu is not None else (0.0, 0.0)
    return gpu.tflops("bf16") / fp32 if gpu is not None and fp32 > 0 else None


def _inside_bytes_per_s(offer: Offer) -> float:
    """Bandwidth of NVLink if the accelerators have it, else of PCIe."""
    gpu = known_gpu(offer.accelerator) if offer.accelerators > 1 else None
    return 100e9 if gpu is not None and gpu.nvlink_gb_s else 10e9
