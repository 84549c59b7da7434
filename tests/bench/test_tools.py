"""Tools people use today, as entrants of the contest. Each test needs its tool: pip install 'mlcd[bench]'."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mlcd.core.configuration import Choice, Configuration
from mlcd.core.errors import MissingExtra, UnknownName
from mlcd.core.history import History, Refusal
from mlcd.core.job import Goal, Objective
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.strategy import Finish, Probe, Strategy
from mlcd.testing.clouds import job_on, small_recording
from mlcd.testing.strategies import StrategyContract
from mlcd_bench.methods import check_installed, entrants, parse_methods, tools
from mlcd_bench.problems import Scenario, problems
from mlcd_bench.tools import TOOLS, tool
from mlcd_bench.tools.trials import FIRST, TRIALS, bounds, nearest, trials_of
from mlcd_bench.train import Setting, run

pytestmark = pytest.mark.night  # other tools in the same contest as ours

BRIEF = FIRST + 1
HIDDEN = ("optuna", "skopt", "smac", "botorch")


def made(name: str, seed: int = 0, **others) -> Strategy:
    """The tool's adapter, or a skip that says what to install."""
    try:
        return replace(tool(name, seed), **others)
    except MissingExtra as missing:
        pytest.skip(str(missing))


class ToolContract(StrategyContract):
    """The strategy contract with fewer trials on fewer clouds: the tools take their time."""

    name: str

    def strategy(self, seed: int) -> Strategy:
        return made(self.name, seed, trials=BRIEF)

    @pytest.mark.parametrize("seed", range(3))
    def test_it_keeps_every_promise_on_random_clouds(self, seed: int) -> None:
        super().test_it_keeps_every_promise_on_random_clouds(seed)


class TestOptunaTPE(ToolContract):
    name = "optuna-tpe"


class TestOptunaGP(ToolContract):
    name = "optuna-gp"


class TestScikitOptimize(ToolContract):
    name = "scikit-optimize"


class TestSMAC3(ToolContract):
    name = "smac3"


class TestBoTorch(ToolContract):
    name = "botorch"


def amdahl():
    """Three types by Amdahl's law, of unlike sizes; the best is inside the space."""
    nodes = np.arange(1, 13)
    rates = [(speed / (0.05 + 0.95 / nodes)).tolist() for speed in (10.0, 25.0, 60.0)]
    return small_recording(rates, [0.3, 1.0, 3.5], work_samples=5e7)


def measured(configuration: Configuration, rate: float | None, outcome: Outcome = Outcome.OUT_OF_MEMORY):
    ran = rate is not None
    return Measurement(
        configuration, Outcome.OK if ran else outcome, 600, configuration.usd(600), rate, 0.01 if ran else 0.0
    )


def history(recording, places):
    """These places measured, exactly as recorded."""
    shown = [recording.space.configurations[i] for i in places]
    return History(tuple(measured(c, recording.points[c].samples_per_s) for c in shown))


def raw(strategy, recording, goal=None):
    """Drive without any guard, probes showing exactly what was recorded: the last history, and the end."""
    job, seen = job_on(recording, goal or Goal()), ()
    for _ in range(2 * len(recording.points)):
        step = strategy.next_step(job, recording.space, History(seen))
        if isinstance(step, Finish):
            return History(seen), step
        assert isinstance(step, Probe)
        seen = (*seen, measured(step.configuration, recording.points[step.configuration].samples_per_s))
    raise AssertionError("it does not come to an end")


@pytest.mark.parametrize("name", TOOLS)
def test_it_makes_its_trials_and_takes_the_best_it_measured(name):
    end, step = raw(made(name), amdahl())
    assert len({m.configuration for m in end.measurements}) == len(end.measurements) == TRIALS
    assert step.configuration == max(end.good, key=lambda m: m.rate).configuration


@pytest.mark.parametrize("name", TOOLS)
def test_its_model_suggests_better_than_random_points(name):
    recording = amdahl()
    rates = [point.samples_per_s for point in recording.points.values()]
    past = history(recording, (0, 5, 11, 12, 17, 23, 24, 29))
    wishes = [made(name, seed).next_step(job_on(recording), recording.space, past) for seed in range(5)]
    assert np.mean([recording.points[wish.configuration].samples_per_s for wish in wishes]) > 1.2 * np.mean(rates)


@pytest.mark.parametrize("name", TOOLS)
def test_other_seeds_make_other_searches(name):
    recording = amdahl()
    first = {made(name, seed).next_step(job_on(recording), recording.space, History()) for seed in range(8)}
    assert len(first) > 1


@pytest.mark.night
def test_the_same_history_gives_the_same_step_in_another_process():
    """Only another process shows whether a tool depends on the order of a set."""
    here = [shown(made(name, 1)) for name in TOOLS]
    assert here == [shown(made(name, 1)) for name in TOOLS]
    script = "from tests.bench.test_tools import *; print([shown(made(name, 1)) for name in TOOLS])"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2], env={"PYTHONHASHSEED": "7"},
    )  # fmt: skip
    assert done.stdout.strip() == str(here)


def shown(strategy: Strategy) -> str:
    """Its suggestion after four probes."""
    recording = amdahl()
    step = strategy.next_step(job_on(recording), recording.space, history(recording, (0, 17, 30, 5)))
    assert isinstance(step, Probe)
    return str(step.configuration)


