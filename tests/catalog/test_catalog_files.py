from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mlcd.catalog import load_offers, load_rows
from mlcd.catalog.files import COLUMNS, NEEDED, parse_rows, write_rows
from mlcd.core.errors import CatalogError, UnknownName, UserError

GOOD = {
    "instance_type": "p3.2xlarge",
    "region": "us-east-1",
    "vcpus": "8",
    "memory_gb": "61",
    "accelerator": "V100",
    "accelerators": "1",
    "tflops_per_accelerator": "15.7",
    "accelerator_memory_gb": "16",
    "network_gbps": "2.5",
    "usd_per_hour": "3.06",
    "spot_usd_per_hour": "",
    "price_date": "2025-06",
    "source": "a price list",
}


def catalog(*changes: dict[str, str]) -> str:
    lines = [",".join(NEEDED), *(",".join({**GOOD, **change}.values()) for change in changes)]
    return "\n".join(lines) + "\n"


def test_offers_of_several_clouds_come_in_the_order_asked() -> None:
    offers = load_offers(["gcp", "aws"])
    assert offers[0].cloud == "gcp"
    assert offers[-1].cloud == "aws"
    assert not any(offer.spot for offer in offers)


BY_ZONE = {"us-east-1a": 0.91, "us-east-1b": 1.25}


def test_spot_prices_by_zone_are_written_and_read_and_old_files_have_none(tmp_path: Path) -> None:
    (old,) = parse_rows(catalog({}), cloud="aws", name="old.csv")
    assert old.spot_usd_by_zone == {}
    write_rows(tmp_path / "aws.csv", [replace(old, spot_usd_per_hour=1.0, spot_usd_by_zone=BY_ZONE)])
    assert (tmp_path / "aws.csv").read_text().splitlines()[0] == ",".join(COLUMNS)
    (read,) = load_rows("aws", directory=tmp_path)
    assert read.spot_usd_by_zone == BY_ZONE
    assert read.offer(spot=True, zone="us-east-1b").usd_per_hour == 1.25
    assert read.offer(spot=True, zone="us-east-1b").zone == "us-east-1b"
    assert read.offer(spot=True, zone="us-east-1c").usd_per_hour == 1.0


@pytest.mark.parametrize("cell", ["us-east-1a", "us-east-1a=free", "us-east-1a=-1", "us-east-1a=0"])
def test_a_spot_price_of_a_zone_that_cannot_be_read_is_told_with_its_line(cell: str) -> None:
    text = "\n".join([",".join(COLUMNS), ",".join([*GOOD.values(), cell])])
    with pytest.raises(CatalogError, match=r"mine.csv:2: spot_usd_by_zone '.*': (expected a number|must be more)"):
        parse_rows(text, cloud="aws", name="mine.csv")


def test_spot_offers_are_only_those_with_a_known_spot_price() -> None:
    offers = load_offers(["aws", "azure"], spot=True)
    assert {offer.cloud for offer in offers} == {"aws"}
    assert all(offer.spot for offer in offers)
    by_type = {row.instance_type: row.spot_usd_per_hour for row in load_rows("aws")}
    assert all(offer.usd_per_hour == by_type[offer.instance_type] for offer in offers)


def test_a_cloud_without_any_spot_price_says_so() -> None:
    with pytest.raises(CatalogError, match="no spot price is known for azure: use on-demand offers"):
        load_offers(["azure"], spot=True)


def test_a_row_without_a_spot_price_makes_no_spot_offer() -> None:
    with pytest.raises(CatalogError, match=r"aws p3\.2xlarge: no spot price is known; use it on demand"):
        parse_rows(catalog({}), cloud="aws", name="aws.csv")[0].offer(spot=True)


def test_an_unknown_cloud_is_named_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="unknown cloud 'azzure': did you mean 'azure'"):
        load_offers(["azzure"])


def test_no_cloud_at_all_is_the_users_mistake() -> None:
    with pytest.raises(UserError, match="name one of aws, gcp, azure"):
        load_offers([])


def test_a_refreshed_file_takes_the_place_of_the_packaged_one(tmp_path: Path) -> None:
    (tmp_path / "aws.csv").write_text(catalog({"usd_per_hour": "2.5"}))
    assert [offer.usd_per_hour for offer in load_offers(directory=tmp_path)] == [2.5]


def test_without_a_refreshed_file_the_packaged_one_is_read(tmp_path: Path) -> None:
    (tmp_path / "gcp.csv").write_text(catalog({}))
    assert load_offers(directory=tmp_path / "not there") == load_offers(directory=tmp_path) == load_offers()


def test_a_broken_refreshed_file_tells_the_way_back(tmp_path: Path) -> None:
    path = tmp_path / "aws.csv"
    path.write_text(catalog({"vcpus": "many"}))
    with pytest.raises(CatalogError) as caught:
        load_rows("aws", directory=tmp_path)
    assert str(caught.value) == (
        f"{path}:2: vcpus 'many': expected a number, such as 3.06 (delete the file to return to the packaged catalog)"
    )


