"""`mlcd export --to skypilot`: the task as it runs where MLCD is not there to start it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

JOB = """
name: tuned
run: %s
mlcd:
  work: 1M
  budget: $100
  search: {instances: [g4dn.12xlarge], nodes: 2}
"""


def exported(mlcd: Any, folder: Path, run: str) -> dict[str, Any]:
    (folder / "job.yaml").write_text(JOB % run)
    assert mlcd("train", folder / "job.yaml", "--decide-only").code == 0
    text = mlcd("export", "last", "--to", "skypilot").out
    assert "\n\n" not in text, "every line stands as it was written"
    task: dict[str, Any] = yaml.safe_load(text)
    return task


@pytest.mark.live
def test_torchrun_starts_a_process_on_each_gpu_of_each_node(mlcd: Any, tmp_path: Path):
    task = exported(mlcd, tmp_path, "torchrun train.py")
    script = f"torchrun() {{ env | grep PET_ | sort; echo $*; }}\n{task['run']}"
    peers = {"SKYPILOT_NUM_NODES": "2", "SKYPILOT_NODE_RANK": "1", "SKYPILOT_NODE_IPS": "10.0.0.7\n10.0.0.8"}
    ran = subprocess.run(["bash", "-euc", script], env={**os.environ, **peers}, capture_output=True, text=True)
    assert ran.stdout.split() == [
        "PET_MASTER_ADDR=10.0.0.7",
        "PET_MASTER_PORT=29400",
        "PET_NNODES=2",
        "PET_NODE_RANK=1",
        "PET_NPROC_PER_NODE=4",
        "train.py",
    ]


def test_what_is_not_started_by_torchrun_stays_as_it_is(mlcd: Any, tmp_path: Path):
    assert exported(mlcd, tmp_path, "python train.py")["run"] == "python train.py"
