"""One epoch on functions: the corrected equations of CE-scaling, compared with hand-computed values."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlcd_fixtures.functions import taken

from mlcd.planners.functions.epoch_model.epoch import EpochModel, affine_exchange
from mlcd.planners.functions.nouns import Allocation, Calibration, Link
from mlcd.planners.functions.workload import StorageRate, Tariff, Workload

WORKLOAD = Workload("lr", "higgs", samples=10_000, data_mb=100.0, model_mb=2.0, batch=300)
TARIFF = Tariff(
    usd_per_gb_s=0.001,
    usd_per_call=0.01,
    storages=(
        StorageRate("s3", usd_per_request=0.000_1),
        StorageRate("dynamodb", usd_per_request=0.000_2, largest_mb=0.4),
        StorageRate("vm-ps", usd_per_minute=0.6, aggregates=True),
    ),
)
CALIBRATION = Calibration(
    compute=((512.0, 0.4), (1_024.0, 0.2), (2_048.0, 0.15)),
    links={"s3": Link(0.1, 50.0), "dynamodb": Link(0.01, 20.0), "vm-ps": Link(0.05, 100.0)},
    load_mb_per_s=25.0,
    start=(1.0, 0.5),
)
MODEL = EpochModel(WORKLOAD, TARIFF, CALIBRATION)


def test_an_epoch_on_stateless_storage_is_the_corrected_equation() -> None:
    allocation = Allocation(4, 1_024, "s3")
    k = math.ceil(10_000 / 1_200)
    parts = MODEL.parts(allocation)
    assert (parts.start_s, parts.load_s) == (1.0 + 4 * 0.5, 1.0)
    assert parts.compute_s == pytest.approx(25 * 0.2)
    assert parts.sync_s == pytest.approx(k * 10 * (2 / 50 + 0.1))
    assert MODEL.epoch_s(allocation) == pytest.approx(parts.seconds)
    assert MODEL.requests(allocation) == k * 42
    usd = 4 * 0.01 + 4 * parts.billed_s * 0.001 + k * 42 * 0.000_1
    assert MODEL.epoch_usd(allocation) == pytest.approx(usd)


def test_an_epoch_with_a_parameter_server_pays_its_minutes_and_one_more() -> None:
    allocation = Allocation(4, 512, "vm-ps")
    parts = MODEL.parts(allocation)
    assert parts.sync_s == pytest.approx(9 * 6 * (2 / 100 + 0.05))
    usd = 4 * 0.01 + 4 * parts.billed_s * 0.000_5 + (parts.seconds / 60 + 1) * 0.6
    assert MODEL.epoch_usd(allocation) == pytest.approx(usd)


def test_a_single_function_exchanges_nothing_with_a_parameter_server_and_one_model_elsewhere() -> None:
    assert MODEL.parts(Allocation(1, 512, "vm-ps")).sync_s == 0
    assert MODEL.parts(Allocation(1, 512, "s3")).sync_s == pytest.approx(34 * (2 / 50 + 0.1))
    links = {**CALIBRATION.links, "vm-ps": Link(0.05, 100.0, ((1, 0.0), (2, 0.3), (10, 0.7)))}
    model = replace(MODEL, calibration=replace(CALIBRATION, links=links))
    assert model.exchange_s([1, 2, 10], "vm-ps") == pytest.approx([0.0, 0.3, 0.7])


def test_more_functions_than_batches_still_exchange_once() -> None:
    assert MODEL.requests(Allocation(3_000, 128, "s3")) == 30_002


def test_computing_follows_calibrated_memories_and_one_over_m_below_them() -> None:
    seen = MODEL.s_per_mb([128, 256, 512, 724.077_343_9, 1_024, 2_048, 10_240])
    assert seen == pytest.approx([1.6, 0.8, 0.4, 0.4 / 2**0.5, 0.2, 0.15, 0.15])


def test_more_memory_never_computes_slower_even_if_a_probe_says_so() -> None:
    noisy = replace(CALIBRATION, compute=((512.0, 0.4), (1_024.0, 0.45), (2_048.0, 0.15)))
    seen = replace(MODEL, calibration=noisy).s_per_mb(np.arange(128, 10_241))
    assert np.all(np.diff(seen) <= 0)


def test_measured_exchanges_replace_the_equation() -> None:
    links = {**CALIBRATION.links, "s3": Link(0.1, 50.0, ((2, 0.3), (10, 0.7)))}
    model = replace(MODEL, calibration=replace(CALIBRATION, links=links))
    assert model.exchange_s([2, 6, 10], "s3") == pytest.approx([0.3, 0.5, 0.7])
    allocation = Allocation(6, 1_024, "s3")
    assert model.parts(allocation).sync_s == pytest.approx(WORKLOAD.iterations(6) * 0.5)


def test_one_measured_exchange_is_not_enough_to_replace_the_equation() -> None:
    links = {**CALIBRATION.links, "s3": Link(0.1, 50.0, ((4, 9.0), (4, 9.5)))}
    model = replace(MODEL, calibration=replace(CALIBRATION, links=links))
    assert model.exchange_s(4, "s3") == MODEL.exchange_s(4, "s3")


@pytest.mark.parametrize(("each", "off"), [(3, 2), (2, 2)])
def test_a_platform_that_follows_the_equation_is_fitted_exactly(each: int, off: int) -> None:
    once_s, more_s = affine_exchange([(n, (each * n - off) * 0.07) for n in (1, 2, 8)])
    assert (once_s, more_s) == pytest.approx(((each - off) * 0.07, each * 0.07), abs=1e-9)


def test_a_storage_exists_if_it_is_priced_and_measured_and_holds_the_model() -> None:
    small = replace(MODEL, workload=replace(WORKLOAD, model_mb=0.4))
    assert [model.exists("dynamodb") for model in (MODEL, small)] == [False, True]
    assert not MODEL.exists("elasticache")
    assert not replace(MODEL, calibration=replace(CALIBRATION, links={})).exists("s3")


@given(
    functions=st.integers(1, 3_000),
    memory=st.integers(128, 10_239),
    storage=st.sampled_from(["s3", "vm-ps"]),
    samples=st.integers(1, 10**8),
)
def test_the_parts_of_an_epoch_add_up_and_more_memory_is_never_slower(
    functions: int, memory: int, storage: str, samples: int
) -> None:
    model = replace(MODEL, workload=replace(WORKLOAD, samples=samples))
    allocation = Allocation(functions, memory, storage)
    assert model.epoch_s(allocation) == pytest.approx(model.parts(allocation).seconds)
    assert model.epoch_s(Allocation(functions, memory + 1, storage)) <= model.epoch_s(allocation)
    assert model.epoch_usd(allocation) > 0


def test_vectorised_results_equal_single_ones() -> None:
    functions, memory = np.array([1, 7, 300]), np.array([128, 999, 4_000, 9_999])
    seconds, usd = taken(MODEL, functions[:, None], memory, "s3")
    for i, n in enumerate(functions):
        for j, m in enumerate(memory):
            assert seconds[i, j] == MODEL.epoch_s(Allocation(int(n), int(m), "s3"))
            assert usd[i, j] == MODEL.epoch_usd(Allocation(int(n), int(m), "s3"))
