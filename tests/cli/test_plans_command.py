"""Training by a plan on the command line: asked beforehand, searched, decided, exported, reported, asked again."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from mlcd_fixtures.reports import words

from mlcd.core.home import open_ledger
from mlcd.core.measurement import Outcome
from mlcd.planners.train.nouns import plan_of, planned_training

CONFIG = {
    "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8,
    "intermediate_size": 8192, "vocab_size": 128256, "tie_word_embeddings": True,
}  # fmt: skip
JOB = """
name: one-billion
run: python train.py
mlcd:
  model: {config: config.json}
  work: {tokens: 2B}
  global_batch: 64
  sequence: 4096
  plan:
    tensor: {env: TP, values: [1, 2]}
    micro_batch: {argument: --micro-batch, values: [2, 8]}
    sharding: {env: ZERO, values: {none: 0, zero3: 3}}
  budget: $1,500
  search: {instances: [p4d.24xlarge, p5.4xlarge], nodes: 1..2, parallel: 1}
"""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    path = tmp_path / "job.yaml"
    path.write_text(JOB)
    return path


def test_plan_shows_the_best_plan_of_each_gpu_and_what_it_rests_on(mlcd: Any, job: Path):
    shown = mlcd("plan", job)
    assert shown.code == 0
    assert "Best plan of each GPU, fastest first, with 90% intervals:" in shown.out
    assert "not measured" in shown.out
    assert "2B tokens in 488k sequences" in shown.out
    document = json.loads(mlcd("plan", job, "-o", "json").out)
    plans = document["plans"]
    assert {each["gpu"] for each in plans} == {"A100", "H100"}
    for each in plans:
        for figure in ("seconds", "usd"):
            assert 0 < each[figure]["p05"] < each[figure]["p50"] < each[figure]["p95"]
        assert each["chance_to_fit"] >= 0.8
        assert f"micro-batch {each['knobs']['micro_batch']}" in each["configuration"]
        assert each["configuration"] in shown.out.replace("\n", " ")
    assert plans[0]["seconds"]["p50"] == min(each["seconds"]["p50"] for each in plans)
    assert document["best"] == plans[0]["configuration"]
    assert document["modelled"]["usd"] == pytest.approx(plans[0]["usd"]["p50"])


def test_a_model_alone_can_be_asked_about(mlcd: Any, job: Path):
    words = ("--tokens", "300M", "--global-batch", "16", "--instances", "p5.4xlarge", "--nodes", "1")
    full = json.loads(mlcd("plan", "--model", job.parent, *words, "-o", "json").out)["plans"]
    lora = json.loads(mlcd("plan", "--model", job.parent, *words, "--adapter", "lora", "-o", "json").out)["plans"]
    assert "lora" in lora[0]["configuration"]
    assert lora[0]["seconds"]["p50"] < full[0]["seconds"]["p50"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "give either a job file or a model, as in mlcd plan --model config.json --tokens 300M"),
        (("--model", "."), "--model needs the number of tokens to train on, such as --tokens 300M"),
        (("job.yaml", "--adapter", "lora"), "--adapter works only with --model; in a job file it is a key of `mlcd:`"),
        (
            ("job.yaml", "--model", "."),
            "give either a job file or a model, as in mlcd plan --model config.json --tokens 300M",
        ),
    ],
)
def test_a_question_that_says_too_little_or_too_much(mlcd: Any, words: tuple[str, ...], message: str):
    asked = mlcd("plan", *words)
    assert (asked.code, asked.err.strip()) == (2, f"mlcd: {message}")


def test_a_run_is_searched_decided_run_exported_reported_and_asked_again(mlcd: Any, job: Path, tmp_path: Path):
    assert mlcd("train", job, "--decide-only").code == 0
    assert mlcd("resume", "last", "-y").code == 0
    ledger = open_ledger()
    name = ledger.find("last")
    account = ledger.account(name)
    asked, decision = planned_training(account.job), account.decision
    assert asked is not None
    assert decision is not None
    assert decision.configuration is not None
    plan = plan_of(decision.configuration)
    assert plan is not None
    assert account.job.task["run"] == "python train.py $MLCD_ARGUMENTS\n"
    assert {plan_of(m.configuration) is None for m in account.history.measurements} == {False}
    assert account.history.runs[-1].outcome is Outcome.OK

    task = yaml.safe_load(mlcd("export", "last", "--to", "skypilot").out)
    assert task["envs"]["TP"] == str(plan.tensor)
    assert task["envs"]["MLCD_ARGUMENTS"] == f"--micro-batch {plan.micro_batch}"
    assert int(task["envs"]["MLCD_DATA_PARALLEL"]) * plan.micro_batch * int(task["envs"]["MLCD_ACCUMULATION"]) == 64
    assert task["num_nodes"] == decision.configuration.nodes

    assert mlcd("report", "last", "--to", tmp_path / "report.html").code == 0
    assert str(decision.configuration) in words((tmp_path / "report.html").read_text())
    again = json.loads(mlcd("what-if", "last", "--goal", "cheapest", "-o", "json").out)
    assert '"micro_batch": ' in json.dumps(again)
    known = mlcd("train", job, "--decide-only", "-o", "json")  # begins with what the last run has measured
    assert known.code == 0


def test_a_recording_knows_no_plans(mlcd: Any, job: Path, tmp_path: Path):
    (job.parent / "recording").mkdir()
    asked = mlcd("train", job, "--on", f"recorded:{job.parent / 'recording'}")
    assert asked.code == 2
    assert "a recording knows machines and no plans; leave `plan:` out, or use --on simulated" in asked.err
    made = mlcd("record", job, "--out", tmp_path / "made")
    assert (made.code, made.err.strip()) == (
        2,
        "mlcd: jobs with `plan:` cannot be recorded; leave `plan:` out of the job file",
    )
    assert not (tmp_path / "made").exists()


def test_a_job_with_a_plan_may_run_on_spot_machines(mlcd: Any, job: Path):
    text = JOB.replace("run:", "resources: {infra: aws, use_spot: any}\nrun:").replace(
        "budget:", "checkpoints: true\n  budget:"
    )
    job.write_text(text)
    ran = mlcd("train", job, "-y")
    assert ran.code == 0, ran.err
    rented = open_ledger().account("one-billion-1").history.rentals
    assert rented


def test_a_plan_says_which_gpus_are_over_the_limit_and_what_to_do_where_none_fits(mlcd: Any, job: Path):
    dear = mlcd("plan", job, "--budget", "5").out
    rows = re.findall(r"(?m)^ .* fits \d+%(.*)$", dear)
    assert rows
    assert set(rows) == {", over the limit"}
    assert "over the limit" not in mlcd("plan", job).out
    assert "Modelled from published rates" not in dear  # the first row says it
    unlimited = mlcd("plan", job, "--budget", "none").out
    assert "Within the limit: there is no limit to keep" in unlimited
    job.write_text(JOB.replace("2B", "4k").replace("p4d.24xlarge, p5.4xlarge", "g5.xlarge"))
    small = " ".join(mlcd("plan", job, "--nodes", "1").out.split())
    assert "4.1k tokens in 1 sequence " in small
    assert "No plan is likely to fit into the memory of A10G: name larger GPUs, or let the plan take less" in small


def test_without_a_limit_memory_is_to_blame_where_nothing_would_be_probed(mlcd: Any, job: Path):
    dear = mlcd("plan", job, "--budget", "none", "--max-probe", "0.01").out
    assert "Nothing would be probed: max_probe or max_hourly allows no probe at all" in dear
    told = mlcd("plan", job, "--on", "local", "--budget", "none", "--instances", "*", "--nodes", "1")
    assert "the limits allow no probe at all" not in told.out
    assert "Nothing would be probed: no configuration that the limits allow has enough memory for the job" in told.out
