"""What opens MLCD's own doors is not in the environment of a job's processes, wherever they are started."""

from __future__ import annotations

import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from mlcd.backend import Launch, Purpose
from mlcd.backends.environment import WITHHELD
from mlcd.backends.local import Local, load_node_types
from mlcd.backends.ray.node import Node
from mlcd.backends.serving.trial import Pace, Trials
from mlcd.clock import WallClock
from mlcd.configuration import Configuration, Offer
from mlcd.job import Job

RUN = f"environment{uuid4().hex[:8]}"
PATIENCE_S = 30.0
SECRET, SHARED = "mlcd_secret-of-a-member", "what-a-shell-hands-on"


@pytest.fixture(autouse=True)
def shell(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in WITHHELD:
        monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("HF_HOME", SHARED)


@pytest.fixture
def clock() -> WallClock:
    return WallClock(datetime.now(UTC))


def launch(configuration: Configuration) -> Launch:
    return Launch(f"{RUN}-1", configuration, Purpose.PROBE, 1.0, 30.0, 0)


def check(found: str) -> None:
    assert SHARED in found, "and nothing else is missing"
    assert SECRET not in found


def test_not_on_nodes_of_this_machine_unless_the_job_brings_its_own(tmp_path: Path, clock: WallClock):
    types = load_node_types()
    order = launch(Configuration(types.types[0].offer, 1))
    job = Job("prints", 1.0, task={"run": "env", "envs": {"MLCD_TOKEN": "of-the-job"}})
    for _ in Local(types, tmp_path, clock, isolated=False).run(job, order):
        pass
    said = (tmp_path / "launches" / order.label / "0.log").read_text()
    check(said)
    assert "MLCD_TOKEN=of-the-job" in said


def test_not_in_a_server_that_is_tried(tmp_path: Path, clock: WallClock):
    with Trials(tmp_path, clock, Pace()).begun(launch(Configuration(Offer("here", 1.0, 1, 1), 1))) as trial:
        server = trial.start(["env"], {}, tmp_path)
        server.popen.wait(PATIENCE_S)
        check(server.output())


def test_not_on_a_node_of_a_ray_cluster_whose_shell_had_it():
    node, said, until = Node(), "", time.monotonic() + PATIENCE_S
    node.start("env", {}, WITHHELD)
    ended = False
    while not ended:
        assert time.monotonic() < until
        ((status, new),) = node.look()
        said, ended = said + new, status is not None
    node._started[0]._output.close()  # as an actor's end does
    check(said)


def test_not_in_functions_of_this_machine(tmp_path: Path):
    pytest.importorskip("lithops", reason="pip install 'mlcd[lithops]'")
    from mlcd.backends.serverless.calls import _interpreter

    program = "import os; print(dict(os.environ))"
    command = [_interpreter(tmp_path, 1_024, "mark"), "-c", program]
    check(subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE_S).stdout)
