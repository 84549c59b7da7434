"""Adaptive training on functions: it changes its plan when the forecast of epochs changes, and keeps its limits."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlcd_fixtures.examples import at_night_except

from mlcd.core.configuration import Space
from mlcd.core.forecasts import remaining_job
from mlcd.core.history import History
from mlcd.core.job import Goal, Job, Objective, Target
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.strategy import Apply, Finish, Step
from mlcd.planners.functions.adaptive import MOST_FAILED_LAUNCHES, AdaptiveTraining
from mlcd.planners.functions.decide import METHODS
from mlcd.planners.functions.epoch_model.boundary import boundary
from mlcd.planners.functions.epoch_model.epoch import EpochModel
from mlcd.planners.functions.nouns import (
    Allocation,
    Calibration,
    Epoch,
    FunctionsEvidence,
    FunctionsTask,
    Link,
    TrainEpochs,
    allocation_of,
    evidence_of,
    work_of,
)
from mlcd.planners.functions.workload import StorageRate, Tariff, Workload

TARIFF = Tariff(
    1.6e-5,
    2e-7,
    (
        StorageRate("s3", usd_per_request=5e-6),
        StorageRate("elasticache", usd_per_minute=1e-3),
        StorageRate("vm-ps", usd_per_minute=1.5e-3, aggregates=True),
    ),
)
CALIBRATION = Calibration(
    compute=((128.0, 4.0), (512.0, 1.0), (1769.0, 0.3), (3538.0, 0.25)),
    links={"s3": Link(0.08, 65.0), "elasticache": Link(0.01, 600.0), "vm-ps": Link(0.001, 200.0)},
    load_mb_per_s=80.0,
    start=(1.0, 0.02),
    rel_error=0.02,
)
WORKLOAD = Workload("lr", "higgs", samples=100_000, data_mb=200.0, model_mb=1.0, batch=2_000)
SERVERLESS = FunctionsTask(
    WORKLOAD, functions=(1, 60), memory_mb=(128, 3_538), storages=tuple(CALIBRATION.links), tariff=TARIFF
)
MODEL = EpochModel(WORKLOAD, TARIFF, CALIBRATION)
POINTS = boundary(MODEL, SERVERLESS)
CHEAPEST_USD, FASTEST_S = float(POINTS.usd.min()), float(POINTS.seconds.min())
NOWHERE = Space(())
Curve = Callable[[int], float]


def job(goal: Goal | None = None, target: float | None = 0.4, most: int = 400, delta: float = 0.1) -> Job:
    wanted = None if target is None else Target("loss", target, at_least=False)
    return Job(
        "training",
        float(most * WORKLOAD.samples),
        goal or Goal(),
        target=wanted,
        ask=replace(SERVERLESS, delta=delta),
    )


def falling(epochs: float) -> Curve:
    """A loss that is 0.4 after so many epochs."""
    return lambda e: 0.3 + 0.4 * math.exp(-math.log(4) * e / epochs)


@dataclass
class Platform:
    """A fake of functions: epochs take what the model says, times what it is told to, and lose as the curve says."""

    curve: Curve
    off: Callable[[int], float] = lambda launch: 1.0
    fails: Callable[[int, Allocation], Outcome | None] = lambda launch, where: None
    gap_s: float = 0.0
    """From the end of a launch to the next."""
    calls_ahead: bool = True
    """Whether functions that a launch asks for start while it runs."""

    def run(self, strategy: AdaptiveTraining, whole: Job, most: int = 500) -> tuple[list[Step], History]:
        history, steps = History(), list[Step]()
        while len(steps) < most:
            step = strategy.next_step(remaining_job(whole, history), NOWHERE, history)
            steps.append(step)
            if not isinstance(step, Apply):
                return steps, history
            before = history.runs[-1] if history.runs and self.calls_ahead else None
            history = history.with_run(self.launch(step, len(steps) - 1, before))
            history = replace(history, elapsed_s=history.elapsed_s + self.gap_s)
        raise AssertionError("it never ended")

    def launch(self, step: Apply, number: int, before: Measurement | None = None) -> Measurement:
        where, work = allocation_of(step.configuration), work_of(step)
        assert where is not None
        assert work is not None
        off, parts = self.off(number), MODEL.parts(where)
        called = before is not None and evidence_of(before).work is not None and evidence_of(before).work.then == where
        start_s = max(0.0, off * parts.start_s - (before.seconds if before is not None and called else 0.0))
        seconds, usd = start_s + off * parts.billed_s, off * MODEL.epoch_usd(where)
        if (failed := self.fails(number, where)) is not None:
            return Measurement(step.configuration, failed, seconds, usd, detail="as told")
        epoch = Epoch(0, work.done + 1, seconds, usd, self.curve(work.done + 1), start_s)
        saved = float((work.done + 1) * WORKLOAD.samples)
        return Measurement(
            step.configuration,
            Outcome.OK,
            seconds,
            usd,
            saved_samples=saved,
            evidence=FunctionsEvidence((epoch,), work=work),
            metered=True,
        )


def trained(method: str, epochs: float, whole: Job, platform: Platform) -> tuple[list[Step], History]:
    return platform.run(METHODS[method](CALIBRATION, epochs), whole)


def used(history: History) -> list[Allocation]:
    return [
        allocation_of(run.configuration) for run in history.runs if isinstance(run.configuration.setting, Allocation)
    ]


def restarts(history: History) -> int:
    return sum(one != other for one, other in pairwise(used(history)))


def end(steps: list[Step]) -> Finish:
    assert isinstance(steps[-1], Finish)
    return steps[-1]


def within_budget(epochs: float, room: float) -> Goal:
    """A budget of so many times what so many epochs cost at the least."""
    return Goal(Objective.FASTEST, budget_usd=room * epochs * CHEAPEST_USD)


def within_deadline(epochs: float, room: float) -> Goal:
    return Goal(Objective.CHEAPEST, deadline_s=room * epochs * FASTEST_S)


# The limits.


@given(
    st.sampled_from(list(METHODS)),
    st.floats(6, 25),
    st.floats(0.4, 2.5),
    st.floats(0.5, 6.0),
    st.booleans(),
    st.booleans(),
    st.lists(st.floats(-1.0, 1.0), min_size=8, max_size=8),
)
def test_no_limit_is_broken_however_many_epochs_are_needed(
    method: str, epochs: float, wrong: float, room: float, budget: bool, calls_ahead: bool, noise: list[float]
) -> None:
    goal = within_budget(epochs, room) if budget else within_deadline(epochs, room)
    spread = 3 * CALIBRATION.rel_error
    platform = Platform(
        falling(epochs), off=lambda launch: 1 + spread * noise[launch % len(noise)], calls_ahead=calls_ahead
    )
    steps, history = trained(method, epochs * wrong, job(goal, most=40), platform)
    assert goal.budget_usd is None or history.spent_usd <= goal.budget_usd
    assert goal.deadline_s is None or history.elapsed_s <= goal.deadline_s
    if end(steps).configuration is None:
        assert "one more epoch does not fit into the " in end(steps).because
        assert "no epoch is done" in end(steps).because or "the loss is" in end(steps).because
    else:
        assert end(steps).because.startswith("reached loss <= 0.4 in ")


def test_the_reason_for_stopping_names_the_limit_and_the_missing_epochs() -> None:
    steps, _ = trained("exact", 20, job(within_budget(30, 0.5)), Platform(falling(30)))
    assert "one more epoch does not fit into the budget: an epoch can cost $" in end(steps).because
    assert " more would reach loss <= 0.4" in end(steps).because
    steps, history = trained(
        "exact", 20, job(Goal(Objective.CHEAPEST, deadline_s=FASTEST_S / 2)), Platform(falling(30))
    )
    assert not history.runs
    assert "the deadline: an epoch can take " in end(steps).because


@pytest.mark.parametrize("method", ["exact", "fixed"])
def test_after_the_last_allowed_epoch_the_reason_names_the_missing_epochs(method: str) -> None:
    steps, _ = trained(method, 12, job(most=12), Platform(falling(30)))
    told = end(steps).because
    assert "was not reached in the 12 epochs that it may take" in told
    missing = int(told.split("about ")[1].split()[0])
    assert 9 <= missing <= 36  # 18 in truth


@pytest.mark.parametrize("method", at_night_except(["exact"], ["exact", "greedy", "cirrus"]))
@pytest.mark.parametrize("wrong", [0.5, 1.0, 1.8])
def test_a_wrong_estimate_is_corrected_during_training(method: str, wrong: float) -> None:
    floor = float(boundary(MODEL, SERVERLESS.with_storages("vm-ps")).usd.min() if method == "cirrus" else CHEAPEST_USD)
    goal = Goal(Objective.FASTEST, budget_usd=2 * 40 * floor)
    steps, _ = trained(method, 40 * wrong, job(goal), Platform(falling(40)))
    assert end(steps).because.startswith("reached loss <= 0.4 in 40 epochs")


def bent_at(at: int, expected: float, true: int) -> Curve:
    """A loss that falls as if it took so many epochs until it is bent, and takes more."""
    begun = falling(expected)
    height = begun(at) - 0.3
    return lambda e: begun(e) if e <= at else 0.3 + height * (0.1 / height) ** ((e - at) / (true - at))


def test_the_target_is_reached_with_more_epochs_than_estimated_where_greedy_fails() -> None:
    twice = job(within_budget(25, 2.0))  # what the 25 epochs of the estimate cost at the least; it takes 40
    steps, history = trained("exact", 25, twice, Platform(falling(40)))
    assert end(steps).because.startswith("reached loss <= 0.4 in 40 epochs")
    assert end(trained("lambdaml", 25, twice, Platform(falling(40)))[0]).configuration is None
    late = trained("greedy", 25, twice, Platform(falling(40)))[1]
    assert history.elapsed_s < 0.9 * late.elapsed_s


def test_the_target_is_reached_if_the_losses_reveal_the_epochs_late_where_greedy_fails() -> None:
    whole = job(within_budget(40, 1.5))
    assert end(trained("exact", 25, whole, Platform(bent_at(16, 25, 40)))[0]).configuration is not None
    assert end(trained("greedy", 25, whole, Platform(bent_at(16, 25, 40)))[0]).configuration is None


# The delta test.


def test_a_right_estimate_never_changes_the_plan() -> None:
    for method in ("greedy", "lambdaml", "fixed", "cirrus"):
        _, history = trained(method, 40, job(within_budget(40, 4.0)), Platform(falling(40)))
        assert restarts(history) == 0


def with_spike(curve: Curve, at: int) -> Curve:
    return lambda e: curve(e) * (1.15 if e == at else 1.0)


def with_plateau(curve: Curve, at: int) -> Curve:
    return lambda e: curve(min(e, at) if e < at + 3 else e - 2)


@pytest.mark.parametrize(("method", "at", "more"), [("exact", 10, 3), ("greedy", 25, 2)])
@pytest.mark.parametrize("bent", [with_spike, with_plateau])
def test_one_spike_or_one_plateau_does_not_change_the_plan(
    method: str, bent: Callable[[Curve, int], Curve], at: int, more: int
) -> None:
    whole = job(within_budget(40, 4.0))
    _, smooth = trained(method, 40, whole, Platform(falling(40)))
    steps, bumpy = trained(method, 40, whole, Platform(bent(falling(40), at)))
    assert end(steps).configuration is not None
    assert restarts(bumpy) <= restarts(smooth) + more


def test_fewer_expected_epochs_change_the_plan_too() -> None:
    steps, history = trained("greedy", 60, job(within_budget(60, 1.5)), Platform(falling(20)))
    changes = [
        step for step in steps if isinstance(step, Apply) and isinstance(step.work, TrainEpochs) and step.work.then
    ]
    assert changes
    assert "are expected now, not 60" in changes[0].because
    old, new = used(history)[0], used(history)[-1]
    assert MODEL.epoch_s(new) < MODEL.epoch_s(old)


def test_the_old_allocation_runs_once_more_while_the_new_functions_start() -> None:
    steps, history = trained("greedy", 60, job(within_budget(60, 1.5)), Platform(falling(20)))
    epochs = [step for step in steps if isinstance(step, Apply)]
    for step, after in zip(epochs, used(history)[1:], strict=False):
        assert isinstance(step.work, TrainEpochs)
        assert (step.work.then or allocation_of(step.configuration)) == after


def test_the_functions_of_every_next_epoch_start_while_one_runs_where_both_may_run_at_once() -> None:
    steps, history = trained("exact", 30, job(within_budget(30, 3.0)), Platform(falling(30)))
    asked = [step.work.then for step in steps if isinstance(step, Apply) and isinstance(step.work, TrainEpochs)]
    assert asked[: len(history.runs) - 1] == used(history)[1:]
    waited_s = [evidence_of(run).epochs[0].start_s for run in history.runs]
    assert np.mean(waited_s[1:]) < 0.2 * waited_s[0]
    alone = replace(job(within_budget(30, 3.0)), ask=replace(SERVERLESS, concurrency=12))
    steps, _ = trained("exact", 30, alone, Platform(falling(30)))
    for step in steps:
        if isinstance(step, Apply) and isinstance(step.work, TrainEpochs) and step.work.then is not None:
            assert isinstance(step.configuration.setting, Allocation)
            assert step.configuration.setting.functions + step.work.then.functions <= 12


def test_calling_functions_ahead_keeps_a_deadline_that_is_too_short_otherwise() -> None:
    whole = job(within_deadline(40, 0.9))
    assert end(trained("exact", 40, whole, Platform(falling(40)))[0]).because.startswith("reached")
    assert end(trained("exact", 40, whole, Platform(falling(40), calls_ahead=False))[0]).configuration is None


def test_a_larger_delta_restarts_less_often() -> None:
    def after(delta: float) -> int:
        return restarts(trained("greedy", 15, job(within_budget(40, 1.4), delta=delta), Platform(falling(40)))[1])

    assert after(10.0) == 0
    assert after(0.02) >= after(0.1) >= 1


@pytest.mark.parametrize("method", at_night_except(("exact",), ("exact", "greedy", "cirrus")))
def test_pauses_between_launches_do_not_change_the_allocation(method: str) -> None:
    whole = job(within_deadline(40, 2.0))
    at_once = trained(method, 40, whole, Platform(falling(40)))[1]
    steps, slowly = trained(method, 40, whole, Platform(falling(40), gap_s=0.05))
    assert restarts(slowly) <= restarts(at_once) + 1
    assert end(steps).configuration is not None


# How it ends.


def test_a_loss_that_is_not_a_number_ends_the_run_with_advice() -> None:
    steps, _ = trained("exact", 40, job(), Platform(lambda e: math.nan if e == 5 else 1.0 / e**0.1))
    assert end(steps).configuration is None
    assert end(steps).because == "the loss is nan after epoch 5: try a lower learning rate"


def test_finishing_all_epochs_is_a_success_only_without_a_target() -> None:
    steps, history = trained("exact", 5, job(target=None, most=7), Platform(falling(40)))
    assert len(history.runs) == 7
    assert end(steps).configuration is not None
    steps, history = trained("exact", 5, job(most=7), Platform(falling(40)))
    assert len(history.runs) == 7
    assert end(steps).configuration is None
    assert "was not reached in the 7 epochs that it may take; after 7 epochs the loss is" in end(steps).because


def test_a_target_below_the_floor_is_tried_within_the_limits_and_reported() -> None:
    steps, history = trained("exact", 20, job(within_budget(60, 1.0)), Platform(lambda e: 0.5 + 0.3 * math.exp(-e / 4)))
    assert len(history.runs) > 40
    assert any("not in sight, the loss tends to 0.5" in step.because for step in steps)
    assert "loss <= 0.4 is not in sight, the loss tends to 0.5" in end(steps).because


def test_a_failed_launch_is_retried_on_other_allocations_a_few_times() -> None:
    whole = job(within_budget(30, 4.0))
    bad = Platform(falling(30), fails=lambda launch, where: Outcome.LAUNCH_FAILED if launch in (4, 5) else None)
    steps, history = trained("exact", 30, whole, bad)
    assert end(steps).configuration is not None
    assert len({*used(history)[4:7]}) == 3
    assert "after: launch failed, as told" in steps[5].because
    worse = Platform(falling(30), fails=lambda launch, where: Outcome.FAILED if launch > 4 else None)
    steps, history = trained("exact", 30, whole, worse)
    assert end(steps).configuration is None
    assert len(history.runs) == 5 + MOST_FAILED_LAUNCHES
    assert f"epoch 6 was tried {MOST_FAILED_LAUNCHES} times; the last time: failed, as told" in end(steps).because


def test_too_little_memory_is_not_retried() -> None:
    def fails(launch: int, where: Allocation) -> Outcome | None:
        return Outcome.OUT_OF_MEMORY if where.memory_mb < 600 else None

    goal = Goal(Objective.CHEAPEST)
    steps, history = trained("exact", 30, job(goal), Platform(falling(30), fails=fails))
    small = [run for run in history.runs if run.outcome is Outcome.OUT_OF_MEMORY]
    assert len(small) < MOST_FAILED_LAUNCHES
    assert end(steps).configuration is not None
    assert used(history)[-1].memory_mb > max(where.memory_mb for where in used(history)[: len(small)])


def test_an_allocation_that_failed_is_not_used_again() -> None:
    first = used(trained("exact", 30, job(within_budget(30, 4.0)), Platform(falling(30)))[1])[0]
    platform = Platform(falling(30), fails=lambda launch, where: Outcome.TIMED_OUT if where == first else None)
    _, history = trained("exact", 30, job(within_budget(30, 4.0)), platform)
    assert used(history).count(first) == 1


def test_the_plan_adapts_to_epochs_that_are_slower_than_modelled() -> None:
    goal = within_budget(30, 3.0)
    steps, history = trained("exact", 30, job(goal), Platform(falling(30), off=lambda launch: 1.6))
    assert end(steps).because.startswith("reached")
    assert goal.budget_usd is not None
    assert history.spent_usd <= goal.budget_usd


def test_the_same_history_gives_the_same_step() -> None:
    whole = job(within_budget(30, 3.0))
    steps, history = trained("exact", 20, whole, Platform(falling(30)))
    for count in range(0, len(history.runs), 5):
        before = History()
        for run in history.runs[:count]:
            before = before.with_run(run)
        assert (
            AdaptiveTraining(CALIBRATION, 20).next_step(remaining_job(whole, before), NOWHERE, before) == steps[count]
        )


@pytest.mark.parametrize("method", ["exact", "greedy"])
def test_a_reused_strategy_takes_the_same_steps_as_a_new_one(method: str) -> None:
    used_before = METHODS[method](CALIBRATION, 20)
    for room, epochs in ((3.0, 30), (1.5, 30), (1.5, 20), (1.5, 30)):
        whole, platform = job(within_budget(30, room)), Platform(falling(epochs))
        assert platform.run(used_before, whole) == trained(method, 20, whole, platform)


# The methods.


def test_siren_uses_s3_and_spends_more_early_and_cirrus_uses_its_server() -> None:
    _, history = trained("siren", 40, job(within_budget(40, 4.0)), Platform(falling(40)))
    assert {where.storage for where in used(history)} == {"s3"}
    costs = [run.usd for run in history.runs]
    assert np.mean(costs[:10]) > np.mean(costs[-10:])
    _, history = trained("cirrus", 40, job(within_deadline(40, 4.0)), Platform(falling(40)))
    assert {where.storage for where in used(history)} == {"vm-ps"}


def test_lambdaml_never_changes_and_ends_where_its_allocation_no_longer_fits() -> None:
    steps, history = trained("lambdaml", 20, job(within_budget(40, 0.9)), Platform(falling(40)))
    assert len(set(used(history))) == 1
    assert end(steps).configuration is None
    assert len(history.runs) < 40


def test_a_method_without_its_storage_says_so() -> None:
    whole = replace(job(), ask=replace(SERVERLESS, storages=("elasticache",)))
    steps, _ = trained("siren", 20, whole, Platform(falling(20)))
    assert end(steps).because.startswith("no allocation can be used with s3")
