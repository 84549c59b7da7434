"""One line of a catalog file: an instance type, its prices, and where and when they were read."""

from dataclasses import dataclass, fields

from mlcd.core.configuration import Offer
from mlcd.core.errors import CatalogError

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
        shared = {field.name: getattr(self, field.name) for field in fields(Offer) if hasattr(self, field.name)}
        own = {"usd_per_hour": usd_per_hour, "spot": spot, "minimum_billed_s": MINIMUM_BILLED_S[self.cloud]}
        return Offer(**{**shared, **own})


COLUMNS = tuple(field.name for field in fields(CatalogRow) if field.name != "cloud")
"""The columns of a catalog file, in the order they are written."""
