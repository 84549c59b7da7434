"""Machines, servers and MLCD itself that fail or are killed."""

from __future__ import annotations

import random
import signal
import time

from mlcd_box.cloud.faults import Rule
from mlcd_box.scenarios.scenario import FEASIBLE, scenario
from mlcd_box.stage import GONE_WITHIN_S, Stage

KILLS = 10
PROBE_LIFETIME_S = 23 * 60.0
"""What the ledger reserves for a probe of one node."""


@scenario
def worker_lost_in_a_probe(stage: Stage) -> None:
    """a worker lost in a probe"""
    running = stage.start("train", stage.job(nodes="2..2", work=20_000), "-y")
    stage.until(lambda: stage.reports() >= 3, during=running)
    stage.lose_worker()
    assert running.wait() == FEASIBLE, stage.said()
    assert "no longer up" in stage.said(), stage.said()


@scenario
def worker_lost_in_the_run(stage: Stage) -> None:
    """a worker lost in the final run"""
    running = stage.start("train", stage.job(nodes="2..2", work=12_000), "-y")
    stage.until(lambda: "% done" in stage.said(), during=running)
    stage.lose_worker()
    assert running.wait() == FEASIBLE, stage.said()
    assert "no longer up" in stage.said(), stage.said()


@scenario
def no_ssh(stage: Stage) -> None:
    """a type whose machines never answer ssh"""
    stage.box.faults.write([Rule("no-ssh", "c5.large")])
    job = stage.job(instances="[c5.large, m5.large]", method="heterbo")
    assert stage.mlcd("train", job, "-y") == FEASIBLE, stage.said()


@scenario
def api_server_killed(stage: Stage) -> None:
    """SkyPilot's API server killed in the final run, and started again"""
    running = stage.start("train", stage.job(work=8_000), "-y")
    stage.until(lambda: "% done" in stage.said(), during=running)
    stage.box.kill_server()  # SkyPilot's client starts another one
    code = running.wait()
    if not stage.box.server_answers():
        stage.box.start_server()
    if code != FEASIBLE:
        assert stage.mlcd("resume", "play-1", "-y") == FEASIBLE, stage.said()


@scenario
def killed_again_and_again(stage: Stage) -> None:
    """MLCD killed at ten random moments"""
    seed = time.time_ns() % 1_000_000
    moments = random.Random(seed)
    stage.notes.append(f"seed {seed}")
    command: tuple[object, ...] = ("train", stage.job(work=8_000), "-y")
    for _ in range(KILLS):
        process = stage.start(*command)
        until_s = time.monotonic() + moments.uniform(3, 100)
        while process.poll() is None and time.monotonic() < until_s:
            time.sleep(0.2)
        if process.poll() is not None:
            break
        stage.signal(process, signal.SIGKILL)
        process.wait()
        command = ("resume", "play-1", "-y") if stage.has_begun("play-1") else command
    stage.finish("play-1")


@scenario
def both_killed(stage: Stage) -> None:
    """MLCD and SkyPilot's server killed at once while machines come up"""
    _kill_both(stage)
    began_s = time.monotonic()
    stage.until(lambda: not stage.running(), PROBE_LIFETIME_S + GONE_WITHIN_S)
    stage.notes.append(f"off by themselves after {time.monotonic() - began_s:.0f} s")
    stage.wait_until_nothing_is_left()
    assert not stage.events("stopped"), "its disk would be billed"
    stage.box.start_server()
    assert stage.mlcd("clean", "--cloud") == 0, stage.said()
    stage.wait_until_nothing_is_left()
    stage.finish("play-1")


@scenario
def both_killed_and_swept(stage: Stage) -> None:
    """the same, SkyPilot's database lost, and `mlcd clean --cloud`"""
    _kill_both(stage)
    stage.box.lose_database()
    assert stage.mlcd("clean", "--cloud") == 0, stage.said()
    stage.wait_until_nothing_is_left()
    stage.box.start_server()
    stage.finish("play-1")


def _kill_both(stage: Stage) -> None:
    process = stage.start("train", stage.job(), "-y")
    stage.until(lambda: stage.events("running"))
    stage.signal(process, signal.SIGKILL)
    stage.box.kill_server()
    process.wait()


@scenario
def ctrl_c_twice(stage: Stage) -> None:
    """Ctrl-C twice in a probe"""
    process = stage.start("train", stage.job(work=20_000), "-y")
    stage.until(lambda: stage.reports() >= 2, during=process)
    stage.signal(process, signal.SIGINT)
    time.sleep(2)
    stage.signal(process, signal.SIGINT)
    process.wait()
    assert "Traceback" not in stage.said(), stage.said()


@scenario
def two_runs(stage: Stage) -> None:
    """two runs at once"""
    both = [stage.start("train", stage.job(name), "-y") for name in ("play", "other")]
    assert [process.wait() for process in both] == [FEASIBLE, FEASIBLE]


@scenario
def deadline_ends_a_hanging_job(stage: Stage) -> None:
    """a deadline that ends a job that hangs"""
    job = stage.job(hangs=True, work=20_000, limit="deadline: 35m")
    began_s = time.monotonic()
    assert stage.mlcd("train", job, "-y") != FEASIBLE
    assert stage.events("running"), "it was not even begun"
    assert time.monotonic() - began_s <= 35 * 60
