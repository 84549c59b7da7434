"""Calibration: the parameters of a platform that follows the model are recovered; with noise, approximately."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlcd_fixtures.examples import SLOW
from pydantic import TypeAdapter

from mlcd.core.errors import UserError
from mlcd.planners.functions.epoch_model.calibration import FASTEST_MB_PER_S, PRIOR_ERROR, calibrate
from mlcd.planners.functions.epoch_model.epoch import EpochModel
from mlcd.planners.functions.epoch_model.published import published
from mlcd.planners.functions.nouns import Allocation, Calibrated, Calibration, Link
from mlcd.planners.functions.workload import StorageRate, Tariff, Workload

WORKLOAD = Workload("lr", "yfcc", samples=40_000, data_mb=600.0, model_mb=0.3, batch=800)
FREE = Tariff(0.0, 0.0, tuple(StorageRate(name, aggregates=name == "vm-ps") for name in ("s3", "elasticache", "vm-ps")))
TRUTH = Calibration(
    compute=((512.0, 0.4), (1_024.0, 0.2), (2_048.0, 0.15)),
    links={"s3": Link(0.08, 65.0), "elasticache": Link(0.01, 600.0), "vm-ps": Link(0.001, 120.0)},
    load_mb_per_s=65.0,
    start=(0.7, 0.17),
)
DESIGN = [Allocation(n, m, s) for s in TRUTH.links for n, m in ((2, 512), (4, 1_024), (8, 2_048))]


def probes(truth: Calibration, design: Sequence[Allocation], noise: float = 0.0, seed: int = 1) -> list[Calibrated]:
    """What a platform of this truth shows."""
    rng, model = np.random.default_rng(seed), EpochModel(WORKLOAD, FREE, truth)

    def shown(value: float) -> float:
        return value * float(np.exp(noise * rng.standard_normal()))

    found = []
    for at in design:
        link = truth.links[at.storage]
        found.append(
            Calibrated(
                allocation=at,
                s_per_mb=shown(float(model.s_per_mb(at.memory_mb))),
                load_mb_per_s=shown(truth.load_mb_per_s),
                start_s=shown(model.parts(at).start_s),
                sync_s=shown(float(model.exchange_s(at.functions, at.storage))),
                transfers=tuple((mb, shown(link.latency_s + mb / link.mb_per_s)) for mb in (0.01, 0.3, 3.0, 3.0)),
            )
        )
    return found


def test_the_parameters_of_a_platform_that_follows_the_model_are_recovered() -> None:
    found = calibrate(probes(TRUTH, DESIGN), WORKLOAD)
    assert np.array(found.compute) == pytest.approx(np.array(TRUTH.compute))
    assert (found.load_mb_per_s, *found.start) == pytest.approx((65.0, 0.7, 0.17))
    for name, link in TRUTH.links.items():
        assert (found.links[name].latency_s, found.links[name].mb_per_s) == pytest.approx(
            (link.latency_s, link.mb_per_s)
        )
        assert [n for n, _ in found.links[name].exchanges] == [2, 4, 8]
    seen, true = EpochModel(WORKLOAD, FREE, found), EpochModel(WORKLOAD, FREE, TRUTH)
    for at in (*DESIGN, Allocation(1, 128, "s3"), Allocation(500, 10_240, "vm-ps")):
        assert seen.epoch_s(at) == pytest.approx(true.epoch_s(at), abs=1e-6)
    assert not found.modelled


def test_probes_that_are_fitted_exactly_do_not_make_the_error_zero() -> None:
    few, many = calibrate(probes(TRUTH, DESIGN[:2]), WORKLOAD), calibrate(probes(TRUTH, DESIGN * 20), WORKLOAD)
    assert 0.01 < few.rel_error < PRIOR_ERROR
    assert many.rel_error < 0.01


@SLOW
@given(seed=st.integers(0, 10**6))
def test_the_stated_error_is_about_the_actual_error(seed: int) -> None:
    noise, repeats = 0.2, 12
    found = calibrate(probes(TRUTH, DESIGN * repeats, noise, seed), WORKLOAD)
    # an epoch is a sum of parts that are off on their own: less than each of them
    assert 0.3 * noise < found.rel_error < 1.3 * noise
    seen, true = EpochModel(WORKLOAD, FREE, found), EpochModel(WORKLOAD, FREE, TRUTH)
    for at in DESIGN:
        assert abs(np.log(seen.parts(at).billed_s / true.parts(at).billed_s)) < 3 * found.rel_error


def test_a_memory_that_is_slower_than_a_smaller_one_is_averaged_with_it() -> None:
    one, two, three = probes(TRUTH, DESIGN[:3])
    found = calibrate([one, replace(two, s_per_mb=0.9), three], WORKLOAD)
    assert found.compute == ((512.0, pytest.approx(0.6)), (1_024.0, pytest.approx(0.6)), (2_048.0, pytest.approx(0.15)))


def test_one_outlier_does_not_move_the_median() -> None:
    same = probes(TRUTH, [Allocation(4, 1_024, "s3")] * 3)
    odd = replace(same[0], s_per_mb=99.0, sync_s=99.0, load_mb_per_s=0.1, start_s=99.0, transfers=((0.3, 99.0),))
    found = calibrate([*same, odd], WORKLOAD)
    assert found.compute == ((1_024.0, pytest.approx(0.2)),)
    assert found.load_mb_per_s == 65.0
    assert found.start == (pytest.approx(0.7 + 4 * 0.17), 0.0)
    assert found.links["s3"].exchanges[0][1] == pytest.approx(10 * (0.3 / 65 + 0.08))


def test_without_timed_objects_the_exchange_gives_the_time_of_one() -> None:
    timed = [replace(probe, transfers=()) for probe in probes(TRUTH, [Allocation(4, 1_024, "s3")])]
    model = EpochModel(WORKLOAD, FREE, calibrate(timed, WORKLOAD))
    assert model.parts(Allocation(4, 1_024, "s3")).sync_s == pytest.approx(
        EpochModel(WORKLOAD, FREE, TRUTH).parts(Allocation(4, 1_024, "s3")).sync_s
    )


def test_the_fitted_bandwidth_has_an_upper_bound() -> None:
    flat = [replace(probe, transfers=((0.1, 0.02), (3.0, 0.02))) for probe in probes(TRUTH, DESIGN[:1])]
    link = calibrate(flat, WORKLOAD).links["s3"]
    assert (link.latency_s, link.mb_per_s) == (pytest.approx(0.02), FASTEST_MB_PER_S)


def test_a_storage_without_timings_is_left_out() -> None:
    alone = replace(probes(TRUTH, [Allocation(1, 1_024, "vm-ps")])[0], transfers=())
    assert calibrate([alone], WORKLOAD).links == {}


def test_a_calibration_without_measurements_is_an_error() -> None:
    with pytest.raises(UserError, match="no probe has measured"):
        calibrate([replace(probe, s_per_mb=0.0) for probe in probes(TRUTH, DESIGN)], WORKLOAD)


@pytest.mark.parametrize("calibration", [calibrate(probes(TRUTH, DESIGN, 0.1), WORKLOAD), published(WORKLOAD)])
def test_a_calibration_can_be_written_and_read_again(calibration: Calibration) -> None:
    written = TypeAdapter(Calibration)
    assert written.validate_json(written.dump_json(calibration)) == calibration
