"""A worker that shares nothing with the service but PostgreSQL: another MLCD_HOME, in a process of its own."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from mlcd.planners.serve.nouns import ServingTask

pytest.importorskip("procrastinate", reason="pip install 'mlcd[service]'")

from mlcd_fixtures.postgres import PostgresServer

from mlcd.core.ledger import Ledger, Status

pytestmark = pytest.mark.live

Until = Callable[[Callable[[], bool]], None]
JOB = """\
name: tiny
run: |
  python3 -c "
  import time, mlcd_tracker
  print('höre, from the job', flush=True)
  for step in range(50):
      time.sleep(0.02)
      mlcd_tracker.step(10)
  "
mlcd:
  work: 500
  budget: $5
  on: local
  search: {nodes: 1..1, instances: [medium]}
"""
KNOBS = """\
knobs: {precision: [fp32], threads: [1], batch: [1]}
price: {base: 0.1}
trial: 6s
"""


@dataclass
class Team:
    """A service in this process, a worker elsewhere, and somebody who asks."""

    home: Path
    worker_home: Path
    ledger: Ledger
    client: httpx.Client

    def get(self, path: str) -> Any:
        answer = self.client.get(f"/api/v1{path}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    def submit(self, **asked: Any) -> str:
        answer = self.client.post("/api/v1/runs", json=asked)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["run"])

    def status(self, run: str) -> Status | None:
        asked = self.ledger.submission(run)
        assert asked is None or asked.refused is None, asked
        return self.ledger.account(run).status if self.ledger.has_begun(run) else None


@pytest.fixture(scope="module")
def team(running_postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    url, home, worker_home = running_postgres.new_database(), *map(tmp_path_factory.mktemp, ("service", "worker"))
    service = started(home, "service", "--database", url, "--port", 0, "--workers", 0, "--places", "local")
    worker = started(worker_home, "worker", "--database", url, "--trust-runners")  # where the tests are not root
    try:
        said = said_until(service, "MLCD serves (http://.*)")
        token, address = (re.search(what, said) for what in (r"only once: (\S+)", r"serves (\S+)"))
        assert token is not None
        assert address is not None
        headers = {"Authorization": f"Bearer {token[1]}"}
        with (
            closing(Ledger(url)) as ledger,
            httpx.Client(base_url=address[1], headers=headers, timeout=300.0) as client,
        ):
            yield Team(home, worker_home, ledger, client)
    finally:
        for process in (worker, service):
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=300)


def started(home: Path, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "mlcd", *map(str, arguments)]
    environment = {**os.environ, "MLCD_HOME": str(home), "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(command, env=environment, cwd=home, stdout=subprocess.PIPE, text=True)


def said_until(process: subprocess.Popen[str], wanted: str) -> str:
    assert process.stdout is not None
    said, timer = "", threading.Timer(120.0, process.kill)  # whoever reads waits no longer than this
    timer.start()
    try:
        for line in process.stdout:
            said += line
            if re.search(wanted, line):
                return said
    finally:
        timer.cancel()
    raise AssertionError(said)


@pytest.mark.night  # at each change: test_hostile_job.py runs one there, test_job_logs.py
def test_a_job_on_real_nodes_runs_to_its_end_elsewhere_and_its_logs_are_read_through_the_api(
    team: Team, until: Until
) -> None:
    run = team.submit(kind="train", job=JOB, launch=True)
    until(lambda: team.status(run) is Status.FINISHED)
    account = team.ledger.account(run)
    for launch in range(1, account.orders + 1):
        until(lambda launch=launch: team.get(f"/runs/{run}/logs?launch={launch}")["done"])
        text = (team.worker_home / "launches" / f"{run}-{launch}" / "0.log").read_text(encoding="utf-8")
        assert "höre, from the job" in text
        told = team.get(f"/runs/{run}/logs?launch={launch}")
        assert (told["text"], told["next"]) == (text, len(text.encode()))
        rest = team.get(f"/runs/{run}/logs?launch={launch}&after={told['next'] - 2}")
        assert (rest["text"], rest["done"]) == (text[-2:], True)
    assert team.get(f"/runs/{run}/logs")["launch"] == account.orders
    assert team.client.get(f"/api/v1/runs/{run}/logs?process=1").status_code == 404
    assert not (team.home / "launches").exists()


@pytest.mark.night  # at each change: uploads in test_uploads.py, and a job that runs elsewhere above here
def test_a_model_that_was_uploaded_is_served_elsewhere(team: Team, until: Until) -> None:
    pytest.importorskip("onnxruntime", reason="pip install 'mlcd[serve]'")
    body = adding_model()
    digest = hashlib.sha256(body).hexdigest()
    headers = {"Content-Type": "application/octet-stream"}
    sent = team.client.post("/api/v1/uploads?name=adds.onnx", content=body, headers=headers)
    assert sent.json()["upload"] == digest, sent.text
    (team.home / "uploads" / f"{digest}.onnx").unlink()  # a copy: what is kept is in the database
    options = {"latency_p95": "200ms", "budget": "2", "trials": "1", "method": "random"}
    run = team.submit(kind="serve", upload=digest, options=options, knobs=KNOBS)
    until(lambda: team.status(run) in (Status.DECIDED, Status.INFEASIBLE))
    account = team.ledger.account(run)
    assert account.decision is not None
    assert account.decision.certified, account.history.measurements
    assert isinstance(account.job.ask, ServingTask)
    assert account.job.ask.path == f"upload:{digest}", "whichever machine goes on can find it"
    assert (team.worker_home / "uploads" / f"{digest}.onnx").read_bytes() == body
    assert str(team.worker_home) not in team.client.get(f"/api/v1/runs/{run}").text
    until(lambda: team.get(f"/runs/{run}/logs")["done"])
    assert "ready: http://" in team.get(f"/runs/{run}/logs")["text"]


def adding_model() -> bytes:
    from onnx import TensorProto, helper

    pair = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 4]) for name in ("x", "y")]
    weights = helper.make_tensor("w", TensorProto.FLOAT, [4], [1.0, 2.0, 3.0, 4.0])
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", pair[:1], pair[1:], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())
