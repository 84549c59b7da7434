"""What can be rented: offers, configurations, and the space of configurations of a search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mlcd.core.market import Market, OnSpot, share_on_spot
from mlcd.core.payload import Billing, Setting

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

ALL = slice(None)
CPU_TFLOPS_PER_VCPU = 0.05
"""Assumed dense fp32 rate of a vCPU, to compare with accelerators: about half of a 3 GHz core with AVX-512."""


@dataclass(frozen=True, slots=True)
class Offer:
    """An instance type at a price, with its published specifications.

    `usd_per_launch`: upper bound of what the cloud bills for each launch besides its time, such as traffic out of the
    region. `zone`: empty for any zone of the region.
    """

    instance_type: str
    usd_per_hour: float
    vcpus: float
    memory_gb: float
    accelerator: str = ""
    accelerators: int = 0
    tflops_per_accelerator: float = 0.0
    accelerator_memory_gb: float = 0.0
    network_gbps: float = 1.0
    cloud: str = ""
    region: str = ""
    spot: bool = False
    minimum_billed_s: float = 0.0
    usd_per_launch: float = 0.0
    zone: str = ""

    def __hash__(self) -> int:  # only fields that distinguish nearly all offers: it is computed very often
        return hash((self.instance_type, self.region, self.spot))

    @property
    def name(self) -> str:
        """The instance type, with 'spot' and the zone where they apply: 'g5.xlarge (spot, us-east-1a)'."""
        terms = ", ".join(each for each in ("spot" if self.spot else "", self.zone) if each)
        return f"{self.instance_type} ({terms})" if terms else self.instance_type

    @property
    def tflops(self) -> float:
        """Published fp32 rate of one node."""
        return self.accelerators * self.tflops_per_accelerator or self.vcpus * CPU_TFLOPS_PER_VCPU

    @property
    def workers(self) -> int:
        """Computing devices of one node: its accelerators, or the node itself."""
        return max(self.accelerators, 1)


@dataclass(frozen=True, slots=True)
class BySecond(Billing):
    """Billing by the second for the time that the nodes are held. A minimum, if any, is in the offer."""

    kind: ClassVar[str] = "core.by-second"


BY_SECOND = BySecond()


@dataclass(frozen=True, slots=True)
class Configuration:
    """A number of nodes of an offer, the planner's setting if there is one, and how the cloud bills."""

    offer: Offer
    nodes: int
    setting: Setting | None = None
    billing: Billing = BY_SECOND

    def __hash__(self) -> int:
        return hash((self.offer, self.nodes, self.setting))

    def __str__(self) -> str:
        machines = f"{self.nodes} x {self.offer.name}"
        return machines if self.setting is None else self.setting.words(machines, self.nodes)

    def rented(self, market: Market | None) -> Configuration:
        """The same machines at the price and zone of a market; unchanged for None."""
        if market is None:
            return self
        offer = replace(self.offer, spot=market.spot, zone=market.zone, region=market.region or self.offer.region)
        per_launch = offer.usd_per_launch if market.usd_per_launch is None else market.usd_per_launch
        return replace(self, offer=replace(offer, usd_per_hour=market.usd_per_hour, usd_per_launch=per_launch))

    @property
    def workers(self) -> int:
        """Computing devices of all nodes together."""
        return self.nodes * self.offer.workers

    @property
    def usd_per_hour(self) -> float:
        """Price of all nodes together, and of what is rented with them."""
        return self.billing.usd_per_hour(self.offer.usd_per_hour * self.nodes)

    def usd(self, seconds: float) -> float:
        """The cost of a launch of this length without retries: by the second, with the offer's minimum."""
        return self._billed(self.billing.usd, seconds)

    def worst_usd(self, seconds: float) -> float:
        """The cost of such a launch if everything is retried that may be."""
        return self._billed(self.billing.worst_usd, seconds)

    def _billed(self, bill: Callable[[float, float], float], seconds: float) -> float:
        rate, billed_s = self.offer.usd_per_hour * self.nodes, max(seconds, self.offer.minimum_billed_s)
        return bill(rate, billed_s) + self.offer.usd_per_launch if seconds > 0 else 0.0


@dataclass(frozen=True, slots=True)
class ProbeTime:
    """How long a probe may take: by default ten minutes, and one more minute for each three further nodes."""

    base_s: float = 600.0
    extra_s_per_3_nodes: float = 60.0

    def seconds(self, nodes: int) -> float:
        """t(D), with set-up and warm-up. A probe is cut off then, so this is also its worst case."""
        return self.base_s + self.extra_s_per_3_nodes * (nodes - 1) / 3


@dataclass(frozen=True)
class Choice:
    """An offer with its node counts and settings. `given`: the configurations, if they are not a product of these.

    `markets`: other ways to rent its machines, once they are chosen. `on_spot`: what is expected of its spot markets.
    """

    offer: Offer
    nodes: tuple[int, ...] = (1,)
    settings: tuple[Setting, ...] = ()
    given: tuple[Configuration, ...] = ()
    markets: tuple[Market, ...] = ()
    on_spot: tuple[OnSpot, ...] = ()

    @property
    def configurations(self) -> tuple[Configuration, ...]:
        """By rising node count, then by the order of the settings that suit it; or as given."""
        if self.given:
            return self.given
        if not self.settings:
            return tuple(Configuration(self.offer, n) for n in sorted(self.nodes))
        pairs = [(n, setting) for n in sorted(self.nodes) for setting in self.settings]
        return tuple(Configuration(self.offer, n, each) for n, each in pairs if each.suits(n, self.offer))


