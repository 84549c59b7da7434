"""Spot machines that are taken back."""

from __future__ import annotations

import subprocess
import time

from mlcd_box.cloud.faults import Rule
from mlcd_box.cloud.market import read_trace
from mlcd_box.scenarios.scenario import FEASIBLE, scenario
from mlcd_box.stage import Stage

ZONES = "[us-east-1a, us-east-1b, us-east-1c]"
MARKET = "tick,us-east-1a,us-east-1b,us-east-1c\n" + "\n".join(
    f"{tick},{a},{b},{c}" for tick, (a, b, c) in enumerate(zip("1110000000", "0000011111", "0011110000", strict=True))
)
"""Spot machines that could be had, by tick and zone. At each moment one zone has machines."""


@scenario
def spot_taken_back_in_a_probe(stage: Stage) -> None:
    """spot machines taken back in a probe"""
    running = stage.start("train", stage.job(spot=True, work=20_000), "-y")
    stage.until(lambda: stage.reports() >= 3, during=running)
    stage.take_back(stage.events("running")[0]["id"])
    assert running.wait() == FEASIBLE, stage.said()


@scenario
def cheap_probe_taken_back(stage: Stage) -> None:
    """spot or on demand: a probe on a spot machine, taken back and repeated on demand"""
    running = stage.start("train", stage.job(spot="any", zones=ZONES, work=8_000), "-y")
    stage.until(lambda: stage.reports() >= 3, during=running)
    stage.take_back(stage.running_on("spot")[0]["id"])
    assert running.wait() == FEASIBLE, stage.said()
    probes = [entry["launch"] for entry in stage.entries("play-1", "settled") if entry["launch"]["purpose"] == "probe"]
    assert [probe["market"] is not None for probe in probes] == [True, False], probes


@scenario
def spot_taken_back_in_the_run(stage: Stage) -> None:
    """spot machines taken back in the final run, which goes on from its bucket"""
    job = stage.job(work=40_000, spot=True, bucket="saved-work")
    running = stage.start("train", job, "-y")
    stage.until(lambda: "% done" in stage.said(), during=running)
    stage.until(lambda: stage.saved_in("saved-work"), during=running)
    stage.take_back(stage.running()[-1]["id"])
    assert running.wait() == FEASIBLE, stage.said()
    assert "preempted" in stage.said() or "taken back" in stage.said(), stage.said()


@scenario
def spot_by_a_deadline(stage: Stage) -> None:
    """three zones and a deadline: one has no spot machines, and two take theirs back"""
    stage.box.faults.write([Rule("no-capacity", zone="us-east-1a", market="spot")])
    job = stage.job(work=40_000, spot="any", zones=ZONES, bucket="market-work", limit="deadline: 1h")
    running = stage.start("train", job, "-y")
    for _ in range(2):
        _take_back_once_it_saves(stage, running)
    assert running.wait() == FEASIBLE, stage.said()
    assert {event["zone"] for event in stage.events("refused")} == {"us-east-1a"}
    on_spot = [event for event in stage.events("started") if event["market"] == "spot"]
    assert {event["zone"] for event in on_spot[:2]} == {"us-east-1b", "us-east-1c"}
    _was_on_time(stage, 3_600.0)


@scenario
def spot_by_a_trace(stage: Stage) -> None:
    """the same on a recorded market, in which zones have machines at some hours"""
    trace = stage.folder / "market.csv"
    job = stage.job(work=40_000, spot="any", zones=ZONES, bucket="trace-work", limit="deadline: 1h")
    trace.write_text(MARKET)
    running = stage.start("train", job, "-y")
    stage.until(lambda: stage.running_on("spot"), during=running)  # its first tick is now
    stage.box.market.replay(read_trace(trace, tick_s=30.0, notice_s=20.0), time.time())
    assert running.wait() == FEASIBLE, stage.said()
    assert stage.events("notice"), "no machine was taken back"
    assert stage.events("refused"), "every zone had machines"
    _was_on_time(stage, 3_600.0)


def _was_on_time(stage: Stage, deadline_s: float) -> None:
    """By the ledger, and by the cloud's own clock."""
    entries = stage.document("ledger", "play-1")["entries"]
    assert max(entry["elapsed_s"] for entry in entries) <= deadline_s
    last, first = stage.events("terminated")[-1]["t"], stage.events("started")[0]["t"]
    assert last - first <= deadline_s


def _take_back_once_it_saves(stage: Stage, running: subprocess.Popen[str]) -> None:
    """Take a spot machine back after the job has saved more there than it began with."""
    stage.until(lambda: stage.running_on("spot"), during=running)
    machine, before = stage.running_on("spot")[-1]["id"], stage.work_saved_in("market-work")
    stage.until(lambda: stage.work_saved_in("market-work") > before, during=running)
    stage.take_back(machine)
    stage.until(lambda: machine not in {each["id"] for each in stage.running()}, during=running)


@scenario
def bucket_with_a_cache(stage: Stage) -> None:
    """the same, from a bucket of mode MOUNT_CACHED, which has everything at the end"""
    job = stage.job(work=20_000, spot=True, bucket="cached-work", mount="MOUNT_CACHED")
    running = stage.start("train", job, "-y")
    stage.until(lambda: "% done" in stage.said(), during=running)
    stage.until(lambda: stage.saved_in("cached-work"), during=running)
    stage.take_back(stage.running()[-1]["id"])
    assert running.wait() == FEASIBLE, stage.said()
    assert stage.work_saved_in("cached-work") >= 19_000, stage.work_saved_in("cached-work")
