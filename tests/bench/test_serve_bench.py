"""mlcd bench serve: accuracy is what a reader would compute, and the answer is in the stated form."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mlcd_fixtures.recorded_services import write_device, write_instances, write_language

from mlcd.planners.serve.planner import SERVE_METHODS
from mlcd_bench.serve import Caps, ServeProblem, play, read_folder, serve_problems, summary
from mlcd_bench.serve.engines import ENGINES_ONLY

Mlcd = Callable[..., Any]


def problem(folder: Path, name: str = "net_a", caps: Caps | None = None, trials: int = 6) -> ServeProblem:
    return serve_problems(read_folder(folder), [name], caps or Caps(), trials, one_by_one=True)[0]


def test_trying_everything_ends_at_the_optimum(tmp_path: Path) -> None:
    asked = problem(write_device(tmp_path), caps=Caps(latency_ms=20), trials=10_000)
    run = play(asked, "exhaustive", 0, 0.0)
    assert run.accuracy[-1] == 1.0
    assert len(run.trials) == len(asked.space)
    assert max(trial["rps_per_usd"] for trial in run.trials) == pytest.approx(asked.optimum)


def test_accuracy_is_the_best_trial_so_far_over_the_optimum(tmp_path: Path) -> None:
    asked = problem(write_device(tmp_path), caps=Caps(latency_ms=20))
    run = play(asked, "random", 3, 0.0)
    best = 0.0
    for trial, accuracy in zip(run.trials, run.accuracy, strict=True):
        best = max(best, trial["rps_per_usd"])
        assert accuracy == pytest.approx(best / asked.optimum)


def test_with_noise_accuracy_is_the_true_value_of_what_looked_best(tmp_path: Path) -> None:
    asked = problem(write_device(tmp_path))
    run = play(asked, "random", 1, 0.2)
    looked, true = 0.0, 0.0
    for trial, accuracy in zip(run.trials, run.accuracy, strict=True):
        if trial["rps_per_usd"] > looked:
            looked, true = trial["rps_per_usd"], trial["true_rps_per_usd"]
        assert accuracy == pytest.approx(true / asked.optimum)
    assert any(abs(t["rps_per_usd"] / t["true_rps_per_usd"] - 1) > 0.01 for t in run.trials if t["rps_per_usd"])


def test_the_same_seed_gives_the_same_run(tmp_path: Path) -> None:
    asked = problem(write_device(tmp_path))
    assert play(asked, "random", 5, 0.05) == play(asked, "random", 5, 0.05)


def test_the_unseen_model_is_never_among_the_seen_ones(tmp_path: Path) -> None:
    folder = read_folder(write_device(tmp_path))
    alone = serve_problems(folder, ["net_a", "net_b"], Caps(), 3, one_by_one=True)
    together = serve_problems(folder, ["net_a", "net_b"], Caps(), 3, one_by_one=False)
    assert [len(each.knowledge.models) for each in alone] == [2, 2]
    assert [[m.facts.name for m in each.knowledge.models] for each in together] == [["net_c"], ["net_c"]]


def test_a_factor_caps_each_model_by_its_own_smallest_latency(tmp_path: Path) -> None:
    asked = problem(write_device(tmp_path), caps=Caps(latency_factor=1.3))
    assert asked.latency_ms == pytest.approx(1.3 * (2 + 0.5))
    assert 0 < sum(v > 0 for v in asked.truth.values()) <= len(asked.space) / 4


def test_where_nothing_keeps_the_cap_there_is_no_accuracy(tmp_path: Path) -> None:
    run = play(problem(write_device(tmp_path), caps=Caps(latency_ms=0.1)), "random", 0, 0.0)
    assert run.accuracy == [None] * 6
    assert {trial["rps_per_usd"] for trial in run.trials} == {0.0}
    assert summary([run])[0]["accuracy"] == []


@pytest.mark.parametrize("method", [each for each in SERVE_METHODS if each not in ENGINES_ONLY])
@pytest.mark.parametrize("write", [write_device, write_instances, write_language])
def test_every_method_plays_on_every_kind_of_recording(
    tmp_path: Path, method: str, write: Callable[[Path], Path]
) -> None:
    folder = read_folder(write(tmp_path))
    asked = serve_problems(folder, folder.models[:1], Caps(), 4, one_by_one=True)[0]
    run = play(asked, method, 0, 0.0)
    assert len(run.accuracy) == 4
    assert run.accuracy[-1] is not None
    assert run.accuracy[-1] > 0


def test_the_json_has_the_documented_form(mlcd: Mlcd, tmp_path: Path) -> None:
    folder = write_device(tmp_path / "recorded")
    answer = mlcd("bench", "serve", folder, "--unseen", "net_a,net_b", "--latency-ms", "30", "--trials", "4",
                  "--method", "popular,random", "--seeds", "2", "--processes", "1", "-o", "json")  # fmt: skip
    runs = answer.document["runs"]
    assert len(runs) == 2 * 2 * 2
    assert set(runs[0]) == {"model", "method", "seed", "latency_ms", "trials", "accuracy"}
    assert set(runs[0]["trials"][0]) == {"knobs", "rps_per_usd", "outcome"}
    assert set(runs[0]["trials"][0]["knobs"]) == {"precision", "sm_share", "batch", "cpu_cores", "memory_gb"}
    assert runs[0]["latency_ms"] == 30
    words = ["--latency-ms", "none", "--seeds", "1", "--trials", "2", "--method", "popular", "--processes", "1"]
    assert mlcd("bench", "serve", folder, *words, "-o", "json").document["runs"][0]["latency_ms"] is None


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--latency-ms", "fast"], "expected milliseconds"),
        (["--latency-ms", "10", "--latency-factor", "2"], "both cap the latency"),
        (["--unseen", "net_z"], "net_z"),
        (["--method", "magic"], "magic"),
    ],
)
def test_a_mistake_is_one_line(mlcd: Mlcd, tmp_path: Path, words: list[str], told: str) -> None:
    answer = mlcd("bench", "serve", write_device(tmp_path / "recorded"), *words)
    assert answer.code == 2
    assert told in answer.err
    assert len(answer.err.strip().splitlines()) == 1