@dataclass(frozen=True)
class Space:
    """All configurations of a search, in a fixed order. `startup_limit_s`: a launch is given up if it takes longer."""

    choices: tuple[Choice, ...]
    probe_time: ProbeTime = field(default_factory=ProbeTime)
    startup_limit_s: float = 0.0

    def __len__(self) -> int:
        return len(self.configurations)

    @property
    def offers(self) -> tuple[Offer, ...]:
        """The offers, in order."""
        return tuple(choice.offer for choice in self.choices)

    def markets(self, configuration: Configuration) -> tuple[Market, ...]:
        """The markets where the machines of a configuration can be rented, besides its own offer."""
        markets = next((choice.markets for choice in self.choices if choice.offer == configuration.offer), ())
        return tuple(each for each in markets if not each.nodes or configuration.nodes in each.nodes)

    @cached_property
    def configurations(self) -> tuple[Configuration, ...]:
        """All configurations: offers in order, node counts rising within each."""
        return tuple(configuration for choice in self.choices for configuration in choice.configurations)

    @cached_property
    def index(self) -> dict[Configuration, int]:
        """The position of each configuration."""
        return {configuration: i for i, configuration in enumerate(self.configurations)}

    @cached_property
    def offer_index(self) -> NDArray[np.intp]:
        """For each configuration, the index of its offer."""
        return np.repeat(np.arange(len(self.choices)), [len(choice.configurations) for choice in self.choices])

    @cached_property
    def nodes(self) -> Floats:
        """For each configuration, its node count."""
        return np.array([configuration.nodes for configuration in self.configurations], dtype=float)

    @cached_property
    def usd_per_hour(self) -> Floats:
        """For each configuration, dollars an hour for all its nodes."""
        return np.array([configuration.usd_per_hour for configuration in self.configurations])

    @cached_property
    def usd_per_s(self) -> Floats:
        """For each configuration, dollars a second for all its nodes."""
        return self.usd_per_hour / 3_600

    @cached_property
    def usd_per_launch(self) -> Floats:
        """For each configuration, what a launch costs besides its time."""
        return np.array([configuration.offer.usd_per_launch for configuration in self.configurations])

    def usd(self, seconds: Floats | float) -> Floats:
        """For each configuration, the cost of a launch of this length. `seconds`: also with more leading dimensions."""
        usd: Floats = seconds * self.usd_per_s + self.usd_per_launch
        return usd

    def expected_usd(
        self, seconds: Floats, worst_s: Floats, deadline_s: float | None, place: int | slice = ALL
    ) -> Floats:
        """The same on the cheapest market. `place`: the position of one configuration, for that one alone."""
        expected = self._on_spot[:, place]
        on_demand = seconds * self.usd_per_s[place] + self.usd_per_launch[place]
        if not self._on_spot[0].any():
            return on_demand
        with np.errstate(invalid="ignore"):
            share = np.nan_to_num(share_on_spot(expected, seconds, worst_s, deadline_s))
        usd: Floats = on_demand * (1 - (1 - expected[1]) * share)
        return usd

    @cached_property
    def _on_spot(self) -> Floats:
        """For each configuration, the numbers of its `OnSpot`: availability 0 and price 1 without a spot market."""
        numbers = np.tile(np.array([[0.0], [1.0], [0.0], [0.0]]), len(self))
        for i, choice in enumerate(self.choices):
            for each in choice.on_spot:
                applies = (self.offer_index == i) & (np.isin(self.nodes, each.nodes) | (not each.nodes))
                numbers[:, applies] = [[each.up], [each.price], [each.slack], [each.slack_s]]
        return numbers

    def on_spot(self, configuration: Configuration) -> OnSpot | None:
        """What is expected of the spot markets of a configuration; None if it has none."""
        expected = next((choice.on_spot for choice in self.choices if choice.offer == configuration.offer), ())
        return next((each for each in expected if not each.nodes or configuration.nodes in each.nodes), None)

    @cached_property
    def probe_s(self) -> Floats:
        """For each configuration, the longest time of a probe."""
        return np.array([self.probe_time.seconds(configuration.nodes) for configuration in self.configurations])

    @cached_property
    def probe_usd(self) -> Floats:
        """For each configuration, the highest cost of a probe."""
        return np.array([self.worst_probe(configuration)[1] for configuration in self.configurations])

    def up_to(self, usd_per_hour: float) -> Space:
        """The part of the space that costs at most this much an hour."""
        affordable = [
            replace(choice, nodes=tuple(n for n in choice.nodes if choice.offer.usd_per_hour * n <= usd_per_hour))
            for choice in self.choices
        ]
        return replace(self, choices=tuple(choice for choice in affordable if choice.nodes))

    def worst_probe(self, configuration: Configuration, share: float = 1.0) -> tuple[float, float]:
        """The most seconds and dollars that a probe of this configuration, or this share of one, can take."""
        seconds = share * self.probe_time.seconds(configuration.nodes)
        return seconds, configuration.usd(seconds)
