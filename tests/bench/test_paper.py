"""The paper's experiments: every study runs, its numbers follow from its runs, and a refusal wins nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Any

import pytest

from mlcd.core.errors import UnknownName
from mlcd_bench.paper import STUDIES, Outcome, Verdict, cloud, conclude, conduct, find, play
from mlcd_bench.paper.cloud import LIMIT_FACTOR, favoured, finishes, optimum
from mlcd_bench.paper.measures import advantages, at_least, at_most, every_run, keeps_limit, optimality
from mlcd_bench.paper.model_sizes import LAYERS, spread
from mlcd_bench.paper.references import Optimum, RandomProbes
from mlcd_bench.paper.study import Case, Runs
from mlcd_bench.paper.three_scenarios import BUDGET, DEADLINE, FASTEST
from mlcd_bench.problems import Problem
from mlcd_bench.simulated import JOBS
from mlcd_bench.train import Result, Setting, run

pytestmark = pytest.mark.night  # a study

SEEDS = 3


@cache
def scenarios() -> tuple[Outcome, list[tuple[Case, int, Result]]]:
    study = STUDIES["three-scenarios"]
    played = list(play(study, SEEDS))
    return conclude(study, SEEDS, played), played


def numbers(document: Any) -> list[float]:
    """Every number anywhere in a document."""
    if isinstance(document, dict):
        return [number for value in document.values() for number in numbers(value)]
    if isinstance(document, list | tuple):
        return [number for value in document for number in numbers(value)]
    return [document] if isinstance(document, int | float) else []


@pytest.mark.night
@pytest.mark.parametrize("name", STUDIES)
def test_every_study_runs_and_gives_finite_numbers(name: str):
    study = STUDIES[name]
    outcome = conduct(study, 1)
    document = outcome.document()
    assert json.loads(json.dumps(document, allow_nan=False))["study"] == name
    assert all(isfinite(number) for number in numbers(document))
    assert len(document["claims"]) == sum(len(claim.who) for claim in study.claims) > 0
    assert {claim["verdict"] for claim in document["claims"]} <= set(Verdict)
    labels = [entrant.label for entrant in study.entrants]
    assert [(row.case, row.entrant) for row in outcome.standings] == [
        (case.label, label) for case in study.cases(0) for label in labels
    ]
    for row in outcome.standings:
        assert 0 <= row.over <= row.runs == 1
        assert (row.total_hours is None) == (row.chose == 0) == (row.training_over_optimum is None)
    assert len(outcome.traces) == len(study.traced) * len(study.cases(0))


def test_every_figure_of_the_evaluation_has_a_study():
    assert {figure for study in STUDIES.values() for figure in study.figures} >= set(range(9, 20))


@pytest.mark.parametrize("written", ["fig-9", "fig9", "Fig. 9", "figure 9", "9", "fig-11", "three-scenarios"])
def test_a_study_is_found_by_its_name_or_its_figure(written: str):
    assert [study.name for study in find(written)] == ["three-scenarios"]


def test_a_figure_may_have_several_studies_and_all_is_every_one():
    assert [study.name for study in find("fig-18")] == ["budget-sweep-few", "budget-sweep", "full-space"]
    assert [study.name for study in find("all")] == list(STUDIES)


def test_an_unknown_study_suggests_the_nearest():
    with pytest.raises(UnknownName, match="unknown study 'three-scenario': did you mean 'three-scenarios'"):
        find("three-scenario")
    with pytest.raises(UnknownName, match="unknown study 'fig-7'"):
        find("fig-7")


def test_the_page_about_them_has_every_study():
    page = (Path(__file__).parents[2] / "docs" / "methods" / "paper.md").read_text(encoding="utf-8")
    assert [name for name in STUDIES if f"`{name}`" not in page] == []


# What is measured, by brute force from the runs and the recordings


def probing_hours(problem: Problem, result: Result) -> float:
    """Ten minutes for a node and one more for each three further ones; half of that where it fails."""
    rates = {(c.offer.instance_type, c.nodes): p.samples_per_s for c, p in problem.recording.points.items()}
    minutes = 0.0
    for probe in result.probes:
        place = (probe["instance_type"], probe["nodes"])
        minutes += (10 + (probe["nodes"] - 1) / 3) * (1.0 if rates[place] is not None else 0.5)
    return minutes / 60


def training(problem: Problem, instance_type: str, nodes: int) -> tuple[float, float]:
    """Hours and dollars of training."""
    for configuration, point in problem.recording.points.items():
        if (configuration.offer.instance_type, configuration.nodes) == (instance_type, nodes):
            assert point.samples_per_s is not None
            hours = problem.recording.work_samples / point.samples_per_s / 3_600
            return hours, hours * nodes * configuration.offer.usd_per_hour
    raise AssertionError(f"{nodes} x {instance_type} is not there")


def by_hand(case: str, method: str) -> list[tuple[Problem, Result]]:
    return [(c.problem, result) for c, _, result in scenarios()[1] if (c.label, result.method) == (case, method)]


def found(figure: str, told: str, who: str) -> float | None:
    """The value that the study reports."""
    (value,) = [
        finding.measured.value
        for finding in scenarios()[0].findings
        if (finding.claim.figure, finding.claim.short, finding.who) == (figure, told, who)
    ]
    return value


@pytest.mark.parametrize("who", ["heterbo", "net-value"])
def test_the_share_of_profiling_is_that_of_the_probes(who: str):
    ours = [probing_hours(*pair) for pair in by_hand(FASTEST, who)]
    theirs = [probing_hours(*pair) for pair in by_hand(FASTEST, "convbo")]
    ratios = sorted(b / a for a, b in zip(ours, theirs, strict=True))
    assert found("Fig. 9", "6.25x less (16 %)", who) == pytest.approx(ratios[SEEDS // 2])


@pytest.mark.parametrize("who", ["heterbo", "net-value"])
def test_the_distance_from_the_optimum_is_that_of_the_best_of_all_configurations(who: str):
    ratios = []
    for problem, result in by_hand(FASTEST, who):
        assert result.chosen is not None
        best = min(training(problem, c.offer.instance_type, c.nodes)[0] for c in problem.recording.points)
        ratios.append(training(problem, *result.chosen)[0] / best)
    assert found("Fig. 9", "the optimum", who) == pytest.approx(sorted(ratios)[SEEDS // 2])


def test_the_excess_of_convbo_follows_from_its_probes_and_choice():
    hours, usd = [], []
    for problem, result in by_hand(DEADLINE, "convbo"):
        assert result.chosen is not None
        hours.append((probing_hours(problem, result) + training(problem, *result.chosen)[0]) / 6)
    for _, result in by_hand(BUDGET, "convbo"):
        usd.append(result.total_usd / 100)
    assert found("Fig. 10", "1.57x the limit", "convbo") == pytest.approx(sorted(hours)[SEEDS // 2])
    assert found("Fig. 11", "2.25x the limit", "convbo") == pytest.approx(sorted(usd)[SEEDS // 2])


def test_the_limits_are_the_papers_and_as_tight_as_documented():
    problems = {case.label: case.problem for case in STUDIES["three-scenarios"].cases(0)}
    assert problems[DEADLINE].limit == pytest.approx(6.0)
    assert min(hours for _, hours, _ in finishes(problems[DEADLINE].recording)) == pytest.approx(6 / LIMIT_FACTOR)
    assert problems[BUDGET].limit == pytest.approx(100.0)
    assert min(usd for _, _, usd in finishes(problems[BUDGET].recording)) == pytest.approx(100 / LIMIT_FACTOR)


# The rules


def test_who_chooses_nothing_has_no_advantage_whatever_little_it_probed():
    problem = STUDIES["three-scenarios"].cases(0)[0].problem
    rival = replace(RandomProbes(3).play(problem, 0), method="rival")
    refused = replace(rival, method="ours", chosen=None, ratio=None, probing_hours=0.1, total_hours=0.1)
    runs = Runs(1, {("c", 0): problem}, {("c", "ours", 0): refused, ("c", "rival", 0): rival})
    assert advantages(runs, "c", "ours", "rival", "total_hours") == [0.0]
    assert advantages(runs, "c", "ours", "rival", "probing_hours") == [0.0]
    assert keeps_limit("c")(runs, "ours").verdict is Verdict.FAILS
    assert optimality("c")(runs, "ours").value is None
    assert optimality("c")(runs, "ours").verdict is Verdict.FAILS


def test_a_claim_holds_is_smaller_or_does_not_hold():
    assert [at_least([x], 3.0).verdict for x in (3.0, 2.9, 1.0, 0.5)] == ["holds", "smaller", *["does not hold"] * 2]
    assert at_least([], 3.0).verdict is Verdict.FAILS
    assert [at_most([x], 9).verdict for x in (9, 10)] == ["holds", "does not hold"]
    assert [every_run([True, True, b, c]).verdict for b, c in ((True, True), (True, False), (False, False))] == [
        "holds", "in part", "in part",
    ]  # fmt: skip
    assert every_run([True, False, False]).verdict is Verdict.FAILS


# Who plays, and where


def test_six_random_probes_equal_the_method_random():
    problem = STUDIES["three-scenarios"].cases(1)[2].problem
    assert replace(RandomProbes(6).play(problem, 1), method="random", certified=True) == replace(
        run(problem, "random", 1, Setting()), certified=True
    )


def test_the_optimum_takes_what_the_oracle_takes():
    for case in STUDIES["paleo"].cases(0):
        result = Optimum().play(case.problem, 0)
        assert (result.ratio, result.total_hours) == (pytest.approx(1), pytest.approx(case.problem.oracle_hours))
        assert not result.violated
        assert not result.probes


def test_cherrypick_gets_the_best_types_and_is_judged_on_the_whole_space():
    problem = STUDIES["cherrypick"].cases(0)[1].problem
    alone, best = favoured(problem, 1), optimum(problem).offer
    assert alone.space.offers == (best,)
    assert (alone.oracle_usd, alone.job, alone.limit) == (problem.oracle_usd, problem.job, problem.limit)
    assert len(favoured(problem, 13).space.offers) == 13
    assert set(alone.recording.points) == {c for c in problem.recording.points if c.offer == best}


def test_the_testbed_is_that_of_the_paper():
    recording = cloud.testbed(JOBS["resnet"], 0)
    most: dict[str, int] = {}
    for configuration in recording.points:
        family = configuration.offer.instance_type.partition(".")[0]
        most[family] = max(most.get(family, 0), configuration.nodes)
    assert most == {"c4": 100, "c5": 100, "c5n": 100, "p2": 50, "p3": 50}
    assert len(recording.space.offers) == 25


@pytest.mark.parametrize(("size", "billions"), [("8B", 8), ("20B", 20)])
def test_the_largest_models_run_where_all_devices_together_hold_their_state(size: str, billions: float):
    layers, hidden = LAYERS[size]
    assert 12 * layers * hidden**2 == pytest.approx(billions * 1e9, rel=0.03)
    points = {(c.offer.instance_type, c.nodes): p.samples_per_s for c, p in spread(size, 0).points.items()}
    state_gb, one_gb = 16 * billions, layers * hidden * 1_024 * 2 / 1e9
    for nodes in range(1, 51):
        fits = state_gb / (8 * nodes) + one_gb <= 16
        tight = abs(state_gb / (8 * nodes) + one_gb - 16) < 0.5
        assert tight or (points["p3.16xlarge", nodes] is not None) == fits


def test_the_same_seeds_give_the_same_numbers():
    study = STUDIES["random-search"]
    assert conduct(study, 2).document() == conduct(study, 2).document()


# The command


def test_without_a_name_the_studies_are_listed(mlcd: Any):
    answer = mlcd("bench", "paper")
    assert answer.code == 0
    assert all(name in answer.out for name in STUDIES)
    assert "Fig. 9-11" in answer.out
    rows = mlcd("bench", "paper", "-o", "json").document["studies"]
    assert [(row["study"], row["figures"]) for row in rows] == [(s.name, list(s.figures)) for s in STUDIES.values()]


def test_json_equals_the_study(mlcd: Any):
    answer = mlcd("bench", "paper", "fig-12", "--seeds", "2", "-o", "json")
    assert answer.code == 0
    (document,) = answer.document["studies"]
    assert document == json.loads(json.dumps(conduct(STUDIES["random-search"], 2).document()))


def test_the_table_sets_the_papers_words_beside_the_verdict(mlcd: Any):
    answer = mlcd("bench", "paper", "search-traces", "--seeds", "1")
    assert answer.code == 0
    for words in ("in 9 steps", "keeps $120", "VERDICT", "holds", "net-value", "the optimum is", "Seeds 0..0"):
        assert words in answer.out
    assert "Fig. 15" not in answer.err


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("serch-traces", "did you mean 'search-traces'?"),
        ("fig-99", "did you mean 'fig-9'?"),
        ("nonsense", "known: all"),
    ],
)
def test_an_unknown_study_is_one_line(mlcd: Any, written: str, told: str):
    complaint = mlcd("bench", "paper", written).complaint
    assert f"unknown study '{written}': " in complaint
    assert told in complaint


def test_no_seeds_are_refused(mlcd: Any):
    assert "--seeds" in mlcd("bench", "paper", "fig-9", "--seeds", "0").complaint
