"""Scenarios in which machines, servers or MLCD itself fail or are killed."""

from __future__ import annotations

import random
import signal
import time

from mlcd_box.cloud.faults import Rule
from mlcd_box.harness import GONE_WITHIN_S, Harness
from mlcd_box.scenarios.registry import FEASIBLE, scenario

KILLS = 10
PROBE_LIFETIME_S = 23 * 60.0
"""The lifetime that the ledger reserves for a probe of one node."""


@scenario
def worker_lost_in_a_probe(harness: Harness) -> None:
    """a worker lost in a probe"""
    running = harness.start("train", harness.job(nodes="2..2", work=20_000), "-y")
    harness.until(lambda: harness.reports() >= 3, during=running)
    harness.lose_worker()
    assert running.wait() == FEASIBLE, harness.output()
    assert "no longer up" in harness.output(), harness.output()


@scenario
def worker_lost_in_the_run(harness: Harness) -> None:
    """a worker lost in the final run"""
    running = harness.start("train", harness.job(nodes="2..2", work=12_000), "-y")
    harness.until(lambda: "% done" in harness.output(), during=running)
    harness.lose_worker()
    assert running.wait() == FEASIBLE, harness.output()
    assert "no longer up" in harness.output(), harness.output()


@scenario
def no_ssh(harness: Harness) -> None:
    """a type whose machines never answer ssh"""
    harness.box.faults.write([Rule("no-ssh", "c5.large")])
    job = harness.job(instances="[c5.large, m5.large]", method="heterbo")
    assert harness.mlcd("train", job, "-y") == FEASIBLE, harness.output()


@scenario
def api_server_killed(harness: Harness) -> None:
    """SkyPilot's API server killed in the final run, and started again"""
    running = harness.start("train", harness.job(work=8_000), "-y")
    harness.until(lambda: "% done" in harness.output(), during=running)
    harness.box.kill_server()  # SkyPilot's client starts another one
    code = running.wait()
    if not harness.box.server_answers():
        harness.box.start_server()
    if code != FEASIBLE:
        assert harness.mlcd("resume", "play-1", "-y") == FEASIBLE, harness.output()


@scenario
def killed_again_and_again(harness: Harness) -> None:
    """MLCD killed at ten random moments"""
    seed = time.time_ns() % 1_000_000
    moments = random.Random(seed)
    harness.notes.append(f"seed {seed}")
    command: tuple[object, ...] = ("train", harness.job(work=8_000), "-y")
    for _ in range(KILLS):
        process = harness.start(*command)
        until_s = time.monotonic() + moments.uniform(3, 100)
        while process.poll() is None and time.monotonic() < until_s:
            time.sleep(0.2)
        if process.poll() is not None:
            break
        harness.signal(process, signal.SIGKILL)
        process.wait()
        command = ("resume", "play-1", "-y") if harness.has_begun("play-1") else command
    harness.finish("play-1")


@scenario
def both_killed(harness: Harness) -> None:
    """MLCD and SkyPilot's server killed at once while machines come up"""
    _kill_both(harness)
    began_s = time.monotonic()
    harness.until(lambda: not harness.running(), PROBE_LIFETIME_S + GONE_WITHIN_S)
    harness.notes.append(f"off by themselves after {time.monotonic() - began_s:.0f} s")
    harness.wait_until_nothing_is_left()
    assert not harness.events("stopped"), "a stopped machine's disk would be billed"
    harness.box.start_server()
    assert harness.mlcd("clean", "--cloud") == 0, harness.output()
    harness.wait_until_nothing_is_left()
    harness.finish("play-1")


@scenario
def both_killed_and_swept(harness: Harness) -> None:
    """the same, SkyPilot's database lost, and `mlcd clean --cloud`"""
    _kill_both(harness)
    harness.box.lose_database()
    assert harness.mlcd("clean", "--cloud") == 0, harness.output()
    harness.wait_until_nothing_is_left()
    harness.box.start_server()
    harness.finish("play-1")


def _kill_both(harness: Harness) -> None:
    process = harness.start("train", harness.job(), "-y")
    harness.until(lambda: harness.events("running"))
    harness.signal(process, signal.SIGKILL)
    harness.box.kill_server()
    process.wait()


@scenario
def ctrl_c_twice(harness: Harness) -> None:
    """Ctrl-C twice in a probe"""
    process = harness.start("train", harness.job(work=20_000), "-y")
    harness.until(lambda: harness.reports() >= 2, during=process)
    harness.signal(process, signal.SIGINT)
    time.sleep(2)
    harness.signal(process, signal.SIGINT)
    process.wait()
    assert "Traceback" not in harness.output(), harness.output()


@scenario
def two_runs(harness: Harness) -> None:
    """two runs at once"""
    both = [harness.start("train", harness.job(name), "-y") for name in ("play", "other")]
    assert [process.wait() for process in both] == [FEASIBLE, FEASIBLE]


@scenario
def deadline_ends_a_hanging_job(harness: Harness) -> None:
    """a deadline that ends a job that hangs"""
    job = harness.job(hangs=True, work=20_000, limit="deadline: 35m")
    began_s = time.monotonic()
    assert harness.mlcd("train", job, "-y") != FEASIBLE
    assert harness.events("running"), "the job was not started"
    assert time.monotonic() - began_s <= 35 * 60
