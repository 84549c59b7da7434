"""Adds what a cloud bills besides the machines that SkyPilot rents: disks, public IP addresses, outgoing traffic."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from mlcd.catalog import egress_usd_per_gb
from mlcd.core.configuration import Offer
from mlcd.core.job import Job

DISK_GB = 256
"""SkyPilot's default `disk_size`."""


@dataclass(frozen=True)
class ExtraPrices:
    """List prices. Disk: the most expensive tier that SkyPilot uses by default. Address: a public IPv4 address."""

    usd_per_gb_month: float
    usd_per_address_hour: float


EXTRA_PRICES: Mapping[str, ExtraPrices] = {
    "aws": ExtraPrices(0.08, 0.005),  # gp3 in us-east-1; public IPv4 address since 2024-02
    "gcp": ExtraPrices(0.10, 0.005),  # pd-balanced in us-central1; external IPv4 address of a VM
    "azure": ExtraPrices(0.15, 0.005),  # premium SSD P15, 256 GB at $38.02 a month; standard public IPv4 address
}
"""By cloud, as published in 2024-06. Written down from memory, not fetched from the price lists."""
HOURS_PER_MONTH = 730


def with_extra_costs(offer: Offer, job: Job) -> Offer:
    """The offer, with disk and address in its hourly price, and the job's outgoing traffic in its price per launch."""
    extras = EXTRA_PRICES.get(offer.cloud)
    if extras is None:
        return offer
    disk_usd = _disk_gb(job) * extras.usd_per_gb_month / HOURS_PER_MONTH
    return replace(
        offer,
        usd_per_hour=offer.usd_per_hour + disk_usd + extras.usd_per_address_hour,
        usd_per_launch=offer.usd_per_launch + job.egress_gb * egress_usd_per_gb(offer.cloud, offer.region),
    )


def _disk_gb(job: Job) -> float:
    """The `disk_size` of the job's `resources`: 100, '100', '100GB', '1TB' or '100+'."""
    size = str((job.task.get("resources") or {}).get("disk_size") or DISK_GB).strip().rstrip("+").upper()
    for unit, gb in (("TB", 1024.0), ("T", 1024.0), ("GB", 1.0), ("G", 1.0)):
        if size.endswith(unit):
            return float(size.removesuffix(unit)) * gb
    return float(size)
