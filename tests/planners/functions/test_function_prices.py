"""Prices of functions and storages: dated, averaged as documented, and replaced by a file of the user."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import pytest

from mlcd.catalog import load_offers
from mlcd.core.errors import CatalogError, UnknownName
from mlcd.planners.functions.tariff import COLUMNS, load_tariff
from mlcd.planners.functions.workload import STORAGES

PACKAGED = (resources.files("mlcd.catalog") / "serverless.csv").read_text(encoding="utf-8")


def own(directory: Path, text: str) -> Path:
    (directory / "serverless.csv").write_text(text, encoding="utf-8")
    return directory


def test_the_packaged_prices_are_those_of_lambda_and_all_four_storages() -> None:
    tariff = load_tariff()
    assert tariff.usd_per_function_s(1_024) == pytest.approx(0.000_016_666_7)
    assert tariff.usd_per_call * 1e6 == pytest.approx(0.20)
    assert tuple(rate.name for rate in tariff.storages) == STORAGES
    assert (tariff.cloud, tariff.region) == ("aws", "us-east-1")
    assert tariff.date == "2024-01"
    assert "serverless.csv" in tariff.source


def test_every_price_says_where_and_when_it_was_read() -> None:
    for line in PACKAGED.splitlines()[1:]:
        cells = dict(zip(COLUMNS, line.split(",", len(COLUMNS) - 1), strict=True))
        assert cells["source"]
        assert cells["price_date"].startswith("20")


def test_a_storage_is_charged_by_the_request_or_by_the_minute() -> None:
    tariff = load_tariff()
    for name in STORAGES:
        rate = tariff.storage(name)
        assert (rate.usd_per_request > 0) != (rate.usd_per_minute > 0)
        assert rate.aggregates == (name == "vm-ps")
    assert tariff.storage("s3").usd_per_request == pytest.approx(0.1 * 5e-6 + 0.8 * 4e-7)
    assert tariff.storage("dynamodb").largest_mb == 0.4


def test_the_parameter_server_costs_what_its_machine_costs_in_the_other_catalog() -> None:
    machine = next(offer for offer in load_offers(("aws",)) if offer.instance_type == "c5.large")
    assert load_tariff().storage("vm-ps").usd_per_minute * 60 == pytest.approx(machine.usd_per_hour)


def test_dynamodb_charges_for_the_size_of_the_model() -> None:
    tiny, large = (load_tariff(model_mb=mb).storage("dynamodb").usd_per_request for mb in (0.0001, 0.4))
    assert tiny == pytest.approx(0.2 * 6.25e-7 + 0.8 * 1.25e-7)
    # 390.6 KB: 391 units put and deleted, 98 read
    assert large == pytest.approx(0.2 * 391 * 6.25e-7 + (0.2 * 98 + 0.6) * 1.25e-7)
    assert load_tariff(model_mb=12.0).storage("s3") == load_tariff().storage("s3")


def test_a_file_of_the_users_replaces_the_packaged_one(tmp_path: Path) -> None:
    assert load_tariff(directory=tmp_path) == load_tariff()
    mine = load_tariff(directory=own(tmp_path, PACKAGED.replace("0.0000166667", "0.0000133334")))
    assert mine.usd_per_gb_s == 0.000_013_333_4
    assert str(tmp_path) in mine.source


def test_a_storage_without_a_price_is_not_offered(tmp_path: Path) -> None:
    kept = "\n".join(line for line in PACKAGED.splitlines() if ",elasticache," not in line)
    assert [rate.name for rate in load_tariff(directory=own(tmp_path, kept)).storages] == ["s3", "dynamodb", "vm-ps"]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("0.0000002,", "free,"), "serverless.csv:3: usd 'free': expected a number"),
        ((",s3,put,", ",s4,put,"), "serverless.csv:4: service 's4': expected one of function, s3"),
        ((",s3,put,", ",s3,hour,"), "serverless.csv:4: unit 'hour' of s3: expected put or get"),
        ((",s3,get,", ",s3,put,"), "serverless.csv:5: s3 by the put is already on line 4"),
        (("2026-08", "August"), "serverless.csv:9: price_date 'August'"),
        (("aws,us-east-1,s3,put", "aws,us-west-2,s3,put"), "keep those of one region"),
        (("price_date", "when"), "serverless.csv:1: missing column price_date"),
    ],
)
def test_a_wrong_file_is_refused_with_the_line_and_what_to_do(
    tmp_path: Path, change: tuple[str, str], complaint: str
) -> None:
    with pytest.raises(CatalogError) as caught:
        load_tariff(directory=own(tmp_path, PACKAGED.replace(*change)))
    assert complaint in str(caught.value)
    assert "delete the file to return to the packaged prices" in str(caught.value)


@pytest.mark.parametrize("unit", ["call", "put"])
def test_a_service_needs_all_its_prices(tmp_path: Path, unit: str) -> None:
    kept = "\n".join(line for line in PACKAGED.splitlines() if f",{unit}," not in line)
    with pytest.raises(CatalogError, match=f"by the {unit}; add a row"):
        load_tariff(directory=own(tmp_path, kept))


def test_a_file_without_prices_says_so(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="no price in the file"):
        load_tariff(directory=own(tmp_path, ",".join(COLUMNS)))


def test_a_cloud_without_prices_is_not_known() -> None:
    with pytest.raises(UnknownName, match="azure"):
        load_tariff("azure")
