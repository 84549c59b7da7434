"""Trials of a server, and an elastic job."""

from __future__ import annotations

import signal
from itertools import pairwise

from mlcd_box.scenarios.scenario import FEASIBLE, scenario
from mlcd_box.stage import Stage


@scenario
def serve_on_two_types(stage: Stage) -> None:
    """a model served on two types of machines"""
    model, knobs = stage.model(), stage.folder / "knobs.yaml"
    knobs.write_text("knobs: {instance: [m5.large, c5.large], threads: [1], batch: [1, 8]}\ntrial: 30s\n")
    limits = ("--budget", "1", "--trials", "3", "--on", "skypilot:aws", "-y")
    assert stage.mlcd("serve", model, "--knobs", knobs, *limits) == FEASIBLE, stage.said()
    assert {event["type"] for event in stage.events("started")} == {"m5.large", "c5.large"}


@scenario
def serve_killed(stage: Stage) -> None:
    """MLCD killed while a trial's machine comes up; `mlcd clean` finds it"""
    model, knobs = stage.model(), stage.folder / "knobs.yaml"
    knobs.write_text("knobs: {instance: [m5.large], batch: [1, 8]}\ntrial: 30s\n")
    process = stage.start("serve", model, "--knobs", knobs, "--budget", "1", "--on", "skypilot:aws", "-y")
    stage.until(lambda: stage.events("running"))
    stage.signal(process, signal.SIGKILL)
    process.wait()
    assert stage.mlcd("clean") == 0, stage.said()
    assert stage.running() == []


@scenario
def scale_with_a_bucket(stage: Stage) -> None:
    """an elastic job on one and on two nodes, which goes on from its bucket"""
    job = stage.job(work=40_000, bucket="elastic-work", scale="{workers: 1..2, batch: 64}")
    assert stage.mlcd("scale", job, "--goal", "fastest", "-y") == FEASIBLE, stage.said()
    launches = [entry["launch"] for entry in stage.entries("play-1", "reserved")]
    assert {launch["configuration"]["nodes"] for launch in launches} == {1, 2}, launches
    begun_with = [launch["saved_samples"] for launch in launches]
    assert all(later > before for before, later in pairwise(begun_with)), begun_with
