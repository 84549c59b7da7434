"""Searches and runs, and machines that are not to be had."""

from __future__ import annotations

from mlcd_box.cloud.faults import Rule
from mlcd_box.scenarios.scenario import FEASIBLE, scenario
from mlcd_box.stage import Stage


@scenario
def three_probes(stage: Stage) -> None:
    """a search of three probes, and the final run"""
    job = stage.job(instances="[m5.large, c5.large, r5.large]", method="heterbo")
    assert stage.mlcd("train", job, "-y") == FEASIBLE, stage.said()
    probed = {event["type"] for event in stage.events("started")}
    assert len(probed) == 3, probed


@scenario
def probes_side_by_side(stage: Stage) -> None:
    """probes of three types side by side"""
    job = stage.job(instances="[m5.large, c5.large, r5.large]", limit="deadline: 1h", work=20_000)
    assert stage.mlcd("train", job, "-y") == FEASIBLE, stage.said()
    assert stage.most_clusters_at_once() >= 2


@scenario
def two_nodes(stage: Stage) -> None:
    """two nodes"""
    assert stage.mlcd("train", stage.job(nodes="2..2"), "-y") == FEASIBLE, stage.said()


@scenario
def zone_without_capacity(stage: Stage) -> None:
    """a zone without capacity"""
    stage.box.faults.write([Rule("no-capacity", zone="us-east-1a")])
    assert stage.mlcd("train", stage.job(), "-y") == FEASIBLE, stage.said()
    assert {event["zone"] for event in stage.events("started")} == {"us-east-1b"}
    assert stage.events("refused")


@scenario
def no_capacity_anywhere(stage: Stage) -> None:
    """no zone has capacity"""
    stage.box.faults.write([Rule("no-capacity")])
    assert stage.mlcd("train", stage.job(), "-y") != FEASIBLE
    assert stage.events("started") == []


@scenario
def quota(stage: Stage) -> None:
    """a quota of nothing"""
    stage.box.faults.write([Rule("quota")])
    assert stage.mlcd("train", stage.job(), "-y") != FEASIBLE
    assert stage.events("started") == []
