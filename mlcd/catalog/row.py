"""One line of a catalog file: an instance type, its prices, and where and when they were read."""

from __future__ import annotations

from dataclasses import dataclass

from mlcd.core.configuration import Offer
from mlcd.core.errors import CatalogError

COLUMNS = (
    "instance_type",
    "region",
    "vcpus",
    "memory_gb",
    "accelerator",
    "accelerators",
    "tflops_per_accelerator",
    "accelerator_memory_gb",
    "network_gbps",
    "usd_per_hour",
    "spot_usd_per_hour",
    "price_date",
    "source",
)
"""The columns of a catalog file, in the order they are written."""

MINIMUM_BILLED_S = {"aws": 60.0, "gcp": 60.0, "azure": 60.0}
"""By cloud, the minimum billed seconds of a machine."""


@dataclass(frozen=True, slots=True)
class CatalogRow:
    """An instance type with both of its prices and their provenance."""

    cloud: str
    instance_type: str
    region: str
    vcpus: float
    memory_gb: float
    accelerator: str
    accelerators: int
    tflops_per_accelerator: float
    accelerator_memory_gb: float
    network_gbps: float
    usd_per_hour: float
    spot_usd_per_hour: float | None
    price_date: str
    source: str

    def price(self, *, spot: bool = False) -> float | None:
        """Dollars an hour on demand or on spot; None if no spot price is known."""
        return self.spot_usd_per_hour if spot else self.usd_per_hour

    def offer(self, *, spot: bool = False) -> Offer:
        """What a search may rent: this type at its on-demand or its spot price."""
        usd_per_hour = self.price(spot=spot)
        if usd_per_hour is None:
            raise CatalogError(f"{self.cloud} {self.instance_type}: no spot price is known; use it on demand")
        return Offer(
            instance_type=self.instance_type,
            usd_per_hour=usd_per_hour,
            vcpus=self.vcpus,
            memory_gb=self.memory_gb,
            accelerator=self.accelerator,
            accelerators=self.accelerators,
            tflops_per_accelerator=self.tflops_per_accelerator,
            accelerator_memory_gb=self.accelerator_memory_gb,
            network_gbps=self.network_gbps,
            cloud=self.cloud,
            region=self.region,
            spot=spot,
            minimum_billed_s=MINIMUM_BILLED_S[self.cloud],
        )
