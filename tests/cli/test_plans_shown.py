"""What a run that trains by a plan shows of its decision: how a step is shared, its speed, what the script is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mlcd.core.home import open_ledger
from mlcd.core.measurement import Outcome
from mlcd.core.planner import planner_of

JOB = """
name: one-billion
run: python train.py
mlcd:
  model: {layers: 16, hidden: 2048, heads: 32, kv_heads: 8, ffn: 8192, vocab: 128256, tied: true}
  work: {tokens: 2B}
  global_batch: 64
  sequence: 4096
  plan:
    micro_batch: {argument: --micro-batch, values: [2]}
    sharding: {env: ZERO, values: {zero3: 3}}
  budget: %s
  search: {instances: [p4d.24xlarge], nodes: 1, parallel: 1}
"""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    path = tmp_path / "job.yaml"
    path.write_text(JOB % "$1,500")
    return path


def test_a_decision_says_how_a_step_is_shared_how_fast_it_is_and_what_the_script_is_told(mlcd: Any, job: Path):
    ran = mlcd("train", job, "-y", "-o", "json")
    assert ran.code == 0
    facts = {fact["label"]: (fact["value"], fact["hint"]) for fact in ran.document["facts"]}
    assert facts["A step"] == ("64 sequences", "8 data-parallel ranks x micro-batch 2 x 4 accumulated")
    rate = ran.document["final_run"]["samples_per_s"]
    assert facts["Speed"][0] == f"{rate * 4096 / 1e3:.3g}k tokens/s"
    used = rate * 4096 * (6 * 1.236e9 + 6 * 16 * 2048 * 4096) / (8 * 312e12)
    assert facts["Speed"][1].endswith(f"k a GPU, {used:.0%}".replace("%", " % of what the GPU can do in bf16"))
    (table,) = ran.document["tables"]
    assert table["title"] == "Plan variables of the script"
    told = {by: (value, what) for by, value, what in table["rows"]}
    assert told["--micro-batch"] == ("2", "micro-batch")
    assert told["ZERO"] == ("3", "sharding: zero3")
    assert told["MLCD_DATA_PARALLEL"][0] == "8"
    assert told["MLCD_ACCUMULATION"][0] == "4"
    assert told["MLCD_ARGUMENTS"][0] == "--micro-batch 2"
    shown = mlcd("show", "last").out
    assert "A step: 64 sequences" in shown
    assert "MLCD_ACCUMULATION" in shown
    assert "all arguments above\n\nFinal run: " in shown
    assert "fastest within $1,500.00: 2B tokens in 488k sequences, 1 configuration of 1 type" in shown


def test_where_nothing_was_decided_nothing_is_told(mlcd: Any, job: Path):
    job.write_text(JOB % "$1")
    refused = mlcd("train", job, "-y", "-o", "json")
    assert refused.code == 3
    assert (refused.document["facts"], refused.document["tables"]) == ([], [])


def test_a_launch_that_failed_first_tells_no_speed(mlcd: Any, job: Path):
    assert mlcd("train", job, "-y").code == 0
    account = open_ledger().account("one-billion-1")
    (run,) = account.history.runs
    failed = replace(run, outcome=Outcome.LAUNCH_FAILED, samples_per_s=None)
    after = replace(account, history=replace(account.history, runs=(failed, run)))
    assert planner_of(after.job).additions(after) == planner_of(after.job).additions(account)
    assert planner_of(after.job).additions(replace(account, history=replace(account.history, runs=(failed,))))
