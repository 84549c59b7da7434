"""A program can drive the command line by its events alone."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from mlcd.core.exit_codes import ExitCode
from mlcd.core.home import open_ledger
from mlcd.reports.events import events_schema

Mlcd = Callable[..., Any]
WriteJob = Callable[..., Path]
VALID = Draft202012Validator(events_schema())


def events(answer: Any) -> list[dict[str, Any]]:
    """stdout, every line of which has to be an event."""
    found = [json.loads(line) for line in answer.out.splitlines()]
    for event in found:
        VALID.validate(event)
    assert [event["type"] for event in found].count("end") == 1
    assert found[-1]["type"] == "end"
    assert found[-1]["exit_code"] == answer.code
    return found


def test_the_first_event_names_the_run_and_the_last_has_the_answer(mlcd: Mlcd, recorded_job: WriteJob) -> None:
    answer = mlcd("train", recorded_job("budget: 100"), "-y", "--watch-json")
    found = events(answer)
    assert answer.code == ExitCode.DONE
    assert {event["run"] for event in found} == {"demo-1"}
    assert found[0]["kind"] == "started"
    last = found[-1]
    assert last["document"] == mlcd("show", "demo-1", "-o", "json").document
    chosen = last["document"]["decision"]["configuration"]
    assert last["chosen"] == f"{chosen['nodes']} x {chosen['instance_type']}"
    assert last["status"] == "finished"


def test_every_entry_is_an_event_with_its_dollars_and_what_is_left(mlcd: Mlcd, recorded_job: WriteJob) -> None:
    found = events(mlcd("train", recorded_job("budget: 100"), "-y", "--watch-json"))[:-1]
    ledger = open_ledger()
    lines, account = ledger.lines("demo-1"), ledger.account("demo-1")
    ledger.close()
    assert [event["seq"] for event in found] == [line.seq for line in lines]
    assert found[-1]["spent_usd"] == account.history.spent_usd
    assert found[-1]["left_usd"] == 100 - account.history.spent_usd
    spent = sum(event["usd"] for event in found if event["kind"] == "settled")
    assert spent == pytest.approx(account.history.spent_usd)
    assert all(event["reserved_usd"] == event["usd"] for event in found if event["kind"] == "reserved")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("train", "nowhere.yaml"), ExitCode.REFUSED),
        (("train", "job.yaml", "--bugdet", "3"), ExitCode.REFUSED),
        (("train", "job.yaml", "--budget", "-3"), ExitCode.REFUSED),
        (("resume", "nobody-1"), ExitCode.REFUSED),
        (("attach", "nobody-1"), ExitCode.REFUSED),
        (("tune",), ExitCode.REFUSED),
        (("--server", "http://127.0.0.1:9", "train", "job.yaml"), ExitCode.UNAVAILABLE),
    ],
)
def test_what_is_refused_is_an_event_too(
    mlcd: Mlcd, write_job: WriteJob, arguments: tuple[str, ...], code: ExitCode
) -> None:
    write_job()
    answer = mlcd(*arguments, "--watch-json")
    (only,) = events(answer)
    assert answer.code == code
    assert only["run"] is None
    assert f"mlcd: {only['because']}" in answer.err


def test_what_cannot_be_certified_ends_with_3_and_the_document_says_what_would_be_enough(
    mlcd: Mlcd, recorded_job: WriteJob
) -> None:
    last = events(mlcd("train", recorded_job("budget: 0.5"), "-y", "--watch-json"))[-1]
    assert (last["exit_code"], last["status"], last["chosen"]) == (ExitCode.INFEASIBLE, "infeasible", None)
    assert last["document"]["decision"]["relaxations"]


def test_a_run_is_gone_on_with_from_where_it_stands(mlcd: Mlcd, recorded_job: WriteJob) -> None:
    events(mlcd("train", recorded_job("budget: 100"), "--decide-only", "--watch-json"))
    first, *others, last = events(mlcd("resume", "last", "-y", "--watch-json"))
    assert (first["type"], first["run"], first["status"]) == ("state", "demo-1", "decided")
    assert {event["kind"] for event in others} == {"reserved", "settled", "ended"}
    assert last["status"] == "finished"


def test_who_attaches_is_told_all_of_it(mlcd: Mlcd, recorded_job: WriteJob) -> None:
    before = events(mlcd("train", recorded_job("budget: 100"), "-y", "--watch-json"))
    after = events(mlcd("attach", "last", "--watch-json"))
    assert after[:-1] == before[:-1]
    assert after[-1]["document"] == before[-1]["document"]


def test_a_yes_is_an_option_and_without_it_the_code_says_so(
    mlcd: Mlcd, write_job: WriteJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sky", ModuleType("sky"))
    answer = mlcd("train", write_job(), "--on", "skypilot:aws", "--budget", "20", "--watch-json")
    (only,) = events(answer)
    assert only["exit_code"] == ExitCode.YES_NEEDED
    assert "up to $20.00, the budget" in only["because"]


def test_the_schema_is_printed(mlcd: Mlcd) -> None:
    assert mlcd("schema", "events").document == events_schema()
