"""Made recordings whose speeds follow other laws than net value's (`modeling/speed_surface.py`).

`universal`   the universal scalability law (Gunther 2007): n / (1 + a (n - 1) + b n (n - 1)), a and b of each type
`islands`     nodes in islands of 4 or 8: crossing one costs time, and an incomplete last island waits
`fed`         the slower of computing and input by hosts, with a bandwidth limit of a shared store
`spilled`     data that do not fit the total memory are read from disk: slower by their share, or it fails
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np
from numpy.random import Generator

from mlcd.clouds.recording import Point, Recording
from mlcd.core.configuration import Configuration, Floats, Offer
from mlcd.core.measurement import Outcome

NODES = np.array([1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32])
BEST_HOURS = (4.0, 20.0)
CPUS = (("c", 2.0, 0.0425), ("m", 4.0, 0.048), ("r", 8.0, 0.063))
"""Family, memory in GB and dollars an hour of a vCPU."""
GPUS = (("T4", 8.1, 0.53), ("A10G", 31.2, 1.0), ("V100", 15.7, 3.06), ("A100", 19.5, 2.75), ("H100", 67.0, 6.9))
"""Name, fp32 TFLOPS and dollars an hour."""


def made(law: str, seed: int) -> Recording:
    """One recording of a law; deterministic."""
    rng = np.random.default_rng([zlib.crc32(law.encode()), seed])
    offers = _offers(rng)
    rates = LAWS[law](offers, rng)
    points = {}
    for offer, row in zip(offers, rates, strict=True):
        for n, rate in zip(NODES.tolist(), row.tolist(), strict=True):
            point = Point(Outcome.OK, rate) if rate > 0 else Point(Outcome.OUT_OF_MEMORY)
            points[Configuration(offer, n)] = point
    if not (rates > 0).any():
        return made(law, seed + 10_000)
    hours = float(rng.uniform(*BEST_HOURS))
    return Recording(f"{law}-{seed}", float(rates.max()) * hours * 3_600, points)


def _offers(rng: Generator) -> list[Offer]:
    """Six to twelve types at typical cloud prices, with a discount or two."""
    offers: dict[str, Offer] = {}
    for _ in range(int(rng.integers(6, 13))):
        network = float(rng.choice([5, 10, 25, 50, 100]))
        discount = float(rng.uniform(0.8, 1.1))
        if rng.random() < 0.5:
            family, memory, usd = CPUS[rng.integers(len(CPUS))]
            vcpus = int(rng.choice([4, 8, 16, 32, 64]))
            offer = Offer(f"{family}.{vcpus}", vcpus * usd * discount, vcpus, vcpus * memory, network_gbps=network)
        else:
            gpu, tflops, usd = GPUS[rng.integers(len(GPUS))]
            count = int(rng.choice([1, 2, 4, 8]))
            name, price = f"{gpu.lower()}.{count}", usd * count * discount
            offer = Offer(name, price, 8.0 * count, 48.0 * count, gpu, count, tflops, network)
        offers.setdefault(offer.instance_type, offer)
    return list(offers.values())


def _one_node(offer: Offer, rng: Generator) -> float:
    """Samples a second of one node: its computing power, times the job's efficiency on its family."""
    return float(10 * offer.tflops ** rng.uniform(0.5, 1.0) * np.exp(rng.normal(0, 0.3)))


def _universal(offers: list[Offer], rng: Generator) -> Floats:
    waits, talks = 10 ** rng.uniform(-3, -0.7), 10 ** rng.uniform(-5, -2.3)
    rows = []
    for offer in offers:
        a, b = waits * np.exp(rng.normal(0, 0.5)), talks * np.exp(rng.normal(0, 0.7)) * (25 / offer.network_gbps) ** 0.5
        rows.append(_one_node(offer, rng) * NODES / (1 + a * (NODES - 1) + b * NODES * (NODES - 1)))
    return np.array(rows)


def _islands(offers: list[Offer], rng: Generator) -> Floats:
    size, crossing = int(rng.choice([4, 8])), rng.uniform(0.45, 0.85)
    rows = []
    for offer in offers:
        islands = np.ceil(NODES / size)
        crossed = np.where(islands > 1, crossing * islands ** -rng.uniform(0.0, 0.2), 1.0)
        filled = np.where(islands > 1, NODES / (islands * size), 1.0)  # all wait for the island that has the most to do
        rows.append(_one_node(offer, rng) * NODES**0.95 * crossed * filled ** rng.uniform(0.3, 1.0))
    return np.array(rows)


def _fed(offers: list[Offer], rng: Generator) -> Floats:
    computes = np.array([_one_node(offer, rng) * NODES**0.93 for offer in offers])
    for_one_vcpu = np.quantile(computes[:, 0], 0.7) / 16 * np.exp(rng.normal(0, 0.4))
    feeds = np.array([offer.vcpus * for_one_vcpu * NODES for offer in offers])
    store = computes.max() * rng.uniform(0.2, 0.8)
    together: Floats = (computes**-4.0 + feeds**-4.0 + store**-4.0) ** -0.25
    return together


def _spilled(offers: list[Offer], rng: Generator) -> Floats:
    total = np.array([[offer.memory_gb * n for n in NODES] for offer in offers])
    needs = np.exp(rng.uniform(np.log(64), np.log(2_000)))
    fits = np.minimum(1.0, total / needs)
    slower = 1 / (fits + (1 - fits) * rng.uniform(3, 12))
    speed = np.array([_one_node(offer, rng) * NODES ** rng.uniform(0.75, 0.95) for offer in offers])
    rates: Floats = np.where(fits < rng.uniform(0.05, 0.4), 0.0, speed * slower)
    return rates


LAWS: dict[str, Callable[[list[Offer], Generator], Floats]] = {
    "universal": _universal,
    "islands": _islands,
    "fed": _fed,
    "spilled": _spilled,
}
