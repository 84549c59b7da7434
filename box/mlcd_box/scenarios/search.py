"""Scenarios with searches and runs, and with machines that are not available."""

from __future__ import annotations

from mlcd_box.cloud.faults import Rule
from mlcd_box.harness import Harness
from mlcd_box.scenarios.registry import FEASIBLE, scenario


@scenario
def three_probes(harness: Harness) -> None:
    """a search of three probes, and the final run"""
    job = harness.job(instances="[m5.large, c5.large, r5.large]", method="heterbo")
    assert harness.mlcd("train", job, "-y") == FEASIBLE, harness.output()
    probed = {event["type"] for event in harness.events("started")}
    assert len(probed) == 3, probed


@scenario
def probes_side_by_side(harness: Harness) -> None:
    """probes of three types side by side"""
    job = harness.job(instances="[m5.large, c5.large, r5.large]", limit="deadline: 1h", work=20_000)
    assert harness.mlcd("train", job, "-y") == FEASIBLE, harness.output()
    assert harness.most_clusters_at_once() >= 2


@scenario
def two_nodes(harness: Harness) -> None:
    """two nodes"""
    assert harness.mlcd("train", harness.job(nodes="2..2"), "-y") == FEASIBLE, harness.output()


@scenario
def zone_without_capacity(harness: Harness) -> None:
    """a zone without capacity"""
    harness.box.faults.write([Rule("no-capacity", zone="us-east-1a")])
    assert harness.mlcd("train", harness.job(), "-y") == FEASIBLE, harness.output()
    assert {event["zone"] for event in harness.events("started")} == {"us-east-1b"}
    assert harness.events("refused")


@scenario
def no_capacity_anywhere(harness: Harness) -> None:
    """no zone has capacity"""
    harness.box.faults.write([Rule("no-capacity")])
    assert harness.mlcd("train", harness.job(), "-y") != FEASIBLE
    assert harness.events("started") == []


@scenario
def quota(harness: Harness) -> None:
    """a quota of nothing"""
    harness.box.faults.write([Rule("quota")])
    assert harness.mlcd("train", harness.job(), "-y") != FEASIBLE
    assert harness.events("started") == []
