"""Examples that train a language model by a plan: what is learned does not depend on it, and each framework is told."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

import pytest

import mlcd
import mlcd_tracker
from mlcd.clouds.environment import job_variables
from mlcd.clouds.node_types import load_local_types
from mlcd.core.configuration import Choice, Offer, Space
from mlcd.planners.train.nouns import plan_of, planned_training
from mlcd.planners.train.plans.plan_variables import plan_variables
from mlcd.planners.train.plans.space import plan_space
from mlcd_tracker.plan import Plan

EXAMPLES = Path(__file__).parents[2] / "examples"
ROOT = Path(mlcd_tracker.__file__).parents[1]
MAPPED = sorted((EXAMPLES / "llm_plans").glob("*.yaml"))
TRAINED = [EXAMPLES / "llm_fsdp2" / "job.yaml", *sorted((EXAMPLES / "llm_trainer").glob("[jl]*.yaml"))]
MACHINES = Choice(Offer("p5", 55.0, 192, 2048, "H100", 8, 60.0, 80.0), (1, 2, 4))
CLOSE = 1e-4
"""Relative: sums of another order."""

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="no PyTorch: pip install -e '.[frameworks]'")
needs_trainer = pytest.mark.skipif(
    any(find_spec(each) is None for each in ("torch", "transformers", "accelerate", "peft")),
    reason="no transformers, accelerate or peft: pip install -e '.[frameworks]'",
)


# Frameworks that are not installed here: what would be started, by every plan.


@dataclass(frozen=True)
class Told:
    """Where a framework is told a field: an option, or a text with {} for the value."""

    field: str
    option: str
    words: dict[str, str] = field(default_factory=dict)

    def expected(self, value: object) -> str:
        word = self.words.get(str(value), str(value))
        return self.option.format(word) if "{}" in self.option else f"{self.option} {word}"


FULL = "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1"
SHARDS = "--use-megatron-fsdp --data-parallel-sharding-strategy "
FRAMEWORKS = {
    "torchtitan": [
        Told("tensor", "--parallelism.tensor_parallel_degree"),
        Told("context", "--parallelism.context_parallel_degree"),
        Told("micro_batch", "--training.local_batch_size"),
        Told("sharding", "--parallelism.fsdp_reshard_after_forward", {"zero2": "never", "zero3": "always"}),
        Told("checkpointing", "--activation_checkpoint.mode"),
        Told("global_batch", "--training.global_batch_size"),
    ],
    "megatron": [
        Told("tensor", "--tensor-model-parallel-size"),
        Told("pipeline", "--pipeline-model-parallel-size"),
        Told("context", "--context-parallel-size"),
        Told("micro_batch", "--micro-batch-size"),
        Told("checkpointing", "{}", {"none": "", "selective": "--recompute-granularity selective", "full": FULL}),
        Told("sharding", "{}", {"none": "", "zero2": f"{SHARDS}optim_grads ", "zero3": f"{SHARDS}optim_grads_params"}),
        Told("global_batch", "--global-batch-size"),
    ],
    "nemo": [
        Told("tensor", "model.tensor_model_parallel_size={}"),
        Told("pipeline", "model.pipeline_model_parallel_size={}"),
        Told("micro_batch", "train.micro_batch_size={}"),
        Told("checkpointing", "model.recompute_granularity={}", {"none": "null"}),
        Told("adapter", "--peft_scheme {}"),
        Told("global_batch", "train.global_batch_size={}"),
    ],
    "axolotl": [
        Told("micro_batch", "--micro-batch-size"),
        Told("accumulation", "--gradient-accumulation-steps"),
        Told("checkpointing", "{}", {"none": "--no-gradient-checkpointing", "full": " --gradient-checkpointing"}),
        Told("sharding", "--deepspeed deepspeed_configs/{}", {"zero3": "zero3_bf16"}),
        Told("adapter", "--adapter"),
    ],
    "deepspeed": [
        Told("micro_batch", '"train_micro_batch_size_per_gpu": {},'),
        Told("accumulation", '"gradient_accumulation_steps": {},'),
        Told("global_batch", '"train_batch_size": {},'),
        Told("sharding", '"stage": {},', {"none": "0", "zero2": "2", "zero3": "3"}),
        Told("checkpointing", "--checkpointing"),
    ],
}


def test_every_framework_of_the_guide_has_a_file_that_is_checked_here():
    assert {path.stem for path in MAPPED} == set(FRAMEWORKS)


@pytest.mark.parametrize("path", MAPPED, ids=lambda path: path.stem)
def test_a_framework_is_told_every_field_of_the_plan_and_keeps_the_global_batch(path: Path, tmp_path: Path):
    job = mlcd.load_job(path)
    asked = planned_training(job)
    assert asked is not None
    space = plan_space(Space((MACHINES,)), asked)
    told = FRAMEWORKS[path.stem]
    assert {knob.field for knob in asked.knobs} <= {each.field for each in told}
    configurations = list(space.configurations)
    assert len(configurations) >= 12
    step = max(1, len(configurations) // 12)
    for configuration in islice(configurations, 0, None, step):
        variables = plan_variables(job, configuration)
        words = {**{each.field: getattr(plan_of(configuration), each.field, "") for each in told}}
        words["accumulation"] = variables["MLCD_ACCUMULATION"]
        started = what_is_started(job, variables, tmp_path)
        for each in told:
            expected = each.expected(words[each.field])
            assert expected in started, (configuration, each.field)
            if not expected:  # told by leaving it out
                assert not any(word and word in started for word in each.words.values()), (configuration, each.field)
        micro, ranks = int(variables["MLCD_MICRO_BATCH"]), int(variables["MLCD_DATA_PARALLEL"])
        assert micro * ranks * int(variables["MLCD_ACCUMULATION"]) == asked.global_batch


def what_is_started(job: mlcd.Job, variables: dict[str, str], folder: Path) -> str:
    """The commands of `run:` with their arguments on one line each, and the files that it has written."""
    for name in ("torchrun", "axolotl"):
        (folder / name).write_text('#!/bin/sh\necho "$(basename $0) $*"\n', encoding="utf-8")
        (folder / name).chmod(0o755)
    environment = {**variables, **job_variables(job), "PATH": f"{folder}{os.pathsep}{os.defpath}"}
    done = subprocess.run(
        ["bash", "-euc" if "||" not in job.task["run"] and "&&" not in job.task["run"] else "-ec", job.task["run"]],
        cwd=folder, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    written = "".join(file.read_text(encoding="utf-8") for file in folder.glob("*.json"))
    return re.sub(r" +", " ", done.stdout) + written


# Those that are: the same losses by every plan.


@pytest.mark.parametrize("path", TRAINED, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_job_for_nodes_of_this_machine_has_at_least_twelve_candidates(path: Path):
    job = mlcd.load_job(path)
    asked = planned_training(job)
    assert asked is not None
    assert job.goal.limited
    types = load_local_types(path.parent / job.on.partition(":")[2].rpartition("/")[2])
    space = plan_space(Space(tuple(Choice(offer, types.nodes) for offer in types.offers)), asked)
    assert len(space.configurations) >= 12


@dataclass(frozen=True)
class Run:
    """An example by a plan, in so many processes."""

    folder: str
    ranks: int = 1
    steps: int = 3
    variables: dict[str, str] = field(default_factory=dict)

    def losses(self, kept_in: Path | None = None) -> list[float]:
        output = self.output(kept_in)
        return [float(loss) for loss in re.findall(r"(?m)(?:^step \d+, loss |'loss': ')([\d.]+)", output)]

    def output(self, kept_in: Path | None = None) -> str:
        if kept_in is not None:
            kept_in.mkdir(exist_ok=True)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        shared = {
            "PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "PYTHONPATH": str(ROOT),
            "OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "LOCAL_RANK": "0",
            "WORLD_SIZE": str(self.ranks), "MLCD_LAUNCH": "run-1", "MLCD_SEQUENCE": "16", "MLCD_GLOBAL_BATCH": "8",
            "MLCD_PRECISION": "fp32", **({"MLCD_CHECKPOINT_DIR": str(kept_in)} if kept_in else {}), **self.variables,
        }  # fmt: skip
        command = [sys.executable, "train.py", *shlex.split(f"--steps {self.steps} --save-every 2")]
        running = [
            subprocess.Popen(
                command,
                cwd=EXAMPLES / self.folder,
                env={**shared, "RANK": str(rank), "MLCD_RANK": str(rank)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for rank in range(self.ranks)
        ]
        outputs = [process.communicate(timeout=500)[0] for process in running]
        assert not any(process.returncode for process in running), "\n".join(outputs)
        return outputs[0]


def plan(micro_batch: int, sharding: str = "none", checkpointing: str = "none", **more: str) -> dict[str, str]:
    told = {"micro_batch": str(micro_batch), "sharding": sharding, "checkpointing": checkpointing, **more}
    return {f"MLCD_{name.upper()}": value for name, value in told.items()}


@needs_torch
@pytest.mark.live
def test_fsdp2_learns_the_same_by_another_plan():
    alone = Run("llm_fsdp2", variables=plan(8)).losses()
    assert len(alone) == 3
    assert alone[-1] < alone[0]
    assert Run("llm_fsdp2", 2, variables=plan(2, "zero3", "full")).losses() == pytest.approx(alone, rel=CLOSE)


@needs_torch
@pytest.mark.live
@pytest.mark.night  # at each change: that it learns the same by other ranks
def test_fsdp2_goes_on_by_more_ranks(tmp_path: Path):
    whole, kept = Run("llm_fsdp2", steps=4, variables=plan(8)).losses(), tmp_path / "kept"
    Run("llm_fsdp2", steps=2, variables=plan(8)).output(kept)
    assert Run("llm_fsdp2", 2, steps=4, variables=plan(2)).losses(kept) == pytest.approx(whole[2:], rel=CLOSE)


@needs_trainer
@pytest.mark.live
@pytest.mark.night  # at each change: the callback in tests/clouds/frameworks, and FSDP2 above
def test_the_trainer_learns_the_same_by_another_plan(tmp_path: Path):
    alone = Run("llm_trainer", variables=plan(8)).losses(tmp_path / "alone")
    assert len(alone) == 3
    assert Run("llm_trainer", 2, variables=plan(2, "none", "full")).losses(tmp_path / "two") == pytest.approx(
        alone,
        rel=1e-3,  # four digits are printed
    )


@needs_trainer
@pytest.mark.live
@pytest.mark.night
def test_the_trainer_runs_without_torchrun_too(tmp_path: Path):
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "MLCD_CHECKPOINT_DIR": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "train.py", "--steps", "1"],
        cwd=EXAMPLES / "llm_trainer",
        env=env,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr


@needs_trainer
@pytest.mark.live
@pytest.mark.night
@pytest.mark.parametrize(
    ("folder", "one", "other"),
    [
        ("llm_fsdp2", plan(4), plan(1)),
        ("llm_fsdp2", plan(1, "zero2"), plan(4, "zero2", "full")),
        ("llm_trainer", plan(4), plan(1, "zero3", "full")),
        ("llm_trainer", plan(4, adapter="lora"), plan(1, checkpointing="full", adapter="lora")),
    ],
)
def test_two_ranks_learn_the_same_by_two_plans(folder: str, one: dict[str, str], other: dict[str, str], tmp_path: Path):
    first = Run(folder, 2, variables=one).losses(tmp_path / "one")
    assert len(first) == 3
    assert Run(folder, 2, variables=other).losses(tmp_path / "other") == pytest.approx(first, rel=1e-3)


@needs_trainer
@pytest.mark.live
@pytest.mark.night
@pytest.mark.parametrize("folder", ["llm_fsdp2", "llm_trainer"])
def test_a_job_that_is_wanted_elsewhere_leaves_and_goes_on_by_another_plan(folder: str, tmp_path: Path):
    whole = Run(folder, steps=4, variables=plan(8)).losses(tmp_path / "whole")
    kept, leave = tmp_path / "kept", tmp_path / "leave"
    leave.touch()
    left = Run(folder, 2, steps=4, variables={**plan(4), "MLCD_LEAVE": str(leave)}).output(kept)
    assert "saved=8" in left.splitlines()[-1]
    leave.unlink()
    rest = Run(folder, 1, steps=4, variables=plan(2, checkpointing="full")).losses(kept)
    assert rest == pytest.approx(whole[1:], rel=1e-3)


@needs_trainer
def test_frozen_weights_are_loaded_in_the_precision_of_the_arithmetic():
    """As the memory model and the law of a step count them."""
    model_by = runpy.run_path(str(EXAMPLES / "llm_trainer" / "train.py"))["model_by"]
    for plan, kinds in (
        (Plan(adapter="lora", precision="bf16"), {("frozen", "bfloat16"), ("trained", "float32")}),
        (Plan(adapter="lora", precision="fp32"), {("frozen", "float32"), ("trained", "float32")}),
        (Plan(precision="bf16"), {("trained", "float32")}),
    ):
        weights = model_by(plan).parameters()
        found = {("trained" if each.requires_grad else "frozen", str(each.dtype)) for each in weights}
        assert found == {(what, f"torch.{kind}") for what, kind in kinds}
