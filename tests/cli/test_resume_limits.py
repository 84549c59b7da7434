"""`mlcd resume RUN --budget ... --deadline ...`: what is kept, what is refused, and what is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Mlcd = Callable[..., Any]
WriteJob = Callable[..., Path]


def paid(document: Any) -> list[tuple[str, int, float]]:
    return [(probe["instance_type"], probe["nodes"], probe["usd"]) for probe in document["probes"]]


def test_an_infeasible_run_goes_on_with_the_limit_that_it_asked_for(mlcd: Mlcd, recorded_job: WriteJob) -> None:
    before = mlcd("train", recorded_job("budget: $6"), "-o", "json")
    assert before.code == 3
    command = mlcd("resume", "last").complaint.partition("raise them: mlcd ")[2].split()
    assert command[:3] == ["resume", "demo-1", "--budget"]
    after = mlcd(*command, "-y", "-o", "json")
    assert after.code == 0, after.err
    assert f"the user changed the budget from $6.00 to ${float(command[3]):.2f}" in after.err
    document = after.document
    assert document["run"] == "demo-1"
    assert document["status"] == "finished"
    assert document["goal"]["budget_usd"] == float(command[3]) >= document["spent_usd"]
    assert paid(document)[: len(paid(before.document))] == paid(before.document), "probes are kept, not made again"


def test_a_budget_that_is_spent_already_is_one_line_and_changes_nothing(mlcd: Mlcd, recorded_job: WriteJob) -> None:
    mlcd("train", recorded_job("budget: $6"))
    before = mlcd("ledger", "last", "-o", "json").document
    assert "a budget is for all of the run" in mlcd("resume", "last", "--budget", "0.01").complaint
    assert "a deadline is for all of the run" in mlcd("resume", "last", "--deadline", "1s").complaint
    assert "expected" in mlcd("resume", "last", "--budget", "much").complaint
    assert mlcd("ledger", "last", "-o", "json").document == before


@pytest.mark.parametrize("shown", [("show",), ("ledger",), ("report",), ("runs",), ("what-if", "--budget", "30")])
def test_every_command_reads_a_run_whose_limits_were_changed(
    mlcd: Mlcd, recorded_job: WriteJob, tmp_path: Path, shown: tuple[str, ...]
) -> None:
    mlcd("train", recorded_job("budget: $6"))
    assert mlcd("resume", "last", "--budget", "none", "--decide-only").code == 0
    command, *options = shown
    run = [] if command == "runs" else ["last"]
    to = ["--to", str(tmp_path / "report.html")] if command == "report" else []
    answer = mlcd(command, *run, *options, *to)
    assert answer.code in (0, 3), answer.err
