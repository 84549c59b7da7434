"""Training by a plan where nothing could run: the answer says what the forecast says, and names no useless way out."""

from __future__ import annotations

import json
from typing import Any

import pytest

JOB = """
name: eight-billion
run: python train.py
mlcd:
  model: {layers: 32, hidden: 4096, heads: 32, kv_heads: 8, ffn: 14336, vocab: 128256}
  work: {tokens: 300M}
  global_batch: 64
  sequence: 4096
  plan:
    micro_batch: {env: BATCH, values: [1, 2]}
    checkpointing: {env: CHECKPOINTING, values: [none, full]}
    %s
  budget: %s
  search: {instances: [%s], nodes: 1, parallel: 1}
"""


@pytest.fixture
def train(mlcd: Any, tmp_path: Any) -> Any:
    def run(plan: str, budget: str, instances: str) -> Any:
        (tmp_path / "job.yaml").write_text(JOB % (plan, budget, instances))
        return mlcd("train", tmp_path / "job.yaml", "-y")

    return run


def test_a_budget_that_is_far_too_small_is_told_what_the_cheapest_plan_is_forecast_to_cost(train: Any):
    answer = train("adapter: lora", "$1", "g6.xlarge, g6.2xlarge, p5.4xlarge")
    words = " ".join(answer.out.split())
    assert answer.code == 3
    assert "the cheapest that is likely to fit, 1 x p5.4xlarge, micro-batch 1, lora, is forecast to take $" in words
    assert "needs --max-probe" not in words, "of a type whose memory is as small as that of one that ran out"


@pytest.mark.parametrize("budget", ["$150", "none"])
def test_where_no_gpu_is_large_enough_the_answer_says_so(train: Any, budget: str):
    answer = train("precision: bf16", budget, "g5.xlarge, g6.xlarge")
    words = " ".join(answer.out.split())
    assert answer.code == 3
    assert "no plan is likely to fit the memory of A10G, L4: name larger GPUs, or let the plan take less" in words


def test_a_run_whose_plans_fit_no_gpu_is_not_told_to_raise_its_limits(mlcd: Any, train: Any):
    train("precision: bf16", "$150", "g5.xlarge, g6.xlarge")
    told = mlcd("resume", "last").complaint
    assert "in a new run, name larger GPUs, or let the plan take less" in told
    assert "--budget" not in told


def test_what_ran_says_itself_what_is_missing(train: Any):
    answer = train("adapter: lora", "$30", "p5.4xlarge")
    assert answer.code == 3
    assert "needs $" in answer.out
    assert "forecast" not in answer.out


def test_without_a_limit_the_first_probe_that_fails_rules_out_most(mlcd: Any, tmp_path: Any):
    """Nothing fits, whatever the plan: that takes a few probes to know, and not one of each plan."""
    wide = "tensor: {env: TP, values: 1..8}\n    sharding: {env: ZERO, values: [none, zero2, zero3]}"
    text = (JOB % (wide, "none", "p5.48xlarge")).replace("sequence: 4096", "sequence: 1048576")
    (tmp_path / "job.yaml").write_text(text.replace("nodes: 1", "nodes: 1..2"))
    answer = mlcd("train", tmp_path / "job.yaml", "-y", "-o", "json")
    assert answer.code == 3
    failed = [probe for probe in answer.document["probes"] if probe["outcome"] == "out_of_memory"]
    assert 1 <= len(failed) <= 3


def test_without_a_limit_what_fits_is_tried_first(mlcd: Any, tmp_path: Any):
    """Though the best machines of all, 32 of them, are dearer than a probe may be."""
    text = JOB % ("precision: bf16", "none", "g6.xlarge, p6-b300.48xlarge, p5en.48xlarge, p5.4xlarge")
    text = text.replace("nodes: 1", "nodes: 1..32").replace("global_batch: 64", "global_batch: 512")
    sizes = "layers: 16, hidden: 2048, heads: 32, kv_heads: 8, ffn: 8192, vocab: 128256, tied: true"
    text = text.replace("layers: 32, hidden: 4096, heads: 32, kv_heads: 8, ffn: 14336, vocab: 128256", sizes)
    (tmp_path / "job.yaml").write_text(text.replace("300M", "20B"))
    planned = json.loads(mlcd("plan", tmp_path / "job.yaml", "-o", "json").out)
    assert [probe["configuration"] for probe in planned["first_probes"] if "g6.xlarge" in probe["configuration"]] == []
