"""What one probe may cost (`max_probe`), and what may be rented by the hour (`max_hourly`)."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.core.errors import UserError
from mlcd.core.guarantee import allowed_probes, decide, refusal
from mlcd.core.history import History
from mlcd.core.job import Goal, Hints, Job, Objective, Search
from mlcd.core.ledger import Ledger, Reserved
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.place import cloud
from mlcd.core.runs.run import start, what_if, with_probe_limit
from mlcd.planners.form.jobs import job_from_text
from mlcd.planners.jobfile.read import load_job
from mlcd.planners.modeling.outlook import SHARE, usual_probe_limit
from mlcd.planners.train.planner import METHODS, method
from mlcd.reports.words import decision_words
from mlcd.testing.clouds import bounded_cloud, job_on, small_recording
from mlcd.testing.promises import check_promises, search_and_run

LADDER = small_recording([[10.0, 20.0, 40.0], [30.0, 60.0, 120.0]], [1.0, 6.0], work_samples=1e6)
JOB = "name: j\nmlcd:\n  work: 1M\n  budget: $100\n"


def limited(max_probe: float | None = None, max_hourly: float | None = None, goal: Goal | None = None) -> Job:
    return replace(job_on(LADDER, goal), search=Search(max_probe_usd=max_probe, max_hourly_usd=max_hourly))


limits = st.one_of(st.none(), st.floats(0.1, 20.0))


@given(limits, limits, st.one_of(st.none(), st.floats(0.1, 20.0)))
def test_the_vectorized_rule_agrees_with_the_rule_for_one(max_probe, max_hourly, budget) -> None:
    job = limited(max_probe, max_hourly, Goal(Objective.CHEAPEST, budget))
    mask = allowed_probes(job, LADDER.space, History())
    for i, configuration in enumerate(LADDER.space.configurations):
        assert mask[i] == (refusal(job, LADDER.space, History(), [configuration]) is None)


@given(st.sampled_from(sorted(METHODS)), limits, limits, st.sampled_from([None, 60.0, 300.0]), st.integers(0, 9))
def test_no_method_makes_a_probe_beyond_the_limits(name, max_probe, max_hourly, budget, seed) -> None:
    job = limited(max_probe, max_hourly, Goal(Objective.CHEAPEST, budget))
    strategy = method(Search(name, seed=seed, parallel=3))
    ledger, run, _ = search_and_run(strategy, job, bounded_cloud(LADDER, 0.03, seed))
    check_promises(strategy, job, ledger.lines(run))
    probes = [
        line.entry
        for line in ledger.lines(run)
        if isinstance(line.entry, Reserved) and line.entry.launch.purpose == "probe"
    ]
    for probe in probes:
        together = [other.launch.configuration for other in probes if other.launch.round == probe.launch.round]
        assert max_probe is None or probe.worst_usd <= max_probe
        assert max_hourly is None or sum(c.usd_per_hour for c in together) <= max_hourly


def test_a_round_keeps_the_hourly_limit_in_sum_and_the_probe_limit_for_each() -> None:
    one, two = LADDER.space.configurations[:2]
    worst = LADDER.space.worst_probe(two)[1]
    assert refusal(limited(max_probe=worst), LADDER.space, History(), [one, two]) is None
    assert refusal(limited(max_hourly=3.0), LADDER.space, History(), [one, two]) is None
    together = refusal(limited(max_hourly=2.5), LADDER.space, History(), [one, two])
    assert together is not None
    assert "$3.00 an hour" in together
    assert "--max-hourly 3.00" in together


def test_a_refused_probe_names_the_limit_and_how_to_raise_it() -> None:
    dear = LADDER.space.configurations[-1]
    usd = LADDER.space.worst_probe(dear)[1]
    words = refusal(limited(max_probe=0.5), LADDER.space, History(), [dear])
    assert words is not None
    assert "max_probe" in words
    assert "$0.50" in words
    raised = float(words.rpartition("--max-probe ")[2])
    assert usd <= raised < usd + 0.01
    assert refusal(limited(max_probe=raised), LADDER.space, History(), [dear]) is None


def test_if_max_probe_makes_an_answer_impossible_it_says_so_and_names_the_cheapest_remedy() -> None:
    # Types have 4 and 8 vCPUs: at the same rate for each, the second is the cheaper place to finish.
    two_types = small_recording([[100.0], [200.0]], [1.0, 1.1], work_samples=1e6)
    job = replace(job_on(two_types, Goal(Objective.CHEAPEST, budget_usd=2.5)), search=Search(max_probe_usd=0.17))
    _, _, decision = search_and_run(method(Search()), job, bounded_cloud(two_types, 0.0, 0))
    assert decision.configuration is None
    assert decision_words(decision, job.goal).endswith(", or --max-probe 0.19 (to try 1 x type-1)")
    raised = replace(job, search=Search(max_probe_usd=0.19))
    _, _, again = search_and_run(method(Search()), raised, bounded_cloud(two_types, 0.0, 0))
    assert again.certified


def test_a_more_expensive_probe_that_would_not_help_is_not_suggested() -> None:
    two_types = small_recording([[100.0], [200.0]], [1.0, 6.0], work_samples=1e6)
    job = replace(job_on(two_types, Goal(Objective.CHEAPEST, budget_usd=2.5)), search=Search(max_probe_usd=0.17))
    _, _, decision = search_and_run(method(Search()), job, bounded_cloud(two_types, 0.0, 0))
    assert [way.max_probe_usd for way in decision.relaxations] == [None]


def test_what_ran_out_of_memory_is_not_suggested_and_max_probe_is_named() -> None:
    job = limited(max_probe=0.6, goal=Goal(Objective.CHEAPEST, budget_usd=500.0))
    small, middle, large = LADDER.space.configurations[:3]
    failed = tuple(Measurement(c, Outcome.OUT_OF_MEMORY, 0.0, 0.0) for c in (small, middle, large))
    decision = decide(job, LADDER.space, History(known=failed), "no probe was worth it")
    assert decision.binding == "max_probe, $0.60: no probe that it allows was worth its price"
    assert [str(way.configuration) for way in decision.relaxations] == ["1 x type-1"]


def test_if_no_probe_is_allowed_max_probe_is_the_binding_limit() -> None:
    job = limited(max_probe=0.01, goal=Goal(Objective.CHEAPEST, budget_usd=500.0))
    for name in METHODS:
        ledger, run, decision = search_and_run(method(Search(name)), job, bounded_cloud(LADDER, 0.0, 0))
        assert not ledger.account(run).history.measurements
        if decision.certified or decision.configuration is not None:  # chosen from published facts, without a probe
            continue
        assert "max_probe, $0.01" in decision.binding, name
        assert decision.relaxations[0].max_probe_usd == pytest.approx(LADDER.space.probe_usd.min())


def test_what_may_not_be_rented_by_the_hour_is_not_in_the_space() -> None:
    job = job_from_text("train", JOB, {"max_hourly": "$5"})
    space = cloud("simulated", job).space
    assert space.usd_per_hour.max() <= 5
    assert len(space) < len(cloud("simulated", job_from_text("train", JOB, {})).space)
    with pytest.raises(UserError, match=r"cheapest configuration costs .* --max-hourly \d"):
        cloud("simulated", job_from_text("train", JOB, {"max_hourly": "0.001"}))


@pytest.mark.parametrize(
    ("written", "probe", "hourly"),
    [
        ("{max_probe: $20, max_hourly: $50}", 20.0, 50.0),
        ("{max_probe: none, max_hourly: none}", math.inf, None),
        ("{}", None, None),
    ],
)
def test_the_job_file_says_both(tmp_path: Path, written: str, probe: float | None, hourly: float | None) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(f"{JOB}  search: {written}\n")
    job = load_job(path)
    assert (job.search.max_probe_usd, job.search.max_hourly_usd) == (probe, hourly)


@pytest.mark.parametrize("kind", ["train", "scale"])
def test_options_override_the_file(kind: str) -> None:
    text = f"{JOB}  search: {{max_probe: $20, max_hourly: $50}}\n"
    job = job_from_text(kind, text, {"max_probe": "$3", "max_hourly": "none"})
    assert (job.search.max_probe_usd, job.search.max_hourly_usd) == (3.0, None)
    assert job_from_text(kind, text, {"max_probe": "none"}).search.max_probe_usd == math.inf


@given(st.floats(0.01, 1e6))
def test_by_default_a_probe_may_cost_a_share_of_the_budget_and_at_least_the_cheapest_one(budget: float) -> None:
    job = job_on(LADDER, Goal(budget_usd=budget))
    job = with_probe_limit(job, usual_probe_limit(job, LADDER.space))
    assert job.search.max_probe_usd == max(SHARE * budget, LADDER.space.probe_usd.min())


def test_without_a_budget_it_is_a_share_of_the_cheapest_expected_finish() -> None:
    hints = Hints(parameters=25e6, flops_per_sample=12e9, global_batch=256)
    small, large = (
        usual_probe_limit(Job("j", work, hints=hints, search=Search(nodes=(1, 4))), LADDER.space)
        for work in (1e9, 1e10)
    )
    assert large == pytest.approx(10 * small)


def test_it_is_frozen_when_a_run_starts_and_none_stays_none() -> None:
    ledger = Ledger(None)
    usual = start(job_from_text("train", JOB, {"instances": "c5.*"}), ledger)
    assert ledger.account(usual.name).job.search.max_probe_usd == SHARE * 100
    unlimited = start(job_from_text("train", JOB, {"instances": "c5.*", "max_probe": "none"}), ledger)
    assert ledger.account(unlimited.name).job.search.max_probe_usd is None
    decision = usual.search()
    assert what_if(usual.name, ledger, usual.job.goal).configuration == decision.configuration
