"""Exports for vLLM and compose, started here on a CPU: they answer a request."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest
import yaml
from mlcd_fixtures.engine_runs import chat_account, chat_job
from mlcd_fixtures.tiny_llama import tiny_llama
from mlcd_fixtures.vllm import PROGRAMS, needs_vllm

from mlcd.reports.deploy.targets import made_for

pytestmark = [pytest.mark.live, pytest.mark.night, needs_vllm]
READY_S = 240
POLL_S = 0.5


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model of random weights."""
    return tiny_llama(tmp_path / "tiny")


@contextmanager
def started(command: Sequence[str], variables: Mapping[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The engine, until the block is left."""
    environment = {**os.environ, **variables, "PATH": f"{PROGRAMS}:{os.environ['PATH']}", "HF_HUB_OFFLINE": "1"}
    environment.pop("PYTHONPATH", None)
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment, start_new_session=True)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


def answer(process: subprocess.Popen[bytes], port: int, log: Path) -> Any:
    """What it says to a request, once it is ready."""
    for _ in range(int(READY_S / POLL_S)):
        with suppress(URLError, OSError), urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
            break
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=POLL_S)
            pytest.fail(f"it ended: {log.read_text()[-2000:]}")
    else:
        pytest.fail(f"it was not ready in {READY_S} s: {log.read_text()[-2000:]}")
    body = json.dumps({"model": "tiny-1b", "prompt": "hello", "max_tokens": 4, "ignore_eos": True}).encode()
    request = Request(f"http://127.0.0.1:{port}/v1/completions", body, {"content-type": "application/json"})
    with urlopen(request, timeout=60) as answered:
        return json.load(answered)


@pytest.mark.parametrize("target", ["vllm", "compose"])
def test_what_is_exported_answers_a_request(model: Path, target: str, tmp_path: Path) -> None:
    knobs: dict[str, tuple[str | int | float, ...]] = {
        "threads": (1,), "kv_cache_gb": (0.2,), "precision": ("bf16",), "eager": ("eager",), "sequences": (8,),
        "batched_tokens": (512,), "context": (256,), "load_format": ("dummy",),
    }  # fmt: skip
    export = made_for("tiny-1", chat_account(chat_job(knobs, str(model))), target)
    file, port = tmp_path / export.main, free_port()
    file.write_text(export.files[export.main])
    if target == "vllm":
        command, variables = ["sh", str(file)], dict[str, str]()
    else:  # without Docker: what the service would run
        (service,) = yaml.safe_load(file.read_text())["services"].values()
        command, variables = [*service["entrypoint"], *service["command"]], service["environment"]
        assert shlex.join(command).startswith("vllm serve ")
    command += ["--host", "127.0.0.1", "--port", str(port)]
    log = tmp_path / "engine.log"
    with started(command, variables, log) as process:
        said = answer(process, port, log)
    assert said["usage"]["completion_tokens"] == 4
    assert said["model"] == "tiny-1b"
