"""What earlier runs and the saved work of probes change, and what they must not change."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

import pytest
from mlcd_fixtures.planned import planned_job, planned_task

from mlcd.core.configuration import Choice, Space
from mlcd.core.job import Goal, Job, Objective, Search
from mlcd.core.launch_spread import NO_REPEATS, repeat_log_likelihoods
from mlcd.core.ledger import Account, Ledger, Started
from mlcd.core.ledger.entries import from_json, to_json
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.runs.run import start
from mlcd.memory.earlier_runs import earlier_launch_spread, earlier_measurements
from mlcd.planners.train.net_value import NetValue
from mlcd.planners.train.nouns import PlanKnob
from mlcd.service.workers.submissions import to_json as to_asked
from mlcd.testing.clouds import bounded_cloud, job_on, small_recording
from mlcd.testing.promises import search_and_run

SEARCH = Search(nodes=(1, 4), instances=("g4dn.*", "g5.*", "p3.*"))
JOB = Job("resnet", 2e7, Goal(Objective.CHEAPEST, deadline_s=48 * 3_600), search=SEARCH, task={"run": "python a.py"})
SMALL = small_recording([[100.0, 180.0, 240.0], [300.0, 500.0, 900.0], [50.0, 80.0, 120.0]], [1.0, 2.5, 0.8], 2e7)


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger.db")


def searched(job, ledger):
    run = start(job, ledger)
    run.search()
    return run.book.account


def test_a_second_run_of_the_same_job_gets_the_measurements_of_the_first(ledger):
    first = searched(JOB, ledger)
    second = searched(replace(JOB, work_samples=4e7, goal=Goal(Objective.FASTEST)), ledger)
    assert not first.history.known
    assert {(m.configuration, m.rate) for m in second.history.known if m.ok} == {
        (m.configuration, m.rate) for m in first.history.good
    }
    assert all(m.usd == 0 for m in second.history.known)
    assert ledger.account("resnet-2").history.known == second.history.known


def test_it_needs_fewer_probes_for_an_equally_good_decision(ledger):
    first, second = searched(JOB, ledger), searched(JOB, ledger)
    assert len(second.history.measurements) < len(first.history.measurements)
    assert second.decision.certified
    assert second.history.spent_usd < first.history.spent_usd


@pytest.mark.parametrize(
    "other",
    [
        replace(JOB, task={"run": "python b.py"}),
        replace(JOB, search=replace(SEARCH, seed=7)),
        replace(JOB, search=replace(SEARCH, earlier=False)),
        replace(JOB, name="another"),
    ],
    ids=["another command", "another simulated cloud", "not wanted", "another name"],
)
def test_another_job_gets_no_measurements(ledger, other):
    searched(JOB, ledger)
    assert not searched(other, ledger).history.known


def test_a_model_trained_by_plans_is_known_by_its_plans_its_sequences_and_its_adapters(ledger):
    gpus = Search(nodes=(1, 2), instances=("p4d.24xlarge", "g5.12xlarge"))
    few = planned_task(knobs=(PlanKnob("sharding", ("none", "zero3"), env="ZERO"),))
    job = planned_job(few, goal=Goal(Objective.CHEAPEST, budget_usd=2_000.0), search=gpus)
    first = searched(job, ledger)
    more = replace(few, knobs=(*few.knobs, PlanKnob("checkpointing", ("none", "full"), env="CKPT")))
    again = searched(replace(job, ask=more), ledger)
    outcomes = {m.configuration: m.outcome for m in first.history.measurements}
    assert {m.configuration: m.outcome for m in again.history.known} == outcomes
    for other in (replace(few, sequence=2_048), replace(few, lora_rank=64)):
        assert not searched(replace(job, ask=other), ledger).history.known


def test_prices_are_those_of_today(ledger):
    account = searched(JOB, ledger)
    dearer = tuple(
        Choice(replace(choice.offer, usd_per_hour=2 * choice.offer.usd_per_hour), choice.nodes)
        for choice in account.space.choices
    )
    space = Space(dearer)
    known = earlier_measurements(ledger, JOB, space)
    assert known
    assert all(m.configuration in space.index for m in known)


def test_machines_of_another_size_are_not_those_of_the_same_name(ledger):
    """Node types of a file of one's own may be changed from one run to the next."""
    account = searched(JOB, ledger)
    for changed in ({"memory_gb": 1.0}, {"vcpus": 1.0}, {"accelerators": 9}):
        smaller = tuple(Choice(replace(choice.offer, **changed), choice.nodes) for choice in account.space.choices)
        assert earlier_measurements(ledger, JOB, Space(smaller)) == ()


