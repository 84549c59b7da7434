"""The search of a job on functions: its probes, its decision, and the reasons when nothing is possible."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlcd_fixtures.functions import TARIFF

from mlcd.clouds.places import functions
from mlcd.core.configuration import Configuration
from mlcd.core.history import History
from mlcd.core.job import Goal, Job, Objective, Target
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.strategy import Finish, Probe
from mlcd.planners.functions.decide import METHODS, decide
from mlcd.planners.functions.epoch_model.epoch import EpochModel
from mlcd.planners.functions.nouns import (
    Allocation,
    Calibrated,
    Calibration,
    Epoch,
    FunctionsEvidence,
    FunctionsTask,
    Link,
    TrainEpochs,
    Tuning,
    allocation_of,
    evidence_of,
    functions_task,
    plan_of,
    work_of,
)
from mlcd.planners.functions.problem import StageProblem, cheapest, fastest
from mlcd.planners.functions.search import CalibrateAndPlan, expected_epochs
from mlcd.planners.functions.space import (
    allocation_at,
    calibration_space,
    configuration,
    memory_levels,
    tariff_of,
    why_nothing_fits,
)
from mlcd.planners.functions.workload import STORAGES, Workload

LR = Workload("lr", "higgs", 100_000, 100.0, 0.001, 1_000)
SERVERLESS = FunctionsTask(LR, functions=(1, 16), memory_mb=(256, 3_538), tariff=TARIFF)
TRUTH = Calibration(
    ((128.0, 0.5), (1_769.0, 0.04), (3_538.0, 0.03)),
    {name: Link(0.002, 80.0) for name in STORAGES},
    60.0,
    (0.5, 0.05),
)
MODEL = EpochModel(LR, TARIFF, TRUTH)
JOB = Job(
    "trained",
    60 * 100_000.0,
    Goal(budget_usd=5.0),
    dataset_samples=100_000,
    target=Target("loss", 0.5, at_least=False),
    ask=SERVERLESS,
)
TUNED = replace(JOB, target=None, ask=replace(SERVERLESS, tuning=Tuning(64)))


def calibrated(where: Configuration) -> Measurement:
    """What a probe would show if the truth were the model."""
    assert isinstance(where.setting, Allocation)
    parts = MODEL.parts(where.setting)
    n = where.setting.functions
    shown = Calibrated(
        where.setting,
        s_per_mb=parts.compute_s / (LR.data_mb / n),
        load_mb_per_s=60.0,
        start_s=parts.start_s,
        sync_s=parts.sync_s / LR.iterations(n),
        transfers=((0.001, 0.002 + 0.001 / 80), (1.0, 0.002 + 1 / 80)),
    )
    return Measurement(where, Outcome.OK, 5.0, 0.001, evidence=FunctionsEvidence(calibrated=shown))


def sampled(asked: Probe, losses: list[float]) -> Measurement:
    epochs = tuple(Epoch(0, number, 1.0, 0.0, loss) for number, loss in enumerate(losses, 1))
    return Measurement(
        asked.configuration,
        Outcome.OK,
        5.0,
        0.001,
        evidence=FunctionsEvidence(epochs, work=work_of(asked)),
        metered=True,
    )


def searched(job: Job, losses: list[float] | None = None, method: str = "exact") -> tuple[Finish, History]:
    """Until it finishes; every probe shows the truth."""
    space, history = calibration_space(functions_task(job) or SERVERLESS), History()
    while isinstance(asked := CalibrateAndPlan(method).next_step(job, space, history), Probe):
        shown = calibrated(asked.configuration) if asked.work is None else sampled(asked, losses or [])
        history = replace(history, measurements=(*history.measurements, shown), spent_usd=history.spent_usd + shown.usd)
    assert isinstance(asked, Finish)
    return asked, history


def test_every_storage_is_probed_with_few_functions_and_with_many_and_every_memory_once():
    probed = [
        allocation_of(c) for c in calibration_space(SERVERLESS).configurations if isinstance(c.setting, Allocation)
    ]
    for storage in STORAGES:
        assert len({each.functions for each in probed if each.storage == storage}) == 2
    assert {each.memory_mb for each in probed} == set(memory_levels(SERVERLESS))


def test_no_probe_exceeds_the_concurrency_limits():
    tight = replace(SERVERLESS, memory_at_once_mb=2_000, concurrency=5, memory_mb=(256, 1_769))
    for each in calibration_space(tight).configurations:
        assert isinstance(each.setting, Allocation)
        assert each.setting.functions <= 5
        assert each.setting.functions * each.setting.memory_mb <= 2_000


def test_each_probe_on_a_cloud_reserves_the_cost_of_creating_its_function_once():
    tariff = tariff_of(SERVERLESS)
    plain, deployed = calibration_space(SERVERLESS), calibration_space(SERVERLESS, deploys=True)
    for here, there in zip(plain.configurations, deployed.configurations, strict=True):
        memory_mb = allocation_at(there).memory_mb
        built_usd = 120 * tariff.usd_per_function_s(512)  # Lithops' layer, until the function that builds it is ended
        asked_usd = 60 * tariff.usd_per_function_s(memory_mb)  # what the new function has
        bucket_usd = 20 * (tariff.usd_per_put + tariff.usd_per_get)
        more_usd = built_usd + asked_usd + bucket_usd + 2 * tariff.usd_per_call
        assert there.worst_usd(90.0) - here.worst_usd(90.0) == pytest.approx(more_usd)


@pytest.mark.parametrize(("on", "more"), [("functions", False), ("functions:aws_lambda", True)])
def test_functions_are_created_on_a_cloud_only(on, more, home):
    job = replace(TUNED, on=on, ask=replace(SERVERLESS, endpoints={"s3": "s3://bucket"}, storages=("s3",)))
    with closing(functions.place(on.partition(":")[2], job, 0.0, None)) as cloud:
        found, plain = cloud.space.configurations, calibration_space(functions_task(job)).configurations
    for one, other in zip(found, plain, strict=True):
        assert (one.worst_usd(1.0) > other.worst_usd(1.0)) is more


def test_a_storage_that_cannot_hold_the_model_is_not_probed():
    large = replace(SERVERLESS, workload=replace(LR, model_mb=12.0))
    names = {c.setting.storage for c in calibration_space(large).configurations if isinstance(c.setting, Allocation)}
    assert names == {"s3", "elasticache", "vm-ps"}


def test_tuning_is_decided_from_the_probes_and_the_exact_plan_comes_first():
    finish, _ = searched(TUNED)
    decision = finish.decision
    assert decision is not None
    assert decision.certified
    methods = [plan.method for plan in plan_of(decision).plans]
    assert methods[0] == "exact"
    assert "greedy" in methods
    assert decision.forecast is not None
    assert decision.forecast.worst_usd <= 5.0
    assert plan_of(decision).calibration is not None
    assert plan_of(decision).calibration.links["s3"].latency_s == pytest.approx(0.002, rel=0.01)


def test_the_epochs_are_estimated_from_a_sample_unless_the_job_states_them():
    losses = [0.4 + 0.6 / (1 + 0.3 * epoch) for epoch in range(1, 9)]  # 0.5 after 16.7
    finish, history = searched(JOB, losses)
    assert 12 <= expected_epochs(JOB, history) <= 22
    assert finish.decision is not None
    assert plan_of(finish.decision).plans[0].stages[0].stage.epochs == pytest.approx(
        expected_epochs(JOB, history), abs=1
    )
    known = replace(JOB, ask=replace(SERVERLESS, epochs=9.0))
    _, history = searched(known)
    assert expected_epochs(known, history) == 9.0
    assert not any(evidence_of(m).epochs for m in history.measurements)


def test_a_target_below_the_floor_of_the_samples_curve_is_refused():
    losses = [0.4 + 0.6 * 0.4**epoch for epoch in range(1, 9)]
    finish, _ = searched(replace(JOB, target=Target("loss", 0.1, at_least=False)), losses)
    assert finish.decision is not None
    assert finish.decision.configuration is None
    assert finish.decision.binding.startswith("the target loss <= 0.1: the sample's loss fell to 0.4")


def test_the_error_about_an_impossible_deadline_names_the_fastest_plan():
    finish, _ = searched(replace(TUNED, goal=Goal(Objective.CHEAPEST, deadline_s=3.0)))
    decision = finish.decision
    assert decision is not None
    assert decision.binding == "the deadline"
    assert decision.relaxations[0].deadline_s is not None
    again, _ = searched(
        replace(TUNED, goal=Goal(Objective.CHEAPEST, deadline_s=decision.relaxations[0].deadline_s * 1.001))
    )
    assert again.decision is not None
    assert again.decision.configuration is not None, "the relaxation that was named is enough"


@given(
    method=st.sampled_from(list(METHODS)),
    problem=st.sampled_from([StageProblem(MODEL, SERVERLESS, Tuning(trials).stages) for trials in (1, 7, 64)]),
    objective=st.sampled_from([Objective.FASTEST, Objective.CHEAPEST]),
    limits=st.tuples(st.none() | st.floats(0.7, 2.0), st.none() | st.floats(0.7, 2.0)),
)
def test_a_relaxation_is_enough_and_the_smallest_possible_for_the_exact_method(method, problem, objective, limits):
    if method not in ("exact", "lambdaml", "cirrus") and None not in limits:
        method = "exact"  # the others share one limit out, and only look at the second one in the end
    ends = cheapest(problem).usd, fastest(problem).seconds
    goal = Goal(objective, *(limit and limit * end for limit, end in zip(limits, ends, strict=True)))
    told = decide(problem, goal, History(), TRUTH, method)
    assert told.configuration is not None or told.relaxations or told.binding.startswith("the method: ")
    for way in told.relaxations:
        new = {name: value for name in ("budget_usd", "deadline_s") if (value := getattr(way, name)) is not None}
        for factor, enough in ((1 + 1e-9, True), (0.999, False)):
            wider = replace(goal, **{name: value * factor for name, value in new.items()})
            again = decide(problem, wider, History(), TRUTH, method)
            if enough or (method == "exact" and len(new) == 1):
                assert (again.configuration is not None) == enough


def test_the_error_says_if_budget_and_deadline_are_too_small_only_together():
    quick, _ = searched(replace(TUNED, goal=Goal(Objective.FASTEST)))
    cheap, _ = searched(replace(TUNED, goal=Goal(Objective.CHEAPEST)))
    assert quick.decision is not None and cheap.decision is not None  # noqa: PT018
    fast, thrifty = plan_of(quick.decision).plans[0], plan_of(cheap.decision).plans[0]
    both = Goal(Objective.FASTEST, budget_usd=thrifty.usd * 1.25, deadline_s=fast.seconds * 1.25)
    finish, _ = searched(replace(TUNED, goal=both))
    assert finish.decision is not None
    assert finish.decision.binding == "the budget and the deadline together"
    assert {way.budget_usd is None for way in finish.decision.relaxations} == {True, False}


@pytest.mark.parametrize("goal", [Goal(budget_usd=5.0), Goal(), Goal(Objective.CHEAPEST, deadline_s=9_000.0)])
def test_the_error_blames_the_method_if_the_exact_method_could_keep_the_limits(goal: Goal):
    without_s3 = replace(TUNED, goal=goal, ask=replace(functions_task(TUNED), storages=("elasticache", "vm-ps")))
    finish, _ = searched(without_s3, method="siren")
    assert finish.decision is not None
    assert finish.decision.configuration is None
    assert finish.decision.binding.startswith("the method: siren has no plan for these limits and storages; exact has")
    assert finish.decision.relaxations == (), "no limit is in the way"


def test_an_epoch_that_exceeds_the_longest_call_on_every_allocation_is_refused():
    for job in (TUNED, JOB):
        finish, _ = searched(replace(job, ask=replace(functions_task(job), call_s=0.001)))
        assert finish.decision is not None
        assert finish.decision.configuration is None
        assert finish.decision.binding.startswith("an epoch takes longer than a call may, 0.001 s, on every allocation")


@given(
    functions=st.tuples(st.integers(1, 12), st.integers(0, 8)),
    memory_mb=st.tuples(st.integers(128, 400), st.integers(0, 200)),
    samples=st.integers(1, 12),
    sizes_mb=st.tuples(st.floats(0.1, 60.0), st.floats(0.1, 1_500.0)),
    concurrency=st.none() | st.integers(1, 12),
    memory_at_once_mb=st.none() | st.integers(128, 3_000),
)
def test_impossible_limits_are_refused_before_a_probe_exactly_if_no_allocation_exists(
    functions, memory_mb, samples, sizes_mb, concurrency, memory_at_once_mb
):
    """The oracle: every allocation, one after the other, by the paper's own conditions."""
    work = replace(LR, samples=samples, batch=1, model_mb=sizes_mb[0], data_mb=sizes_mb[1])
    (fewest, more), (least_mb, more_mb) = functions, memory_mb
    ends = {"functions": (fewest, fewest + more), "memory_mb": (least_mb, least_mb + more_mb)}
    limits = FunctionsTask(work, **ends, concurrency=concurrency, memory_at_once_mb=memory_at_once_mb, tariff=TARIFF)
    fitting = any(
        n <= samples
        and 64 + 3 * work.model_mb + work.data_mb / n <= m
        and (concurrency is None or n <= concurrency)
        and (memory_at_once_mb is None or n * m <= memory_at_once_mb)
        for n in range(fewest, fewest + more + 1)
        for m in range(least_mb, least_mb + more_mb + 1)
    )
    assert (why_nothing_fits(limits) is None) == fitting


