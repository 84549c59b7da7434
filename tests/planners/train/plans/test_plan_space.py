"""The space of types x nodes x plans has every possible plan and no other."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlcd_fixtures.planned import LLAMA_8B, machines, nodes_of, planned_task

from mlcd.core.configuration import Configuration
from mlcd.core.errors import UserError
from mlcd.planners.modeling.architecture import Architecture
from mlcd.planners.train.nouns import (
    Adapter,
    Checkpointing,
    PlanKnob,
    PlannedTraining,
    Precision,
    Sharding,
    TrainingPlan,
    accumulation,
    data_parallel,
    plan_of,
)
from mlcd.planners.train.plans.run_spec import gpu_of, run_spec_of, trainable_parameters
from mlcd.planners.train.plans.space import plan_space

COUNTS = st.sampled_from([(1,), (2,), (1, 2), (1, 2, 4, 8), (3, 6)])


@st.composite
def tasks(draw: st.DrawFn) -> PlannedTraining:
    heads, kv_heads, layers = draw(st.sampled_from([(32, 8, 32), (12, 12, 6), (16, 1, 24), (6, 2, 7)]))
    model = Architecture(1.0, 1.0, layers, 64 * heads, heads, kv_heads, 64, 32_000, dense_hidden=4, dense_layers=layers)
    knobs = [
        PlanKnob("tensor", draw(COUNTS)),
        PlanKnob("pipeline", draw(COUNTS)),
        PlanKnob("micro_batch", draw(COUNTS)),
        PlanKnob("context", draw(st.sampled_from([(1,), (1, 2)]))),
        PlanKnob("sharding", draw(st.sampled_from([("none",), ("none", "zero2", "zero3"), ("zero3",)]))),
    ]
    batch = draw(st.sampled_from([1, 6, 48, 64, 100, 256]))
    across = draw(st.booleans())
    return PlannedTraining(model, 1_024, batch, tuple(knobs), TrainingPlan(), across_nodes=across)


def can_be(task: PlannedTraining, plan: TrainingPlan, nodes: int, gpus: int) -> bool:
    """By brute force: assign ranks and sequences one by one."""
    model, tp, pp = task.architecture, plan.tensor, plan.pipeline
    ranks, left = divmod(nodes * gpus, tp * pp * plan.context)
    if left or ranks == 0 or model.layers % pp or model.heads % tp:
        return False
    if model.kv_heads > 1 and model.kv_heads % tp:
        return False
    groups = [range(i * tp, (i + 1) * tp) for i in range(nodes * gpus // tp)]
    crossing = [group for group in groups if group[0] // gpus != group[-1] // gpus]
    if crossing and (not task.across_nodes or len(crossing) < len(groups) or tp % gpus):
        return False
    shared = [0] * ranks
    for sequence in range(task.global_batch):
        shared[sequence % ranks] += 1
    if len(set(shared)) > 1 or shared[0] % plan.micro_batch:
        return False
    sharding = next(knob.values for knob in task.knobs if knob.field == "sharding")
    return ranks * plan.context > 1 or plan.sharding is Sharding.NONE or "none" not in sharding


@given(task=tasks(), gpus=st.sampled_from([1, 2, 4, 6, 8]))
def test_the_space_has_every_possible_plan_and_no_other(task: PlannedTraining, gpus: int):
    offer = replace(nodes_of("H100", 1), instance_type="any", accelerators=gpus)
    wanted = {
        (nodes, values)
        for nodes in (1, 2, 3, 4)
        for values in product(*(knob.values for knob in task.knobs))
        if can_be(task, _plan(task, values), nodes, gpus)
    }
    try:
        found = plan_space(machines(offer), task).configurations
    except UserError:
        assert not wanted
        return
    fields = [knob.field for knob in task.knobs]
    assert {(c.nodes, tuple(getattr(plan_of(c), each) for each in fields)) for c in found} == wanted
    assert len(set(found)) == len(found) == len({str(c) for c in found})


def _plan(task: PlannedTraining, values: tuple[str | int, ...]) -> TrainingPlan:
    tensor, pipeline, micro_batch, context, sharding = values
    return TrainingPlan(int(tensor), int(pipeline), int(micro_batch), Sharding(sharding), context=int(context))


@given(task=tasks(), gpus=st.sampled_from([1, 2, 4, 8]))
def test_the_global_batch_is_the_same_on_any_machines(task: PlannedTraining, gpus: int):
    offer = replace(nodes_of("H100", 1), instance_type="any", accelerators=gpus)
    try:
        found = plan_space(machines(offer), task).configurations
    except UserError:
        return
    for c in found:
        plan = plan_of(c)
        assert plan is not None
        ranks = data_parallel(plan, c.nodes, offer)
        assert ranks * plan.micro_batch * accumulation(plan, c.nodes, offer) == task.global_batch
        spec = run_spec_of(c, task)
        assert spec.data_parallel * plan.micro_batch * spec.accumulation == task.global_batch


def test_nodes_without_gpus_are_used_only_if_there_are_no_others():
    cpu = replace(nodes_of("H100", 1), instance_type="cpu", accelerator="", accelerators=0)
    only = planned_task(knobs=(PlanKnob("micro_batch", (1,)),))
    assert {offer.instance_type for offer in plan_space(machines(cpu, nodes_of("H100", 8)), only).offers} == {"8xH100"}
    assert {offer.instance_type for offer in plan_space(machines(cpu), only).offers} == {"cpu"}


def test_a_precision_is_not_tried_on_gpus_without_it():
    old, new = nodes_of("V100", 8), nodes_of("H100", 8)
    knobs = (PlanKnob("micro_batch", (1,)), PlanKnob("precision", ("bf16", "fp16", "fp8")))
    space = plan_space(machines(old, nodes_of("A100-80GB", 8), new), planned_task(knobs=knobs))
    precisions = {
        offer.accelerator: {plan_of(c).precision for c in space.configurations if c.offer is offer}  # type: ignore[union-attr]
        for offer in space.offers
    }
    assert precisions == {
        "V100": {Precision.FP16},
        "A100-80GB": {Precision.BF16, Precision.FP16},
        "H100": {Precision.BF16, Precision.FP16, Precision.FP8},
    }


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"knobs": (PlanKnob("tensor", (16,)),)}, "plan: tensor 16 does not divide the 32 heads and 8 key-value heads"),
        ({"knobs": (PlanKnob("tensor", (8,)),)}, "plan: tensor 8: no node here has more than 4 GPUs; or say "
         "`across_nodes: true`"),
        ({"knobs": (PlanKnob("precision", ("fp8",)),)}, "plan: no GPU here has fp8; say `precision: bf16` if "
         "the script accepts it, or name other types: mlcd offers"),
        ({"global_batch": 7}, "plan: a global batch of 7 in micro-batches of 1 cannot be shared equally by any of "
         "4 to 16 GPUs; change global_batch"),
    ],
)  # fmt: skip
def test_an_empty_space_gives_an_error_of_one_line(changes: dict[str, object], message: str):
    task = replace(planned_task(knobs=(PlanKnob("micro_batch", (1,)),)), **changes)  # type: ignore[arg-type]
    with pytest.raises(UserError) as caught:
        plan_space(machines(nodes_of("A100-80GB", 4)), task)
    assert str(caught.value) == message


def test_words_of_a_plan_name_the_micro_batch_and_what_is_not_default():
    offer = nodes_of("A100-80GB", 8)
    plan = TrainingPlan(4, 2, 8, Sharding.ZERO3)
    assert str(Configuration(offer, 2, plan)) == "2 x 8xA100-80GB, tp 4, pp 2, micro-batch 8, zero3"
    assert str(Configuration(offer, 1, TrainingPlan())) == "1 x 8xA100-80GB, micro-batch 1"
    rest = TrainingPlan(checkpointing=Checkpointing.FULL, adapter=Adapter.QLORA, precision=Precision.FP8, context=2)
    assert str(Configuration(offer, 1, rest)) == "1 x 8xA100-80GB, cp 2, micro-batch 1, qlora, full checkpointing, fp8"


def test_an_adapter_has_the_parameters_of_its_rank():
    assert trainable_parameters(LLAMA_8B, Adapter.LORA, 16) == pytest.approx(41.9e6, rel=0.01)  # as peft prints it
    assert trainable_parameters(LLAMA_8B, Adapter.FULL, 16) == LLAMA_8B.params_b * 1e9


def test_a_run_spec_has_the_memory_and_the_network_of_the_offer():
    part = replace(nodes_of("A100-80GB", 8), accelerator_memory_gb=40.0, network_gbps=400.0)
    assert (gpu_of(part).memory_gb, gpu_of(part).network_gb_s) == (40.0, 6.25)
    assert gpu_of(nodes_of("A10G", 1)).memory_gb == 22.5  # less than its name says
    unknown = gpu_of(replace(part, accelerator="Riva", tflops_per_accelerator=3.0))
    assert (unknown.name, unknown.memory_gb, unknown.tflops_bf16) == ("Riva", 40.0, 3.0)
    node = gpu_of(replace(part, accelerator="", accelerators=0))
    assert (node.name, node.memory_gb) == ("cpu", 64.0)


def test_fp32_uses_tf32_on_gpus_that_have_it() -> None:
    assert gpu_of(nodes_of("A100-80GB", 8)).tflops("fp32") == 156.0
    assert gpu_of(nodes_of("V100", 8)).tflops("fp32") == 15.7
    unknown = replace(nodes_of("V100", 1), accelerator="Riva", tflops_per_accelerator=3.0)
    assert gpu_of(unknown).tflops("fp32") == 3.0
    cpus = replace(unknown, accelerator="", accelerators=0)
    assert gpu_of(cpus).tflops("fp32") == cpus.tflops


def test_context_parallel_ranks_can_shard_the_weights() -> None:
    long = TrainingPlan(context=8, sharding=Sharding.ZERO3, global_batch=1, least_ranks=2)
    assert long.suits(1, nodes_of("H100", 8))
    assert not replace(long, context=1, tensor=8).suits(1, nodes_of("H100", 8))


def test_an_error_about_sharing_the_batch_considers_only_gpus_with_the_precision() -> None:
    task = planned_task(knobs=(PlanKnob("micro_batch", (1,)),), global_batch=7)
    gpus = machines(nodes_of("V100", 1), nodes_of("H100", 8))
    with pytest.raises(UserError, match="cannot be shared equally by any of 8 to 32 GPUs"):
        plan_space(gpus, task)


def test_plans_that_fit_no_number_of_gpus_are_named_in_the_error() -> None:
    task = planned_task(knobs=(PlanKnob("pipeline", (16, 32)), PlanKnob("tensor", (4,)), PlanKnob("micro_batch", (1,))))
    with pytest.raises(UserError, match="is at least 64, and none of 8 to 32 GPUs is a multiple"):
        plan_space(machines(nodes_of("H100", 8)), task)


def test_an_error_names_a_single_number_of_gpus_without_a_range() -> None:
    one = machines(nodes_of("H100", 8), nodes=(1,))
    with pytest.raises(UserError, match="cannot be shared equally by 8 GPUs; change"):
        plan_space(one, planned_task(knobs=(PlanKnob("micro_batch", (1,)),), global_batch=7))
    with pytest.raises(UserError, match="is at least 16, and 8 GPUs are no multiple; name more nodes"):
        plan_space(one, planned_task(knobs=(PlanKnob("pipeline", (16,)), PlanKnob("micro_batch", (1,)))))


def test_the_error_for_older_gpus_suggests_a_precision_that_they_have() -> None:
    with pytest.raises(UserError, match="no GPU here has bf16; say `precision: fp16` if the script accepts it, or"):
        plan_space(machines(nodes_of("V100", 8)), planned_task(knobs=(PlanKnob("micro_batch", (1,)),)))
