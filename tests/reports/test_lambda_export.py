"""The JSON that configures functions: AWS's own names and bounds, nothing invented, an error where there is no plan."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import pytest
from mlcd_fixtures.functions_runs import (
    TRAINED,
    TUNED,
    decided_lines,
    decision,
    infeasible,
    plan,
    training_lines,
    tuning_lines,
)
from mlcd_fixtures.scale_runs import elastic_run

from mlcd.core.backend import Provenance
from mlcd.core.errors import WrongState
from mlcd.core.job import Job
from mlcd.core.ledger import Account, Ledger
from mlcd.planners.functions.nouns import StagePlan, Tuning, functions_task, plan_of
from mlcd.planners.functions.workload import LONGEST_CALL_S
from mlcd.reports.deploy.lambda_ import lambda_configuration


def account_of(lines):
    return Account.replay((line.entry, line.elapsed_s) for line in lines)


def exported(job: Job = TUNED):
    return lambda_configuration("tune-lr-1", account_of(decided_lines(job, decision(job))))


def test_every_stage_is_a_segment_with_its_own_allocation():
    made = exported()
    assert json.loads(json.dumps(made, allow_nan=False)) == made
    for segment, planned in zip(made["segments"], plan(TUNED).stages, strict=True):
        assert segment["functions"] == planned.allocation.functions
        assert segment["MemorySize"] == planned.allocation.memory_mb
        assert segment["storage"]["kind"] == planned.allocation.storage
        assert (segment["trials"], segment["epochs"]) == (planned.stage.trials, planned.stage.epochs)
        assert segment["expected"]["usd"] == planned.usd
    assert [segment["first_epoch"] for segment in made["segments"]] == [1, 3, 5, 7, 9]
    assert made["expected"]["usd"] == pytest.approx(plan(TUNED).usd)
    assert (made["region"], made["prices"]["date"]) == ("us-east-1", "2026-01-01")


def test_there_is_one_function_for_each_memory_size_with_room_for_its_slowest_epoch():
    made = exported()
    assert len({each["FunctionName"] for each in made["functions"]}) == len(made["functions"])
    sizes = {each["FunctionName"]: each for each in made["functions"]}
    for segment in made["segments"]:
        function = sizes[segment["FunctionName"]]
        assert function["MemorySize"] == segment["MemorySize"]
        assert segment["expected"]["epoch_s"] < segment["Timeout"] <= function["Timeout"] <= LONGEST_CALL_S
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", segment["FunctionName"])


def test_the_fields_are_those_of_aws():
    session = pytest.importorskip("botocore.session", reason="pip install boto3")
    from botocore.validate import validate_parameters

    model = session.get_session().get_service_model("lambda")
    given = {"Role": "arn:aws:iam::123456789012:role/x", "Code": {}}
    made = exported()
    for function in made["functions"]:
        validate_parameters({**function, **given}, model.operation_model("CreateFunction").input_shape)
    shape = model.operation_model("PutFunctionConcurrency").input_shape
    for segment in made["segments"]:
        fields = {name: segment[name] for name in ("FunctionName", "ReservedConcurrentExecutions")}
        validate_parameters(fields, shape)


def test_an_epoch_longer_than_a_function_may_live_is_told_and_not_hidden():
    slow = decision(TUNED)
    first = replace(plan_of(slow).plans[0].stages[0], seconds=4_000.0)
    slow = replace(
        slow,
        plan=replace(
            plan_of(slow),
            plans=(StagePlan("exact", (first, *plan_of(slow).plans[0].stages[1:])), *plan_of(slow).plans[1:]),
        ),
    )
    made = lambda_configuration("x", account_of(decided_lines(TUNED, slow)))
    assert made["segments"][0]["Timeout"] == LONGEST_CALL_S
    assert any("2,000 s" in note for note in made["segments"][0]["notes"])
    assert made["segments"][1]["notes"] == []


def test_more_functions_than_an_account_may_have_reserve_nothing_and_say_so():
    many = replace(TUNED, ask=replace(functions_task(TUNED), tuning=Tuning(4_096)))  # type: ignore[type-var]
    first = exported(many)["segments"][0]
    assert first["ReservedConcurrentExecutions"] is None
    assert "8,192 functions at once" in first["notes"][0]
    allowed = replace(many, ask=replace(functions_task(many), concurrency=20_000))  # type: ignore[type-var]
    assert exported(allowed)["segments"][0]["ReservedConcurrentExecutions"] == 8_192


@pytest.mark.parametrize(("concurrency", "memory"), [(None, None), (16, None), (None, 4_096), (30, 9_000), (1, 1)])
def test_as_many_trials_run_at_once_as_the_planner_counts_on(concurrency, memory):
    serverless = replace(functions_task(TUNED), concurrency=concurrency, memory_at_once_mb=memory)  # type: ignore[type-var]
    made = exported(replace(TUNED, ask=serverless))
    for segment, planned in zip(made["segments"], plan(TUNED).stages, strict=True):
        at_once = serverless.trials_at_once(planned.allocation, planned.stage.trials)
        assert segment["trials_at_once"] == at_once
        waves = math.ceil(planned.stage.trials / at_once)
        assert segment["expected"]["epoch_s"] == pytest.approx(planned.seconds / planned.stage.epochs / waves)


def test_endpoints_are_those_of_the_job_and_nothing_is_invented():
    told = replace(TUNED, ask=replace(functions_task(TUNED), endpoints={"s3": "http://127.0.0.1:1"}))  # type: ignore[type-var]
    by_kind = {segment["storage"]["kind"]: segment["storage"] for segment in exported(told)["segments"]}
    assert by_kind["s3"]["endpoint"] == "http://127.0.0.1:1"
    assert by_kind["elasticache"]["endpoint"] is None


def test_a_training_run_that_has_ended_exports_the_allocations_that_it_came_to():
    before = lambda_configuration("t", account_of(decided_lines(TRAINED, decision(TRAINED))))
    assert (before["from"], len(before["segments"])) == ("plan", 1)
    after = lambda_configuration("t", account_of(training_lines()))
    assert after["from"] == "run"
    told = [(each["functions"], each["storage"]["kind"], each["epochs"]) for each in after["segments"]]
    assert told == [(4, "s3", 9), (12, "elasticache", 15), (12, "vm-ps", 15)]  # the seventh epoch came to nothing
    assert lambda_configuration("t", account_of(tuning_lines()))["from"] == "plan"


@pytest.mark.parametrize(
    ("on", "provenance", "words"),
    [
        ("functions", Provenance.LIVE, "measured on this machine; .* nothing was billed"),
        ("functions:aws_lambda", Provenance.LIVE, "list prices for what was counted"),
        ("functions:simulated", Provenance.SIMULATED, "as the simulated run went, not measured"),
    ],
)
def test_only_what_was_billed_is_said_to_be(on, provenance, words):
    account = account_of(training_lines())
    started = replace(account.started, job=replace(account.job, on=on), provenance=provenance)
    numbers = lambda_configuration("t", replace(account, started=started))["numbers"]
    assert re.search(words, numbers)
    assert "as they were billed" not in numbers


def test_names_of_functions_are_safe_whatever_the_run_is_called():
    made = lambda_configuration("ä b/" * 40, account_of(decided_lines(TUNED, decision(TUNED))))
    for function in made["functions"]:
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", function["FunctionName"])
        assert function["FunctionName"].endswith(f"-{function['MemorySize']}mb")


def test_a_run_without_a_plan_has_nothing_to_export():
    with pytest.raises(WrongState, match="has no plan: the deadline; there is nothing to export"):
        lambda_configuration("x", account_of(decided_lines(TUNED, infeasible(TUNED))))
    with pytest.raises(WrongState, match="has no plan yet"):
        lambda_configuration("x", account_of(decided_lines(TUNED, None)))
    ledger = Ledger(None)
    with pytest.raises(WrongState, match="is not on functions"):
        lambda_configuration("x", account_of(ledger.lines(elastic_run(ledger))))
