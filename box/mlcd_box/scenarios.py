"""What may happen between MLCD and a cloud, each as a story that is played in a box of its own.

A scenario brings something about and checks what only it can know; `play` then holds the ledger against the cloud's
bill and waits until nothing is left. Its docstring is its row's name in the table.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
import zipfile
from collections.abc import Callable
from itertools import pairwise

from mlcd_box.cloud.faults import Rule
from mlcd_box.cloud.functions.runtime import NAME
from mlcd_box.cloud.market import read_trace
from mlcd_box.functions_job import functions_job
from mlcd_box.stage import GONE_WITHIN_S, Stage

Scenario = Callable[[Stage], None]
SCENARIOS: dict[str, Scenario] = {}
KILLS = 10
FEASIBLE = 0
"""The exit code of a run that ended well."""
ZONES = "[us-east-1a, us-east-1b, us-east-1c]"
MARKET = "tick,us-east-1a,us-east-1b,us-east-1c\n" + "\n".join(
    f"{tick},{a},{b},{c}" for tick, (a, b, c) in enumerate(zip("1110000000", "0000011111", "0011110000", strict=True))
)
"""Spot machines that could be had, by tick and zone. At each moment one zone has machines."""
PROBE_LIFETIME_S = 23 * 60.0
"""What the ledger reserves for a probe of one node."""


def scenario(story: Scenario) -> Scenario:
    """Part of `box test`."""
    SCENARIOS[story.__name__.replace("_", "-")] = story
    return story


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


@scenario
def functions_own_code(stage: Stage) -> None:
    """functions: a job's own model and data trained on Lambda"""
    job = functions_job(stage, own=True)
    assert stage.mlcd("train", job, "--deadline", "30m", "--target-loss", 0.14, "-y") == FEASIBLE, stage.said()


@scenario
def functions_throttled(stage: Stage) -> None:
    """functions: every third call is answered with 429"""
    stage.box.faults.write([Rule("throttle-calls", share=0.33)])
    job = functions_job(stage, own=True)
    assert stage.mlcd("train", job, "--deadline", "30m", "--target-loss", 0.14, "-y") == FEASIBLE, stage.said()
    assert stage.events("throttled")


@scenario
def functions_killed(stage: Stage) -> None:
    """functions: MLCD killed while functions train, and resumed"""
    job = functions_job(stage, own=True)
    process = stage.start("train", job, "--deadline", "30m", "--target-loss", 0.12, "-y")
    stage.until(lambda: "epoch 2: loss" in stage.said(), 900, process)
    stage.signal(process, signal.SIGKILL)
    process.wait()
    stage.finish("play-1")
    settled = [entry["measurement"] for entry in stage.entries("play-1", "settled")]
    assert all(each["metered"] for each in settled), settled  # that of the launch that was cut short, too


@scenario
def functions_ctrl_c_twice(stage: Stage) -> None:
    """functions: Ctrl-C twice while functions train, which nobody can end"""
    job = functions_job(stage, own=True)
    process = stage.start("train", job, "--deadline", "30m", "--target-loss", 0.12, "-y")
    stage.until(lambda: "epoch 2: loss" in stage.said(), 900, process)
    stage.signal(process, signal.SIGINT)
    time.sleep(2)
    stage.signal(process, signal.SIGINT)
    process.wait()
    assert "Traceback" not in stage.said(), stage.said()


@scenario
def functions_tuned_and_exported(stage: Stage) -> None:
    """functions: trials tuned on Lambda; the plan, exported, is deployed and answers"""
    job = functions_job(stage)
    assert stage.mlcd("tune", job, "--trials", 4, "--budget", 0.10, "-y") == FEASIBLE, stage.said()
    plan = stage.document("export", "play-1", "--to", "lambda")
    code_file, answer_file = stage.folder / "code.zip", stage.folder / "answer.json"
    with zipfile.ZipFile(code_file, "w") as code:
        code.writestr("own.py", "def handler(event, context):\n    return context.memory_limit_in_mb\n")
    for function in plan["functions"]:
        named = ("--function-name", function["FunctionName"])
        sized = ("--memory-size", function["MemorySize"], "--timeout", function["Timeout"])
        own = ("--runtime", NAME, "--handler", "own.handler", "--zip-file", f"fileb://{code_file}")
        stage.besides.add(function["FunctionName"])
        stage.aws("lambda", "create-function", *named, *sized, *own, "--role", "arn:aws:iam::123456789012:role/own")
        stage.aws("lambda", "wait", "function-active-v2", *named)
        assert stage.aws("lambda", "invoke", *named, answer_file)["StatusCode"] == 200
        assert json.loads(answer_file.read_text()) == str(function["MemorySize"])
    for segment in plan["segments"]:
        wanted = ("--reserved-concurrent-executions", segment["ReservedConcurrentExecutions"])
        stage.aws("lambda", "put-function-concurrency", "--function-name", segment["FunctionName"], *wanted)
