"""Trials on the deployment target: the certified server is the one that the export starts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from real_mlserver import mlserver
from serving_contract import TIMING, clock, free_port, launch, saved_model

from mlcd.clouds.load.oip import OverHttp
from mlcd.clouds.serving.on_target import OnTarget
from mlcd.core.job import Job
from mlcd.core.measurement import Measurement, Outcome
from mlcd.planners.serve.measure import ServingProfiler
from mlcd.planners.serve.model_facts import ModelFacts
from mlcd.planners.serve.nouns import ServingTask, served_by

Mlcd = Callable[..., Any]
TRITON = f"""#!/bin/sh
# Stands for Triton: our own server, at the address and with the repository that Triton is started with.
for each in "$@"; do
  case $each in --model-repository=*) folder=${{each#*=}};; --http-port=*) port=${{each#*=}};; esac
done
grep -q 'max_batch_size: 2' "$folder/model/config.pbtxt" || exit 1
exec {sys.executable} -m mlcd.clouds.servers "$folder/model/1/model.onnx" --name model --port "$port"
"""


@pytest.fixture
def triton(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "tritonserver"
    program.write_text(TRITON)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    root = Path(__file__).parents[2]
    monkeypatch.setenv("PYTHONPATH", f"{root}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")


def tried(tmp_path: Path, **knobs: float | str) -> Measurement:
    task = ServingTask(ModelFacts("lstm"), path=str(saved_model(tmp_path)), shapes={"sequence": 4}, target="kserve")
    backend = OnTarget(tmp_path / "home", clock(), TIMING)
    done = ServingProfiler(backend, tight=0.9).measure(Job("lstm", 1.0, ask=task), launch(lifetime_s=40.0, **knobs))
    assert backend.leftovers() == set()
    return done


@pytest.mark.usefixtures("triton")
def test_triton_is_started_with_the_repository_of_the_export(tmp_path: Path) -> None:
    done = tried(tmp_path, threads=1, batch=2, precision="int8", memory_gb=1)
    assert done.outcome is Outcome.OK, done
    assert served_by(done).server.startswith("mlcd ")  # what answers says what it is
    assert served_by(done).peak_gb is not None


@pytest.mark.usefixtures("triton")
def test_what_the_server_holds_beyond_its_memory_ends_the_trial(tmp_path: Path) -> None:
    done = tried(tmp_path, threads=1, batch=2, memory_gb=0.01)
    assert done.outcome is Outcome.OUT_OF_MEMORY
    assert "more than its limit of 0.01 GB" in done.detail


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--target", "triton"], "--target triton: tritonserver is not installed: "),
        (["--target", "kserve"], "--target kserve: tritonserver is not installed (triton serves it there): "),
        (["--target", "mlserver"], "--target mlserver: mlserver is not installed: pip install mlserver onnxruntime"),
        (["--target", "torchserve"], "torchserve"),
        (["--target", "triton", "--on", "skypilot:aws"], "trials of skypilot do not run on triton"),
    ],
)
def test_a_target_that_cannot_be_tried_is_one_line_before_anything_is_spent(
    mlcd: Mlcd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], told: str
) -> None:
    model = saved_model(tmp_path)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    answer = mlcd("serve", model, "--shape", "sequence=4", *words)
    assert answer.code == 2
    assert told in answer.err
    assert len(answer.err.strip().splitlines()) == 1
    assert mlcd("runs", "-o", "json").document["runs"] == []


KNOBS = """
knobs: {precision: [fp32, int8], threads: [1], batch: [2], memory_gb: [2]}
price: {base: 0.04}
trial: 40s
"""


@contextmanager
def started(folder: Path, port: int) -> Iterator[OverHttp]:
    """The folder of an export, started as it says."""
    addresses = {"MLSERVER_HOST": "127.0.0.1", "MLSERVER_HTTP_PORT": str(port)}
    addresses |= {"MLSERVER_GRPC_PORT": str(free_port()), "MLSERVER_METRICS_PORT": str(free_port())}
    with (folder.parent / "server.log").open("wb") as log:
        server = subprocess.Popen(
            ["sh", folder / "start.sh"], env={**os.environ, **addresses}, stdout=log, stderr=log, start_new_session=True
        )
    try:
        yield OverHttp(f"http://127.0.0.1:{port}", "lstm", 1.0)
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(20)


@pytest.mark.night
def test_what_is_certified_on_mlserver_is_what_its_export_starts(
    mlcd: Mlcd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{mlserver().parent}{os.pathsep}{os.environ['PATH']}")
    model = saved_model(tmp_path)
    (tmp_path / "knobs.yaml").write_text(KNOBS)
    options = ("--knobs", tmp_path / "knobs.yaml", "--shape", "sequence=4", "--trials", "1", "--latency-p95", "5s")
    found = mlcd("serve", model, "--target", "mlserver", *options)
    assert found.code == 0, found.err
    assert "certified on mlserver 1." in found.out
    document = mlcd("show", "last", "-o", "json").document
    assert document["target"] == "mlserver"
    assert document["decision"]["measured"]["server"].startswith("mlserver 1.")
    answer = mlcd("export", "last", "--to", "mlserver", "--to-dir", "out")
    assert "measured on mlserver 1." in answer.err
    with started(Path("out").resolve(), free_port()) as client:
        clock_ = clock()
        while not client.is_ready():
            assert clock_.elapsed_s() < 60, Path("server.log").read_text()
            clock_.wait(0.1)
        assert client.server().startswith("mlserver 1.")
        assert [each.name for each in client.inputs()] == ["tokens"]
        tokens = {"name": "tokens", "datatype": "INT64", "shape": [1, 4], "data": [1, 2, 3, 4]}
        request = Request(f"{client.url}/v2/models/lstm/infer", json.dumps({"inputs": [tokens]}).encode())
        request.add_header("Content-Type", "application/json")
        with urlopen(request, timeout=20) as response:
            (output,) = json.load(response)["outputs"]
        assert output["shape"] == [1, 2]
    elsewhere = mlcd("export", "last", "--to", "kserve", "--to-dir", "cluster")
    assert "NOT CERTIFIED on triton" in elsewhere.err
    assert "measured on mlserver" not in Path("cluster/README.md").read_text()
