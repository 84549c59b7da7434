"""What a cloud bills with the machines that SkyPilot rents: disks, public addresses, traffic out of the region."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from mlcd.catalog import egress_usd_per_gb
from mlcd.core.configuration import Offer
from mlcd.core.job import Job

DISK_GB = 256
"""SkyPilot's default `disk_size`."""


@dataclass(frozen=True)
class Extras:
    """List prices: a GB and month of the dearest disk tier that SkyPilot takes by default, an hour of an address."""

    usd_per_gb_month: float
    usd_per_address_hour: float


EXTRAS: Mapping[str, Extras] = {
    "aws": Extras(0.08, 0.005),  # gp3 in us-east-1; public IPv4 address since 2024-02
    "gcp": Extras(0.10, 0.005),  # pd-balanced in us-central1; external IPv4 address of a VM
    "azure": Extras(0.15, 0.005),  # premium SSD P15, 256 GB for 38.02 dollars a month; standard public IPv4 address
}
"""By cloud; as published in 2024-06, from memory of the price lists, not fetched."""
HOURS_PER_MONTH = 730


def with_extras(offer: Offer, job: Job) -> Offer:
    """The offer at the price of a machine with its disk and its address, and of what each launch of the job sends."""
    extras = EXTRAS.get(offer.cloud)
    if extras is None:
        return offer
    disk_usd = _disk_gb(job) * extras.usd_per_gb_month / HOURS_PER_MONTH
    return replace(
        offer,
        usd_per_hour=offer.usd_per_hour + disk_usd + extras.usd_per_address_hour,
        usd_per_launch=offer.usd_per_launch + job.egress_gb * egress_usd_per_gb(offer.cloud, offer.region),
    )


def _disk_gb(job: Job) -> float:
    """As the job's `resources` say: 100, '100', '100GB', '1TB', '100+'."""
    written = str((job.task.get("resources") or {}).get("disk_size") or DISK_GB).strip().rstrip("+").upper()
    for unit, gb in (("TB", 1024.0), ("T", 1024.0), ("GB", 1.0), ("G", 1.0)):
        if written.endswith(unit):
            return float(written.removesuffix(unit)) * gb
    return float(written)