@pytest.mark.parametrize(
    ("outcome", "told"),
    [(Outcome.FAILED, "no rights"), (Outcome.TIMED_OUT, "no rights: use a smaller batch, or allow more memory")],
)
def test_the_decision_says_why_all_probes_failed(outcome: Outcome, told: str):
    space, history = calibration_space(SERVERLESS), History()
    while isinstance(asked := CalibrateAndPlan().next_step(TUNED, space, history), Probe):
        failed = Measurement(asked.configuration, outcome, 1.0, 0.001, detail="no rights")
        history = replace(history, measurements=(*history.measurements, failed))
    assert isinstance(asked, Finish)
    assert asked.decision is not None
    assert asked.decision.binding.endswith(told)


def test_the_price_of_a_configuration_has_functions_calls_and_storage():
    work = TrainEpochs(2, trials=tuple(range(10)))
    where = configuration(replace(SERVERLESS, concurrency=12), Allocation(4, 1_024, "elasticache"), work)
    assert where.nodes == 12, "three trials of four functions at once"
    assert replace(SERVERLESS, concurrency=12).trials_at_once(Allocation(4, 1_024, "elasticache"), 10) == 3
    rate = TARIFF.storage("elasticache").usd_per_minute
    assert where.billing.once_usd == pytest.approx(20 * (4 * TARIFF.usd_per_call + rate))
    assert where.usd_per_hour == pytest.approx(12 * TARIFF.usd_per_gb_s * 3_600 + 3 * 60 * rate)
    by_request = configuration(SERVERLESS, Allocation(4, 1_024, "s3"), TrainEpochs(1))
    requests = LR.iterations(4) * 42 * TARIFF.storage("s3").usd_per_request
    assert by_request.billing.once_usd == pytest.approx(4 * TARIFF.usd_per_call + requests)
