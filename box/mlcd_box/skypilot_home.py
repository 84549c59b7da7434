"""Writes the home folder in a box: credentials, configuration and catalog of SkyPilot and Lithops."""

from __future__ import annotations

import csv
import hashlib
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from mlcd_box.cloud.__main__ import AMI, ENDPOINT
from mlcd_box.image import wheels
from mlcd_box.offers import REGIONS, ZONES, prices, sizes

CATALOG = Path(".sky/catalogs/v8")
"""Where SkyPilot 0.14 keeps its catalog."""
VMS = (
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,AvailabilityZone,Arch"
)

LITHOPS = """
lithops: {backend: aws_lambda, storage: aws_s3}
aws: {region: us-east-1}
aws_lambda: {execution_role: 'arn:aws:iam::123456789012:role/lithops'}
"""
"""Lithops' configuration, as for the real AWS; boto3's settings contain the box's address."""


def write_home(home: Path) -> None:
    """Write a new home folder. Only SkyPilot's wheel is copied: it cannot be built without a network.

    It has to be new because SkyPilot's table of requests contains process ids, which are different in a new box.
    """
    shutil.rmtree(home, ignore_errors=True)
    (home / ".aws").mkdir(parents=True)
    (home / ".aws/credentials").write_text(
        "[default]\naws_access_key_id = AKIABOXBOXBOXBOXBOX1\naws_secret_access_key = box\n"
    )
    (home / ".aws/config").write_text(f"[default]\nregion = us-east-1\nendpoint_url = {ENDPOINT}\n")
    (home / ".lithops").mkdir()
    (home / ".lithops/config").write_text(LITHOPS)
    shutil.copytree(wheels() / ".sky" / "wheels", home / ".sky" / "wheels")
    (home / ".sky/config.yaml").write_text("allowed_clouds: [aws]\n")
    # SkyPilot keeps ssh connections in /tmp, by user and address. Boxes share /tmp, and their machines have the same
    # addresses. With a different user id, a box cannot connect to the machines of another box.
    (home / ".sky/user_hash").write_text(hashlib.sha256(str(home).encode()).hexdigest()[:8])
    machines, images = [], []
    for region in REGIONS:
        images += [
            (f"skypilot:custom-{kind}-ubuntu", region, "ubuntu", "22.04", AMI, "20240101", "")
            for kind in ("cpu", "gpu")
        ]
        for name, (cpus, memory_gb) in sizes().items():
            price = prices()[name, region]
            machines += [
                (name, "", "", cpus, memory_gb, "", price.on_demand, price.spot, region, zone, "x86_64")
                for zone in _zone_ids(region)
            ]
    _table(home / CATALOG / "aws/vms.csv", VMS.split(","), machines)
    _table(
        home / CATALOG / "aws/images.csv",
        ["Tag", "Region", "OS", "OSVersion", "ImageId", "CreationDate", "BaseImageId"],
        images,
    )
    _table(
        home / CATALOG / "aws/instance_quota_mapping.csv",
        ["InstanceType", "OnDemandInstanceCode", "SpotInstanceCode"],
        [],
    )
    _table(home / CATALOG / "common/accelerators.csv", ["AcceleratorName", "Clouds"], [("T4", "AWS")])


def _zone_ids(region: str) -> list[str]:
    """The ids of a region's zones, which SkyPilot's catalog uses: names mean different zones in each account."""
    from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend

    names = [f"{region}{letter}" for letter in ZONES]
    return [zone.zone_id for zone in RegionsAndZonesBackend.zones[region] if zone.name in names]


def _table(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([columns, *rows])
