"""mlcd spot history: what the launches of all runs have seen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Mlcd = Callable[..., Any]

JOB = """
name: spotty
resources: {infra: aws/us-east-1, use_spot: any}
run: python train.py
mlcd:
  work: {dataset: 1.28M, epochs: 30}
  flops_per_sample: 12G
  goal: cheapest
  deadline: 60h
  checkpoints: true
  search: {instances: [g4dn.xlarge], nodes: 1..2, seed: 3, zones: [us-east-1a, us-east-1b]}
"""


@pytest.fixture
def ran(mlcd: Mlcd, tmp_path: Path) -> Any:
    """The document of a run on simulated markets."""
    path = tmp_path / "spotty.yaml"
    path.write_text(JOB)
    return mlcd("train", path, "-y", "-o", "json").document


def test_what_was_seen_is_what_the_run_tells(mlcd: Mlcd, ran: Any) -> None:
    seen = mlcd("spot", "history", "-o", "json").document["capacity"]
    assert ran["status"] == "finished"
    (rented,) = ran["tables"]
    assert sum(each["tries"] for each in seen) == len(ran["probes"]) + sum(1 + row[5] for row in rented["rows"])
    assert sum(each["taken_back"] for each in seen) == sum(row[3].startswith("preempted") for row in rented["rows"])
    spot = [each for each in seen if each["market"] == "spot"]
    assert {each["zone"] for each in spot} <= {"us-east-1a", "us-east-1b"}
    assert all(each["share"] == each["got"] / each["tries"] for each in seen)
    assert all(each["mean_life_h"] > 0 and each["startup_median_s"] > 0 for each in spot if each["got"])


def test_a_table_is_filtered_by_type_zone_and_place(mlcd: Mlcd, ran: Any) -> None:
    table = mlcd("spot", "history", "--type", "g4dn.*", "--zone", "us-east-1?", "--on", "simulated").out
    assert "us-east-1a" in table
    assert "simulated" in table
    for filters in (["--type", "p3.*"], ["--zone", "eu-*"], ["--on", "skypilot:aws"]):
        assert mlcd("spot", "history", *filters).out == "No launches yet, or none that passes these filters.\n"
        assert mlcd("spot", "history", *filters, "-o", "json").document == {"capacity": []}


def test_without_a_run_there_is_nothing_to_show(mlcd: Mlcd) -> None:
    assert mlcd("spot", "history").out.startswith("No launches yet")
