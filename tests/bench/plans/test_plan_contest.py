"""mlcd bench plans: runs are what the rows say, and the answer has the form that the reference states."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mlcd_fixtures.measured_plans import read_rows, write_plans

from mlcd.planners.train.plans.memory import CALLED_FITTING
from mlcd_bench.plans.contest import METHODS, OURS, SHOWN_AFTER, PlanRun, play_plans
from mlcd_bench.plans.folder import read_plans
from mlcd_bench.plans.problem import PlanGoal, plan_problems
from mlcd_bench.plans.runs import Entry, played
from mlcd_bench.plans.summary import choices, forecasts

Mlcd = Callable[..., Any]
KEYS = {"file", "problem", "goal", "method", "seed", "probes", "chosen", "ratio", "optimum", "plans", "predicted"}
FORECAST = {"p05_s", "p50_s", "p95_s", "fits"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_plans(tmp_path_factory.mktemp("plans"))


def cost(row: dict[str, str], goal: str) -> float:
    per_sequence = float(row["iteration_s"] or "inf") / int(row["global_batch"])
    usd_per_s = int(row["gpus"]) * float(row["usd_per_gpu_hour"]) / 3_600
    return per_sequence * (usd_per_s if goal == "cheapest" else 1)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("goal", PlanGoal)
def test_a_run_equals_a_recomputation_from_the_rows(folder: Path, method: str, goal: PlanGoal) -> None:
    rows = dict(enumerate(read_rows(folder), start=1))
    for problem in plan_problems(read_plans(folder), [], [goal]):
        run = play_plans(problem, method, 0, 6)
        mine = {i: row for i, row in rows.items() if row["model"] == run.problem["model"]}
        assert run.optimum == min(mine, key=lambda i: cost(mine[i], goal))
        probed = [probe["row"] for probe in run.probes]
        assert len(set(probed)) == len(probed) <= 6
        assert set(probed) <= set(mine)
        assert [probe["outcome"] for probe in run.probes] == [mine[i]["outcome"] for i in probed]
        for probes, chosen, ratio in zip(SHOWN_AFTER, run.chosen, run.ratio, strict=True):
            ran = [i for i in probed[:probes] if mine[i]["outcome"] == "ok"]
            if probes:
                assert chosen == min(ran, key=lambda i: cost(mine[i], goal), default=None)
            if chosen is None or mine[chosen]["outcome"] != "ok":
                assert ratio is None
            else:
                assert ratio == pytest.approx(cost(mine[chosen], goal) / cost(mine[run.optimum], goal))


def test_only_some_methods_choose_before_a_probe(folder: Path) -> None:
    problem = plan_problems(read_plans(folder), ["large"], [PlanGoal.FASTEST])[0]
    unseen = {method: play_plans(problem, method, 0, 0).chosen[0] for method in METHODS}
    assert {method for method, chosen in unseen.items() if chosen is None} == {"random", "gp-ei"}


def test_practice_knows_which_plans_fit(folder: Path) -> None:
    for problem in plan_problems(read_plans(folder), [], [PlanGoal.FASTEST]):
        run = play_plans(problem, "practice", 0, 12)
        assert {probe["outcome"] for probe in run.probes} == {"ok"}


def test_our_forecast_has_every_row_and_uses_the_probes(folder: Path) -> None:
    for problem in plan_problems(read_plans(folder), [], [PlanGoal.FASTEST]):
        run = play_plans(problem, OURS, 0, 3)
        assert [each["row"] for each in run.predicted] == [row.row for row in problem.rows]
        outcomes = {probe["row"]: probe["outcome"] for probe in run.probes}
        for each, row in zip(run.predicted, problem.rows, strict=True):
            for told in (each, each["after_3"]):
                assert 0 < told["p05_s"] <= told["p50_s"] <= told["p95_s"]
                assert 0 <= told["fits"] <= 1
            if row.row in outcomes:
                assert each["after_3"]["fits"] == (outcomes[row.row] == "ok")
            if outcomes.get(row.row) == "ok":
                assert each["after_3"]["p50_s"] == pytest.approx(row.step_s, rel=0.02)


def test_models_are_hidden_one_by_one_or_together(folder: Path) -> None:
    rows = read_plans(folder)
    for problem in plan_problems(rows, [], [PlanGoal.FASTEST]):
        assert problem.rows[0].model not in {row.model for row in problem.others}
    together = plan_problems(rows, ["tiny", "large"], list(PlanGoal))
    assert len(together) == 4
    assert {row.model for problem in together for row in problem.others} == {"small"}


def run_of(ratio: list[float | None], probes: list[str], plans: int = 5) -> PlanRun:
    told = [{"row": i, "outcome": outcome} for i, outcome in enumerate(probes, start=1)]
    problem = {"model": "m", "seq": 1, "adapter": "full"}
    return PlanRun("f.csv", problem, "fastest", "m", 0, told, [1] * 4, ratio, 1, plans, [])


def test_the_summary_of_choices_is_what_one_would_count() -> None:
    runs = [
        run_of([None, 1.5, 1.05, 1.0], ["out_of_memory", "ok", "ok", "out_of_memory"]),
        run_of([1.04, 1.2, 1.0, 1.0], ["ok", "ok", "ok"]),
        run_of([9.0, 9.0, 9.0, 9.0], ["ok"], plans=3),
    ]
    (row,) = choices(runs)
    assert (row["runs"], row["file"], row["out_of_memory"]) == (2, "all", 0.5)
    assert row["after_0"] == {"share": 0.5, "mean": 1.04, "worst": 1.04, "missed": 0.5}
    assert row["after_1"] == {"share": 0.0, "mean": pytest.approx(1.35), "worst": 1.5, "missed": 0.0}
    assert row["after_3"]["share"] == 1.0


def test_the_summary_of_forecasts_is_what_one_would_count(folder: Path) -> None:
    rows = read_plans(folder)
    problem = plan_problems(rows, ["large"], [PlanGoal.FASTEST])[0]
    run = play_plans(problem, OURS, 0, 3)
    (told,) = forecasts([run], rows)
    actual = {row.row: row.step_s for row in problem.rows if row.step_s is not None}
    early = {each["row"]: each for each in run.predicted if each["row"] in actual}
    late = {i: each["after_3"] for i, each in early.items() if i not in {probe["row"] for probe in run.probes}}
    these = {i: early[i] for i in late}
    for of, expected in ((told["before"], early), (told["after_3"], late), (told["before_of_these"], these)):
        errors = [abs(each["p50_s"] / actual[i] - 1) for i, each in expected.items()]
        held = [each["p05_s"] <= actual[i] <= each["p95_s"] for i, each in expected.items()]
        assert of["mape"] == pytest.approx(np.mean(errors))
        assert of["median"] == pytest.approx(np.median(errors))
        assert of["coverage"] == pytest.approx(np.mean(held))


def test_the_json_has_the_documented_form(mlcd: Mlcd, folder: Path) -> None:
    words = ["bench", "plans", folder, "--unseen", "large", "--method", "grey-box,practice", "--processes", "1"]
    document = mlcd(*words, "--seeds", "1", "--probes", "4", "-o", "json").document
    assert [(run["goal"], run["method"]) for run in document["runs"]] == [
        (goal, method) for goal in ("fastest", "cheapest") for method in ("grey-box", "practice")
    ]
    for run in document["runs"]:
        assert set(run) == KEYS
        assert run["problem"] == {"model": "large", "seq": 1_024, "adapter": "full"}
        assert set(run["probes"][0]) == {"row", "outcome"}
        assert len(run["probes"]) == 4
        assert len(run["chosen"]) == len(run["ratio"]) == len(SHOWN_AFTER)
    assert set(document["runs"][0]["predicted"][0]) == {"row", *FORECAST, "after_3"}
    assert set(document["runs"][0]["predicted"][0]["after_3"]) == FORECAST
    expected = {"prior": "folder", "probes": 4, "seeds": 1, "unseen": ["large"], "called_fitting": CALLED_FITTING}
    assert document["setting"] == expected


def test_a_folder_of_one_model_uses_the_shipped_prior(mlcd: Mlcd, tmp_path: Path) -> None:
    words = ["bench", "plans", write_plans(tmp_path, ["tiny"]), "--seeds", "1", "--goal", "fastest", "-o", "json"]
    learned, shipped = mlcd(*words).document, mlcd(*words, "--prior", "shipped").document
    assert learned["runs"] == shipped["runs"]
    assert learned["runs"][0]["predicted"]


def test_what_other_models_teach_is_not_what_ships(mlcd: Mlcd, folder: Path) -> None:
    words = ["bench", "plans", folder, "--unseen", "tiny", "--seeds", "1", "--goal", "fastest", "-o", "json"]
    learned, shipped = mlcd(*words).document, mlcd(*words, "--prior", "shipped").document
    assert learned["runs"][0]["predicted"] != shipped["runs"][0]["predicted"]


def test_the_tables_have_a_line_for_each_method_goal_and_file(mlcd: Mlcd, folder: Path) -> None:
    words = ["bench", "plans", folder, "--method", "grey-box,random", "--seeds", "1", "--processes", "1"]
    answer = mlcd(*words)
    assert answer.code == 0
    lines = [line.split()[:3] for line in answer.out.splitlines()]
    for goal in ("fastest", "cheapest"):
        for method in ("grey-box", "random"):
            assert ["all", goal, method] in lines
    assert any(line[:1] == ["plans.csv"] for line in lines), "the forecasts"


@pytest.mark.live
def test_the_number_of_processes_does_not_change_the_results(folder: Path) -> None:
    problems = plan_problems(read_plans(folder), [], [PlanGoal.FASTEST])
    todo = [Entry(problem, ("random", "practice"), 2, 3) for problem in problems]
    assert list(played(todo, 2)) == list(played(todo, 1))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--unseen", "larg"], "large"),
        (["--method", "greybox"], "grey-box"),
        (["--unseen", "tiny,"], "measured model"),
    ],
)
def test_a_mistake_is_one_line(mlcd: Mlcd, folder: Path, words: list[str], said: str) -> None:
    answer = mlcd("bench", "plans", folder, *words)
    assert answer.code == 2
    assert said in answer.err
    assert len(answer.err.strip().splitlines()) == 1


def test_a_bad_folder_is_one_line(mlcd: Mlcd, tmp_path: Path) -> None:
    (tmp_path / "plans.csv").write_text("model,params\nx,1\n")
    for where in (tmp_path, tmp_path / "nowhere"):
        answer = mlcd("bench", "plans", where)
        assert answer.code == 2
        assert len(answer.err.strip().splitlines()) == 1
