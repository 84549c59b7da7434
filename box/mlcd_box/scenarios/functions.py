"""Scenarios with jobs on functions."""

from __future__ import annotations

import json
import signal
import time
import zipfile

from mlcd_box.cloud.faults import Rule
from mlcd_box.cloud.functions.runtime import NAME
from mlcd_box.functions_job import functions_job
from mlcd_box.harness import Harness
from mlcd_box.scenarios.registry import FEASIBLE, scenario


@scenario
def functions_own_code(harness: Harness) -> None:
    """functions: a job's own model and data trained on Lambda"""
    job = functions_job(harness, own=True)
    assert harness.mlcd("train", job, "--deadline", "30m", "--target-loss", 0.14, "-y") == FEASIBLE, harness.output()


@scenario
def functions_throttled(harness: Harness) -> None:
    """functions: every third call is answered with 429"""
    harness.box.faults.write([Rule("throttle-calls", share=0.33)])
    job = functions_job(harness, own=True)
    assert harness.mlcd("train", job, "--deadline", "30m", "--target-loss", 0.14, "-y") == FEASIBLE, harness.output()
    assert harness.events("throttled")


@scenario
def functions_killed(harness: Harness) -> None:
    """functions: MLCD killed while functions train, and resumed"""
    job = functions_job(harness, own=True)
    process = harness.start("train", job, "--deadline", "30m", "--target-loss", 0.12, "-y")
    harness.until(lambda: "epoch 2: loss" in harness.output(), 900, process)
    harness.signal(process, signal.SIGKILL)
    process.wait()
    harness.finish("play-1")
    settled = [entry["measurement"] for entry in harness.entries("play-1", "settled")]
    assert all(each["metered"] for each in settled), settled  # the interrupted launch, too


@scenario
def functions_ctrl_c_twice(harness: Harness) -> None:
    """functions: Ctrl-C twice while functions train, which nobody can end"""
    job = functions_job(harness, own=True)
    process = harness.start("train", job, "--deadline", "30m", "--target-loss", 0.12, "-y")
    harness.until(lambda: "epoch 2: loss" in harness.output(), 900, process)
    harness.signal(process, signal.SIGINT)
    time.sleep(2)
    harness.signal(process, signal.SIGINT)
    process.wait()
    assert "Traceback" not in harness.output(), harness.output()


@scenario
def functions_tuned_and_exported(harness: Harness) -> None:
    """functions: trials tuned on Lambda; the plan, exported, is deployed and answers"""
    job = functions_job(harness)
    assert harness.mlcd("tune", job, "--trials", 4, "--budget", 0.10, "-y") == FEASIBLE, harness.output()
    plan = harness.document("export", "play-1", "--to", "lambda")
    code_file, answer_file = harness.folder / "code.zip", harness.folder / "answer.json"
    with zipfile.ZipFile(code_file, "w") as code:
        code.writestr("own.py", "def handler(event, context):\n    return context.memory_limit_in_mb\n")
    for function in plan["functions"]:
        named = ("--function-name", function["FunctionName"])
        sized = ("--memory-size", function["MemorySize"], "--timeout", function["Timeout"])
        own = ("--runtime", NAME, "--handler", "own.handler", "--zip-file", f"fileb://{code_file}")
        harness.own_functions.add(function["FunctionName"])
        harness.aws("lambda", "create-function", *named, *sized, *own, "--role", "arn:aws:iam::123456789012:role/own")
        harness.aws("lambda", "wait", "function-active-v2", *named)
        assert harness.aws("lambda", "invoke", *named, answer_file)["StatusCode"] == 200
        assert json.loads(answer_file.read_text()) == str(function["MemorySize"])
    for segment in plan["segments"]:
        wanted = ("--reserved-concurrent-executions", segment["ReservedConcurrentExecutions"])
        harness.aws("lambda", "put-function-concurrency", "--function-name", segment["FunctionName"], *wanted)
