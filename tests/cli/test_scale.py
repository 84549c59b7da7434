"""mlcd scale on the simulated cloud: it decides, runs, and stores a model that the next run uses."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mlcd.planners.modeling.performance import run_error

Mlcd = Callable[..., Any]
WriteJob = Callable[..., Path]

ELASTIC = "{workers: 1..4, batch: 64..256, target: accuracy >= 0.9}"
SEEDS = 24
COVERED = 0.9
"""The stated coverage of forecast intervals."""


@pytest.fixture
def job(write_job: WriteJob) -> WriteJob:
    """Writes an elastic job for one type of the simulated cloud."""

    def write(name: str = "demo", elastic: str = ELASTIC, extra: str = "") -> Path:
        more = f"batch: 128\ncheckpoints: true\nelastic: {elastic}\n{extra}"
        path = write_job(more, work="{dataset: 100k, epochs: 60}", search="{instances: [g4dn.xlarge]}")
        path.write_text(path.read_text().replace("name: demo", f"name: {name}"))
        return path

    return write


@pytest.mark.parametrize("search", ["full", "partial"])
@pytest.mark.parametrize("goal", ["knee", "fastest", "cheapest"])
def test_scale_decides_runs_and_reports(mlcd: Mlcd, job: WriteJob, search: str, goal: str) -> None:
    answer = mlcd("scale", job(), "--search", search, "--goal", goal, "--budget", "20", "-y", "-o", "json")
    run = answer.document
    assert answer.code == 0
    assert run["status"] == "finished"
    assert run["decision"]["certified"]
    assert run["goal"]["objective"] == goal
    assert run["spent_usd"] <= 20
    assert "reached accuracy >= 0.9" in answer.err


SMALL_DATA = """
name: small-data
run: python train.py
resources: {infra: aws, instance_type: c5n.18xlarge}
mlcd:
  work: {dataset: 500, epochs: 20000}
  budget: $1000
  batch: 256
  parameters: 1M
  flops_per_sample: 12G
  checkpoints: true
  elastic: {workers: 1..8, batch: 256, target: accuracy >= 0.75}
