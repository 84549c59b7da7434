"""What the script is told of its plan, on every backend alike."""

from __future__ import annotations

from mlcd_fixtures.planned import asked, nodes_of, planned_job

from mlcd.clouds.platforms import scaling_environment
from mlcd.core.configuration import Configuration
from mlcd.core.job import Job
from mlcd.planners.train.nouns import Adapter, Checkpointing, PlanKnob, Sharding, TrainingPlan
from mlcd.planners.train.plans.told import plan_variables

PLAN = TrainingPlan(4, 2, 8, Sharding.ZERO3, Checkpointing.FULL, global_batch=256)
WHERE = Configuration(nodes_of("A100-80GB", 8), 2, PLAN)


def test_a_launch_is_told_its_plan_by_the_names_of_the_job_and_by_our_own():
    told = plan_variables(planned_job(), WHERE)
    assert {name: told[name] for name in ("TP", "PP", "ZERO", "CKPT")} == {
        "TP": "4", "PP": "2", "ZERO": "zero3", "CKPT": "full",
    }  # fmt: skip
    assert told["MLCD_ARGUMENTS"] == "--micro-batch 8"
    own = {name.removeprefix("MLCD_").lower(): value for name, value in told.items() if name.startswith("MLCD_")}
    del own["arguments"]
    assert own == {
        "tensor": "4", "pipeline": "2", "micro_batch": "8", "sharding": "zero3", "checkpointing": "full",
        "adapter": "full", "precision": "bf16", "context": "1", "expert": "1",
        "data_parallel": "2", "accumulation": "16", "global_batch": "256", "sequence": "4096",
    }  # fmt: skip


def test_an_adapter_is_told_its_rank():
    plan = TrainingPlan(adapter=Adapter.LORA, global_batch=256)
    assert plan_variables(planned_job(asked(lora_rank=8)), Configuration(nodes_of("H100", 1), 1, plan))[
        "MLCD_LORA_RANK"
    ] == "8"  # fmt: skip


def test_the_script_hears_its_own_words_and_arguments_of_any_form():
    knobs = (
        PlanKnob("sharding", ("none", "zero3"), argument="--stage", told=("0", "3")),
        PlanKnob("micro_batch", (8,), argument="train.micro_batch="),
    )
    told = plan_variables(planned_job(asked(knobs=knobs)), WHERE)
    assert told["MLCD_ARGUMENTS"] == "--stage 3 train.micro_batch=8"
    assert told["MLCD_SHARDING"] == "zero3"


def test_a_job_without_a_plan_is_told_nothing():
    assert plan_variables(Job("other", 1.0), Configuration(nodes_of("H100", 1), 1)) == {}


def test_every_backend_tells_the_same():
    assert scaling_environment(planned_job(), WHERE) == plan_variables(planned_job(), WHERE)
