"""A job inherits only a short list of environment variables, wherever its processes are started."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from mlcd.clouds.environment import INHERITED, URL_WITH_USER, check_environment, inherited, job_variables, secrets
from mlcd.clouds.local.backend import Local
from mlcd.clouds.local.isolation import why_not_isolated
from mlcd.clouds.local.workspace import Workspace
from mlcd.clouds.node_types import load_local_types
from mlcd.clouds.ray.node import Node
from mlcd.clouds.serving.trial import Timing, Trials
from mlcd.clouds.skypilot.task import task_of
from mlcd.core.backend import Launch, Purpose
from mlcd.core.clock import WallClock
from mlcd.core.configuration import Configuration, Offer
from mlcd.core.errors import UserError
from mlcd.core.job import SUBMITTED, Job

pytestmark = pytest.mark.live

RUN = f"environment{uuid4().hex[:8]}"
PATIENCE_S = 300.0
SECRET, SHARED = "a-secret-of-the-service", "what-a-shell-hands-on"
WHOSE = [
    "AWS",
    "AZURE",
    "CONDA",
    "CUDA",
    "DOCKER",
    "GITHUB",
    "GOOGLE",
    "HF",
    "LC",
    "LITHOPS",
    "MLCD",
    "NVIDIA",
    "OPENAI",
]
WHOSE += ["PG", "PIP", "PYTHON", "RAY", "SSH", "VAULT", "WANDB"]
WHAT = ("SECRET", "TOKEN", "PASSWORD", "API_KEY", "ACCESS_KEY_ID")
SECRETS = {f"{whose}_{what}": SECRET for whose in WHOSE for what in WHAT}
SECRETS |= dict.fromkeys(("PGPASSWORD", "MLCD_DATABASE_URL", "SSH_AUTH_SOCK", "KUBECONFIG", "my_password"), SECRET)
SECRETS |= dict.fromkeys(("https_proxy", "HTTP_PROXY"), f"http://service:{SECRET}@proxy.example.org:8080")
"""Over a hundred variables: also names that begin like those on the list, and a listed one with a password in it."""


@pytest.fixture(autouse=True)
def shell(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HF_HOME", SHARED)


@pytest.fixture
def clock() -> WallClock:
    return WallClock(datetime.now(UTC))


def launch(configuration: Configuration) -> Launch:
    return Launch(f"{RUN}-1", configuration, Purpose.PROBE, 1.0, 30.0, 0)


def check(output: str) -> None:
    assert SHARED in output, "a variable on the list"
    assert SECRET not in output


def test_only_listed_variables_are_inherited_and_no_url_with_a_password():
    assert len(SECRETS) > 100
    assert set(inherited()) <= INHERITED
    assert inherited({"https_proxy": "http://proxy:8080", "PATH": "/opt/python@3.11/bin"}) == {
        "https_proxy": "http://proxy:8080",
        "PATH": "/opt/python@3.11/bin",
    }
    check(str(inherited()))


@pytest.mark.parametrize("isolated", [False, True], ids=["plain", "isolated"])
def test_the_environment_of_setup_and_run_on_local_nodes(isolated: bool, tmp_path: Path, clock: WallClock):
    if isolated and (why := why_not_isolated()) is not None:
        pytest.skip(why)
    types = load_local_types()
    order = launch(Configuration(types.offers[0], 1))
    envs = {"MLCD_TOKEN": "of-the-job", "GREETING": None}
    job = Job("prints", 1.0, task={"setup": "env > $MLCD_LAUNCH.txt; cat *.txt", "run": "env", "envs": envs})
    os.environ["GREETING"] = "passed-on"
    try:
        for _ in Local(tmp_path, clock, isolated=isolated).run(_in(job, tmp_path / "work"), order):
            pass
    finally:
        del os.environ["GREETING"]
    output = (tmp_path / "launches" / order.label / "0.log").read_text()
    check(output)
    assert output.count("MLCD_TOKEN=of-the-job") == 2
    assert output.count("GREETING=passed-on") == 2


def test_the_environment_of_a_server_in_a_trial(tmp_path: Path, clock: WallClock):
    with Trials(tmp_path, clock, Timing()).begun(launch(Configuration(Offer("here", 1.0, 1, 1), 1))) as trial:
        server = trial.start(["env"], {}, Workspace(tmp_path))
        server.popen.wait(PATIENCE_S)
        check(server.output())


def test_the_environment_on_a_ray_node_whose_shell_had_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    node, output, until = Node(), "", time.monotonic() + PATIENCE_S
    node.start("env", {}, INHERITED, URL_WITH_USER)
    ended = False
    while not ended:
        assert time.monotonic() < until
        ((status, new),) = node.poll()
        output, ended = output + new, status is not None
    node._started[0]._output.close()  # as at the end of an actor
    node.end(0.0)
    check(output)


def test_in_functions_of_this_machine(tmp_path: Path):
    pytest.importorskip("lithops", reason="pip install 'mlcd[lithops]'")
    from mlcd.clouds.functions.caller import _interpreter

    program = "import os; print(dict(os.environ))"
    command = [_interpreter(tmp_path, 1_024, "mark"), "-c", program]
    check(subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE_S).stdout)


def test_the_environment_in_a_skypilot_task(tmp_path: Path):
    job = Job("prints", 1.0, task={"run": "env", "envs": {"EPOCHS": 90, "WANDB_TOKEN": None}})
    task = task_of(job, launch(Configuration(Offer("here", 1.0, 1, 1), 1)), "cluster", tmp_path, 0.0)
    assert SECRET not in str({name: value for name, value in task["envs"].items() if name != "WANDB_TOKEN"})
    assert task["envs"]["EPOCHS"] == "90"
    assert task["envs"]["WANDB_TOKEN"] == SECRET, "the user's job file names it"


def test_a_variable_without_a_value_comes_from_the_shell_or_is_an_error():
    job = Job("asks", 1.0, task={"envs": {"HF_TOKEN": None, "EPOCHS": 90}, "secrets": {"KEY": None}})
    assert job_variables(job, {"HF_TOKEN": "hf_1"}) == {"HF_TOKEN": "hf_1", "EPOCHS": "90"}
    assert secrets(job, {"KEY": "k"}) == {"KEY": "k"}
    with pytest.raises(UserError, match="envs: HF_TOKEN is not set; export it"):
        check_environment(job, {})
    with pytest.raises(UserError, match="secrets: KEY is not set"):
        check_environment(job, {"HF_TOKEN": "hf_1"})


@pytest.mark.parametrize("key", ["envs", "secrets"])
def test_a_job_of_a_service_gets_no_variable_of_the_service(key: str):
    with pytest.raises(UserError, match="a service passes none of its variables on"):
        check_environment(Job("asks", 1.0, folder=SUBMITTED, task={key: {"PGPASSWORD": None}}))


def _in(job: Job, folder: Path) -> Job:
    folder.mkdir()
    return replace(job, folder=str(folder))
