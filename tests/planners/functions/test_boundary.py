"""The Pareto boundary by branch and bound equals that of an exhaustive search."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from mlcd_fixtures.functions import taken

from mlcd.planners.functions.epoch_model.boundary import Boundary, boundary, waves
from mlcd.planners.functions.epoch_model.epoch import EpochModel
from mlcd.planners.functions.nouns import Allocation, Calibration, FunctionsTask, Link, Stage
from mlcd.planners.functions.workload import StorageRate, Tariff, Workload

LR = Workload("lr", "higgs", samples=11_000_000, data_mb=2_464.0, model_mb=0.000_12, batch=10_000)
TARIFF = Tariff(
    usd_per_gb_s=1.666_67e-5,
    usd_per_call=2e-7,
    storages=(
        StorageRate("s3", usd_per_request=1.6e-6),
        StorageRate("dynamodb", usd_per_request=6e-7, largest_mb=0.4),
        StorageRate("elasticache", usd_per_minute=0.068 / 60),
        StorageRate("vm-ps", usd_per_minute=0.085 / 60, aggregates=True),
    ),
)
LINKS = {
    "s3": Link(0.08, 65.0),
    "dynamodb": Link(0.01, 40.0),
    "elasticache": Link(0.01, 630.0),
    "vm-ps": Link(0.0005, 120.0, ((2, 0.004), (8, 0.02))),
}
COMPUTE = ((128.0, 0.3), (1_769.0, 0.022), (10_240.0, 0.006))


def model(
    workload: Workload = LR, compute: tuple[tuple[float, float], ...] = COMPUTE, start: tuple[float, float] = (1.0, 0.2)
) -> EpochModel:
    return EpochModel(workload, TARIFF, Calibration(compute, LINKS, 65.0, start))


def holds(the_model: EpochModel, limits: FunctionsTask, allocation: Allocation) -> bool:
    enough = allocation.memory_mb >= the_model.workload.needs_mb(allocation.functions)
    return enough and the_model.parts(allocation).billed_s <= limits.call_s


def by_walking(the_model: EpochModel, limits: FunctionsTask, stage: Stage, step_mb: int) -> list[tuple[object, ...]]:
    """Every allocation, one after the other in the order of preference: kept if all before it are dearer."""
    every = []
    for place, name in enumerate(limits.storages):
        for functions in range(limits.functions[0], limits.functions[1] + 1):
            for memory in range(limits.memory_mb[0], limits.memory_mb[1] + 1, step_mb):
                allocation = Allocation(functions, memory, name)
                times = float(waves(limits, np.array(functions), np.array(memory), stage.trials))
                if not the_model.exists(name) or times == np.inf or not holds(the_model, limits, allocation):
                    continue
                seconds = the_model.epoch_s(allocation) * times
                every.append((seconds, the_model.epoch_usd(allocation), functions, memory, place))
    cheapest, kept = np.inf, []
    for each in sorted(every):
        if each[1] < cheapest:
            cheapest = each[1]
            kept.append((*each[:4], limits.storages[each[4]]))
    return kept


def written(found: Boundary) -> list[tuple[object, ...]]:
    allocations = [found.allocation(i) for i in range(len(found))]
    return [
        (seconds, usd, each.functions, each.memory_mb, each.storage)
        for seconds, usd, each in zip(found.seconds, found.usd, allocations, strict=True)
    ]


compute_curves = st.lists(
    st.tuples(st.integers(100, 400).map(float), st.sampled_from([0.01, 0.02, 0.05, 0.05, 0.3, 1.0])),
    min_size=1,
    max_size=4,
).map(lambda points: tuple(sorted(dict(points).items())))


@given(
    compute=compute_curves,
    start=st.sampled_from([(0.0, 0.0), (1.0, 0.0), (0.5, 0.3)]),
    functions=st.tuples(st.integers(1, 4), st.integers(0, 12)),
    memory=st.tuples(st.integers(128, 140), st.integers(0, 90)),
    step_mb=st.sampled_from([1, 3, 16]),
    model_mb=st.sampled_from([0.0001, 0.3, 12.0]),
    data_mb=st.sampled_from([100.0, 464.0, 2_464.0]),
    call_s=st.sampled_from([40.0, 900.0, 1e9]),
    trials=st.sampled_from([1, 7, 64]),
    concurrency=st.sampled_from([None, 3, 20, 100]),
    memory_at_once_mb=st.sampled_from([None, 100, 1_000, 9_000]),
)
def test_the_boundary_equals_that_of_an_exhaustive_search(
    compute: tuple[tuple[float, float], ...],
    start: tuple[float, float],
    functions: tuple[int, int],
    memory: tuple[int, int],
    step_mb: int,
    model_mb: float,
    data_mb: float,
    call_s: float,
    trials: int,
    concurrency: int | None,
    memory_at_once_mb: int | None,
) -> None:
    workload = replace(LR, model_mb=model_mb, data_mb=data_mb, samples=500_000)
    limits = FunctionsTask(
        workload,
        functions=(functions[0], sum(functions)),
        memory_mb=(memory[0], sum(memory)),
        concurrency=concurrency,
        memory_at_once_mb=memory_at_once_mb,
        call_s=call_s,
    )
    the_model, stage = model(workload, compute, start), Stage(trials, 2)
    found = boundary(the_model, limits, trials=trials, step_mb=step_mb)
    assert written(found) == by_walking(the_model, limits, stage, step_mb)


def test_a_space_of_many_blocks_is_pruned_exactly() -> None:
    limits = FunctionsTask(LR, functions=(1, 60), memory_mb=(128, 1_700), storages=("s3", "elasticache", "vm-ps"))
    the_model, counts, memories = model(), np.arange(1, 61)[:, None], np.arange(128, 1_701)
    takes = [taken(the_model, counts, memories, name) for name in limits.storages]
    seconds, usd = (np.concatenate([each.ravel() for each in kind]) for kind in zip(*takes, strict=True))
    needs_mb = np.array([LR.needs_mb(n) for n in range(1, 61)])[:, None]
    enough = np.tile((memories >= needs_mb).ravel(), 3)
    seconds, usd = seconds[enough], usd[enough]
    order = np.lexsort((usd, seconds))
    cheapest = np.minimum.accumulate(usd[order])
    best = order[np.concatenate([[True], cheapest[1:] < cheapest[:-1]])]
    found = boundary(the_model, limits)
    assert np.array_equal(found.seconds, seconds[best])
    assert np.array_equal(found.usd, usd[best])


def test_no_allocation_dominates_the_boundary() -> None:
    rng = np.random.default_rng(7)
    the_model, draws = model(), 200_000
    found = boundary(the_model, FunctionsTask(LR))
    assert np.all(np.diff(found.seconds) > 0)
    assert np.all(np.diff(found.usd) < 0)
    functions, memory = rng.integers(1, 3_001, draws), rng.integers(128, 10_241, draws)
    # half of them are close to the boundary, where a mistake would show
    near = rng.integers(0, len(found), draws // 2)
    functions[: len(near)] = np.clip(found.functions[near] + rng.integers(-2, 3, len(near)), 1, 3_000)
    memory[: len(near)] = np.clip(found.memory_mb[near] + rng.integers(-9, 10, len(near)), 128, 10_240)
    enough = memory >= 64 + 3 * LR.model_mb + LR.data_mb / functions
    functions, memory = functions[enough], memory[enough]
    for name in LINKS:
        seconds, usd = taken(the_model, functions, memory, name)
        # the cheapest point of the boundary that is not faster than the drawn one costs no less than it
        faster = np.searchsorted(found.seconds, seconds, side="right") - 1
        assert np.all(faster >= 0)
        assert np.all(found.usd[faster] <= usd * (1 + 1e-12))


def test_seconds_and_dollars_on_the_boundary_are_those_of_the_model() -> None:
    found = boundary(model(), FunctionsTask(LR), step_mb=64)
    for i in (0, len(found) // 2, len(found) - 1):
        assert model().epoch_s(found.allocation(i)) == found.seconds[i]
        assert model().epoch_usd(found.allocation(i)) == found.usd[i]


def test_dynamodb_does_not_exist_for_a_model_above_400_kilobytes() -> None:
    for model_mb, there in ((0.4, True), (0.400_001, False)):
        workload = replace(LR, model_mb=model_mb)
        found = boundary(model(workload), FunctionsTask(workload, storages=("dynamodb",)), step_mb=64)
        assert (len(found) > 0) is there


def test_a_storage_that_is_not_allowed_is_not_used() -> None:
    found = boundary(model(), FunctionsTask(LR).with_storages("s3"), step_mb=64)
    assert {found.allocation(i).storage for i in range(len(found))} == {"s3"}


def test_there_are_no_more_functions_than_samples() -> None:
    workload = replace(LR, samples=3)
    found = boundary(model(workload), FunctionsTask(workload), step_mb=512)
    assert found.functions.max() <= 3


def test_the_boundary_is_empty_if_nothing_keeps_the_limits() -> None:
    assert len(boundary(model(), FunctionsTask(LR, functions=(5, 9), concurrency=4))) == 0


def test_trials_that_do_not_fit_at_once_run_in_waves() -> None:
    limits = FunctionsTask(LR, concurrency=100, memory_at_once_mb=20_000)
    assert limits.trials_at_once(Allocation(10, 512, "s3"), trials=64) == 3
    assert limits.trials_at_once(Allocation(30, 128, "s3"), trials=2) == 2
    assert FunctionsTask(LR).trials_at_once(Allocation(3_000, 10_240, "s3"), trials=16_384) == 16_384
    seen = waves(limits, np.array([10, 30, 101]), np.array([512, 128, 128]), trials=64)
    assert list(seen) == [22, 22, np.inf]


def test_a_function_with_too_little_memory_is_left_out() -> None:
    found = boundary(model(), FunctionsTask(LR, functions=(4, 4), memory_mb=(128, 1_000)), step_mb=4)
    assert min(found.memory_mb) >= 64 + 2_464 / 4 + 3 * LR.model_mb


def test_an_epoch_that_exceeds_the_longest_call_is_left_out() -> None:
    limits = FunctionsTask(LR, functions=(30, 60), memory_mb=(128, 500))
    longest_s = max(boundary(model(), limits).seconds)
    shorter = boundary(model(), replace(limits, call_s=longest_s / 2))
    starts_s = [model().parts(shorter.allocation(i)).start_s for i in range(len(shorter))]
    assert np.all(shorter.seconds - starts_s <= longest_s / 2)
    assert len(shorter) > 0
