"""Every configuration of an elastic job can be trained; impossible workers or batches are refused in one line."""

from __future__ import annotations

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from mlcd.core.configuration import Choice, Offer, Space
from mlcd.core.errors import UserError
from mlcd.core.job import Job
from mlcd.core.units import parse_batches
from mlcd.planners.scale.nouns import ScalingTask, UnitPrice, batch_of, scaling_space

NODE = Offer("node", 1.0, vcpus=4, memory_gb=16)
FOUR_GPUS = Offer("gpus", 4.0, vcpus=32, memory_gb=64, accelerator="T4", accelerators=4)


def space_of(
    workers: tuple[int, int], batches: tuple[int, ...], *offers: Offer, price: UnitPrice | None = None
) -> Space:
    whole = Space(tuple(Choice(offer, tuple(range(1, 9))) for offer in offers))
    return scaling_space(whole, Job("job", 1e6, ask=ScalingTask(workers, batches, price=price)))


@given(st.integers(1, 8), st.integers(0, 7), st.sets(st.integers(1, 512), min_size=1, max_size=5))
def test_every_batch_is_shared_equally_by_the_workers(fewest: int, more: int, batches: set[int]) -> None:
    try:
        space = space_of((fewest, fewest + more), tuple(sorted(batches)), NODE, FOUR_GPUS)
    except UserError:
        reject()
    for configuration in space.configurations:
        assert batch_of(configuration) is not None
        assert batch_of(configuration) % configuration.workers == 0
        assert fewest <= configuration.workers <= fewest + more
    assert len(space.offer_index) == len(space) == len(space.index)


def test_workers_are_devices_where_a_node_has_several():
    assert {c.nodes for c in space_of((4, 8), (64,), FOUR_GPUS).configurations} == {1, 2}


def test_the_error_for_a_batch_that_no_worker_count_divides_suggests_another_batch():
    with pytest.raises(UserError, match=r"batch 64 cannot be shared equally by 3 workers; use 63"):
        space_of((3, 3), (64,), NODE)


def test_worker_counts_that_the_cloud_does_not_have_are_refused():
    with pytest.raises(UserError, match=r"workers 1..3: none possible; this cloud has 4 to 32 workers"):
        space_of((1, 3), (64,), FOUR_GPUS)


def test_with_prices_by_the_gb_a_node_has_only_the_memory_that_its_batch_needs():
    price = UnitPrice(usd_per_cpu_hour=0.03, usd_per_gb_hour=0.004, base_gb=2.0, gb_per_sample=0.01)
    found = {(c.nodes, batch_of(c)): c for c in space_of((1, 2), (100, 200), NODE, price=price).configurations}
    assert found[1, 200].offer.memory_gb == pytest.approx(4.0)
    assert found[2, 200].offer.memory_gb == pytest.approx(3.0)
    assert found[2, 200].usd_per_hour == pytest.approx(2 * (4 * 0.03 + 3.0 * 0.004))


@pytest.mark.parametrize(
    ("written", "expected"),
    [("64..1024", (64, 128, 256, 512, 1024)), ("64..200", (64, 128, 200)), ("96, 192", (96, 192)), (128, (128,))],
)
def test_batches_are_parsed_from_ranges_lists_and_numbers(written: str | int, expected: tuple[int, ...]) -> None:
    assert parse_batches(written) == expected


@pytest.mark.parametrize("written", ["", "many", "64..", "1024..64", "0", "-64", True, "1e3"])
def test_malformed_batches_are_refused(written: str | bool) -> None:
    with pytest.raises(ValueError, match="'"):
        parse_batches(written)
