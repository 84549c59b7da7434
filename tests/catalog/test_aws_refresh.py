"""Refreshing through boto3: EC2 is a moto server, the Price List API a loopback server that
answers in the documented shape (moto does not implement GetProducts). Nothing here reaches AWS.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from mlcd.catalog import load_rows
from mlcd.catalog.aws import refresh
from mlcd.catalog.files import write_rows
from mlcd.core.errors import BackendError, CatalogError, MissingExtra

MakeClient = Callable[[str, str], Any]
MakeItem = Callable[..., str]

NOW = datetime(2027, 3, 14, tzinfo=UTC)
RETIRED = {"p2.xlarge", "p2.8xlarge", "p2.16xlarge", "p3.2xlarge", "p3.8xlarge", "p3.16xlarge"}
NOBODY_LISTENS = "http://127.0.0.1:9"


@pytest.fixture
def ec2(make_client: MakeClient, moto_url: str) -> Any:
    return make_client("ec2", moto_url)


@pytest.fixture
def pricing(make_client: MakeClient, pricing_server: Any, price_list_item: MakeItem) -> Any:
    """Twice the packaged price for every type that is not retired, in two pages."""
    rows = [row for row in load_rows("aws") if row.instance_type not in RETIRED]
    items = [price_list_item(row.instance_type, f"{2 * row.usd_per_hour:.10f}") for row in rows]
    pricing_server.pages = [items[:40], [*items[40:], price_list_item("x9.huge", "99.0")]]
    return make_client("pricing", pricing_server.url)


def by_type(rows: Any) -> dict[str, Any]:
    return {row.instance_type: row for row in rows}


def test_a_refresh_gives_every_current_type_todays_price_and_date(tmp_path: Path, ec2: Any, pricing: Any) -> None:
    refresh(tmp_path, ec2=ec2, pricing=pricing, now=NOW)
    before, after = by_type(load_rows("aws")), by_type(load_rows("aws", directory=tmp_path))
    assert list(after) == list(before)
    for name in before.keys() - RETIRED:
        assert after[name].usd_per_hour == pytest.approx(2 * before[name].usd_per_hour)
        assert after[name].price_date == "2027-03"
        assert "Price List API" in after[name].source


def test_a_type_without_a_price_keeps_its_old_one_and_the_summary_says_so(
    tmp_path: Path, ec2: Any, pricing: Any
) -> None:
    summary = refresh(tmp_path, ec2=ec2, pricing=pricing, now=NOW)
    before, after = by_type(load_rows("aws")), by_type(load_rows("aws", directory=tmp_path))
    assert {row.instance_type for row in summary.kept} == RETIRED
    assert all(after[name] == before[name] for name in RETIRED)
    assert f"{len(before) - 6} of {len(before)} types have a price of today in us-east-1: {summary.path}" in str(
        summary
    )
    assert "no current price for 6, which keep their old one: p2.xlarge (2022-11)" in str(summary)


def test_specs_come_from_ec2_and_rates_from_the_accelerator_file(tmp_path: Path, ec2: Any, pricing: Any) -> None:
    rows = load_rows("aws")
    wrong = [replace(row, vcpus=1.0, memory_gb=1.0, network_gbps=1.0) for row in rows]
    wrong = [replace(row, tflops_per_accelerator=1.0) if row.accelerator else row for row in wrong]
    write_rows(tmp_path / "aws.csv", wrong)
    refresh(tmp_path, ec2=ec2, pricing=pricing, now=NOW)
    after = by_type(load_rows("aws", directory=tmp_path))
    for row in rows:
        assert after[row.instance_type].tflops_per_accelerator == row.tflops_per_accelerator
        if row.instance_type not in RETIRED:
            assert after[row.instance_type].vcpus == row.vcpus
            assert after[row.instance_type].memory_gb == row.memory_gb
            assert after[row.instance_type].network_gbps == row.network_gbps
            assert after[row.instance_type].accelerators == row.accelerators


def test_spot_prices_come_from_the_history(tmp_path: Path, ec2: Any, pricing: Any) -> None:
    """moto gives every type the same spot price, $0.00001."""
    refresh(tmp_path, ec2=ec2, pricing=pricing, now=NOW)
    assert by_type(load_rows("aws", directory=tmp_path))["c5.large"].spot_usd_per_hour == 0.00001


class SpotMarket:
    """EC2 of moto, with spot prices of our own: by zone and type."""

    def __init__(self, ec2: Any, prices: dict[str, dict[str, str]]) -> None:
        self.ec2, self.prices = ec2, prices

    def get_paginator(self, call: str) -> Any:
        return self if call == "describe_spot_price_history" else self.ec2.get_paginator(call)

    def paginate(self, **asked: Any) -> Iterator[dict[str, Any]]:
        for zone, prices in self.prices.items():
            found = [(name, usd) for name, usd in prices.items() if name in asked["InstanceTypes"]]
            yield {
                "SpotPriceHistory": [
                    {"InstanceType": name, "AvailabilityZone": zone, "Timestamp": NOW, "SpotPrice": usd}
                    for name, usd in found
                ]
            }


def test_spot_prices_are_kept_by_zone_and_a_region_has_their_median(tmp_path: Path, ec2: Any, pricing: Any) -> None:
    prices = {
        "us-east-1a": {"c5.large": "0.03", "m5.large": "0.02"},
        "us-east-1b": {"c5.large": "0.05"},
        "us-east-1c": {"c5.large": "0.06", "m5.large": "999"},
    }
    summary = refresh(tmp_path, ec2=SpotMarket(ec2, prices), pricing=pricing, now=NOW)
    after = by_type(load_rows("aws", directory=tmp_path))
    assert after["c5.large"].spot_usd_by_zone == {"us-east-1a": 0.03, "us-east-1b": 0.05, "us-east-1c": 0.06}
    assert after["c5.large"].spot_usd_per_hour == 0.05
    assert after["m5.large"].spot_usd_by_zone == {"us-east-1a": 0.02}, "more than on demand is no price"
    assert after["c5.xlarge"].spot_usd_by_zone == {}
    assert "spot prices in 3 zones: us-east-1a, us-east-1b, us-east-1c" in str(summary)


def test_several_regions_are_beside_each_other_in_one_file(
    tmp_path: Path, ec2: Any, make_client: MakeClient, pricing_server: Any, price_list_item: MakeItem
) -> None:
    """Each region is asked for anew: the server answers both with the same pages."""
    pricing_server.pages = [[price_list_item(name, "9.0") for name in ("c5.large", "m5.large")]]
    pricing = make_client("pricing", pricing_server.url)
    summary = refresh(tmp_path, regions=["us-east-1", "us-west-2", "us-east-1"], ec2=ec2, pricing=pricing, now=NOW)
    after = load_rows("aws", directory=tmp_path)
    priced = [(row.instance_type, row.region) for row in after if row.price_date == "2027-03"]
    assert priced == [(name, region) for region in ("us-east-1", "us-west-2") for name in ("c5.large", "m5.large")]
    assert {row.region for row in after if row.price_date != "2027-03"} == {"us-east-1"}
    assert len(after) == len(load_rows("aws")) + 2
    assert f"2 of {len(after) - 2} types have a price of today in us-west-2" in str(summary)
    refresh(tmp_path, regions=["us-west-2"], ec2=ec2, pricing=pricing, now=NOW)
    assert {row.region for row in load_rows("aws", directory=tmp_path) if row.instance_type == "c5.large"} == {
        "us-west-2"
    }


def test_only_linux_on_demand_prices_of_the_region_are_asked_for_page_by_page(
    tmp_path: Path, ec2: Any, pricing: Any, pricing_server: Any
) -> None:
    refresh(tmp_path, regions=["eu-west-1"], ec2=ec2, pricing=pricing, now=NOW)
    first, second = pricing_server.requests
    asked = {given["Field"]: given["Value"] for given in first["Filters"]}
    assert (first["ServiceCode"], asked["regionCode"], asked["operatingSystem"]) == ("AmazonEC2", "eu-west-1", "Linux")
    assert (asked["tenancy"], asked["preInstalledSw"], asked["marketoption"]) == ("Shared", "NA", "OnDemand")
    assert second["NextToken"] == "1"


def test_in_another_region_a_kept_price_keeps_the_region_it_was_seen_in(tmp_path: Path, ec2: Any, pricing: Any) -> None:
    refresh(tmp_path, regions=["eu-west-1"], ec2=ec2, pricing=pricing, now=NOW)
    after = by_type(load_rows("aws", directory=tmp_path))
    assert after["c5.large"].region == "eu-west-1"
    assert after["p2.xlarge"].region == "us-east-1"


def test_a_second_refresh_starts_from_the_first(tmp_path: Path, ec2: Any, pricing: Any) -> None:
    refresh(tmp_path, regions=["eu-west-1"], ec2=ec2, pricing=pricing, now=NOW)
    once = (tmp_path / "aws.csv").read_text()
    refresh(tmp_path, regions=["eu-west-1"], ec2=ec2, pricing=pricing, now=NOW)
    assert (tmp_path / "aws.csv").read_text() == once


def test_an_old_spot_price_above_todays_price_is_dropped(
    tmp_path: Path, ec2: Any, make_client: MakeClient, pricing_server: Any, price_list_item: MakeItem
) -> None:
    pricing_server.pages = [[price_list_item("c5.large", "0.000001")]]  # less than moto's spot price
    refresh(tmp_path, ec2=ec2, pricing=make_client("pricing", pricing_server.url), now=NOW)
    assert by_type(load_rows("aws", directory=tmp_path))["c5.large"].spot_usd_per_hour is None


def test_types_in_two_regions_do_not_become_duplicates(tmp_path: Path, ec2: Any, pricing: Any) -> None:
    rows = load_rows("aws")
    write_rows(tmp_path / "aws.csv", [*rows, *(replace(row, region="eu-west-1") for row in rows)])
    refresh(tmp_path, ec2=ec2, pricing=pricing, now=NOW)
    assert len(load_rows("aws", directory=tmp_path)) == len(rows)


def refused(directory: Path, kind: type[Exception], message: str, **clients: Any) -> None:
    """The refresh fails with this message, on one line, and the old file is as it was, alone in its folder."""
    write_rows(directory / "aws.csv", load_rows("aws")[:3])
    old = (directory / "aws.csv").read_bytes()
    with pytest.raises(kind, match=message) as caught:
        refresh(directory, now=NOW, **clients)
    assert "\n" not in str(caught.value)
    assert (directory / "aws.csv").read_bytes() == old
    assert [path.name for path in directory.iterdir()] == ["aws.csv"]


def test_an_unreachable_price_api_leaves_the_old_file(tmp_path: Path, ec2: Any, make_client: MakeClient) -> None:
    unreachable = make_client("pricing", NOBODY_LISTENS)
    refused(tmp_path, BackendError, "AWS: Could not connect.*the catalog is unchanged", ec2=ec2, pricing=unreachable)


def test_an_unreachable_ec2_leaves_the_old_file(tmp_path: Path, pricing: Any, make_client: MakeClient) -> None:
    unreachable = make_client("ec2", NOBODY_LISTENS)
    refused(
        tmp_path, BackendError, "AWS: Could not connect.*the catalog is unchanged", ec2=unreachable, pricing=pricing
    )


def test_a_call_that_aws_refuses_leaves_the_old_file(
    tmp_path: Path, ec2: Any, make_client: MakeClient, moto_url: str
) -> None:
    """moto answers GetProducts, which it does not implement, with an error: so does AWS without the permission."""
    refused(
        tmp_path, BackendError, "AWS: An error occurred.*GetProducts", ec2=ec2, pricing=make_client("pricing", moto_url)
    )


def test_an_answer_that_cannot_be_read_leaves_the_old_file(
    tmp_path: Path, ec2: Any, make_client: MakeClient, pricing_server: Any
) -> None:
    pricing_server.pages = [["{}"]]
    pricing = make_client("pricing", pricing_server.url)
    refused(tmp_path, CatalogError, "GetProducts cannot be read", ec2=ec2, pricing=pricing)


def test_a_region_without_any_price_leaves_the_old_file(
    tmp_path: Path, ec2: Any, make_client: MakeClient, pricing_server: Any
) -> None:
    pricing_server.pages = [[]]
    pricing = make_client("pricing", pricing_server.url)
    refused(
        tmp_path, CatalogError, "no on-demand price in region 'us-east-1': check its name", ec2=ec2, pricing=pricing
    )


def test_missing_credentials_say_how_to_log_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moto_url: str) -> None:
    pytest.importorskip("boto3", reason="refreshing needs boto3: pip install 'mlcd[aws]'")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    nothing = str(tmp_path / "no such file")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, nothing)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_url)  # should credentials be found after all, they go no further
    refused(tmp_path, BackendError, r"AWS: Unable to locate credentials; log in \(aws configure")


def test_clients_are_made_from_the_users_own_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moto_url: str, pricing_server: Any, price_list_item: MakeItem
) -> None:
    pytest.importorskip("boto3", reason="refreshing needs boto3: pip install 'mlcd[aws]'")
    pricing_server.pages = [[price_list_item("c5.large", "0.09")]]
    settings = {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_ENDPOINT_URL_EC2": moto_url,
        "AWS_ENDPOINT_URL_PRICING": pricing_server.url,
        "AWS_CONFIG_FILE": str(tmp_path / "no such file"),
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "no such file"),
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    assert [row.usd_per_hour for row in refresh(tmp_path, now=NOW).repriced] == [0.09]


@pytest.mark.parametrize("module", ["boto3", "botocore.exceptions"])
def test_without_boto3_the_error_says_what_to_install(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    refused(tmp_path, MissingExtra, r"pip install 'mlcd\[aws\]'")
