"""mlcd bench functions: plans keep their limits, better ones are never worse, and the answer is in the stated form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from statistics import fmean
from typing import Any

import pytest

from mlcd.core.job import Job, Target
from mlcd_bench.functions import JOBS, METHODS, Run, cases, kept, saving, savings
from mlcd_bench.functions.jobs import BenchJob
from mlcd_bench.functions.runs import pooled
from mlcd_bench.functions.training import KnownEpochs, estimate, train
from mlcd_bench.functions.tuning import tune

Mlcd = Callable[..., Any]
KEYS = {"job", "phase", "limit_kind", "limit", "method", "hours", "usd", "violated", "planning_ms"}
SHORT = replace(JOBS["lr-higgs"], epochs=6)


@pytest.fixture(scope="module", params=["lr-higgs", "mobilenet-cifar10"])
def tuned(request: pytest.FixtureRequest) -> list[Run]:
    return tune(JOBS[request.param], METHODS, 16, (1.05, 1.5, 8.0))


def test_no_plan_of_a_tuning_exceeds_its_limit(tuned: list[Run]) -> None:
    assert len(tuned) == 2 * 3 * len(METHODS)
    for run in tuned:
        assert not run.violated
        if run.hours is not None and run.usd is not None:
            assert (run.usd if run.limit_kind == "budget" else run.hours) <= run.limit


def test_the_exact_plan_is_never_behind_the_greedy_one_nor_that_behind_the_static_one(tuned: list[Run]) -> None:
    for case in cases(tuned):
        found = {run.method: run.objective for run in case}
        assert found["exact"] is not None
        order = [found[name] for name in ("exact", "greedy", "lambdaml") if found[name] is not None]
        assert all(better <= worse * (1 + 1e-9) for better, worse in pairwise(order))  # type: ignore[operator]
        assert all(found["exact"] <= each * (1 + 1e-9) for each in found.values() if each is not None)


def test_a_looser_limit_is_never_worse(tuned: list[Run]) -> None:
    for kind in ("budget", "deadline"):
        exact = [run for run in tuned if (run.method, run.limit_kind) == ("exact", kind)]
        assert [run.limit for run in exact] == sorted(run.limit for run in exact)
        assert [run.objective for run in exact] == sorted((run.objective for run in exact), reverse=True)  # type: ignore[type-var]


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_a_curve_reaches_the_target_after_the_jobs_epochs_apart_from_noise(job: BenchJob) -> None:
    target = Job(job.name, 1.0, target=Target("loss", job.target_loss, at_least=False))
    for seed in range(5):
        losses = KnownEpochs(seed, noise=0.0, epochs=float(job.epochs))
        assert losses.loss(target, 0, job.epochs) == pytest.approx(job.target_loss)
        assert losses.loss(target, 0, job.epochs - 1) > job.target_loss


def test_estimates_have_the_error_that_the_paper_found() -> None:
    off = [estimate(SHORT, seed) / SHORT.epochs - 1 for seed in range(500)]
    assert 0.2 < fmean(map(abs, off)) < 0.4
    assert min(off) < 0 < max(off)


def test_training_is_the_same_run_for_the_same_seed_and_tells_what_it_came_to() -> None:
    made, again = (train(SHORT, ("exact", "lambdaml", "siren"), 1, (3.0,)) for _ in range(2))
    assert [replace(each, planning_ms=0.0) for each in made] == [replace(each, planning_ms=0.0) for each in again]
    assert [(each.method, each.limit_kind) for each in made] == [
        (method, kind) for method in ("exact", "lambdaml", "siren") for kind in ("budget", "deadline")
    ]
    exact = made[0]
    assert not exact.violated
    assert exact.usd is not None
    assert 0 < exact.usd <= exact.limit
    assert exact.planning_ms > 0
    assert any(each.hours is None for each in made), "S3 is too slow or too expensive for one of these"


def test_one_seed_that_violates_its_limit_does_so_for_all() -> None:
    good = Run("job", "training", "budget", 10.0, "exact", 1.0, 9.0, False, 5.0)
    (row,) = pooled([[good], [replace(good, hours=3.0, usd=9.5, planning_ms=7.0)]])
    assert row == replace(good, hours=2.0, usd=9.25, planning_ms=6.0)
    (row,) = pooled([[good], [replace(good, violated=True)]])
    assert row.violated
    (row,) = pooled([[replace(good, hours=None, usd=None)]] * 2)
    assert (row.hours, row.usd, row.violated) == (None, None, False)
    assert pooled([]) == []


def made_up(method: str, hours: float | None, limit: float = 10.0, violated: bool = False) -> Run:
    return Run("job", "training", "budget", limit, method, hours, hours, violated, 1.0)


def test_savings_include_losses_and_leave_out_missing_plans_and_violations() -> None:
    first = [made_up("exact", 3.0), made_up("lambdaml", 4.0), made_up("siren", 6.0), made_up("cirrus", None)]
    second = [made_up("exact", 3.0, 20), made_up("lambdaml", 2.0, 20), made_up("siren", 1.0, 20, violated=True)]
    assert saving(first, "exact", "best") == pytest.approx(0.25)
    assert saving(first, "exact", "siren") == pytest.approx(0.5)
    assert saving(first, "exact", "cirrus") is None
    assert saving(second, "exact", "best") == pytest.approx(-0.5)
    assert saving(second, "exact", "siren") is None
    found = {row.against: row for row in savings([first, second])}
    assert (found["best"].pairs, found["siren"].pairs, found["cirrus"].pairs) == (2, 1, 0)
    assert (found["best"].median, found["best"].least, found["best"].most) == pytest.approx((-0.125, -0.5, 0.25))
    assert found["cirrus"].median is None
    assert found["best"].claimed == 0.58
    second.append(made_up("fixed", 21.0, 20, violated=True))
    rows = {row.method: (row.runs, row.without_plan, row.violated, row.over) for row in kept([first, second])}
    assert rows["lambdaml"] == (2, 0, 0, 0)
    assert rows["siren"] == (2, 0, 1, 0), "it did not reach its target"
    assert rows["cirrus"] == (1, 1, 0, 0)
    assert rows["fixed"] == (1, 0, 1, 1)


def test_the_json_has_the_documented_form(mlcd: Mlcd) -> None:
    answer = mlcd("bench", "functions", "--job", "lr-higgs,lr-yfcc", "--phase", "tuning", "--trials", "8",
                  "--limit-factor", "1.2,2", "--processes", "1", "-o", "json")  # fmt: skip
    runs = answer.document["runs"]
    assert set(answer.document) == {"runs", "summary", "setting"}
    assert len(runs) == 2 * 2 * 2 * 6
    assert all(set(run) == KEYS for run in runs)
    assert [run["method"] for run in runs[:6]] == list(METHODS)
    setting = answer.document["setting"]
    assert setting["figures"] == "modelled"
    assert (setting["trials"], setting["factors"]) == (8, [1.2, 2.0])
    assert setting["jobs"]["lr-higgs"]["samples"] == 11_000_000


def test_the_table_says_that_it_is_modelled_and_what_the_paper_claims(mlcd: Mlcd) -> None:
    answer = mlcd("bench", "functions", "--job", "lr-higgs", "--method", "exact,lambdaml", "--seeds", "1",
                  "--trials", "8", "--limit-factor", "4", "--processes", "1")  # fmt: skip
    assert answer.code == 0
    assert "All figures are modelled" in answer.out
    for claim in ("up to 63%", "up to 41%", "up to 58%", "up to 38%"):
        assert claim in answer.out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--job", "lr-higs"], "lr-higs"),
        (["--phase", "serving"], "serving"),
        (["--method", "magic"], "magic"),
        (["--limit-factor", "0.5"], "expected multiples of 1 or more"),
    ],
)
def test_a_mistake_is_one_line(mlcd: Mlcd, words: list[str], told: str) -> None:
    answer = mlcd("bench", "functions", *words)
    assert answer.code == 2
    assert told in answer.err
    assert len(answer.err.strip().splitlines()) == 1
