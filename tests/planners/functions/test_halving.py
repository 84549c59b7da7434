"""Successive halving on functions: which trials continue, how a failed stage is repeated, and when it ends."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from mlcd_fixtures.functions import TARIFF

from mlcd.core.configuration import Space
from mlcd.core.history import History
from mlcd.core.job import Goal, Job
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.strategy import Apply, Finish, Step
from mlcd.planners.functions.halving import MOST_LAUNCHES, SuccessiveHalving, best
from mlcd.planners.functions.nouns import (
    Calibration,
    Epoch,
    FunctionsEvidence,
    FunctionsTask,
    Link,
    TrainEpochs,
    Tuning,
)
from mlcd.planners.functions.space import calibration_space
from mlcd.planners.functions.workload import Workload

CALIBRATION = Calibration(((128.0, 0.5), (1_769.0, 0.04)), {"elasticache": Link(0.001, 100.0)}, 60.0)
SERVERLESS = FunctionsTask(
    Workload("lr", "higgs", 10_000, 10.0, 0.001, 100),
    functions=(1, 8),
    memory_mb=(128, 1_769),
    storages=("elasticache",),
    tuning=Tuning(8),
    tariff=TARIFF,
)
JOB = Job("tuned", 1e6, Goal(budget_usd=5.0), dataset_samples=10_000, ask=SERVERLESS)
SPACE: Space = calibration_space(SERVERLESS)


def step(history: History, job: Job = JOB) -> Step:
    return SuccessiveHalving(CALIBRATION).next_step(job, SPACE, history)


def done(asked: Apply, losses: dict[int, float], *, but: tuple[int, ...] = ()) -> Measurement:
    """What the launch brings if all of its trials end, but for some."""
    assert isinstance(asked.work, TrainEpochs)
    numbers = range(asked.work.done + 1, asked.work.done + asked.work.epochs + 1)
    trials = [trial for trial in asked.work.trials if trial not in but]
    epochs = tuple(Epoch(trial, number, 1.0, 0.01, losses[trial]) for trial in trials for number in numbers)
    outcome = Outcome.FAILED if but else Outcome.OK
    return Measurement(asked.configuration, outcome, 1.0, 0.01, evidence=FunctionsEvidence(epochs), metered=True)


def test_the_losing_half_of_each_stage_is_stopped():
    losses = {trial: float(trial) for trial in range(8)}
    history, seen = History(), []
    while isinstance(asked := step(history), Apply):
        assert isinstance(asked.work, TrainEpochs)
        seen.append(asked.work.trials)
        history = history.with_run(done(asked, losses))
    assert seen == [tuple(range(8)), (0, 1, 2, 3), (0, 1)]
    assert isinstance(asked, Finish)
    assert asked.configuration is not None
    assert "the best of 8 trials is 0" in asked.because


def test_a_search_of_one_trial_and_one_epoch_works():
    alone = replace(JOB, ask=replace(SERVERLESS, tuning=Tuning(1, epochs_per_stage=1)))
    asked = step(History(), alone)
    assert isinstance(asked, Apply)
    assert asked.because.startswith("stage 1 of 1: 1 trial, 1 epoch each on ")
    over = step(History().with_run(done(asked, {0: 0.5})), alone)
    assert over.because == "the best of 1 trial is 0: loss 0.5"


def test_a_trial_whose_loss_is_no_number_is_the_worst():
    losses = {(trial, 2): loss for trial, loss in enumerate((math.nan, 0.5, math.inf, 0.4))}
    assert best((0, 1, 2, 3), 2, losses, 2) == (1, 3)
    assert best((0, 2), 2, losses, 1) == (0,)


def test_completed_epochs_of_a_failed_stage_are_not_repeated():
    losses = {trial: float(trial) for trial in range(8)}
    first = step(History())
    assert isinstance(first, Apply)
    again = step(History().with_run(done(first, losses, but=(3, 5))))
    assert isinstance(again, Apply)
    assert isinstance(again.work, TrainEpochs)
    assert again.work.trials == (3, 5)


def test_a_stage_without_any_epoch_is_given_up_after_a_few_launches():
    history = History()
    for _ in range(MOST_LAUNCHES):
        asked = step(history)
        assert isinstance(asked, Apply)
        history = history.with_run(Measurement(asked.configuration, Outcome.FAILED, 1.0, 0.01, detail="no storage"))
    last = step(history)
    assert isinstance(last, Finish)
    assert last.configuration is None
    assert "no storage" in last.because


def test_a_stage_that_the_user_interrupts_is_never_given_up():
    history = History()
    for _ in range(3 * MOST_LAUNCHES):
        asked = step(history)
        assert isinstance(asked, Apply)
        history = history.with_run(Measurement(asked.configuration, Outcome.INTERRUPTED, 1.0, 0.0001))


def test_a_stage_that_does_not_fit_the_limits_is_not_started():
    spent = replace(History(), spent_usd=4.999999)
    last = step(spent)
    assert isinstance(last, Finish)
    assert last.configuration is None
    assert "does not fit into what is left of the budget" in last.because


def test_a_search_without_any_finite_loss_ends_without_a_choice():
    losses = dict.fromkeys(range(8), math.nan)
    history = History()
    while isinstance(asked := step(history), Apply):
        history = history.with_run(done(asked, losses))
    assert isinstance(asked, Finish)
    assert asked.configuration is None


@pytest.mark.parametrize("eta, trials, kept", [(3, 27, (27, 9, 3)), (2, 7, (7, 3)), (4, 5, (5,)), (2, 1, (1,))])
def test_stages_follow_from_trials_and_eta(eta: int, trials: int, kept: tuple[int, ...]):
    assert tuple(stage.trials for stage in Tuning(trials, eta).stages) == kept


def test_sixteen_thousand_trials_by_halves_are_fourteen_stages():
    stages = Tuning(16_384).stages
    assert (len(stages), stages[0].trials, stages[-1].trials) == (14, 16_384, 2)


def test_a_trial_has_the_same_hyperparameters_however_many_others_there_are():
    space = {"learning_rate": (0.001, 1.0), "l2": (1e-6, 1e-2)}
    few, many = Tuning(4, space=space), Tuning(400, space=space)
    assert [few.hyperparameters(trial, 7) for trial in range(4)] == [
        many.hyperparameters(trial, 7) for trial in range(4)
    ]
    drawn = [many.hyperparameters(trial, 7)["learning_rate"] for trial in range(400)]
    assert 0.001 <= min(drawn) < max(drawn) <= 1.0
    below = sum(rate < 0.0316 for rate in drawn)  # the middle of a log-uniform draw; 5 standard errors
    assert abs(below - 200) < 50