@pytest.mark.parametrize("name", TOOLS)
def test_a_refused_probe_is_never_proposed_again(name):
    recording = amdahl()
    job, past = job_on(recording, Goal(budget_usd=0.2)), History()
    for _ in range(100):
        step = made(name).next_step(job, recording.space, past)
        if isinstance(step, Finish):
            break
        assert step.configuration not in {refusal.configuration for refusal in past.refusals}
        past = replace(past, refusals=(*past.refusals, Refusal(step.configuration, "no")))
    assert isinstance(step, Finish)
    assert len(past.refusals) < len(recording.space)  # after the first it asks only for what may pass


@pytest.mark.parametrize("name", TOOLS)
def test_tools_survive_failures_and_end_without_a_choice_if_nothing_runs(name):
    dead = small_recording([[None] * 9, [None] * 9], [1.0, 2.0])
    _, step = raw(made(name, trials=BRIEF), dead)
    assert step.configuration is None
    late = small_recording([[None] * 8 + [50.0]] * 2, [1.0, 2.0])
    end, step = raw(made(name, trials=BRIEF), late)
    assert step.configuration in {m.configuration for m in end.good}


@pytest.mark.parametrize("name", TOOLS)
def test_it_stays_within_a_space_full_of_gaps(name):
    whole = amdahl()
    gaps = ((1, 7), (2, 3, 12), (4,))
    choices = tuple(Choice(offer, nodes) for offer, nodes in zip(whole.space.offers, gaps, strict=True))
    space = replace(whole.space, choices=choices)
    recording = replace(whole, points={c: whole.points[c] for c in space.configurations})
    end, step = raw(made(name), recording)
    assert {m.configuration for m in end.measurements} == set(space.configurations)
    assert step.configuration == Configuration(whole.space.offers[2], 4)


def test_trials_have_the_objective_and_a_failure_the_worst_that_ran():
    recording = amdahl()
    space = recording.space
    failed, unlucky = space.configurations[20], space.configurations[3]
    past = History(
        (
            measured(space.configurations[0], 10.0),
            measured(failed, None),
            measured(unlucky, None, Outcome.LAUNCH_FAILED),
            measured(space.configurations[30], 100.0),
        )
    )
    seconds = [5e7 / 10, 5e7 / 100]
    usd = [space.configurations[place].usd(s) for place, s in zip((0, 30), seconds, strict=True)]
    for objective, values in ((Objective.FASTEST, seconds), (Objective.CHEAPEST, usd)):
        trials = trials_of(job_on(recording, Goal(objective)), space, past)
        assert [(trial.place, trial.ran) for trial in trials] == [(0, True), (30, True), (20, False)]
        assert [trial.log_j for trial in trials] == pytest.approx(np.log([*values, max(values)]))
    assert trials_of(job_on(recording), space, History((measured(failed, None),))) == []


def test_a_suggestion_moves_to_the_nearest_open_configuration_of_its_type_first():
    space = amdahl().space
    open_ = np.ones(len(space), dtype=bool)
    assert space.configurations[nearest(space, open_, 1, 5)] == Configuration(space.offers[1], 5)
    assert space.configurations[nearest(space, open_, 1, 500)] == Configuration(space.offers[1], 12)
    open_[space.index[Configuration(space.offers[1], 5)]] = False
    assert space.configurations[nearest(space, open_, 1, 5)] == Configuration(space.offers[1], 6)  # 6/5 < 5/4
    open_[space.offer_index == 1] = False
    elsewhere = space.configurations[nearest(space, open_, 1, 5)]
    assert elsewhere.offer != space.offers[1]
    assert elsewhere.nodes == 5
    assert bounds(space) == (1, 12)
    assert bounds(small_recording([[5.0]], [1.0]).space) == (1, 2)


def test_tools_is_a_word_and_all_stays_what_it_is():
    assert parse_methods("tools") == tools() == [n for name in TOOLS for n in (name, f"{name}+guard")]
    assert parse_methods("all") == entrants()
    assert not set(tools()) & set(entrants())
    assert parse_methods("all, tools") == entrants() + tools()
    assert parse_methods("net-value+guard,optuna-gp, tools")[:3] == ["net-value+guard", "optuna-gp", "optuna-tpe"]
    with pytest.raises(UnknownName, match="did you mean 'optuna-tpe'"):
        parse_methods("optuna-tp")
    with pytest.raises(UnknownName, match="did you mean 'tools'"):
        parse_methods("tool")


def test_a_missing_tool_is_reported_before_anything_runs(tmp_path: Path):
    """As after a plain `pip install mlcd`: the folder of recordings is not even looked for."""
    script = f"import sys; sys.modules.update(dict.fromkeys({HIDDEN})); import mlcd.cli; mlcd.cli.main(sys.argv[1:])"
    for name in ("tools", "net-value,smac3+guard"):
        done = subprocess.run(
            [sys.executable, "-c", script, "bench", "train", "nowhere", "--method", name],
            capture_output=True, text=True, check=False, env={"MLCD_HOME": str(tmp_path)},
        )  # fmt: skip
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert "pip install 'mlcd[bench]'" in done.stderr
    check_installed(["net-value", "heterbo+guard"])


@pytest.mark.parametrize("name", TOOLS)
def test_it_competes_raw_and_guarded(name):
    made(name)
    recording = small_recording([[10.0, 19.0, 27.0, 34.0], [30.0, 50.0, 60.0, None]], [1.0, 8.0], work_samples=5e5)
    problem = problems([recording], [Scenario.FASTEST_WITHIN_BUDGET], [1.3])[0]
    bare, guarded = (run(problem, written, 0, Setting()) for written in (name, f"{name}+guard"))
    assert len(guarded.probes) <= len(bare.probes) <= TRIALS
    assert not guarded.violated
    assert guarded.certified == (guarded.chosen is not None)
