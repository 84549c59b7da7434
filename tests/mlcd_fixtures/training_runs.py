"""Training runs of made-up language models, for tests of their time and memory."""

from __future__ import annotations

from hypothesis import strategies as st

from mlcd.catalog.gpus import Gpu, gpu_named
from mlcd.planners.modeling.architecture import Architecture, architecture_of
from mlcd.planners.train.nouns import Adapter, Checkpointing, Precision, Sharding, TrainingPlan
from mlcd.planners.train.plans.run_spec import RunSpec

LLAMA_8B = architecture_of(
    {
        "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256,
    }
)  # fmt: skip


def run(
    plan: TrainingPlan,
    architecture: Architecture = LLAMA_8B,
    gpu: Gpu | None = None,
    gpus: int = 1,
    sequence: int = 2048,
    global_batch: int = 64,
) -> RunSpec:
    """One that could be."""
    trainable = 1e9 * architecture.params_b if plan.adapter is Adapter.FULL else 2e7
    return RunSpec(architecture, sequence, global_batch, gpu or gpu_named("H100"), gpus, 8, plan, trainable)


@st.composite
def plans(draw: st.DrawFn) -> TrainingPlan:
    """Any plan."""
    return TrainingPlan(
        tensor=draw(st.sampled_from([1, 2, 4])),
        pipeline=draw(st.sampled_from([1, 2, 4])),
        micro_batch=draw(st.sampled_from([1, 2, 4, 8])),
        sharding=draw(st.sampled_from(Sharding)),
        checkpointing=draw(st.sampled_from(Checkpointing)),
        adapter=draw(st.sampled_from(Adapter)),
        precision=draw(st.sampled_from(Precision)),
        attention=draw(st.sampled_from(["flash", "eager"])),
    )


@st.composite
def runs(draw: st.DrawFn) -> RunSpec:
    """Any run of one model."""
    gpu = gpu_named(draw(st.sampled_from(["A100", "A100-80GB", "H200"])))
    gpus = draw(st.sampled_from([16, 32, 64]))
    return run(draw(plans()), gpu=gpu, gpus=gpus, sequence=draw(st.sampled_from([512, 2048, 8192])), global_batch=512)
