"""mlcd tune, train and plan on simulated functions: decisions, runs, stored calibrations and output."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from mlcd.planners.functions.workload import STORAGES

needs_lithops = pytest.mark.skipif(find_spec("lithops") is None, reason="no Lithops: pip install 'mlcd[lithops]'")

Mlcd = Callable[..., Any]
SIMULATED = ("--on", "functions:simulated")

JOB = """
name: lr
mlcd:
  on: functions:simulated
  work: {dataset: 100k, epochs: 60}
  functions:
    model: lr
    data: higgs
    batch: 1000
    target: loss <= 0.66
    functions: 1..8
    memory: 256..1769
    tuning: {trials: 8, space: {learning_rate: [0.001, 1.0]}}
"""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    path = tmp_path / "job.yaml"
    path.write_text(JOB)
    return path


def test_tune_calibrates_plans_and_stops_the_losing_half(mlcd: Mlcd, job: Path) -> None:
    answer = mlcd("tune", job, "--budget", "1", "-y", "-o", "json")
    run = answer.document
    assert answer.code == 0
    assert run["status"] == "finished"
    assert run["decision"]["certified"]
    assert [stage["trials"] for stage in run["stages"]] == [8, 4, 2]
    assert run["spent_usd"] <= 1
    assert run["spent_usd"] == pytest.approx(
        sum(p["usd"] for p in run["probes"]) + sum(s["usd"] for s in run["stages"])
    )


def test_train_runs_to_its_target_and_reports_every_epoch(mlcd: Mlcd, job: Path) -> None:
    answer = mlcd("train", job, "--deadline", "1h", "-y", "-o", "json")
    run = answer.document
    assert run["status"] == "finished"
    assert run["goal"]["objective"] == "cheapest", "nobody named a goal, and a deadline is the only limit"
    assert run["epochs"][-1]["loss"] <= 0.66 < run["epochs"][-2]["loss"]
    assert [epoch["epoch"] for epoch in run["epochs"]] == list(range(1, len(run["epochs"]) + 1))


@pytest.mark.parametrize("method", ["exact", "greedy"])
@pytest.mark.parametrize("limit", [("--budget", "0.05"), ("--deadline", "3m")])
def test_a_training_begins_as_was_decided(mlcd: Mlcd, job: Path, method: str, limit: tuple[str, str]) -> None:
    run = mlcd("train", job, *limit, "--method", method, "-y", "-o", "json").document
    first = run["decision"]["plans"][0]["stages"][0]
    names = ("functions", "memory_mb", "storage")
    assert [run["epochs"][0][name] for name in names] == [first[name] for name in names]


def test_the_ledger_shows_each_stage_and_epoch_with_its_allocation_time_and_cost(
    mlcd: Mlcd, job: Path, home: Path
) -> None:
    mlcd("tune", job, "--budget", "1", "-y")
    entries = mlcd("ledger", "last", "-o", "json").document["entries"]
    stages = [e for e in entries if e["kind"] == "settled" and e["launch"]["purpose"] == "run"]
    assert len(stages) == 3
    for entry in stages:
        measurement = entry["measurement"]
        assert measurement["configuration"]["setting"]["storage"]
        assert measurement["usd"] == pytest.approx(sum(epoch["usd"] for epoch in measurement["evidence"]["epochs"]))
    with sqlite3.connect(home / "ledger.db") as db:
        told = db.execute("SELECT because FROM entries WHERE kind = 'reserved'").fetchall()
    assert any("stage 1 of 3" in because for (because,) in told)


def test_a_calibration_is_stored_and_the_next_run_probes_nothing(mlcd: Mlcd, job: Path, home: Path) -> None:
    mlcd("tune", job, "--budget", "1", "--decide-only")
    assert list((home / "calibrations").iterdir())
    again = mlcd("tune", job, "--budget", "1", "--decide-only", "-o", "json").document
    assert again["probes"] == []
    fresh = mlcd("tune", job, "--budget", "1", "--decide-only", "--fresh", "-o", "json").document
    assert fresh["probes"]


def test_a_decision_can_be_launched_later_and_exported(mlcd: Mlcd, job: Path) -> None:
    mlcd("tune", job, "--budget", "1", "--decide-only")
    exported = mlcd("export", "last", "--to", "lambda").document
    assert [segment["trials"] for segment in exported["segments"]] == [8, 4, 2]
    assert mlcd("launch", "last").code == 0
    assert mlcd("show", "last", "-o", "json").document["status"] == "finished"
    assert mlcd("report", "last").code == 0


def test_what_if_plans_again_from_stored_probes(mlcd: Mlcd, job: Path) -> None:
    mlcd("tune", job, "--budget", "1", "--decide-only")
    before = mlcd("show", "last", "-o", "json").document
    again = mlcd("what-if", "last", "--budget", "none", "--deadline", "1h", "--goal", "cheapest", "-o", "json").document
    assert again["decision"]["plans"][0]["usd"] <= before["decision"]["plans"][0]["usd"]
    assert mlcd("show", "last", "-o", "json").document["spent_usd"] == before["spent_usd"]


def test_plan_shows_the_boundary_and_the_plans_and_spends_nothing(mlcd: Mlcd, job: Path) -> None:
    plan = mlcd("plan", job, "--budget", "5", "-o", "json").document
    assert plan["plans"][0]["method"] == "exact"
    assert len(plan["boundary"]) > 10
    assert mlcd("runs", "-o", "json").document == {"runs": []}
    shown = mlcd("plan", job, "--budget", "5").out
    assert "even split" in shown
    assert "modelled from published figures, not measured" in shown


@pytest.mark.parametrize("method", ["exact", "greedy", "lambdaml", "cirrus", "siren", "fixed"])
def test_every_method_tunes_and_trains(mlcd: Mlcd, job: Path, method: str) -> None:
    assert mlcd("tune", job, "--budget", "20", "--method", method, "-y").code == 0
    assert mlcd("train", job, "--budget", "20", "--method", method, "-y").code == 0


def test_an_account_with_few_functions_runs_trials_in_turns(mlcd: Mlcd, job: Path) -> None:
    free = mlcd("plan", job, "--trials", "512", "--budget", "20", "-o", "json").document
    few = mlcd("plan", job, "--trials", "512", "--budget", "20", "--concurrency", "16", "-o", "json").document
    assert few["plans"][0]["seconds"] > 5 * free["plans"][0]["seconds"]


def test_a_deadline_that_no_allocation_meets_names_the_fastest_possible(mlcd: Mlcd, job: Path) -> None:
    answer = mlcd("plan", job, "--trials", "64", "--deadline", "2s")
    assert answer.code == 3
    assert "the deadline" in answer.out
    assert "the fastest possible takes" in answer.out


def test_a_budget_that_no_plan_keeps_names_the_cheapest_possible(mlcd: Mlcd, job: Path) -> None:
    answer = mlcd("tune", job, "--budget", "0.05", "--trials", "512", "-y")
    assert answer.code == 3
    assert "the budget" in answer.out
    assert mlcd("show", "last", "-o", "json").document["spent_usd"] <= 0.05


@pytest.mark.parametrize(
    "options, told",
    [
        (("--functions", "1..5000"), "at most 3,000 functions run at once"),
        (("--memory", "64..128"), "a function has 128 to 10240 MB"),
        (("--storage", "s4"), "'s4': known: s3, dynamodb, elasticache, vm-ps"),
        (
            ("--functions", "200..300", "--concurrency", "100"),
            "200 functions are more than the account runs",
        ),
        (("--method", "greddy"), "unknown method 'greddy': did you mean 'greedy'?"),
        (("--eta", "1"), "--eta"),
    ],
)
def test_a_mistake_gets_one_line_and_nothing_is_started(
    mlcd: Mlcd, job: Path, options: tuple[str, ...], told: str
) -> None:
    assert told in mlcd("tune", job, *options).complaint
    assert mlcd("runs", "-o", "json").document == {"runs": []}


@pytest.mark.parametrize(
    "before, after, told",
    [
        ("model: lr", "model: lq", "unknown model 'lq': known: lr, mobilenet, svm"),
        ("data: higgs", "data: higs", "unknown data 'higs': did you mean 'higgs'?"),
        (
            "model: lr",
            "model: bert\n    model_mb: 340\n    data_mb: 35\n    storages: [dynamodb]",
            "an object of dynamodb at most 0.4 MB",
        ),
        ("    target: loss <= 0.66\n", "", "what ends the training? Say --target-loss"),
        ("batch: 1000", "batch: 200k", "batch 200000: the data have only 100000 samples"),
        ("{dataset: 100k, epochs: 60}", "6M", "on functions it is counted in epochs"),
        ("    batch: 1000\n", "", "`batch` is missing from the `functions:` block"),
        ("trials: 8", "trials: none", "trials"),
    ],
)
def test_a_mistake_in_the_job_file_gets_one_line(mlcd: Mlcd, job: Path, before: str, after: str, told: str) -> None:
    job.write_text(JOB.replace(before, after))
    assert told in mlcd("train", job).complaint
    assert mlcd("runs", "-o", "json").document == {"runs": []}


@needs_lithops
def test_a_storage_that_does_not_answer_is_refused_before_anything_is_started(mlcd: Mlcd, job: Path) -> None:
    job.write_text(JOB.replace("functions: 1..8", "functions: 1..8\n    endpoints: {vm-ps: 'tcp://127.0.0.1:9'}"))
    told = mlcd("train", job, "--on", "functions", "--storage", "vm-ps").complaint
    assert "127.0.0.1:9" in told
    assert mlcd("runs", "-o", "json").document == {"runs": []}


@needs_lithops
def test_a_model_that_can_only_be_planned_is_refused_before_anything_is_started(mlcd: Mlcd, job: Path) -> None:
    job.write_text(JOB.replace("model: lr", "model: bert\n    model_mb: 340\n    data_mb: 35"))
    assert mlcd("plan", job, "--budget", "100000", "--target-loss", "0.6").code == 0
    assert "unknown model 'bert'" in mlcd("train", job, "--on", "functions").complaint
    assert mlcd("runs", "-o", "json").document == {"runs": []}


@needs_lithops
def test_functions_of_a_cloud_need_storages_that_they_can_reach(mlcd: Mlcd, job: Path) -> None:
    assert "name the URL of a storage" in mlcd("train", job, "--on", "functions:aws_lambda").complaint
    assert mlcd("runs", "-o", "json").document == {"runs": []}


def test_a_job_without_functions_says_what_is_missing(mlcd: Mlcd, tmp_path: Path) -> None:
    path = tmp_path / "plain.yaml"
    path.write_text("name: plain\nmlcd: {work: 1M}\n")
    assert "no `functions:` block" in mlcd("tune", path, "--trials", "4").complaint
    assert "no `functions:` block" in mlcd("train", path, "--on", "functions").complaint


def test_mlcd_check_shows_what_functions_need(mlcd: Mlcd) -> None:
    told = mlcd("check", "functions", "-o", "json").document["checks"]
    assert [check["what"] for check in told][1:] == [f"storage {name}" for name in STORAGES]
    assert next(check["ok"] for check in told if check["what"] == "storage vm-ps"), "it is MLCD's own"


@pytest.mark.parametrize(
    "options, told",
    [
        (("--on", "simulated", "--storage", "s3"), "--storage is for jobs on functions: --on functions"),
        (("--on", "simulated", "--target-loss", "0.5"), "--target-loss is for jobs on functions: --on functions"),
        (("--nodes", "4"), "--nodes is for machines, and functions have none"),
        (("--instances", "c5.*"), "--instances is for machines, and functions have none"),
    ],
)
@pytest.mark.parametrize("command", ["train", "plan"])
def test_an_option_of_another_place_is_refused_and_not_ignored(
    mlcd: Mlcd, job: Path, command: str, options: tuple[str, ...], told: str
) -> None:
    assert told in mlcd(command, job, *options).complaint


@pytest.mark.parametrize(
    ("size", "options", "told"),
    [
        ("data_mb: 9000", ("--memory", "256..1000"), "each of 8 functions needs 1,190 MB for the model and its share"),
        ("data_mb: 1", ("--functions", "2000..2000"), "2000 functions or more, but there are 1000 samples"),
        ("model_mb: 340", ("--storage", "dynamodb"), "choose another with --storage s3,elasticache,vm-ps"),
        (
            "model_mb: 3000",
            ("--storage", "vm-ps"),
            "at most 2,000 MB: choose another with --storage s3",
        ),
    ],
)
def test_impossible_sizes_are_refused_before_a_probe_is_paid(
    mlcd: Mlcd, job: Path, size: str, options: tuple[str, str], told: str
) -> None:
    text = JOB.replace("100k", "1000").replace("256..1769", "256..10240")
    job.write_text(text.replace("batch: 1000", f"batch: 1000\n    {size}"))
    assert told in mlcd("tune", job, "--budget", "100", "-y", *options).complaint
    assert mlcd("runs", "-o", "json").document["runs"] == []
