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
    assert "a budget is for the whole run" in mlcd("resume", "last", "--budget", "0.01").complaint
    assert "a deadline is for the whole run" in mlcd("resume", "last", "--deadline", "1s").complaint
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


OUT_OF_MEMORY = """
name: large
resources: {infra: aws}
run: python train.py
mlcd:
  work: {samples: 1M}
  goal: cheapest
  budget: %s
  deadline: 100h
  parameters: 70G
  flops_per_sample: 6T
  batch: 64
  search: {nodes: 1..%s, instances: [g4dn.xlarge, g5.xlarge]}
"""


def test_a_job_that_fits_no_memory_is_told_what_helps_and_not_to_raise_its_limits(mlcd: Mlcd, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(OUT_OF_MEMORY % ("$1000", 2))
    answer = mlcd("train", tmp_path / "job.yaml", "--on", "simulated", "-y", "-o", "json")
    assert answer.code == 3
    decision = answer.document["decision"]
    assert decision["binding"] == (
        "none of 2 probes could run the job: all ran out of memory, and nothing of this search has more; name larger "
        "machines or more of them, or let a step take less memory: a smaller batch, or a `plan:` that shards and "
        "recomputes"
    )
    assert decision["relaxations"] == []
    told = mlcd("resume", "last").complaint
    assert "name larger machines" in told
    assert "in a new run" in told
    assert "raise" not in told
    assert "--deadline" not in told


def test_a_launch_that_failed_does_not_hide_that_all_others_ran_out_of_memory(mlcd: Mlcd, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(OUT_OF_MEMORY % ("$1000", 16))
    answer = mlcd("train", tmp_path / "job.yaml", "--on", "simulated", "--method", "exhaustive", "-y", "-o", "json")
    outcomes = [probe["outcome"] for probe in answer.document["probes"]]
    assert set(outcomes) == {"out_of_memory", "launch_failed"}
    many, out = len(outcomes), outcomes.count("out_of_memory")
    told = f"none of {many} probes could run the job: {out} ran out of memory, and nothing of this search has more"
    assert answer.document["decision"]["binding"].startswith(told)
    assert "raise" not in mlcd("resume", "last").complaint


def test_where_a_larger_machine_was_not_tried_for_its_price_a_limit_still_helps(mlcd: Mlcd, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(OUT_OF_MEMORY % ("$0.12", 16))
    answer = mlcd("train", tmp_path / "job.yaml", "--on", "simulated", "-y", "-o", "json")
    assert answer.code == 3
    assert "under this limit" in answer.document["decision"]["binding"]
    assert "raise them: mlcd resume large-1 --budget" in mlcd("resume", "last").complaint
