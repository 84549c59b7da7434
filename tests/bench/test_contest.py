"""The contest: raw and guarded, journals, crashes, and problems that follow from a recording."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from mlcd.clouds.recorded import Recorded
from mlcd.clouds.recording import Recording
from mlcd.clouds.simulated import Simulated
from mlcd.core.backend import Launch, Purpose
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Space
from mlcd.core.errors import UnknownName, UserError
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.measurement import Ended, Outcome
from mlcd.core.strategy import Finish, Probe, Step
from mlcd.planners.train.planner import METHODS
from mlcd.testing.clouds import small_recording
from mlcd_bench.contest import Crash, contest, tasks
from mlcd_bench.failing import Failing
from mlcd_bench.journal import Journal
from mlcd_bench.methods import entrants, parse_methods
from mlcd_bench.problems import Problem, Scenario, problems, rescaled, training_hours
from mlcd_bench.simulated import JOBS, offers, simulated, simulated_recordings
from mlcd_bench.train import Result, Setting, run

KEYS = [
    "recording", "scenario", "limit_factor", "limit", "method", "seed", "probes", "chosen", "certified", "probing_usd",
    "probing_hours", "total_usd", "total_hours", "oracle_usd", "oracle_hours", "ratio", "violated",
]  # fmt: skip
EXACT = Setting(noise=0.0)


@dataclass(frozen=True)
class RandomPolicy:
    """Probes everything, then chooses the fastest, whatever the limit."""

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        left = [c for c in space.configurations if c not in history.tried]
        if left:
            return Probe(left[0], "why not")
        return Finish("seen it all", max(history.good, key=lambda m: m.rate).configuration)


@dataclass(frozen=True)
class Guessing:
    """Never probes, and chooses the largest."""

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        return Finish("a guess", space.configurations[-1])


@dataclass(frozen=True)
class Broken:
    """Has a bug on some problems; with the worst of them its process dies."""

    fatal: bool = False

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        if job.goal.budget_usd is not None:
            if self.fatal:
                os._exit(9)
            raise ZeroDivisionError("a bug")
        return Finish("fine", space.configurations[0])


@pytest.fixture(autouse=True)
def methods(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, strategy in (
        ("reckless", RandomPolicy()),
        ("guessing", Guessing()),
        ("broken", Broken()),
        ("deadly", Broken(fatal=True)),
    ):
        monkeypatch.setitem(METHODS.built_in, name, lambda seed, strategy=strategy: strategy)


@pytest.fixture
def tiny() -> Recording:
    """Two types: a cheap slow one, and a fast one that costs more than it brings; its largest size fails."""
    rates = [[10.0, 19.0, 27.0, 34.0], [30.0, 50.0, 60.0, None]]
    return small_recording(rates, [1.0, 8.0], work_samples=500_000)


def budgeted(recording: Recording, factor: float = 1.3) -> Problem:
    return problems([recording], [Scenario.FASTEST_WITHIN_BUDGET], [factor])[0]


def test_what_a_reckless_method_violates_raw_it_does_not_under_the_guard(tiny: Recording):
    problem = budgeted(tiny, 1.45)
    raw = run(problem, "reckless", 0, EXACT)
    assert (raw.chosen, raw.violated, raw.certified) == (("type-1", 3), True, False)
    assert len(raw.probes) == len(tiny.points)
    guarded = run(problem, "reckless+guard", 0, EXACT)
    assert (guarded.method, guarded.violated, guarded.certified) == ("reckless+guard", False, True)
    assert guarded.chosen is not None
    assert len(guarded.probes) < len(raw.probes)


def test_a_guarded_method_that_measured_nothing_chooses_nothing(tiny: Recording):
    guarded = run(budgeted(tiny), "guessing+guard", 0, EXACT)
    assert (guarded.chosen, guarded.ratio, guarded.certified, guarded.violated) == (None, None, False, False)


def test_a_raw_choice_that_does_not_run_is_kept_and_has_no_ratio(tiny: Recording):
    raw = run(budgeted(tiny), "guessing", 0, EXACT)
    assert (raw.chosen, raw.ratio, raw.certified) == (("type-1", 4), None, False)
    assert (raw.total_usd, raw.total_hours, raw.violated) == (0.0, 0.0, False)


def test_an_unmeasured_raw_choice_is_paid_at_its_recorded_rate(tiny: Recording):
    points = {c: p for c, p in tiny.points.items() if p.samples_per_s is not None}
    problem = budgeted(replace(tiny, points=points), 1.2)
    raw = run(problem, "guessing", 0, EXACT)
    hours = 500_000 / 60 / 3_600
    assert raw.chosen == ("type-1", 3)
    assert (raw.total_hours, raw.total_usd) == pytest.approx((hours, hours * 24))
    assert raw.ratio == pytest.approx(hours / problem.oracle_hours)
    assert raw.violated


def test_ratios_follow_from_probes_and_choice(tiny: Recording):
    for problem in problems([tiny], list(Scenario), [1.5, 3.0]):
        for name in ("reckless", "reckless+guard", "heterbo", "heterbo+guard"):
            result = run(problem, name, 1, Setting(0.03))
            assert list(result.document()) == KEYS
            places = {(c.offer.instance_type, c.nodes): c for c in tiny.points}
            hours = usd = 0.0
            for i, probe in enumerate(result.probes):
                assert (probe["fraction"], probe["round"]) == (1.0, i)
                place = places[probe["instance_type"], probe["nodes"]]
                whole = training_hours(tiny, place) is not None
                took = (600 + 60 * (place.nodes - 1) / 3) / 3_600 * (1 if whole else 0.5)
                hours, usd = hours + took, usd + took * place.usd_per_hour
            assert (result.probing_hours, result.probing_usd) == pytest.approx((hours, usd))
            if result.chosen is not None:
                place = places[result.chosen]
                training = training_hours(tiny, place)
                assert training is not None
                hours, usd = hours + training, usd + training * place.usd_per_hour
                cheapest = problem.scenario is Scenario.CHEAPEST_BY_DEADLINE
                assert result.ratio == pytest.approx(
                    usd / problem.oracle_usd if cheapest else hours / problem.oracle_hours
                )
            assert (result.total_hours, result.total_usd) == pytest.approx((hours, usd))


def test_names_are_methods_raw_and_guarded():
    assert parse_methods("all") == entrants()
    assert {"heterbo", "heterbo+guard"} <= set(entrants())
    assert parse_methods("heterbo+guard, heterbo,heterbo") == ["heterbo+guard", "heterbo"]
    with pytest.raises(UnknownName, match=r"did you mean 'heterbo\+guard'"):
        parse_methods("heterbo+gaurd")


def test_rescaled_jobs_take_so_many_hours_at_best(tiny: Recording):
    scaled = rescaled([tiny], [1, 20])
    assert [recording.name for recording in scaled] == ["small@1h", "small@20h"]
    for recording, hours in zip(scaled, (1, 20), strict=True):
        fastest = [training_hours(recording, configuration) for configuration in recording.points]
        assert min(hour for hour in fastest if hour is not None) == pytest.approx(hours)


def test_a_recording_beyond_fifty_nodes_is_searched_whole(tiny: Recording):
    rates = [[float(n) for n in range(1, 61)]]
    problem = problems([small_recording(rates, [1.0])], [Scenario.FASTEST], [])[0]
    assert problem.job.search.nodes == (1, 60)
    assert max(configuration.nodes for configuration in problem.space.configurations) == 60


def test_probes_fail_in_the_requested_share_and_reproducibly(tiny: Recording):
    clock = VirtualClock()
    backend = Failing(Recorded(tiny, clock, 0.03), clock, tiny.probe_time, 0.25, seed=3)
    configuration = next(iter(tiny.points))
    launches = [Launch("x", configuration, Purpose.PROBE, 1.0, 600.0, ordinal) for ordinal in range(800)]
    failed = [backend.fails(launch) for launch in launches]
    assert 0.2 < sum(failed) / len(failed) < 0.3
    assert failed == [backend.fails(launch) for launch in launches]
    assert failed != [replace(backend, seed=4).fails(launch) for launch in launches]
    job = problems([tiny], [Scenario.FASTEST], [])[0].job
    unlucky, lucky = launches[failed.index(True)], launches[failed.index(False)]
    assert list(backend.run(job, unlucky)) == [Ended(300.0, Outcome.LAUNCH_FAILED, "failed by chance")]
    assert list(backend.run(job, lucky)) == list(Recorded(tiny, VirtualClock(), 0.03).run(job, lucky))


def test_a_contest_with_failing_probes_is_repeatable_and_keeps_its_limits(tiny: Recording):
    setting = Setting(0.03, failures=0.3)
    for seed in range(5):
        once = run(budgeted(tiny, 2.0), "reckless+guard", seed, setting)
        assert once == run(budgeted(tiny, 2.0), "reckless+guard", seed, setting)
        assert not once.violated
    places = [(p["instance_type"], p["nodes"]) for p in run(budgeted(tiny), "reckless", 0, setting).probes]
    assert len(places) > len(set(places))  # bad luck is tried again


def test_the_simulated_recording_is_what_the_simulated_cloud_does():
    assert len(offers()) == 62
    recording, job = simulated("bert"), JOBS["bert"]
    backend = Simulated(VirtualClock(), 0)
    assert len(recording.points) == 62 * 50
    for configuration, point in list(recording.points.items())[::37]:
        assert (point.outcome is Outcome.OK) == backend.fits(job, configuration)
        if point.samples_per_s is not None:
            assert point.samples_per_s == pytest.approx(backend.true_samples_per_s(job, configuration), rel=1e-12)
    known = problems([recording], [Scenario.FASTEST], [])[0].job
    assert (known.hints, known.communication) == (job.hints, job.communication)


def test_simulated_jobs_are_found_by_name_and_all_can_run():
    assert [r.name for r in simulated_recordings("simulated:char-rnn")] == ["simulated-char-rnn"]
    for recording in simulated_recordings("simulated"):
        assert any(point.samples_per_s is not None for point in recording.points.values())
    with pytest.raises(UnknownName, match="did you mean 'bert'"):
        simulated_recordings("simulated:brt")


def test_a_rerun_skips_journaled_results_and_ends_the_same(tiny: Recording, tmp_path: Path):
    found = problems([tiny], list(Scenario), [3.0])
    todo = tasks(found, ["reckless", "heterbo+guard"], range(2))
    file = tmp_path / "results.jsonl"
    fresh = dict(contest(found, todo, Setting()))
    journal = Journal(file)
    half = list(contest(found, todo[:5], Setting(), journal=journal))
    journal.close()
    assert len(file.read_text().splitlines()) == len(half) == 5
    file.write_text(file.read_text() + '{"setting": {"noi')  # as a crash leaves it
    journal = Journal(file)
    assert dict(contest(found, todo, Setting(), journal=journal)) == fresh
    journal.close()
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(lines) == len(todo)
    assert list(lines[0]) == ["setting", *KEYS]


def test_a_journal_is_not_reused_for_another_setting_or_recording(tiny: Recording, tmp_path: Path):
    problem = budgeted(tiny)
    journal = Journal(tmp_path / "results.jsonl")
    journal.add(run(problem, "reckless", 0, EXACT), EXACT)
    journal.close()
    journal = Journal(tmp_path / "results.jsonl")
    assert journal.find(problem, "reckless", 0, EXACT) is not None
    assert journal.find(problem, "reckless", 1, EXACT) is None
    assert journal.find(problem, "reckless", 0, Setting(0.0, 0.1)) is None
    assert journal.find(budgeted(replace(tiny, work_samples=1.0)), "reckless", 0, EXACT) is None
    journal.close()


def test_an_invalid_journal_is_reported_with_its_line(tmp_path: Path):
    (tmp_path / "notes.jsonl").write_text('{"hello": 1}\n')
    with pytest.raises(UserError, match=r"notes\.jsonl:1: not a result"):
        Journal(tmp_path / "notes.jsonl")


@pytest.mark.parametrize(("name", "processes"), [("broken", 1), ("broken", 2), ("deadly", 2)])
def test_a_crash_in_one_run_does_not_lose_the_others(tiny: Recording, name: str, processes: int):
    found = problems([tiny], [Scenario.FASTEST, Scenario.FASTEST_WITHIN_BUDGET], [3.0])
    todo = tasks(found, [name, "guessing"], range(2))
    outcomes = dict(contest(found, todo, EXACT, processes))
    assert set(outcomes) == set(todo)
    for task, outcome in outcomes.items():
        crashes = task.method == name and task.problem == 1
        assert isinstance(outcome, Crash if crashes else Result)
        if isinstance(outcome, Crash):
            assert ("a bug" if name == "broken" else "the process died") in str(outcome)
