"""Jobs on functions."""

from __future__ import annotations

import json
import signal
import time
import zipfile

from mlcd_box.cloud.faults import Rule
from mlcd_box.cloud.functions.runtime import NAME
from mlcd_box.functions_job import functions_job
from mlcd_box.scenarios.scenario import FEASIBLE, scenario
from mlcd_box.stage import Stage


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
