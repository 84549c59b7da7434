"""Scripts read their training plan from the environment, and all workers of a job exit in the same step."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mlcd_tracker
from mlcd.core.configuration import Configuration, Offer
from mlcd.core.job import Goal, Job
from mlcd.planners.modeling.architecture import architecture_of
from mlcd.planners.train.nouns import (
    Adapter,
    Checkpointing,
    PlannedTraining,
    Precision,
    Sharding,
    TrainingPlan,
    data_parallel,
)
from mlcd.planners.train.plans.plan_variables import plan_variables
from mlcd_tracker.plan import Plan

ROOT = Path(mlcd_tracker.__file__).parents[1]
SIZES = {"hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4, "vocab_size": 256}
POWERS = st.sampled_from([1, 2, 4])

PLANS = st.builds(
    TrainingPlan,
    tensor=POWERS,
    pipeline=POWERS,
    micro_batch=POWERS,
    sharding=st.sampled_from(Sharding),
    checkpointing=st.sampled_from(Checkpointing),
    adapter=st.sampled_from(Adapter),
    precision=st.sampled_from(Precision),
    global_batch=st.just(64),
)


@given(plan=PLANS, nodes=POWERS)
def test_the_tracker_reads_the_plan_from_the_environment(plan: TrainingPlan, nodes: int):
    offer = Offer("node", 8.0, 64, 512, "H100", 8)
    ranks = data_parallel(plan, nodes, offer)
    if not ranks or 64 % (ranks * plan.micro_batch):
        return
    asked = PlannedTraining(architecture_of(SIZES), 128, 64, lora_rank=8)
    job = Job("job", 1e4, Goal(), ask=asked)
    variables = plan_variables(job, Configuration(offer, nodes, plan))
    told = Plan.told(variables, lora_rank=8)
    for name in ("micro_batch", "sharding", "checkpointing", "adapter", "precision", "tensor", "pipeline"):
        assert getattr(told, name) == getattr(plan, name)
    assert (told.global_batch, told.lora_rank) == (64, 8)
    assert told.accumulation(ranks) == int(variables["MLCD_ACCUMULATION"])


def test_without_variables_the_scripts_own_values_hold():
    assert Plan.told({}, micro_batch=4, global_batch=32, precision="fp32") == Plan(4, 32, precision="fp32")


def test_the_batch_of_an_elastic_job_overrides_the_fixed_one():
    assert Plan.told({"MLCD_GLOBAL_BATCH": "32", "MLCD_BATCH": "128"}).global_batch == 128


@pytest.mark.parametrize(("batch", "ranks", "micro_batch"), [(64, 2, 4), (16, 8, 2), (36, 6, 3), (7, 7, 1), (16, 3, 4)])
def test_an_elastic_job_divides_its_batch_among_its_ranks(batch: int, ranks: int, micro_batch: int):
    plan = Plan(4, batch).shared_by(ranks)
    assert plan == Plan(micro_batch, batch)
    if batch % ranks == 0:
        assert plan.accumulation(ranks) * ranks * micro_batch == batch


def test_a_batch_that_cannot_be_shared_equally_is_refused():
    with pytest.raises(ValueError, match="a global batch of 32 cannot be shared by 3 ranks x micro-batches of 4"):
        Plan(4, 32).accumulation(3)


@pytest.mark.parametrize("text", ["0", "four", "-1", ""])
def test_an_invalid_number_is_an_error_with_the_variables_name(text: str):
    with pytest.raises(ValueError, match="MLCD_MICRO_BATCH="):
        Plan.told({"MLCD_MICRO_BATCH": text})


LEAVES = """
import os, sys, time
import torch.distributed as dist
from mlcd_tracker.pytorch_leaving import Leaving
dist.init_process_group("gloo")
leaving = Leaving()
for step in range(100_000):
    if leaving.now():
        print(step)
        break
    time.sleep(0.002)
    if step == 100 and dist.get_rank() == 0:
        open(os.environ["MLCD_LEAVE"], "w").close()
dist.barrier()
dist.destroy_process_group()
"""


@pytest.mark.live
@pytest.mark.skipif(find_spec("torch") is None, reason="no PyTorch: pip install -e '.[frameworks]'")
def test_all_workers_exit_in_the_same_step(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    shared = {"PATH": os.defpath, "PYTHONPATH": str(ROOT), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
              "WORLD_SIZE": "2", "MLCD_LAUNCH": "run-1", "MLCD_LEAVE": str(tmp_path / "leave")}  # fmt: skip
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", LEAVES],
            env={**shared, "RANK": rank, "MLCD_RANK": rank},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in "01"
    ]
    steps = [worker.communicate(timeout=300)[0].splitlines()[-1] for worker in workers]
    assert steps[0].isdecimal()
    assert steps[0] == steps[1]
    assert int(steps[0]) > 100