"""
"""An epoch takes seconds, and machines take minutes to come up: epochs must not be compared with start-ups."""


@pytest.mark.parametrize("search", ["full", "partial"])
def test_the_fastest_of_a_job_with_little_data_is_the_fastest_of_its_table(
    mlcd: Mlcd, tmp_path: Path, search: str
) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(SMALL_DATA)
    answer = mlcd("scale", path, "--goal", "fastest", "--search", search, "--decide-only", "-y", "-o", "json").document
    decision, finishes = answer["decision"], [probe["finish"] for probe in answer["probes"] if probe["finish"]]
    assert decision["configuration"]["nodes"] == 8
    assert decision["forecast"]["seconds"] == min(finish["seconds"] for finish in finishes)
    assert decision["curve"][0]["seconds"] is None, "no time to the target is claimed"
    told = " ".join(mlcd("show", "last").out.split())
    assert "if the target takes all of the work; the time to the target is not known yet; certified within" in told
    rows = mlcd("curves", "last").out.splitlines()[1:-1]
    assert all("ranked" in row for row in rows), "a factor is neither measured nor modelled"


def test_a_run_stores_a_model_and_the_next_run_predicts_times(mlcd: Mlcd, job: WriteJob) -> None:
    path = job()
    first = mlcd("scale", path, "-y")
    assert "the time to the target is not known yet" in " ".join(first.out.split())
    assert len(mlcd("models", "-o", "json").document["models"]) == 1
    second = mlcd("scale", path, "-y")
    assert "expected; no limit was set" in second.out
    ranked = mlcd("scale", path, "-y", "--search", "none")
    assert ranked.code == 0
    assert "no time is forecast" in ranked.out
    assert mlcd("show", "last", "-o", "json").document["probes"] == []


def test_the_error_of_a_stored_models_epochs_depends_on_the_number_of_looks(mlcd: Mlcd, job: WriteJob) -> None:
    mlcd("scale", job(), "-y")
    (model,) = mlcd("models", "-o", "json").document["models"]
    epochs = mlcd("models", "show", model["name"], "-o", "json").document["model"]["epochs"]
    entries = mlcd("ledger", "last", "-o", "json").document["entries"]
    looks = sum(entry["measurement"]["looks"] for entry in entries if "measurement" in entry)
    assert looks > 2
    assert epochs["run_error"] == pytest.approx(run_error(looks))
    assert epochs["run_error"] > run_error(math.inf)


@pytest.mark.night
def test_most_forecast_intervals_contain_the_measured_time(mlcd: Mlcd, job: WriteJob) -> None:
    """Of 90 % intervals at least what chance leaves of them in so few seeds: three standard errors below."""
    path, covered, off = job(), 0, []
    for seed in range(SEEDS):
        for _ in range(2):
            run = mlcd("scale", path, "-y", "--seed", seed, "-o", "json").document
        found = mlcd("curves", "last", "-o", "json").document
        chosen = next(row for row in found["configurations"] if row["chosen"])
        actual = run["final_run"]["seconds"]
        covered += chosen["interval_s"][0] <= actual <= chosen["interval_s"][1]
        off.append(abs(actual / chosen["seconds"] - 1))
        for model in mlcd("models", "-o", "json").document["models"]:  # the next seed is another world
            mlcd("models", "forget", model["name"])
    print(f"{covered} of {SEEDS} covered; median error {sorted(off)[SEEDS // 2]:.1%}")
    assert covered >= SEEDS * COVERED - 3 * math.sqrt(SEEDS * COVERED * (1 - COVERED))


def test_search_none_without_a_stored_model_is_refused(mlcd: Mlcd, job: WriteJob) -> None:
    complaint = mlcd("scale", job(), "--search", "none").complaint
    assert "there is no stored model to rank configurations" in complaint
    assert "--search partial" in complaint
    assert mlcd("runs", "-o", "json").document == {"runs": []}


def test_a_model_of_another_format_is_named(mlcd: Mlcd, job: WriteJob, home: Path) -> None:
    mlcd("scale", job(), "-y")
    (file,) = (home / "models").glob("*.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), "format": 99}))
    complaint = mlcd("scale", job(), "--search", "none").complaint
    assert str(file) in complaint
    assert "is of format 99, and this MLCD reads format 1" in complaint


def test_with_models_of_other_jobs_only_their_average_is_used_to_rank(mlcd: Mlcd, job: WriteJob) -> None:
    unlike = "fingerprint: {architecture: %s, data: %s, optimizer: sgd}"
    for name in ("one", "two"):
        mlcd("scale", job(name, extra=unlike % (name, name)), "-y")
    answer = mlcd("scale", job("three", extra=unlike % ("three", "three")), "--search", "none", "-y")
    assert answer.code == 0
    assert "no time is forecast" in answer.out
    started = mlcd("ledger", "last", "-o", "json").document["entries"][0]
    assert started["lesson"] == "the average of all jobs: 2 stored models"


def test_a_target_that_is_never_reached_exits_with_one(mlcd: Mlcd, job: WriteJob) -> None:
    never = "{workers: 1..4, batch: 64..256, target: accuracy >= 0.9, epochs: 500}"
    answer = mlcd("scale", job(elastic=never), "-y")
    assert answer.code == 1
    assert "accuracy >= 0.9 was not reached in 60 epochs; the last was " in answer.out


def test_a_job_that_fits_no_memory_cannot_be_certified(mlcd: Mlcd, job: WriteJob) -> None:
    path = job(elastic="{workers: 1..2, batch: '65536,131072', target: accuracy >= 0.9}")
    answer = mlcd("scale", path, "-y")
    assert answer.code == 3
    assert "cannot be certified" in answer.out
    assert "out of memory" in answer.out


def test_what_if_answers_from_the_curve_at_no_cost(mlcd: Mlcd, job: WriteJob) -> None:
    path = job()
    mlcd("scale", path, "-y")
    mlcd("scale", path, "-y")  # knows the epochs, so that its curve claims times
    before = mlcd("ledger", "last", "-o", "json").document
    rows = [row for row in mlcd("curves", "last", "-o", "json").document["configurations"] if row["measured"]]
    for goal, key in (("fastest", "seconds"), ("cheapest", "usd")):
        found = mlcd("what-if", "last", "--goal", goal, "-o", "json").document["decision"]
        best = min(rows, key=lambda row: row[key])
        chosen = found["configuration"]
        assert next(r for r in rows if (r["nodes"], r["batch"]) == (chosen["nodes"], chosen["batch"]))[key] == best[key]
    own = mlcd("what-if", "last", "--goal", "knee", "-o", "json").document["decision"]
    kept = mlcd("show", "last", "-o", "json").document["decision"]
    assert own == kept
    assert "nothing was spent" in mlcd("what-if", "last", "--goal", "cheapest").out
    assert "cannot be certified" in mlcd("what-if", "last", "--budget", "0.01").out
    assert mlcd("ledger", "last", "-o", "json").document == before


def test_what_if_refuses_the_knee_for_a_job_that_is_not_elastic(mlcd: Mlcd, recorded_job: WriteJob) -> None:
    mlcd("train", recorded_job(), "--decide-only")
    assert "the knee is a goal of `mlcd scale`" in mlcd("what-if", "last", "--goal", "knee").complaint


def test_the_model_of_a_job_without_a_target_knows_its_epochs(mlcd: Mlcd, job: WriteJob) -> None:
    mlcd("scale", job(elastic="{workers: 1..4, batch: 128}"), "-y")
    (model,) = mlcd("models", "-o", "json").document["models"]
    shown = mlcd("models", "show", model["name"], "-o", "json").document
    assert shown["model"]["epochs"]["reference_epochs"] == pytest.approx(60.0, rel=1e-3)


def test_what_if_of_a_ranking_is_a_ranking(mlcd: Mlcd, job: WriteJob) -> None:
    mlcd("scale", job(), "-y")
    mlcd("scale", job(), "--search", "none", "-y")
    answers = [mlcd("what-if", "last", "--goal", goal, "-o", "json").document for goal in ("fastest", "cheapest")]
    fastest, cheapest = (answer["decision"] for answer in answers)
    assert not fastest["certified"]
    assert fastest["configuration"]["usd_per_hour"] > cheapest["configuration"]["usd_per_hour"]


def test_a_stored_model_does_not_crash_a_search_that_may_probe_nothing(mlcd: Mlcd, job: WriteJob) -> None:
    mlcd("scale", job(), "-y")
    answer = mlcd("scale", job(), "--budget", "0.01", "-y")
    assert answer.code == 3
    assert "cannot be certified" in answer.out
