"""Scenarios with serving trials, and with an elastic job."""

from __future__ import annotations

import signal
from itertools import pairwise

from mlcd_box.harness import Harness
from mlcd_box.scenarios.registry import FEASIBLE, scenario


@scenario
def serve_on_two_types(harness: Harness) -> None:
    """a model served on two types of machines"""
    model, knobs = harness.model(), harness.folder / "knobs.yaml"
    knobs.write_text("knobs: {instance: [m5.large, c5.large], threads: [1], batch: [1, 8]}\ntrial: 30s\n")
    limits = ("--budget", "1", "--trials", "3", "--on", "skypilot:aws", "-y")
    assert harness.mlcd("serve", model, "--knobs", knobs, *limits) == FEASIBLE, harness.output()
    assert {event["type"] for event in harness.events("started")} == {"m5.large", "c5.large"}


@scenario
def serve_killed(harness: Harness) -> None:
    """MLCD killed while a trial's machine comes up; `mlcd clean` finds it"""
    model, knobs = harness.model(), harness.folder / "knobs.yaml"
    knobs.write_text("knobs: {instance: [m5.large], batch: [1, 8]}\ntrial: 30s\n")
    process = harness.start("serve", model, "--knobs", knobs, "--budget", "1", "--on", "skypilot:aws", "-y")
    harness.until(lambda: harness.events("running"))
    harness.signal(process, signal.SIGKILL)
    process.wait()
    assert harness.mlcd("clean") == 0, harness.output()
    assert harness.running() == []


@scenario
def scale_with_a_bucket(harness: Harness) -> None:
    """an elastic job on one and on two nodes, which goes on from its bucket"""
    job = harness.job(work=40_000, bucket="elastic-work", scale="{workers: 1..2, batch: 64}")
    assert harness.mlcd("scale", job, "--goal", "fastest", "-y") == FEASIBLE, harness.output()
    launches = [entry["launch"] for entry in harness.entries("play-1", "reserved")]
    assert {launch["configuration"]["nodes"] for launch in launches} == {1, 2}, launches
    begun_with = [launch["saved_samples"] for launch in launches]
    assert all(later > before for before, later in pairwise(begun_with)), begun_with
