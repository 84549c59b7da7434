"""Shared effects, and a model's own effects."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlcd_fixtures.training_runs import run, runs

from mlcd.planners.train.nouns import Adapter, TrainingPlan
from mlcd.planners.train.plans.run_spec import RunSpec
from mlcd.planners.train.plans.step_time_law import TERMS, terms_of
from mlcd.planners.train.plans.time_effects import Rows, kernel_words, shared_columns

TEXTBOOK = np.array(list(TERMS.values()))


def rows_of(specs: list[RunSpec], models: list[str] | None = None) -> Rows:
    return Rows(specs, models or [""] * len(specs), terms_of(specs).shares(TEXTBOOK))


@pytest.mark.parametrize(
    ("kernels", "words"),
    [
        ("", ("eager",)),
        ("foak-fast-kernels", ("foak",)),
        ("accelerated-peft-bnb-foak-liger", ("bnb", "foak", "liger")),
        ("compile+async_tp", ("compile", "async", "tp")),
        ("moe-scattermoe-granite-ep4-padding-free", ("moe", "scattermoe", "padding")),
    ],
)
def test_kernels_are_known_by_their_words(kernels: str, words: tuple[str, ...]) -> None:
    assert kernel_words(run(TrainingPlan(kernels=kernels))) == words


@given(st.lists(runs(), min_size=2, max_size=6))
@settings(max_examples=20)
def test_the_covariance_of_own_effects_is_positive_semidefinite(specs: list[RunSpec]) -> None:
    rows, every = rows_of(specs), np.arange(len(specs))
    for name, part in rows.own_parts(every, every).items():
        np.testing.assert_allclose(part, part.T, atol=1e-12, err_msg=name)
        assert np.linalg.eigvalsh(part).min() > -1e-9, name


def test_own_effects_of_different_models_are_independent() -> None:
    specs = [run(TrainingPlan(micro_batch=each)) for each in (1, 2)]
    parts = rows_of(specs, ["one", "other"]).own_parts(np.array([0]), np.array([1]))
    assert all(part == 0 for part in parts.values())


def test_samples_of_own_effects_have_the_stated_covariance() -> None:
    specs = [run(TrainingPlan(micro_batch=each, tensor=t)) for each in (1, 4) for t in (1, 8)]
    specs += [run(TrainingPlan(adapter=Adapter.LORA, kernels="foak")), run(TrainingPlan(pipeline=4), gpus=8)]
    rows, every = rows_of(specs), np.arange(len(specs))
    variances = {name: 0.01 * (i + 1) for i, name in enumerate(rows.own_parts(every[:1], every[:1]))}
    drawn = np.concatenate([rows.own_drawn(variances, 400, np.random.default_rng(seed)) for seed in range(60)])
    expected = rows.own_covariance(variances, every, every)
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    assert np.abs((drawn.T @ drawn / len(drawn) - expected) / scale).max() < 0.04


def test_each_kind_of_gpu_kernels_precision_adapter_and_code_has_effects() -> None:
    specs = [run(TrainingPlan()), run(TrainingPlan(adapter=Adapter.LORA, kernels="triton"))]
    columns, kinds = shared_columns(rows_of(specs))
    assert {"gpu H100", "kernels eager", "kernels triton", "adapter lora memory", "form gated", "form fused"} <= set(
        columns
    )
    assert columns["kernels triton"].tolist() == [0.0, 1.0]
    assert kinds["adapter lora memory"] == "adapter memory"


def test_effects_depend_only_on_the_name_of_the_gpu() -> None:
    spec = run(TrainingPlan())
    other = replace(spec, gpu=replace(spec.gpu, name="NEW"))
    one, two = (shared_columns(rows_of([each]))[0] for each in (spec, other))
    assert {name.replace("NEW", "H100") for name in two} == set(one)
