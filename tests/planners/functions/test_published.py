"""The published calibration of AWS: its dependence on memory is that of real Lambda."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mlcd.planners.functions.epoch_model.boundary import boundary
from mlcd.planners.functions.epoch_model.epoch import EpochModel
from mlcd.planners.functions.epoch_model.published import STARTS, cold_start, published
from mlcd.planners.functions.nouns import FunctionsTask
from mlcd.planners.functions.tariff import load_tariff
from mlcd.planners.functions.workload import STORAGES, Workload

HIGGS = Workload("lr", "higgs", samples=11_000_000, data_mb=1_276.0, model_mb=0.000_116, batch=10_000)
MEASURED = Path(__file__).parents[4] / "shared/data/serverless/lambda_memory_duration_2018.csv"


def test_the_published_calibration_is_marked_as_modelled() -> None:
    found = published(HIGGS)
    assert found.modelled
    assert "modelled" in found.source
    assert set(found.links) == set(STORAGES)


def test_computing_time_falls_with_memory_as_measured_on_lambda_in_2018() -> None:
    if not MEASURED.exists():
        pytest.skip(f"{MEASURED} is not there: the measurements are not part of the repository")
    rows = list(csv.DictReader(MEASURED.read_text().splitlines()))
    memory = np.array([float(row["memory_mb"]) for row in rows])
    seconds = np.array([float(row["duration_ms"]) for row in rows]) / 1_000
    model = EpochModel(HIGGS, load_tariff(), published(HIGGS, parallel=0.0))  # it has one thread
    ratio = seconds / model.s_per_mb(memory)
    assert np.all(np.abs(np.log(ratio / np.median(ratio))) < 0.1)


def test_more_vcpus_help_as_far_as_code_is_parallel() -> None:
    def gain(parallel: float) -> float:
        seconds = EpochModel(HIGGS, load_tariff(), published(HIGGS, parallel=parallel)).s_per_mb([1_769, 10_240])
        return float(seconds[0] / seconds[1])

    assert (gain(0.0), gain(1.0)) == pytest.approx((1.0, 10_240 / 1_769))


def test_cold_starts_are_close_to_the_published_ones() -> None:
    once_s, each_s = cold_start()
    assert all(abs(once_s + each_s * n - seconds) < 2 for n, seconds in STARTS)


def test_a_model_whose_weights_are_used_often_computes_longer() -> None:
    large = replace(HIGGS, model="own:Net", model_mb=12.0)
    assert published(replace(large, model="mobilenet")).compute[0][1] > 10 * published(large).compute[0][1]


def test_it_is_enough_to_plan_with() -> None:
    found = boundary(EpochModel(HIGGS, load_tariff(model_mb=HIGGS.model_mb), published(HIGGS)), FunctionsTask(HIGGS))
    assert len(found) > 100
    assert found.seconds[0] < found.seconds[-1] / 2
