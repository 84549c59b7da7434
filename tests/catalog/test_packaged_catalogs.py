from __future__ import annotations

import re
from collections import Counter

import pytest

from mlcd.catalog import CLOUDS, OfferRow, load_offers, load_rows, offered_rows, retired_types
from mlcd.catalog.files import known_accelerators

FAMILIES = {"c4", "c5", "c5n", "m5", "r5", "p2", "p3", "p4d", "p5", "g4dn", "g5", "g6"}
"""The kind of space that the paper searches: 62 instance types of these families."""

ALL_ROWS = [row for cloud in CLOUDS for row in load_rows(cloud)]


def test_aws_has_the_62_types_and_every_family_of_the_papers_space() -> None:
    families = Counter(row.instance_type.split(".")[0] for row in load_rows("aws"))
    assert families.keys() >= FAMILIES
    assert sum(families[family] for family in FAMILIES) >= 62


def test_no_bare_metal_is_offered() -> None:
    assert not [row.instance_type for row in ALL_ROWS if "metal" in row.instance_type]


@pytest.mark.parametrize(("cloud", "least"), [("aws", 70), ("gcp", 30), ("azure", 25)])
def test_each_cloud_has_a_choice_of_types(cloud: str, least: int) -> None:
    assert len(load_rows(cloud)) >= least


@pytest.mark.parametrize("row", ALL_ROWS, ids=lambda row: f"{row.cloud}-{row.instance_type}")
def test_a_row_is_priced_dated_and_sourced(row: OfferRow) -> None:
    assert row.usd_per_hour > 0
    assert row.spot_usd_per_hour is None or 0 < row.spot_usd_per_hour <= row.usd_per_hour
    assert re.fullmatch(r"20\d\d-\d\d", row.price_date)
    assert row.source


@pytest.mark.parametrize("row", [row for row in ALL_ROWS if row.accelerators], ids=lambda row: row.instance_type)
def test_an_accelerators_rate_and_memory_are_those_of_the_accelerator_file(row: OfferRow) -> None:
    tflops, memory_gb = known_accelerators()[row.accelerator]
    assert row.tflops_per_accelerator == tflops > 0
    assert row.accelerator_memory_gb == memory_gb > 0


def test_retired_types_say_when_their_price_was_last_seen() -> None:
    dates = {row.instance_type: row.price_date for row in load_rows("aws")}
    assert dates["p2.xlarge"] == "2022-11"
    assert dates["p3.2xlarge"] == "2025-06"
    assert dates["c5.xlarge"] == "2026-08"


@pytest.mark.parametrize(
    ("instance_type", "least"),
    [("a2-highgpu-1g", 3.5), ("a2-ultragpu-8g", 38), ("a3-highgpu-8g", 80), ("g2-standard-4", 0.65)],
)
def test_a_gcp_gpu_machine_costs_its_host_and_its_gpus(instance_type: str, least: float) -> None:
    """GCP lists them apart: the host of an a2-highgpu-1g is $0.74, with its A100 it is $3.67."""
    prices = {row.instance_type: row.usd_per_hour for row in load_rows("gcp")}
    assert prices[instance_type] > least


def test_azure_rows_admit_that_nobody_fetched_them() -> None:
    assert {row.source for row in load_rows("azure")} == {
        "list price as published, from memory of the documentation, not fetched"
    }


@pytest.mark.parametrize("cloud", CLOUDS)
def test_a_short_use_is_billed_for_a_minute(cloud: str) -> None:
    assert {offer.minimum_billed_s for offer in load_offers([cloud])} == {60.0}


def test_the_same_gpu_in_a_larger_machine_of_its_family_is_never_cheaper() -> None:
    """Catches a price that slipped by a line: within a family, more vCPUs never cost less."""
    for family in FAMILIES:
        rows = [row for row in load_rows("aws") if row.instance_type.startswith(f"{family}.")]
        # g5 and g6 12xlarge have four GPUs and the 16xlarge one, so a size says nothing by itself
        for gpus in {row.accelerators for row in rows}:
            of_size = sorted((row.vcpus, row.usd_per_hour) for row in rows if row.accelerators == gpus)
            assert [usd for _, usd in of_size] == sorted(usd for _, usd in of_size)


def test_a_type_whose_row_says_that_it_was_retired_is_known_as_such_and_the_other_way_round() -> None:
    rows = {(row.cloud, row.instance_type): row for row in ALL_ROWS}
    assert retired_types().keys() <= rows.keys()
    assert {key for key, row in rows.items() if "was retired" in row.source} <= retired_types().keys()
    assert all(re.fullmatch(r"20\d\d-\d\d", since) for since in retired_types().values())


def test_what_a_cloud_has_retired_is_not_offered() -> None:
    offered = {row.instance_type for row in offered_rows(None)}
    assert not offered & {name for _, name in retired_types()}
    assert {"p4d.24xlarge", "p3dn.24xlarge", "a4-highgpu-8g", "Standard_ND96isr_H100_v5"} <= offered
