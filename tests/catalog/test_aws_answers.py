"""Answers written from the documentation of the AWS APIs; none was recorded from the real ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from mlcd.catalog.aws import parse_instance_types, parse_price_list, parse_spot_prices
from mlcd.core.errors import CatalogError

MakeItem = Callable[..., str]


def described(**network: Any) -> dict[str, Any]:
    return {
        "InstanceType": "p3.16xlarge",
        "VCpuInfo": {"DefaultVCpus": 64},
        "MemoryInfo": {"SizeInMiB": 499712},
        "GpuInfo": {"Gpus": [{"Name": "V100", "Count": 8, "MemoryInfo": {"SizeInMiB": 16384}}]},
        "NetworkInfo": network,
    }


def test_prices_are_read_from_the_documented_shape(price_list_item: MakeItem) -> None:
    """moto does not implement GetProducts; the items are written from the API's documentation."""
    items = [price_list_item("p3.2xlarge", "3.0600000000"), price_list_item("c5.large", "0.0850000000")]
    assert parse_price_list(items) == {"p3.2xlarge": 3.06, "c5.large": 0.085}


def test_the_dearest_of_several_prices_counts(price_list_item: MakeItem) -> None:
    items = [price_list_item("c5.large", usd) for usd in ("0.085", "0.093", "0.081")]
    assert parse_price_list(items) == {"c5.large": 0.093}


def test_what_is_not_a_price_for_an_hour_in_dollars_is_no_price(price_list_item: MakeItem) -> None:
    reserved_only = json.loads(price_list_item("c5.large", "0.085"))
    reserved_only["terms"] = {"Reserved": reserved_only["terms"]["OnDemand"]}
    items = [
        price_list_item("c5.large", "0.0000000000"),
        price_list_item("c5.large", "120", unit="Quantity"),
        price_list_item("c5.large", "0.6", currency="CNY"),
        json.dumps(reserved_only),
    ]
    assert parse_price_list(items) == {}


@pytest.mark.parametrize("item", ["not json", "{}", "[]", "null", '{"product": {"attributes": {"instanceType": 1}}}x'])
def test_a_product_that_cannot_be_read_is_a_catalog_error(item: str) -> None:
    with pytest.raises(CatalogError, match="GetProducts cannot be read"):
        parse_price_list([item])


@pytest.mark.parametrize(
    ("network", "gbps"),
    [
        ({"NetworkPerformance": "25 Gigabit", "NetworkCards": [{"BaselineBandwidthInGbps": 5.0}]}, 25.0),
        ({"NetworkPerformance": "4x 100 Gigabit"}, 400.0),
        ({"NetworkPerformance": "Up to 10 Gigabit", "NetworkCards": [{"BaselineBandwidthInGbps": 0.75}]}, 0.75),
        ({"NetworkPerformance": "Moderate", "NetworkCards": [{}]}, None),
        ({}, None),
    ],
)
def test_the_sustained_network_rate_counts_not_the_burst(network: dict[str, Any], gbps: float | None) -> None:
    assert parse_instance_types([described(**network)])["p3.16xlarge"].get("network_gbps") == gbps


def test_specs_are_read_in_our_units() -> None:
    specs = parse_instance_types([described()])["p3.16xlarge"]
    assert specs == {"vcpus": 64, "memory_gb": 488, "accelerators": 8}


def test_a_type_without_a_gpu_has_none() -> None:
    without = described()
    del without["GpuInfo"]
    assert "accelerators" not in parse_instance_types([without])["p3.16xlarge"]


def test_specs_that_lack_a_field_are_a_catalog_error() -> None:
    with pytest.raises(CatalogError, match=r"DescribeInstanceTypes cannot be read \('VCpuInfo'\)"):
        parse_instance_types([{"InstanceType": "c5.large"}])


def test_a_spot_price_is_the_latest_of_its_zone() -> None:
    def entry(zone: str, hour: int, usd: str) -> dict[str, Any]:
        when = datetime(2026, 8, 1, hour, tzinfo=UTC)
        return {"InstanceType": "c5.large", "AvailabilityZone": zone, "Timestamp": when, "SpotPrice": usd}

    history = [entry("a", 2, "0.03"), entry("a", 1, "0.09"), entry("b", 1, "0.04"), entry("c", 1, "0.08")]
    assert parse_spot_prices(history) == {"c5.large": {"a": 0.03, "b": 0.04, "c": 0.08}}


def test_a_spot_price_that_is_no_number_is_a_catalog_error() -> None:
    bad = {"InstanceType": "c5.large", "AvailabilityZone": "a", "Timestamp": 1, "SpotPrice": "free"}
    with pytest.raises(CatalogError, match="DescribeSpotPriceHistory cannot be read"):
        parse_spot_prices([bad])
