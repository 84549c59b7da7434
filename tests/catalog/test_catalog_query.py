from __future__ import annotations

import pytest

from mlcd.catalog import CLOUDS, load_rows, select
from mlcd.catalog.query import SORT_ORDERS
from mlcd.core.errors import UnknownName, UserError

ROWS = [row for cloud in CLOUDS for row in load_rows(cloud)]


def test_nothing_asked_is_everything_cheapest_first() -> None:
    chosen = select(ROWS)
    assert sorted(chosen, key=ROWS.index) == ROWS
    assert [row.usd_per_hour for row in chosen] == sorted(row.usd_per_hour for row in ROWS)


def test_the_answer_does_not_depend_on_the_order_of_the_rows() -> None:
    for sort in SORT_ORDERS:
        assert select(reversed(ROWS), sort=sort) == select(ROWS, sort=sort)


@pytest.mark.parametrize("gpu", ["A100", "a100", " A100 "])
def test_a_gpu_is_found_in_any_case_and_with_any_memory(gpu: str) -> None:
    assert {row.accelerator for row in select(ROWS, gpu=gpu)} == {"A100", "A100-80GB"}


@pytest.mark.parametrize(
    ("gpu", "found"),
    [
        ("A100-80gb", {"A100-80GB"}),
        ("L4", {"L4"}),
        ("V100", {"V100", "V100-32GB", "V100-PCIE"}),
    ],
)
def test_a_gpus_name_is_not_a_mere_prefix(gpu: str, found: set[str]) -> None:
    assert {row.accelerator for row in select(ROWS, gpu=gpu)} == found


def test_a_gpu_with_a_count_means_that_count() -> None:
    assert {row.accelerators for row in select(ROWS, gpu="A100:8")} == {8}
    assert select(ROWS, gpu="A100:3") == []


@pytest.mark.parametrize("gpu", ["A100:", "A100:0", "A100:x", ":8", "", "A100:8:8"])
def test_a_malformed_gpu_says_what_was_expected(gpu: str) -> None:
    with pytest.raises(UserError, match="such as A100:8"):
        select(ROWS, gpu=gpu)


def test_a_misspelled_gpu_gets_a_suggestion() -> None:
    with pytest.raises(UserError, match=r"no catalog here has H10O; they have .*H100.*\. Did you mean 'H100'\?"):
        select(ROWS, gpu="h10o")


@pytest.mark.parametrize("gpu", ["GB300", "MI300X", "TPU"])
def test_a_gpu_that_no_catalog_has_is_not_taken_for_another(gpu: str) -> None:
    with pytest.raises(UserError, match=f"no catalog here has {gpu}; they have ") as error:
        select(ROWS, gpu=gpu)
    assert "Did you mean" not in str(error.value)
    assert "add its row" in str(error.value)


def test_a_gpu_that_other_filters_leave_out_is_not_called_unknown() -> None:
    assert select(ROWS, gpu="A10G", cloud="azure") == []
    assert select(ROWS, gpu="A100", instances=["c5.*"]) == []


def test_limits_are_inclusive() -> None:
    chosen = select(ROWS, max_price=3.06, min_memory_gb=61, min_vcpus=8, cloud="aws", instances=["p3.*"])
    assert [row.instance_type for row in chosen] == ["p3.2xlarge"]


def test_patterns_are_alternatives_and_ignore_case() -> None:
    chosen = select(ROWS, instances=["C5.?xlarge", "standard_nd*"])
    families = {row.instance_type[:11] for row in chosen}
    assert families == {"c5.2xlarge", "c5.4xlarge", "c5.9xlarge", "Standard_ND"}


@pytest.mark.parametrize(
    ("pattern", "suggestion"),
    [
        ("c6.*", ": did you mean 'c5.*'?"),
        ("p7.*", ": did you mean 'p5.*'?"),
        ("p3.3xlarge", ": did you mean 'p3.8xlarge'?"),
        ("n3-*", ": did you mean 'n2-*'?"),
        ("quantum", "; `mlcd offers` lists them all"),
    ],
)
def test_a_pattern_that_matches_nothing_gets_a_suggestion(pattern: str, suggestion: str) -> None:
    with pytest.raises(UserError) as caught:
        select(ROWS, instances=["c5.*", pattern])
    assert str(caught.value) == f"no instance matches '{pattern}'{suggestion}"


def test_a_pattern_of_another_cloud_matches_nothing() -> None:
    with pytest.raises(UserError, match=r"no instance matches 'c5\.\*'"):
        select(ROWS, cloud="gcp", instances=["c5.*"])


def test_an_unknown_cloud_or_sort_order_gets_a_suggestion() -> None:
    with pytest.raises(UnknownName, match="unknown cloud 'gpc': did you mean 'gcp'"):
        select(ROWS, cloud="gpc")
    with pytest.raises(UnknownName, match="unknown sort order 'prices': did you mean 'price'"):
        select(ROWS, sort="prices")


def test_spot_filters_and_sorts_by_the_spot_price() -> None:
    chosen = select(ROWS, spot=True, max_price=1.0)
    prices = [row.spot_usd_per_hour for row in chosen if row.spot_usd_per_hour is not None]
    assert len(prices) == len(chosen) > len(select(load_rows("aws"), max_price=1.0))
    assert prices == sorted(prices)
    assert max(prices) <= 1.0


def test_sorting_by_memory_and_gpus_puts_the_most_first() -> None:
    assert select(ROWS, sort="memory")[0].memory_gb == max(row.memory_gb for row in ROWS)
    assert select(ROWS, sort="gpus")[0].instance_type == "p2.16xlarge"


def test_tflops_per_dollar_divides_the_rate_of_the_node_by_its_price() -> None:
    def worth(spot: bool) -> list[float]:
        offers = [row.offer(spot=spot) for row in select(ROWS, spot=spot, sort="tflops-per-dollar")]
        return [offer.tflops / offer.usd_per_hour for offer in offers]

    for spot in (False, True):
        assert worth(spot) == sorted(worth(spot), reverse=True)
