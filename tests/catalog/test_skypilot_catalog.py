"""Prices from SkyPilot's catalog on this machine; here a catalog in its format that the test writes."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mlcd.catalog import clouds_in, load_offers, load_rows
from mlcd.catalog.skypilot import refresh_from_skypilot
from mlcd.core.errors import CatalogError, UnknownName, UserError

HEAD = [
    "InstanceType",
    "AcceleratorName",
    "AcceleratorCount",
    "vCPUs",
    "MemoryGiB",
    "GpuInfo",
    "Price",
    "SpotPrice",
    "Region",
    "AvailabilityZone",
]
LAMBDA = [
    ("gpu_8x_h100_sxm5", "H100", 8.0, 208.0, 1800.0, "", 23.92, "", "us-east-1", ""),
    ("gpu_8x_h100_sxm5", "H100", 8.0, 208.0, 1800.0, "", 22.0, "", "us-west-2", ""),
    ("gpu_1x_gh200", "GH200", 1.0, 64.0, 432.0, "", 1.49, "", "us-east-1", ""),
    ("gpu_half", "H100", 0.5, 8.0, 32.0, "", 1.0, "", "us-east-1", ""),
]
AWS = [
    ("p5.48xlarge", "H100", 8.0, 192.0, 2048.0, "", 60.0, 20.0, "us-east-1", "us-east-1a"),
    ("p5.48xlarge", "H100", 8.0, 192.0, 2048.0, "", 60.0, 25.0, "us-east-1", "us-east-1b"),
    ("x9.huge", "", "", 4.0, 8.0, "", 1.0, 0.5, "us-east-1", "us-east-1a"),
]
GCP = [
    ("a2-highgpu-1g", "", "", 12.0, 85.0, "", 0.8, 0.4, "us-central1", "us-central1-a"),
    ("", "A100", 1.0, "", "", "", 3.0, 1.5, "us-central1", "us-central1-a"),
    ("", "A100", 2.0, "", "", "", 6.0, 3.0, "us-central1", "us-central1-a"),
]
WRITTEN = datetime(2027, 3, 14, 12, tzinfo=UTC)


def listed(home: Path, cloud: str, lines: Sequence[Sequence[object]], version: str = "v8") -> Path:
    """SkyPilot's file of a cloud."""
    file = home / ".sky/catalogs" / version / cloud / "vms.csv"
    file.parent.mkdir(parents=True)
    with file.open("w", newline="") as text:
        csv.writer(text).writerows([HEAD, *lines])
    os.utime(file, (WRITTEN.timestamp(), WRITTEN.timestamp()))
    return file


def test_a_new_clouds_gpu_types_can_be_searched_from_then_on(tmp_path: Path) -> None:
    listed(tmp_path, "lambda", LAMBDA)
    with pytest.raises(UserError, match="mlcd catalog refresh skypilot --cloud lambda"):
        load_offers(["lambda"], directory=tmp_path)
    (summary,) = refresh_from_skypilot(tmp_path, home=tmp_path)
    assert clouds_in(tmp_path) == ("aws", "gcp", "azure", "lambda")
    (offer,) = load_offers(["lambda"], directory=tmp_path)
    assert (offer.instance_type, offer.accelerator, offer.accelerators) == ("gpu_8x_h100_sxm5", "H100", 8)
    assert summary.unknown_gpus == ("GH200",)


def test_a_type_is_taken_where_it_costs_least_or_in_the_regions_that_are_named(tmp_path: Path) -> None:
    listed(tmp_path, "lambda", LAMBDA)
    refresh_from_skypilot(tmp_path, home=tmp_path)
    assert [row.region for row in load_rows("lambda", directory=tmp_path)] == ["us-west-2"]
    refresh_from_skypilot(tmp_path, regions=["us-east-1"], home=tmp_path)
    assert [row.usd_per_hour for row in load_rows("lambda", directory=tmp_path)] == [23.92]
    with pytest.raises(CatalogError, match="no region mars"):
        refresh_from_skypilot(tmp_path, regions=["mars"], home=tmp_path)


def test_a_row_says_when_skypilot_fetched_its_price_and_that_its_network_is_assumed(tmp_path: Path) -> None:
    listed(tmp_path, "lambda", LAMBDA)
    refresh_from_skypilot(tmp_path, home=tmp_path)
    (row,) = load_rows("lambda", directory=tmp_path)
    assert row.price_date == "2027-03"
    assert "2027-03-14" in row.source
    assert "network assumed" in row.source


