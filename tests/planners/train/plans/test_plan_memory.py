"""Probability of plans to fit, before and after some were tried."""

from __future__ import annotations

import numpy as np
import pytest
from mlcd_fixtures.training_runs import run

from mlcd.catalog.gpus import Gpu, gpu_named
from mlcd.core.configuration import Floats
from mlcd.planners.train.nouns import Adapter, Checkpointing, Precision, TrainingPlan
from mlcd.planners.train.plans.memory import MemoryBelief, believe_memory
from mlcd.planners.train.plans.memory_levels import busy_share, sizes_of, tensors_gb
from mlcd.planners.train.plans.memory_prior import LEVELS, MemoryPrior, shipped_memory
from mlcd.planners.train.plans.run_spec import RunSpec

SIZES = (1, 2, 4, 8, 16, 32, 64)
CANDIDATES = [
    run(
        TrainingPlan(micro_batch=size, adapter=Adapter.LORA, checkpointing=kept, precision=Precision.PURE_BF16),
        global_batch=256,
    )
    for kept in (Checkpointing.FULL, Checkpointing.NONE)
    for size in SIZES
]
FULL, NONE = slice(0, len(SIZES)), slice(len(SIZES), None)


def rows(*of: int) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    return np.array(of, dtype=np.intp)


def believed(
    ran: tuple[int, ...] = (),
    failed: tuple[int, ...] = (),
    gb: tuple[float, ...] = (),
    candidates: list[RunSpec] = CANDIDATES,
) -> MemoryBelief:
    peaks = np.array(gb or (np.nan,) * len(ran), dtype=float)
    return believe_memory(candidates, rows(*ran), rows(*failed), peaks)


def expected_gb(spec: RunSpec) -> float:
    return float(tensors_gb(shipped_memory().of(spec.plan.kernels)[0][None], sizes_of([spec]))[0])


def test_a_larger_micro_batch_is_never_likelier_to_fit() -> None:
    chance = believed().chance
    for half in (FULL, NONE):
        assert (np.diff(chance[half]) <= 1e-9).all()
    assert chance[FULL][0] > 0.99 > 0.01 > chance[NONE][-1]


def test_tried_plans_have_probability_zero_or_one() -> None:
    belief = believed(ran=(3,), failed=(9,))
    assert (belief.chance[3], belief.chance[9]) == (1.0, 0.0)
    fits = belief.drawn(50, np.random.default_rng(0))
    assert fits[:, 3].all()
    assert not fits[:, 9].any()


def test_a_measured_peak_moves_the_others_towards_it() -> None:
    most = int(np.flatnonzero(believed().chance[FULL] < 0.9)[0])
    small = 1
    as_expected = expected_gb(CANDIDATES[small])
    more, less = (believed(ran=(small,), gb=(factor * as_expected,)).chance[most] for factor in (1.15, 0.93))
    assert more < believed().chance[most] < less


def test_a_success_makes_the_others_likelier_to_fit_and_a_failure_less_likely() -> None:
    before = believed().chance
    unsure = int(np.argmin(np.abs(before[FULL] - 0.5)))
    other = len(SIZES) + int(np.argmin(np.abs(before[NONE] - 0.5)))
    assert believed(ran=(unsure,)).chance[other] >= before[other] - 0.01
    assert believed(failed=(unsure,)).chance[other] <= before[other] + 0.01
    assert believed(failed=(unsure,)).ruled_out[unsure : len(SIZES)].all()


def test_samples_fit_as_often_as_the_stated_probability() -> None:
    belief = believed(ran=(2,), gb=(expected_gb(CANDIDATES[2]),))
    fits = belief.drawn(8_000, np.random.default_rng(1))
    assert np.abs(fits.mean(axis=0) - belief.chance).max() < 0.05


def test_the_probability_is_that_of_brute_force_sampling() -> None:
    """By brute force, without a linear approximation of the log of need."""
    prior, rng = shipped_memory(), np.random.default_rng(0)
    middle, variance = prior.of("")
    sizes = sizes_of(CANDIDATES)
    levels = middle + np.sqrt(variance) * rng.standard_normal((20_000, len(LEVELS)))
    busy = busy_share(middle, sizes)
    need = np.log(tensors_gb(levels[:, None, :], sizes)) + levels[:, None, LEVELS.index("slack")] * busy
    error = np.hypot(prior.measured, prior.busy * busy)
    fits = need + error * rng.standard_normal(need.shape) <= np.log(sizes.tensors_room)
    assert np.abs(fits.mean(axis=0) - believed().chance).max() < 0.12


def test_a_surprising_result_is_believed() -> None:
    """With eight-bit optimizers or activations on the host, a plan may run although it should not fit."""
    before = believed().chance
    large = int(np.flatnonzero(before[FULL] < 0.05)[0])
    after = believed(ran=(large,)).chance
    assert (after[FULL][: large + 1] > 0.5).all()


def test_weights_larger_than_a_gpu_are_ruled_out_and_nothing_else_is_before_a_failure() -> None:
    small = [run(TrainingPlan(precision=Precision.PURE_BF16), gpu=gpu_named(name)) for name in ("L4", "H200")]
    huge = run(TrainingPlan(precision=Precision.FP32), gpu=gpu_named("L4"))
    assert list(believed(candidates=[*small, huge]).ruled_out) == [False, False, True]


def test_a_node_without_gpus_is_treated_like_a_gpu() -> None:
    cpus = [Gpu("cpu", memory_gb=size, bandwidth_gb_s=20, tflops_bf16=0.1) for size in (1.0, 64.0, 512.0)]
    chance = believed(candidates=[run(TrainingPlan(precision=Precision.FP32), gpu=cpu) for cpu in cpus]).chance
    assert chance[0] < 0.01 < 0.99 < chance[2]
    assert (np.diff(chance) >= 0).all()


def test_the_order_of_candidates_does_not_matter() -> None:
    turned = CANDIDATES[::-1]
    assert believed(candidates=turned).chance[::-1] == pytest.approx(believed().chance)


def test_a_memory_prior_survives_a_round_trip_through_its_file() -> None:
    assert MemoryPrior.read(shipped_memory().text()) == shipped_memory()


def test_unlearned_kernels_are_less_certain_than_learned_ones() -> None:
    def spread(kernels: str) -> Floats:
        return np.asarray(shipped_memory().of(kernels)[1])

    assert (spread("never heard of") >= spread("eager")).all()
