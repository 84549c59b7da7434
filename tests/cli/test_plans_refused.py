"""Training by a plan where nothing could run: the answer says what the forecast says, and names no useless way out."""

from __future__ import annotations

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


def test_what_ran_says_itself_what_is_missing(train: Any):
    answer = train("adapter: lora", "$30", "p5.4xlarge")
    assert answer.code == 3
    assert "needs $" in answer.out
    assert "forecast" not in answer.out
