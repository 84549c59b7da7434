"""mlcd deploy: an engine that stays up in a process of its own, until mlcd down."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from mlcd_fixtures.engine_runs import CHAT, chat_job, chat_run
from mlcd_fixtures.serving_runs import JOB as ONNX
from mlcd_fixtures.serving_runs import serving_run

from mlcd.cli.deploy import begin_and_deploy
from mlcd.cli.messages import RunOptions
from mlcd.core.errors import WrongState
from mlcd.core.job import Job
from mlcd.core.ledger import Ledger

Mlcd = Callable[..., Any]
SERVER = """
import http.server, sys

class Engine(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"data": []}')

http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Engine).serve_forever()
"""


@pytest.fixture
def chat(home: Path) -> Callable[..., str]:
    """Writes a run of a language model into the ledger of this test."""

    def write(job: Job = CHAT) -> str:
        home.mkdir(exist_ok=True)
        ledger = Ledger(home / "ledger.db")
        run = chat_run(ledger, job)
        ledger.close()
        return run

    return write


@pytest.fixture
def port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        number: int = listening.getsockname()[1]
        return number


def own_command(tmp_path: Path, server: str = SERVER) -> Job:
    """A job whose engine is a small server of this test."""
    (tmp_path / "engine.py").write_text(server)
    command = f"{sys.executable} {tmp_path / 'engine.py'} {{port}}"
    return chat_job({"sequences": (8,)}, name="", command=command)


@pytest.fixture
def down(mlcd_process: Mlcd) -> Iterator[None]:
    """Nothing of a test stays up."""
    yield
    mlcd_process("down", "last")


@pytest.mark.live
@pytest.mark.usefixtures("down")
def test_it_stays_up_until_it_is_taken_down_and_is_billed(
    mlcd_process: Mlcd, mlcd: Mlcd, chat: Callable[..., str], tmp_path: Path, home: Path, port: int
) -> None:
    name = chat(own_command(tmp_path))
    answer = mlcd_process("deploy", "last", "--port", port)
    assert answer.code == 0, answer.err
    assert f"Deployed at http://127.0.0.1:{port}/v1" in answer.out
    assert "$0.10 an hour, until its budget is used up in 2" in answer.out
    with urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=5) as said:
        assert json.load(said) == {"data": []}
    assert "is running already" in mlcd("deploy", "last").complaint
    assert mlcd("runs", "-o", "json").document["runs"][0]["status"] == "running"
    assert mlcd("down", "last").code == 0
    with pytest.raises(OSError, match="refused"):
        urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=5)
    ledger = Ledger(home / "ledger.db")
    account = ledger.account(name)
    ledger.close()
    (launched,) = account.history.runs
    assert launched.usd == pytest.approx(0.1 * launched.seconds / 3_600)
    assert not account.open
    assert account.status == "stopped"
    for command in (["show", name], ["ledger", name], ["runs"], ["report", name]):
        assert mlcd(*command).code == 0


@pytest.mark.live
def test_an_engine_that_crashes_says_its_last_line(
    mlcd_process: Mlcd, chat: Callable[..., str], tmp_path: Path, port: int
) -> None:
    chat(own_command(tmp_path, "raise SystemExit('no such model')"))
    answer = mlcd_process("deploy", "last", "--port", port)
    assert answer.code == 2
    assert "could not be deployed: no such model" in answer.complaint


def test_what_cannot_be_deployed_is_one_line(mlcd: Mlcd, chat: Callable[..., str], home: Path) -> None:
    chat(replace(CHAT, on="recorded:somewhere"))
    assert "was not tried on this machine" in mlcd("deploy", "last").complaint
    chat(chat_job({"gpus": (1,)}, name="", url="http://there:8000"))
    assert "uses an engine that runs already" in mlcd("deploy", "last").complaint
    chat()
    assert "is spent already" in mlcd("deploy", "last", "--budget", "0.01").complaint
    ledger = Ledger(home / "ledger.db")
    serving_run(ledger)
    ledger.close()
    assert "does not serve a language model" in mlcd("deploy", "last").complaint


def test_serve_refuses_to_deploy_an_onnx_model_before_anything_is_spent(home: Path) -> None:
    with pytest.raises(WrongState, match="--deploy: this job does not serve a language model"):
        begin_and_deploy(ONNX, RunOptions(decide_only=True, yes=True, detach=False, output="table"))
