"""The step-time law, compared with textbook results."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlcd.catalog.gpus import gpu_named
from mlcd.planners.modeling.architecture import Architecture
from mlcd.planners.train.nouns import Adapter, Checkpointing, Precision, Sharding, TrainingPlan
from mlcd.planners.train.plans.belief import expected_steps
from mlcd.planners.train.plans.run_spec import RunSpec
from mlcd.planners.train.plans.step_terms import LESS_USED, USUAL_TFLOPS, embeddings
from mlcd.planners.train.plans.step_time_law import PARTS, TERMS, terms_of

LLAMA_8B = Architecture(8.03, 8.03, 32, 4096, 32, 8, 128, 128256, 131072, 14336, 32, full_layers=32)
GPT2 = Architecture(0.124, 0.124, 12, 768, 12, 12, 64, 50257, 1024, 3072, 12, full_layers=12)
EXPERTS = Architecture(
    46.7, 12.9, 32, 4096, 32, 8, 128, 32000, experts=8, experts_per_token=2, expert_hidden=14336, full_layers=32
)
BASE = RunSpec(LLAMA_8B, 2048, 256, gpu_named("A100-80GB"), 8, 8, TrainingPlan(), 8.03e9)
TEXTBOOK = np.array(list(TERMS.values()))


def step_s(spec: RunSpec) -> float:
    return float(np.exp(terms_of([spec]).log_step(TEXTBOOK)[0]))


def terms(spec: RunSpec) -> dict[str, float]:
    return dict(zip(TERMS, terms_of([spec]).values[0], strict=True))


def planned(spec: RunSpec = BASE, **knobs: object) -> RunSpec:
    return replace(spec, plan=replace(spec.plan, **knobs))  # type: ignore[arg-type]


@st.composite
def runs(draw: st.DrawFn) -> RunSpec:
    sizes = draw(st.sampled_from([LLAMA_8B, GPT2, EXPERTS]))
    adapter = draw(st.sampled_from(Adapter))
    plan = TrainingPlan(
        tensor=draw(st.sampled_from([1, 2, 4, 8, 16])),
        pipeline=draw(st.sampled_from([1, 2, 4])),
        micro_batch=draw(st.sampled_from([1, 2, 8])),
        sharding=draw(st.sampled_from(Sharding)),
        checkpointing=draw(st.sampled_from(Checkpointing)),
        adapter=adapter,
        precision=draw(st.sampled_from(Precision)),
        context=draw(st.sampled_from([1, 2])),
        attention=draw(st.sampled_from(["flash", "megatron_softmax"])),
        kernels=draw(st.sampled_from(["", "compile", "megatron", "foak-fast-kernels"])),
    )
    gpu = gpu_named(draw(st.sampled_from(["A100", "H100", "H200", "L4", "B200"])))
    gpus = plan.tensor * plan.pipeline * plan.context * draw(st.sampled_from([1, 2, 8]))
    trainable = 1e9 * sizes.params_b if adapter is Adapter.FULL else 1e7
    return RunSpec(sizes, draw(st.sampled_from([512, 4096])), 64, gpu, gpus, 8, plan, trainable)


@given(runs())
@settings(max_examples=60)
def test_no_term_is_negative_and_each_share_is_the_elasticity_of_the_step(spec: RunSpec) -> None:
    found = terms_of([spec])
    assert (found.values >= 0).all()
    assert np.isfinite(found.log_step(TEXTBOOK)).all()
    shares = found.shares(TEXTBOOK)[0]
    for i in range(len(TERMS)):
        more, less = TEXTBOOK.copy(), TEXTBOOK.copy()
        more[i], less[i] = more[i] * 1.001, less[i] / 1.001
        slope = (found.log_step(more) - found.log_step(less))[0] / (2 * np.log(1.001))
        assert shares[i] == pytest.approx(slope, abs=1e-5)


@given(runs())
@settings(max_examples=60)
def test_more_work_takes_longer(spec: RunSpec) -> None:
    assert step_s(replace(spec, global_batch=2 * spec.global_batch)) >= step_s(spec)
    again = [step_s(planned(spec, checkpointing=each)) for each in Checkpointing]
    assert again == sorted(again)
    assert step_s(replace(spec, sequence=2 * spec.sequence)) > step_s(spec)


def test_full_training_takes_six_operations_a_parameter_and_token() -> None:
    spec = planned(replace(BASE, gpus=1), micro_batch=4)
    operations = terms(spec)["matmul"] * 1e12 * 312 * (USUAL_TFLOPS / 312) ** LESS_USED["matmul"]
    multiplied = 8.03e9 - LLAMA_8B.vocab * LLAMA_8B.hidden  # the first layer looks up
    assert operations == pytest.approx(6 * multiplied * 4 * 2048, rel=0.01)


def test_an_adapter_saves_weight_gradients_and_the_optimizer() -> None:
    full, adapter = terms(BASE), terms(replace(planned(adapter=Adapter.LORA), trainable=1e7))
    assert adapter["matmul"] == pytest.approx(full["matmul"] * 2 / 3, rel=0.01)
    assert adapter["optimizer"] < 0.01 * full["optimizer"]
    assert adapter["gradients"] < 0.01 * full["gradients"]


def pipeline_slots(stages: int, micro_batches: int) -> int:
    """Simulated pipeline: time slots until all micro-batches have passed all stages, one at a time on each."""
    done = [[-1] * micro_batches for _ in range(stages)]
    for stage in range(stages):
        free = 0
        for batch in range(micro_batches):
            before = done[stage - 1][batch] if stage else 0
            free = max(free, before) + 1
            done[stage][batch] = free
    return done[-1][-1]


@pytest.mark.parametrize(("stages", "micro_batches"), [(1, 4), (2, 1), (4, 8), (8, 3)])
def test_the_pipeline_bubble_agrees_with_a_simulated_pipeline(stages: int, micro_batches: int) -> None:
    only = np.array([float(name in ("matmul", "bubble", "sharpness")) for name in TERMS])
    spec = planned(replace(BASE, gpus=stages, global_batch=micro_batches), pipeline=stages)
    one = terms(spec)["matmul"]
    assert np.exp(terms_of([spec]).log_step(only)[0]) == pytest.approx(one * pipeline_slots(stages, micro_batches))


def test_tensor_parallelism_uses_nvlink_inside_a_machine_and_the_network_between_machines() -> None:
    alone, inside, beyond = (terms(planned(replace(BASE, gpus=16), tensor=width)) for width in (1, 8, 16))
    assert alone["tensor"] == alone["tensor_calls"] == 0
    assert inside["tensor"] > 0 == inside["tensor_network"]
    assert beyond["tensor_network"] > 0


def test_zero3_gathers_weights_for_each_micro_batch_and_then_has_no_gradients_to_exchange() -> None:
    none, sharded = terms(BASE), terms(planned(sharding=Sharding.ZERO3))
    assert none["gathers"] == 0 == sharded["gradients"]
    assert none["gradients"] > 0
    moved = 3 * 2 * (8.03e9 - embeddings(LLAMA_8B)) * 7 / 8  # bytes: twice the weights, once the gradients
    assert sharded["gathers"] == pytest.approx(moved / 300e9, rel=0.01)


def test_gradients_between_machines_use_all_adapters_of_a_machine() -> None:
    far = terms(replace(BASE, gpus=16))["gradients_network"]
    assert far == pytest.approx(2 * 2 * 8.03e9 * (1 / 2) / (8 * 6.2e9), rel=0.01)


def test_separate_expert_kernels_take_host_time_and_grouped_ones_do_not() -> None:
    spec = replace(BASE, architecture=EXPERTS)
    assert terms(spec)["expert_kernels"] > 0 == terms(planned(spec, kernels="moe-scattermoe"))["expert_kernels"]
    assert terms(BASE)["expert_layers"] == 0


def test_a_small_micro_batch_waits_for_the_host() -> None:
    small = replace(BASE, architecture=GPT2, sequence=128, gpus=1)
    shares = dict(zip(TERMS, terms_of([small]).shares(TEXTBOOK)[0], strict=True))
    assert sum(shares[name] for name in PARTS["host"]) > 0.8


def test_the_parts_contain_every_term_once() -> None:
    assert sorted(name for part in PARTS.values() for name in part) == sorted(TERMS)


def test_embeddings_are_inferred_from_the_number_of_parameters() -> None:
    assert embeddings(GPT2) == pytest.approx(50257 * 768, rel=0.05)  # the last layer is the first one
    assert embeddings(LLAMA_8B) == pytest.approx(2 * 128256 * 4096, rel=0.01)


def test_gradients_of_parallel_experts_are_reduced_over_fewer_ranks() -> None:
    alone = replace(BASE, architecture=EXPERTS, trainable=1e9 * EXPERTS.params_b)
    divided = planned(alone, expert=8)
    assert terms(divided)["gradients"] < 0.2 * terms(alone)["gradients"]
    assert terms(divided)["optimizer"] < 0.2 * terms(alone)["optimizer"]
    sharded, both = (planned(each, sharding=Sharding.ZERO2) for each in (alone, divided))
    assert terms(both)["optimizer"] == pytest.approx(terms(sharded)["optimizer"])


def test_tensor_parallelism_divides_the_keys_exchanged_by_context_parallelism() -> None:
    apart = planned(replace(BASE, gpus=8), context=2)
    assert terms(planned(apart, tensor=4))["context"] == pytest.approx(terms(apart)["context"] / 4)


def test_context_parallel_ranks_shard_and_gather_weights_too() -> None:
    whole = planned(replace(BASE, gpus=8), context=8, sharding=Sharding.ZERO3)
    assert terms(whole)["gathers"] == pytest.approx(terms(planned(BASE, sharding=Sharding.ZERO3))["gathers"])


def test_frozen_weights_are_never_cast() -> None:
    whole = terms(planned(precision=Precision.BF16))
    adapted = terms(replace(planned(precision=Precision.BF16, adapter=Adapter.LORA), trainable=1e7))
    assert min(whole["casts"], whole["cast_layers"]) > 0
    assert adapted["casts"] == adapted["cast_layers"] == 0


def test_activations_are_cast_exactly_if_the_memory_model_casts_them() -> None:
    for sharding in Sharding:
        found = terms(planned(precision=Precision.BF16, sharding=sharding))
        assert (found["cast_activations"] > 0) == (sharding is Sharding.NONE)
        assert found["cast_layers"] > 0


VIT = Architecture(0.086, 0.086, 12, 768, 12, 12, 64, 0, dense_hidden=3072, dense_layers=12, full_layers=12)


@pytest.mark.parametrize("model, sequence", [(GPT2, 1024), (VIT, 197)])
@pytest.mark.parametrize(
    "micro_batch, precision",
    [(1, Precision.BF16), (1, Precision.PURE_BF16), (8, Precision.PURE_BF16), (32, Precision.PURE_BF16)],
)
def test_sharding_gpus_are_together_no_faster_than_independent_ones(
    model: Architecture, sequence: int, micro_batch: int, precision: Precision
) -> None:
    """Except large micro-batches in mixed precision, since sharded code keeps activations in 16 bits."""
    plan = TrainingPlan(micro_batch=micro_batch, precision=precision)
    alone = RunSpec(model, sequence, 256, gpu_named("H100"), 1, 1, plan, 1e9 * model.params_b)
    sharded = replace(alone, gpus=2, plan=replace(plan, sharding=Sharding.ZERO3))
    one_s, two_s = expected_steps([alone, sharded])
    assert 2 * two_s >= one_s
