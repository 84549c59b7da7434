"""A failure out of memory rules out plans that need at least as much, and nothing that ran."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from mlcd_fixtures.training_runs import run, runs

from mlcd.catalog.gpus import gpu_named
from mlcd.core.configuration import Offer
from mlcd.planners.modeling.architecture import architecture_of
from mlcd.planners.train.nouns import Checkpointing, Precision, Sharding, TrainingPlan
from mlcd.planners.train.plans.dominance import SAME_GB, too_large
from mlcd.planners.train.plans.memory_levels import sizes_of
from mlcd.planners.train.plans.memory_parts import Needed, room_gb, stages_gb
from mlcd.planners.train.plans.run_spec import RunSpec, gpu_of

NOTHING = np.array([], dtype=np.intp)


def parts(stage: Needed) -> list[float]:
    beside = stage.gradients if stage.held else 0.0
    alone = [stage.weights, stage.gradients, stage.optimizer, stage.logits, stage.layer, stage.head, stage.framework]
    return [*alone, stage.plain, stage.layer_plain, stage.stream + stage.saved, beside]


def needs_as_much(one: RunSpec, failed: RunSpec) -> bool:
    """The definition: each stage of the failed plan has a stage of the other that takes as much of each part."""
    return room_gb(one) <= room_gb(failed) and all(
        any(
            all(mine >= its - SAME_GB for mine, its in zip(parts(stage), parts(other), strict=True))
            for stage in stages_gb(one)
        )
        for other in stages_gb(failed)
    )


def same_way(one: RunSpec, other: RunSpec) -> bool:
    return all(
        getattr(one.plan, name) == getattr(other.plan, name)
        for name in ("adapter", "precision", "attention", "kernels")
    )


@given(st.lists(runs(), min_size=2, max_size=8), st.data())
def test_what_is_ruled_out_really_needs_as_much_as_something_that_failed(
    candidates: list[RunSpec], data: st.DataObject
) -> None:
    rows = st.lists(st.integers(0, len(candidates) - 1), unique=True)
    failed = data.draw(rows)
    ran = [row for row in data.draw(rows) if row not in failed]
    out = too_large(sizes_of(candidates), np.array(ran, dtype=np.intp), np.array(failed, dtype=np.intp))
    assert not out[ran].any()
    blamed = [
        f
        for f in failed
        if not any(same_way(candidates[r], candidates[f]) and needs_as_much(candidates[r], candidates[f]) for r in ran)
    ]
    for row, spec in enumerate(candidates):
        expected = any(same_way(spec, candidates[f]) and needs_as_much(spec, candidates[f]) for f in blamed)
        assert out[row] == expected


def test_larger_micro_batches_less_checkpointing_less_sharding_fewer_gpus_and_smaller_ones_are_ruled_out() -> None:
    plan = TrainingPlan(micro_batch=4, sharding=Sharding.ZERO3, checkpointing=Checkpointing.FULL)
    failed = run(plan, gpus=16, gpu=gpu_named("A100-80GB"), global_batch=512)
    larger = [
        replace(failed, plan=replace(plan, micro_batch=8)),
        replace(failed, plan=replace(plan, checkpointing=Checkpointing.NONE)),
        replace(failed, plan=replace(plan, sharding=Sharding.NONE)),
        replace(failed, gpus=8),
        replace(failed, gpu=gpu_named("A100")),
    ]
    smaller = [
        replace(failed, plan=replace(plan, micro_batch=2)),
        replace(failed, gpus=32),
        replace(failed, gpu=gpu_named("H200")),
        replace(failed, plan=replace(plan, tensor=2)),
    ]
    out = too_large(sizes_of([failed, *larger, *smaller]), NOTHING, np.array([0]))
    assert list(out) == [True] * 6 + [False] * 4


def test_on_a_small_machine_small_differences_count() -> None:
    """Regression, 0.2M parameters on nodes of 0.72 GB: a failure ruled out even plans that need a quarter."""
    config = json.loads((Path(__file__).parents[4] / "examples" / "llm_fsdp2" / "config.json").read_text("utf-8"))
    node = gpu_of(Offer("narrow", 0.3, vcpus=0.45, memory_gb=0.72, network_gbps=0.2))
    plans = [
        TrainingPlan(micro_batch=size, checkpointing=kept, precision=Precision.FP32)
        for size in (4, 16, 1)
        for kept in (Checkpointing.NONE, Checkpointing.FULL)
    ]
    candidates = [run(plan, architecture_of(config), node, sequence=256) for plan in plans]
    out = too_large(sizes_of(candidates), NOTHING, np.array([0]))
    assert list(out) == [True, False, True, False, False, False]


def test_a_failure_that_something_larger_contradicts_rules_out_nothing() -> None:
    plans = [TrainingPlan(micro_batch=size) for size in (1, 2, 4, 8)]
    out = too_large(sizes_of([run(plan) for plan in plans]), np.array([3]), np.array([1]))
    assert not out.any()