def test_a_damaged_run_is_passed_over(ledger, tmp_path):
    searched(JOB, ledger)
    with sqlite3.connect(tmp_path / "ledger.db") as db:
        db.execute("DROP TRIGGER IF EXISTS entries_are_final")
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            db.execute(f"DROP TRIGGER {name}")
        db.execute("UPDATE entries SET body = 'x' WHERE kind = 'settled'")
    assert earlier_measurements(ledger, JOB, Space(())) == ()
    assert searched(JOB, ledger).decision is not None


def test_earlier_measurements_alone_certify_nothing():
    job = job_on(SMALL, Goal(Objective.CHEAPEST, deadline_s=1.0))
    known = tuple(Measurement(c, Outcome.OK, 0.0, 0.0, 1e9) for c in SMALL.space.configurations)
    _, _, decision = search_and_run(NetValue(), job, bounded_cloud(SMALL, 0.0, 0), known)
    assert decision.configuration is None


@pytest.mark.parametrize("parallel", [1, 4])
def test_the_final_run_does_only_work_that_no_probe_has_saved(parallel):
    job = job_on(SMALL, Goal())
    paid = {}
    for checkpoints in (False, True):
        strategy = NetValue(parallel=parallel)
        ledger, run, _ = search_and_run(strategy, replace(job, checkpoints=checkpoints), bounded_cloud(SMALL, 0.0, 0))
        history = ledger.account(run).history
        paid[checkpoints] = history
        saved = max((m.saved_samples for m in history.measurements), default=0.0)
        assert history.runs[-1].samples_done == pytest.approx(job.work_samples - saved)
        assert (saved > 0) == checkpoints
        assert history.saved_samples == pytest.approx(job.work_samples if checkpoints else 0.0)
    assert paid[True].elapsed_s < paid[False].elapsed_s


def test_saved_work_of_sequential_probes_adds_up():
    job = replace(job_on(SMALL, Goal()), checkpoints=True)
    ledger, run, _ = search_and_run(NetValue(), job, bounded_cloud(SMALL, 0.0, 0))
    probes = ledger.account(run).history.measurements
    saved = [m.saved_samples for m in probes]
    assert saved == pytest.approx([sum(m.samples_done for m in probes[: i + 1]) for i in range(len(probes))])


def launches(account):
    return (*account.history.measurements, *account.history.runs)


def test_how_far_launches_differ_is_learnt_from_runs_of_any_job_at_the_same_place(ledger):
    run = start(JOB, ledger)
    run.search()
    run.launch()  # of what was probed: a second launch
    first = repeat_log_likelihoods(launches(run.book.account))
    assert first != NO_REPEATS
    second = searched(replace(JOB, name="another", task={"run": "python b.py"}), ledger)
    assert second.history.seen_before == pytest.approx(first)
    assert ledger.account("another-1") == second
    third = searched(JOB, ledger)
    both = [sum(pair) for pair in zip(first, repeat_log_likelihoods(launches(second)), strict=True)]
    assert third.history.seen_before == pytest.approx(both)


def test_other_members_runs_at_the_same_place_do_not_affect_certificates(ledger):
    for member in ("eve", "ada"):
        name = ledger.submit(JOB.name, to_asked(JOB, False), member)
        run = start(JOB, ledger, run=name)
        assert run.book.account.history.seen_before == NO_REPEATS
        run.search()
        run.launch()
    again = start(JOB, ledger, run=ledger.submit(JOB.name, to_asked(JOB, False), "ada"))
    assert again.book.account.history.seen_before != NO_REPEATS


@pytest.mark.parametrize(
    "other",
    [replace(JOB, search=replace(SEARCH, seed=7)), replace(JOB, search=replace(SEARCH, earlier=False))],
    ids=["another simulated cloud", "not wanted"],
)
def test_another_place_has_no_observations(ledger, other):
    run = start(JOB, ledger)
    run.search()
    run.launch()
    assert searched(other, ledger).history.seen_before == NO_REPEATS
    assert earlier_launch_spread(ledger, replace(JOB, on="recorded:/elsewhere/simulated")) == NO_REPEATS


def test_runs_from_before_launches_were_compared_still_open(ledger):
    started = ledger.lines(start(JOB, ledger).name)[0].entry
    assert isinstance(started, Started)
    text = to_json(started).replace(to_json(started)[to_json(started).index(',"seen_before"') :], ',"kind":"started"}')
    assert "seen_before" not in text
    for old in (from_json(text), replace(started, seen_before=(1.0, 2.0))):  # and those that counted otherwise
        assert Account().after(old, 0.0).history.seen_before == NO_REPEATS