def test_a_packaged_cloud_keeps_its_types_and_specs_at_skypilots_prices(tmp_path: Path) -> None:
    listed(tmp_path, "aws", AWS)
    (summary,) = refresh_from_skypilot(tmp_path, clouds=["aws"], home=tmp_path)
    old = {row.instance_type: row for row in load_rows("aws")}
    new = {row.instance_type: row for row in load_rows("aws", directory=tmp_path)}
    assert new.keys() == old.keys()
    assert summary.repriced == ("p5.48xlarge",)
    p5 = new["p5.48xlarge"]
    assert (p5.usd_per_hour, p5.spot_usd_per_hour) == (60.0, 25.0)
    assert p5.spot_usd_by_zone == {"us-east-1a": 20.0, "us-east-1b": 25.0}
    assert p5.network_gbps == old["p5.48xlarge"].network_gbps
    assert new["c5.xlarge"] == old["c5.xlarge"]


def test_a_gpu_that_is_new_to_a_packaged_cloud_can_be_searched_and_its_price_be_taken_again(tmp_path: Path) -> None:
    types = [
        ("Standard_ND96isr_MI300X_v5", "MI300X", 8.0, 96.0, 1850.0, "", 48.0, 12.0, "westus", ""),
        ("Standard_NC24rs_v3", "T4", 4.0, 24.0, 448.0, "", 13.46, 1.7, "eastus", ""),
        ("Standard_NC8ads_A10_v4", "A10", 1.0, 8.0, 100.0, "", "", "", "eastus", ""),
    ]
    file = listed(tmp_path, "azure", types)
    refresh_from_skypilot(tmp_path, home=tmp_path)
    added = {row.instance_type for row in load_rows("azure", directory=tmp_path)} - {
        row.instance_type for row in load_rows("azure")
    }
    assert added == {"Standard_ND96isr_MI300X_v5"}
    file.write_text(file.read_text().replace("48.0", "40.0"))
    refresh_from_skypilot(tmp_path, home=tmp_path)
    (row,) = (row for row in load_rows("azure", directory=tmp_path) if row.accelerator == "MI300X")
    assert (row.usd_per_hour, row.accelerator_memory_gb, row.region) == (40.0, 192.0, "westus")
    assert "network assumed" in row.source


def test_a_gcp_machine_costs_its_host_and_its_gpus(tmp_path: Path) -> None:
    listed(tmp_path, "gcp", GCP)
    refresh_from_skypilot(tmp_path, home=tmp_path)
    rows = {row.instance_type: row for row in load_rows("gcp", directory=tmp_path)}
    assert rows["a2-highgpu-1g"].usd_per_hour == pytest.approx(3.8)
    assert rows["a2-highgpu-1g"].spot_usd_per_hour == pytest.approx(1.9)


def test_the_newest_version_of_skypilots_format_is_read(tmp_path: Path) -> None:
    listed(tmp_path, "lambda", LAMBDA, "v10")
    listed(tmp_path, "lambda", LAMBDA[:1], "v9")
    refresh_from_skypilot(tmp_path, home=tmp_path)
    assert [row.usd_per_hour for row in load_rows("lambda", directory=tmp_path)] == [22.0]


def test_without_a_catalog_or_a_cloud_in_it_one_line_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no catalog of SkyPilot here; install SkyPilot"):
        refresh_from_skypilot(tmp_path, home=tmp_path)
    listed(tmp_path, "lambda", LAMBDA)
    with pytest.raises(UnknownName, match="lamda"):
        refresh_from_skypilot(tmp_path, clouds=["lamda"], home=tmp_path)


def test_a_file_that_cannot_be_read_leaves_the_old_catalog(tmp_path: Path) -> None:
    file = listed(tmp_path, "lambda", LAMBDA)
    refresh_from_skypilot(tmp_path, home=tmp_path)
    before = (tmp_path / "lambda.csv").read_bytes()
    file.write_text("InstanceType,Price\nx,y\n")
    with pytest.raises(CatalogError, match=r"vms\.csv"):
        refresh_from_skypilot(tmp_path, home=tmp_path)
    assert (tmp_path / "lambda.csv").read_bytes() == before


def test_a_new_price_takes_no_warning_off_the_specs_however_often_it_is_taken(tmp_path: Path) -> None:
    listed(tmp_path, "gcp", GCP)
    for _ in range(2):
        refresh_from_skypilot(tmp_path, home=tmp_path)
        row = next(row for row in load_rows("gcp", directory=tmp_path) if row.instance_type == "a2-highgpu-1g")
        assert row.source.count("from memory of the documentation, not fetched") == 1