def test_a_refreshed_file_that_is_not_text_is_a_catalog_error(tmp_path: Path) -> None:
    (tmp_path / "aws.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CatalogError, match="not a text file in UTF-8"):
        load_rows("aws", directory=tmp_path)


def test_a_refreshed_file_that_is_a_folder_is_a_catalog_error(tmp_path: Path) -> None:
    (tmp_path / "aws.csv").mkdir()
    with pytest.raises(CatalogError, match="cannot read the catalog"):
        load_rows("aws", directory=tmp_path)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"usd_per_hour": "cheap"}, "usd_per_hour 'cheap': expected a number, such as 3.06"),
        ({"usd_per_hour": ""}, "usd_per_hour '': expected a number, such as 3.06"),
        ({"usd_per_hour": "-1"}, "usd_per_hour '-1': must be more than zero"),
        ({"usd_per_hour": "0"}, "usd_per_hour '0': must be more than zero"),
        ({"usd_per_hour": "nan"}, "usd_per_hour 'nan': expected a finite number, such as 3.06"),
        ({"spot_usd_per_hour": "-0.1"}, "spot_usd_per_hour '-0.1': must be more than zero"),
        ({"network_gbps": "inf"}, "network_gbps 'inf': expected a finite number, such as 3.06"),
        ({"accelerators": "1.5"}, "accelerators '1.5': expected a whole number, such as 8"),
        ({"accelerators": "-1"}, "accelerators '-1': must be zero or more"),
        ({"accelerators": "0"}, "accelerator 'V100' but accelerators is 0; state how many"),
        ({"accelerator": ""}, "accelerator is empty; fill it in"),
        ({"tflops_per_accelerator": "0"}, "tflops_per_accelerator '0': must be more than zero"),
        ({"accelerator_memory_gb": "0"}, "accelerator_memory_gb '0': must be more than zero"),
        ({"instance_type": ""}, "instance_type is empty; fill it in"),
        ({"source": ""}, "source is empty; fill it in"),
        ({"price_date": "June 2025"}, "price_date 'June 2025': expected a year and a month, such as 2026-08"),
        ({"price_date": "2025-13"}, "price_date '2025-13': expected a year and a month, such as 2026-08"),
        ({"source": "one,two"}, "14 cells, but the header has 13 columns"),
    ],
)
def test_a_bad_cell_is_named_with_file_and_line(change: dict[str, str], complaint: str) -> None:
    with pytest.raises(CatalogError) as caught:
        parse_rows(catalog({"region": "eu-west-1"}, change), cloud="aws", name="aws.csv")
    assert str(caught.value) == f"aws.csv:3: {complaint}"


def test_a_duplicate_row_names_both_lines() -> None:
    with pytest.raises(CatalogError) as caught:
        parse_rows(catalog({}, {"vcpus": "9"}), cloud="aws", name="aws.csv")
    assert str(caught.value) == "aws.csv:3: p3.2xlarge in us-east-1 is already on line 2; delete one of them"


def test_a_missing_column_is_named() -> None:
    with pytest.raises(CatalogError, match=r"^aws\.csv:1: missing column price_date; expected instance_type,region"):
        parse_rows(catalog({}).replace("price_date", "date"), cloud="aws", name="aws.csv")


@pytest.mark.parametrize("text", ["", "\n"])
def test_an_empty_file_misses_its_columns(text: str) -> None:
    with pytest.raises(CatalogError, match=r"aws\.csv:1: missing column instance_type"):
        parse_rows(text, cloud="aws", name="aws.csv")


def test_a_file_without_rows_is_an_error() -> None:
    with pytest.raises(CatalogError, match="no instance type in the file"):
        parse_rows(catalog(), cloud="aws", name="aws.csv")


def test_an_unclosed_quote_is_a_catalog_error() -> None:
    with pytest.raises(CatalogError, match=r"aws\.csv:2: not a CSV line"):
        parse_rows(catalog({"source": '"never closed'}), cloud="aws", name="aws.csv")


def test_what_a_spreadsheet_adds_is_forgiven() -> None:
    """A byte order mark, CRLF, an empty last line, spaces, a column of notes."""
    text = "\ufeff" + catalog({}).replace("source\n", "source, notes\n").replace(
        "a price list\n", "a price list , ok\n"
    )
    rows = parse_rows(text.replace("\n", "\r\n") + "\r\n", cloud="aws", name="aws.csv")
    assert rows == parse_rows(catalog({}), cloud="aws", name="aws.csv")


@pytest.mark.parametrize("cloud", ["aws", "gcp", "azure"])
def test_what_is_written_is_read_back_the_same(cloud: str, tmp_path: Path) -> None:
    write_rows(tmp_path / "new" / f"{cloud}.csv", load_rows(cloud))
    assert load_rows(cloud, directory=tmp_path / "new") == load_rows(cloud)
    assert [path.name for path in (tmp_path / "new").iterdir()] == [f"{cloud}.csv"]


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "aws.csv"
    (path / "in the way").mkdir(parents=True)  # a folder that is not empty cannot be replaced by a file
    with pytest.raises(CatalogError, match=r"cannot write the catalog: .*; the old one is unchanged"):
        write_rows(path, load_rows("aws"))
    assert list(tmp_path.iterdir()) == [path]
