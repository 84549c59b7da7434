"""Scenarios in which spot machines are preempted."""

from __future__ import annotations

import subprocess
import time

from mlcd_box.cloud.faults import Rule
from mlcd_box.cloud.market import read_trace
from mlcd_box.harness import Harness
from mlcd_box.scenarios.registry import FEASIBLE, scenario

ZONES = "[us-east-1a, us-east-1b, us-east-1c]"
MARKET = "tick,us-east-1a,us-east-1b,us-east-1c\n" + "\n".join(
    f"{tick},{a},{b},{c}" for tick, (a, b, c) in enumerate(zip("1110000000", "0000011111", "0011110000", strict=True))
)
"""Available spot machines by tick and zone. At any time at least one zone has a machine."""


@scenario
def spot_taken_back_in_a_probe(harness: Harness) -> None:
    """spot machines taken back in a probe"""
    running = harness.start("train", harness.job(spot=True, work=20_000), "-y")
    harness.until(lambda: harness.reports() >= 3, during=running)
    harness.interrupt_spot(harness.events("running")[0]["id"])
    assert running.wait() == FEASIBLE, harness.output()


@scenario
def cheap_probe_taken_back(harness: Harness) -> None:
    """spot or on demand: a probe on a spot machine, taken back and repeated on demand"""
    running = harness.start("train", harness.job(spot="any", zones=ZONES, work=8_000), "-y")
    harness.until(lambda: harness.reports() >= 3, during=running)
    harness.interrupt_spot(harness.running_on("spot")[0]["id"])
    assert running.wait() == FEASIBLE, harness.output()
    probes = [
        entry["launch"] for entry in harness.entries("play-1", "settled") if entry["launch"]["purpose"] == "probe"
    ]
    assert [probe["market"] is not None for probe in probes] == [True, False], probes


@scenario
def spot_taken_back_in_the_run(harness: Harness) -> None:
    """spot machines taken back in the final run, which goes on from its bucket"""
    job = harness.job(work=40_000, spot=True, bucket="saved-work")
    running = harness.start("train", job, "-y")
    harness.until(lambda: "% done" in harness.output(), during=running)
    harness.until(lambda: harness.saved_in("saved-work"), during=running)
    harness.interrupt_spot(harness.running()[-1]["id"])
    assert running.wait() == FEASIBLE, harness.output()
    assert "preempted" in harness.output() or "taken back" in harness.output(), harness.output()


@scenario
def spot_by_a_deadline(harness: Harness) -> None:
    """three zones and a deadline: one has no spot machines, and two take theirs back"""
    harness.box.faults.write([Rule("no-capacity", zone="us-east-1a", market="spot")])
    job = harness.job(work=40_000, spot="any", zones=ZONES, bucket="market-work", limit="deadline: 1h")
    running = harness.start("train", job, "-y")
    for _ in range(2):
        _take_back_once_it_saves(harness, running)
    assert running.wait() == FEASIBLE, harness.output()
    assert {event["zone"] for event in harness.events("refused")} == {"us-east-1a"}
    on_spot = [event for event in harness.events("started") if event["market"] == "spot"]
    assert {event["zone"] for event in on_spot[:2]} == {"us-east-1b", "us-east-1c"}
    _was_on_time(harness, 3_600.0)


@scenario
def spot_by_a_trace(harness: Harness) -> None:
    """the same on a recorded market, in which zones have machines at some hours"""
    trace = harness.folder / "market.csv"
    job = harness.job(work=40_000, spot="any", zones=ZONES, bucket="trace-work", limit="deadline: 1h")
    trace.write_text(MARKET)
    running = harness.start("train", job, "-y")
    harness.until(lambda: harness.running_on("spot"), during=running)  # its first tick is now
    harness.box.market.replay(read_trace(trace, tick_s=30.0, notice_s=20.0), time.time())
    assert running.wait() == FEASIBLE, harness.output()
    assert harness.events("notice"), "no machine was taken back"
    assert harness.events("refused"), "every zone had machines"
    _was_on_time(harness, 3_600.0)


def _was_on_time(harness: Harness, deadline_s: float) -> None:
    """Check that the deadline was kept, by the ledger and by the cloud's own clock."""
    entries = harness.document("ledger", "play-1")["entries"]
    assert max(entry["elapsed_s"] for entry in entries) <= deadline_s
    last, first = harness.events("terminated")[-1]["t"], harness.events("started")[0]["t"]
    assert last - first <= deadline_s


def _take_back_once_it_saves(harness: Harness, running: subprocess.Popen[str]) -> None:
    """Preempt a spot machine after its job has saved new work."""
    harness.until(lambda: harness.running_on("spot"), during=running)
    machine, before = harness.running_on("spot")[-1]["id"], harness.work_saved_in("market-work")
    harness.until(lambda: harness.work_saved_in("market-work") > before, during=running)
    harness.interrupt_spot(machine)
    harness.until(lambda: machine not in {each["id"] for each in harness.running()}, during=running)


@scenario
def bucket_with_a_cache(harness: Harness) -> None:
    """the same, from a bucket of mode MOUNT_CACHED, which has everything at the end"""
    job = harness.job(work=20_000, spot=True, bucket="cached-work", mount="MOUNT_CACHED")
    running = harness.start("train", job, "-y")
    harness.until(lambda: "% done" in harness.output(), during=running)
    harness.until(lambda: harness.saved_in("cached-work"), during=running)
    harness.interrupt_spot(harness.running()[-1]["id"])
    assert running.wait() == FEASIBLE, harness.output()
    assert harness.work_saved_in("cached-work") >= 19_000, harness.work_saved_in("cached-work")
