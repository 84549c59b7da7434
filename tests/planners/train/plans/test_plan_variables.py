"""Variables and arguments that pass the plan to the script, the same on every backend."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from mlcd_fixtures.planned import nodes_of, planned_job, planned_task

from mlcd.clouds.frameworks import scaling_environment
from mlcd.clouds.live_job import LiveJob, Timeouts
from mlcd.clouds.skypilot.task import task_of
from mlcd.core.backend import Launch, Purpose
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Configuration
from mlcd.core.job import Job
from mlcd.planners.train.nouns import Adapter, Checkpointing, PlanKnob, Sharding, TrainingPlan
from mlcd.planners.train.plans.plan_variables import plan_variables

PLAN = TrainingPlan(4, 2, 8, Sharding.ZERO3, Checkpointing.FULL, global_batch=256)
WHERE = Configuration(nodes_of("A100-80GB", 8), 2, PLAN)


def test_a_launch_gets_the_plan_in_the_jobs_own_variables_and_in_ours():
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


def test_a_launch_with_an_adapter_gets_its_rank():
    plan = TrainingPlan(adapter=Adapter.LORA, global_batch=256)
    assert plan_variables(planned_job(planned_task(lora_rank=8)), Configuration(nodes_of("H100", 1), 1, plan))[
        "MLCD_LORA_RANK"
    ] == "8"  # fmt: skip


def test_the_script_gets_its_own_words_and_arguments_of_any_form():
    knobs = (
        PlanKnob("sharding", ("none", "zero3"), argument="--stage", told=("0", "3")),
        PlanKnob("micro_batch", (8,), argument="train.micro_batch="),
    )
    told = plan_variables(planned_job(planned_task(knobs=knobs)), WHERE)
    assert told["MLCD_ARGUMENTS"] == "--stage 3 train.micro_batch=8"
    assert told["MLCD_SHARDING"] == "zero3"


def test_a_job_without_a_plan_gets_no_variables():
    assert plan_variables(Job("other", 1.0), Configuration(nodes_of("H100", 1), 1)) == {}


@dataclass
class Shell:
    """A fake of two machines that run a command at once."""

    addresses: tuple[str, ...] = ("10.0.0.1", "10.0.0.2")
    said: list[str] = field(default_factory=list)

    def start(self, node: int, command: str, environment: Mapping[str, str]) -> Shell:
        variables = {"PATH": "/usr/bin:/bin", **environment}
        done = subprocess.run(["bash", "-c", command], env=variables, capture_output=True, text=True, check=True)
        self.said.append(done.stdout.strip())
        return self

    def status(self) -> int | None:
        return 0

    def read(self) -> str:
        return ""

    def end(self) -> None:
        return None


def test_every_node_of_a_live_job_runs_the_command_with_its_plan():
    job = replace(planned_job(), task={"run": "echo $TP $MLCD_ACCUMULATION $MLCD_ARGUMENTS"})
    launch, machines = Launch("told-1", WHERE, Purpose.PROBE, 1.0, 60.0, 1), Shell()
    clock = VirtualClock()
    list(LiveJob(job, launch, machines, clock, Timeouts(9.0, 9.0), 0.0).events())
    assert machines.said == ["4 16 --micro-batch 8"] * 2


def test_an_exported_skypilot_task_has_the_same_variables(tmp_path: Path):
    launch = Launch("told-1", WHERE, Purpose.PROBE, 1.0, None, 1)
    task = task_of(planned_job(), launch, "cluster", tmp_path, 0.0)
    assert plan_variables(planned_job(), WHERE).items() <= task["envs"].items()
    assert scaling_environment(planned_job(), WHERE) == plan_variables(planned_job(), WHERE)
