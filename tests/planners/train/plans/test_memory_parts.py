"""Memory of a training run, computed from sizes alone."""

from __future__ import annotations

from dataclasses import astuple, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlcd_fixtures.training_runs import LLAMA_8B, run, runs

from mlcd.catalog.gpus import Gpu
from mlcd.planners.modeling.architecture import Architecture, architecture_of
from mlcd.planners.train.nouns import Adapter, Checkpointing, Precision, Sharding, TrainingPlan
from mlcd.planners.train.plans.memory_parts import gated, needed_gb, room_gb, stages_gb, tied
from mlcd.planners.train.plans.run_spec import RunSpec

WEIGHTS_GB = LLAMA_8B.params_b


def small(**family: object) -> Architecture:
    sizes = {"hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32, "vocab_size": 50304}
    return architecture_of({**sizes, **family})


def test_weights_gradients_and_adam_take_16_bytes_a_parameter_in_mixed_precision_and_8_in_16_bits() -> None:
    for precision, expected in ((Precision.PURE_BF16, 8), (Precision.FP32, 16)):
        need = needed_gb(run(TrainingPlan(precision=precision)))
        assert need.weights + need.gradients + need.optimizer == pytest.approx(expected * WEIGHTS_GB)
    mixed = needed_gb(run(TrainingPlan(precision=Precision.BF16)))
    assert mixed.gradients + mixed.optimizer == pytest.approx(12 * WEIGHTS_GB)
    assert 4 * WEIGHTS_GB < mixed.weights < 6.01 * WEIGHTS_GB  # with a copy to multiply with


def test_frozen_weights_need_no_gradients() -> None:
    whole, lora = (needed_gb(run(TrainingPlan(adapter=each))) for each in (Adapter.FULL, Adapter.LORA))
    assert lora.gradients + lora.optimizer < 0.01 * (whole.gradients + whole.optimizer)
    four_bits = needed_gb(run(TrainingPlan(adapter=Adapter.QLORA)))
    assert four_bits.weights < 0.5 * lora.weights


def test_sharded_parts_shrink_with_the_number_of_ranks() -> None:
    def need(sharding: Sharding, gpus: int) -> tuple[float, float]:
        found = needed_gb(run(TrainingPlan(sharding=sharding, precision=Precision.PURE_BF16), gpus=gpus))
        return found.weights, found.gradients + found.optimizer

    assert need(Sharding.NONE, 8) == need(Sharding.NONE, 64)
    assert need(Sharding.ZERO2, 64)[0] == pytest.approx(need(Sharding.NONE, 64)[0])
    assert need(Sharding.ZERO2, 64)[1] == pytest.approx(need(Sharding.NONE, 64)[1] / 64)
    assert need(Sharding.ZERO3, 64)[0] < 0.3 * need(Sharding.ZERO2, 64)[0]


MIXTRAL = architecture_of(
    {
        "model_type": "mixtral", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000, "num_local_experts": 8,
        "num_experts_per_tok": 2,
    }
)  # fmt: skip


@pytest.mark.parametrize("expert", [1, 2, 8])
@pytest.mark.parametrize("adapter", [Adapter.FULL, Adapter.LORA])
def test_experts_under_expert_parallelism_are_not_sharded_over_the_same_ranks_again(
    expert: int, adapter: Adapter
) -> None:
    plan = TrainingPlan(expert=expert, sharding=Sharding.ZERO3, precision=Precision.PURE_BF16, adapter=adapter)
    need = needed_gb(run(plan, architecture=MIXTRAL, gpus=8))
    bytes_each = 8 if adapter is Adapter.FULL else 2
    assert 8 * (need.weights + need.gradients + need.optimizer) > 0.99 * bytes_each * MIXTRAL.params_b


def test_without_sharding_a_gpu_holds_its_part_of_the_experts() -> None:
    alone, divided = (needed_gb(run(TrainingPlan(expert=each), architecture=MIXTRAL, gpus=8)) for each in (1, 8))
    assert divided.optimizer < 0.2 * alone.optimizer


def test_logits_are_only_on_the_last_stage() -> None:
    first, last = stages_gb(run(TrainingPlan(pipeline=4, micro_batch=8), gpus=4))
    assert first.logits == 0 < last.logits
    assert last.logits > 8 * 2048 * 128256 * 4 / 1e9


def test_the_first_stage_holds_the_micro_batches_in_flight() -> None:
    first, last = stages_gb(run(TrainingPlan(pipeline=4, micro_batch=4), gpus=4))
    assert first.saved == pytest.approx(4 * last.saved)


def test_stored_attention_scores_grow_with_the_square_of_the_sequence() -> None:
    def saved(attention: str, sequence: int) -> float:
        return needed_gb(run(TrainingPlan(attention=attention), sequence=sequence)).saved

    assert saved("flash", 8192) == pytest.approx(4 * saved("flash", 2048))
    assert saved("eager", 8192) > 8 * saved("eager", 2048)


@pytest.mark.parametrize("with_gate", [True, False])
@pytest.mark.parametrize("one_table", [True, False])
def test_gates_and_tied_embeddings_are_inferred_from_the_number_of_parameters(with_gate: bool, one_table: bool) -> None:
    family = {"model_type": "llama" if with_gate else "gpt_neox", "intermediate_size": 8192}
    sizes = small(**family, tie_word_embeddings=one_table)
    assert (gated(sizes), tied(sizes)) == (with_gate, one_table)


MORE = {
    "micro_batch": lambda spec: replace(spec, plan=replace(spec.plan, micro_batch=2 * spec.plan.micro_batch),
                                         global_batch=2 * spec.global_batch),
    "sequence": lambda spec: replace(spec, sequence=2 * spec.sequence),
    "kept": lambda spec: replace(spec, plan=replace(spec.plan, checkpointing=Checkpointing.NONE)),
    "state": lambda spec: replace(spec, plan=replace(spec.plan, sharding=Sharding.ZERO2)),
}  # fmt: skip


@given(runs(), st.sampled_from(sorted(MORE)))
def test_a_larger_plan_takes_no_less(spec: RunSpec, more: str) -> None:
    """With two ranks or few layers a stage, zero3 may save less than the gathered layers take."""
    many = spec.data_parallel >= 4 and spec.plan.pipeline == 1
    if more == "state" and not (many and spec.plan.sharding is Sharding.ZERO3):
        return
    assert needed_gb(MORE[more](spec)).total >= needed_gb(spec).total * (1 - 1e-12)


@given(runs())
def test_every_part_of_every_plan_is_finite_and_not_negative(spec: RunSpec) -> None:
    assert all(0 <= value < 1e6 for stage in stages_gb(spec) for value in astuple(stage))


def test_on_a_cpu_the_memory_of_the_node_counts() -> None:
    tiny = small(model_type="llama", hidden_size=64, num_hidden_layers=2, num_attention_heads=4, vocab_size=256)
    cpu = Gpu("cpu", memory_gb=2.0, bandwidth_gb_s=20, tflops_bf16=0.1)
    need = needed_gb(run(TrainingPlan(precision=Precision.FP32), architecture=tiny, gpu=cpu, sequence=128))
    assert 0.5 < need.total < 2.0
    assert room_gb(run(TrainingPlan(), architecture=tiny, gpu=cpu)) == 2.0  # what local nodes are limited to
    assert room_gb(run(TrainingPlan())) == pytest.approx(80 * 1.0737, rel=1e-3)
