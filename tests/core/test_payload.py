"""Payloads of planners are written with their kind, and read back unchanged."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from pydantic import TypeAdapter

from mlcd.core.configuration import BY_SECOND, Configuration, Offer
from mlcd.core.job import Job
from mlcd.core.payload import Payload, upgraded
from mlcd.planners.functions.nouns import Allocation, ByUse, FunctionsTask
from mlcd.planners.functions.workload import Workload
from mlcd.planners.scale.nouns import Batch
from mlcd.planners.serve.nouns import ServerSettings

OFFER = Offer("c5.large", 0.1, 2, 4)
JOBS, CONFIGURATIONS = TypeAdapter(Job), TypeAdapter(Configuration)
TASK = FunctionsTask(Workload("m", "d", 10, 1.0, 1.0, 2))


@pytest.mark.parametrize(
    "configuration",
    [
        Configuration(OFFER, 3),
        Configuration(OFFER, 3, Batch(128)),
        Configuration(OFFER, 1, ServerSettings((("threads", 2), ("precision", "int8")))),
        Configuration(OFFER, 8, Allocation(4, 512, "s3"), ByUse(0.1, 0.2)),
    ],
    ids=str,
)
def test_a_configuration_is_read_as_it_was_written(configuration: Configuration) -> None:
    assert CONFIGURATIONS.validate_json(CONFIGURATIONS.dump_json(configuration)) == configuration


def test_infinity_survives_a_json_document() -> None:
    job = Job("job", 1.0, ask=replace(TASK, call_s=math.inf))
    assert JOBS.validate_json(JOBS.dump_json(job)) == job


def test_a_kind_that_no_installed_planner_knows_is_named() -> None:
    with pytest.raises(ValueError, match=r"'moon\.task': no installed planner knows it"):
        JOBS.validate_python({"name": "job", "work_samples": 1.0, "ask": {"kind": "moon.task"}})


def test_every_kind_begins_with_the_name_of_its_planner() -> None:
    def kinds(of: type[Payload]) -> set[str]:
        return {kind for sub in of.__subclasses__() for kind in ({sub.kind} - {""}) | kinds(sub)}

    named_after = {kind.partition(".")[0] for kind in kinds(Payload)}
    assert named_after <= {"core", "train", "scale", "functions", "serve", "infer"}


def test_use_is_billed_once_more_for_every_attempt_and_time_by_the_second() -> None:
    held, used = Configuration(OFFER, 2), Configuration(OFFER, 2, Allocation(2, 512, "s3"), ByUse(1.0, 0.2))
    assert held.billing is BY_SECOND
    assert held.usd(3_600) == held.worst_usd(3_600) == pytest.approx(0.2)
    assert used.usd(3_600) == pytest.approx(1.4)
    assert used.worst_usd(3_600) == pytest.approx(3.4)


def test_entries_in_todays_format_are_unchanged() -> None:
    today = json.loads(JOBS.dump_json(Job("job", 1.0, ask=TASK)))
    assert upgraded(today) == today
