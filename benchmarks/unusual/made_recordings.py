"""Random recordings that are unlike real ones: KINDS names the kinds, `made(kind, seed)` draws one.

The same seed draws the same recording.

In each, one node is roughly as fast as its type's published figures say; a law gives the speed of more nodes.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from mlcd.clouds.recording import Point, Recording
from mlcd.core.configuration import Configuration, Floats, Offer, ProbeTime
from mlcd.core.measurement import Outcome

ACCELERATORS = ("T4", "V100", "A100", "K80")
SOME = (1, 2, 3, 4, 6, 8, 12, 16)
RATE, BATCH = 10.0, 64
"""Samples/s of one node with a TFLOPS, and the global batch of 'step'."""

TEN_MINUTES = ProbeTime(600.0, 60.0)


def up_to(most: int) -> tuple[int, ...]:
    """All node counts up to this."""
    return tuple(range(1, most + 1))


@dataclass(frozen=True)
class Kind:
    """A kind of recordings. Defaults: eight types, true published figures, eight hours at the best."""

    tells: str
    law: str = "amdahl"
    types: int = 8
    nodes: tuple[int, ...] = SOME
    facts: str = "true"
    usd_per_hour: tuple[float, float] = (0.3, 30.0)
    accelerated: float = 0.5
    best_hours: float = 8.0
    probe_time: ProbeTime = TEN_MINUTES
    memory_wall: bool = False
    failing: float = 0.0
    ragged: bool = False
    one_runs: bool = False
    equal_price: bool = False
    equal_rate: bool = False


LOOKED_AT = {
    "amdahl": Kind("nodes help less and less"),
    "comm": Kind("communication takes over: up, then down", "comm", nodes=up_to(32)),
    "cliff": Kind("a node count beyond which it is 2 to 7 times slower", "cliff", nodes=up_to(24)),
    "pow2": Kind("only powers of two are fast", "pow2", types=5, nodes=up_to(32)),
    "wrongfacts": Kind("facts that have nothing to do with the truth", types=12, facts="wrong"),
    "onetype": Kind("one type, 64 nodes", "comm", types=1, nodes=up_to(64)),
    "oneok": Kind("all but one fail", types=4, nodes=(1, 2, 4, 8), one_runs=True),
    "prices4": Kind("prices over four decades", types=12, usd_per_hour=(0.003, 100.0)),
    "equalprice": Kind("all types at one price; more than linear at first", "super", equal_price=True),
    "short": Kind("20 minutes at the best", best_hours=0.3),
    "huge": Kind("2,000 hours at the best", best_hours=2_000.0),
    "oom": Kind("too little memory below some size", "comm", memory_wall=True),
    "random": Kind("pure chance", "random", types=6),
    "cpu": Kind("no accelerators", "comm", types=10, accelerated=0.0),
}
"""Used while net value was tuned."""

HELD_OUT = {
    "super": Kind("more than linear at first", "super", nodes=up_to(32)),
    "cliffup": Kind("a node count from which it is 2 to 5 times faster", "cliffup", types=6, nodes=up_to(24)),
    "osc": Kind("goes up and down with each doubling", "osc", types=5, nodes=up_to(40)),
    "step": Kind("a batch of 64 that rounds up", "step", types=4, nodes=up_to(64)),
    "flatfacts": Kind("facts that are all equal", "comm", types=12, facts="equal"),
    "zerofacts": Kind("no memory, no network in the facts", types=6, facts="zero"),
    "onepoint": Kind("one configuration", types=1, nodes=(1,)),
    "manytypes": Kind("200 types", "comm", types=200, nodes=(1, 2, 4)),
    "bigspace": Kind("256 nodes", "comm", types=3, nodes=up_to(256)),
    "equalrate": Kind("everything equally fast", equal_rate=True),
    "flat": Kind("nodes bring nothing", "flat"),
    "worse": Kind("nodes make it slower", "worse"),
    "longprobe": Kind("probes of two hours, six hours at the best", best_hours=6, probe_time=ProbeTime(7_200, 600)),
    "fails": Kind("half fail by chance; other node counts for each type", "comm", types=10, failing=0.5, ragged=True),
    "oomlinear": Kind("linear, with a memory wall", "linear", types=6, memory_wall=True, best_hours=40.0),
}
"""Held out."""

LARGE = {
    f"big{law}": Kind(f"200 types x 256 nodes; {tells}", law, types=200, nodes=up_to(256))
    for law, tells in (("super", "more than linear at first"), ("amdahl", "less and less"), ("comm", "up, then down"))
}
KINDS = LOOKED_AT | HELD_OUT


def made(name: str, seed: int) -> Recording:
    """One recording of a kind."""
    kind = (KINDS | LARGE)[name]
    rng = np.random.default_rng([zlib.crc32(name.encode()), seed])
    points = _points(kind, rng)
    if kind.one_runs:
        points = _all_but_one_fail(points, rng)
    if not any(point.samples_per_s for point in points.values()):
        points[list(points)[-1]] = Point(Outcome.OK, 100.0)
    top = max(point.samples_per_s for point in points.values() if point.samples_per_s)
    return Recording(f"{name}-{seed}", max(1.0, top * kind.best_hours * 3_600), points, kind.probe_time)


def _points(kind: Kind, rng: Generator) -> dict[Configuration, Point]:
    points = {}
    offers = [_offer(number, kind, rng) for number in range(kind.types)]
    needed_gb = np.exp(rng.uniform(np.log(8), np.log(1_500))) if kind.memory_wall else 0.0
    for offer in offers:
        nodes = np.array(kind.nodes)
        if kind.ragged:
            nodes = np.sort(rng.choice(nodes, rng.integers(1, len(nodes) + 1), replace=False))
        law = LAWS[kind.law](nodes.astype(float), rng, offer)
        rates = law * (offer.tflops**0.8 * np.exp(rng.normal(0, 0.25))) * RATE
        for n, rate in zip(nodes, rates, strict=True):
            point = Point(Outcome.OK, 100.0 if kind.equal_rate else float(rate))
            if offer.memory_gb * n < needed_gb:
                point = Point(Outcome.OUT_OF_MEMORY)
            if kind.failing and rng.random() < kind.failing:
                point = Point(Outcome.FAILED)
            points[Configuration(offer, int(n))] = point
    return points


def _all_but_one_fail(points: dict[Configuration, Point], rng: Generator) -> dict[Configuration, Point]:
    kept = list(points)[rng.integers(len(points))]
    others = Outcome.OUT_OF_MEMORY if rng.random() < 0.5 else Outcome.FAILED
    return {where: points[kept] if where == kept else Point(others) for where in points}


def _offer(number: int, kind: Kind, rng: Generator) -> Offer:
    rng.normal()  # nothing uses it; without it every recording would be another than the published figures are of
    accelerated = rng.random() < kind.accelerated
    usd_per_hour = round(float(np.exp(rng.uniform(*np.log(kind.usd_per_hour)))), 5)
    family = int(rng.integers(len(ACCELERATORS)))
    accelerators = int(rng.choice([1, 1, 2, 4, 8])) if accelerated else 0
    vcpus = float(rng.choice([2, 4, 8, 16, 32, 64, 96]))
    offer = Offer(
        f"f{family}.t{number}",
        1.0 if kind.equal_price else usd_per_hour,
        vcpus,
        accelerator=ACCELERATORS[family] if accelerated else "",
        accelerators=accelerators,
        tflops_per_accelerator=round(float(np.exp(rng.uniform(np.log(4), np.log(70)))), 1) if accelerated else 0.0,
        memory_gb=vcpus * float(rng.choice([2, 4, 8])),
        network_gbps=float(rng.choice([1, 5, 10, 25, 100])),
    )
    return FACTS[kind.facts](offer, f"t{number}", rng)


def _wrong(offer: Offer, name: str, rng: Generator) -> Offer:
    return Offer(
        name,
        offer.usd_per_hour,
        vcpus=float(rng.integers(1, 200)),
        memory_gb=float(rng.integers(1, 2_000)),
        accelerator="X" if rng.random() < 0.5 else "",
        accelerators=int(rng.integers(0, 9)),
        tflops_per_accelerator=float(rng.uniform(0.1, 500)),
        network_gbps=float(rng.uniform(0.01, 400)),
    )


FACTS: dict[str, Callable[[Offer, str, Generator], Offer]] = {
    "true": lambda offer, name, rng: offer,
    "equal": lambda offer, name, rng: Offer(name, offer.usd_per_hour, vcpus=8, memory_gb=32, network_gbps=10),
    "zero": lambda offer, name, rng: Offer(name, offer.usd_per_hour, vcpus=8, memory_gb=0, network_gbps=0),
    "wrong": _wrong,
}


def _comm(n: Floats, rng: Generator, offer: Offer) -> Floats:
    share = 10 ** rng.uniform(-2, 0.3) * (10 / max(offer.network_gbps, 0.01)) ** 0.5
    return n / (1 + share * (n - 1) + 0.3 * share * (n - 1) ** 1.5)


def _cliff(n: Floats, rng: Generator, offer: Offer) -> Floats:
    beyond = rng.integers(2, 20)
    return n / (1 + 0.02 * (n - 1)) * np.where(n > beyond, rng.uniform(0.15, 0.5), 1.0)


def _cliff_up(n: Floats, rng: Generator, offer: Offer) -> Floats:
    first = rng.integers(2, 20)
    return n**0.7 * np.where(n >= first, rng.uniform(2, 5), 1.0)


def _powers_of_two(n: Floats, rng: Generator, offer: Offer) -> Floats:
    other = np.abs(np.log2(n) - np.round(np.log2(n))) > 1e-9
    return n / (1 + 0.05 * (n - 1)) * np.where(other, rng.uniform(0.4, 0.8), 1.0)


LAWS: dict[str, Callable[[Floats, Generator, Offer], Floats]] = {
    "amdahl": lambda n, rng, offer: n / (1 + 10 ** rng.uniform(-3, -0.5) * (n - 1)),
    "comm": _comm,
    "super": lambda n, rng, offer: n**1.4 / (1 + (n / rng.uniform(2, 8)) ** 0.9),
    "cliff": _cliff,
    "cliffup": _cliff_up,
    "pow2": _powers_of_two,
    "osc": lambda n, rng, offer: n**0.8 * (1 + 0.4 * np.sin(2 * np.pi * np.log2(n) + rng.uniform(0, 6))),
    "flat": lambda n, rng, offer: np.ones_like(n),
    "random": lambda n, rng, offer: np.exp(rng.normal(0, 1, len(n))),
    "worse": lambda n, rng, offer: n ** -rng.uniform(0.2, 0.8),
    "linear": lambda n, rng, offer: n,
    "step": lambda n, rng, offer: BATCH / np.ceil(BATCH / n),
}
