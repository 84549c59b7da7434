"""Trials on any Open Inference Protocol server; our own server stands in for the others."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from serving_contract import TIMING, ServingContract, clock, events_of, free_port, launch, saved_model

from mlcd.clouds.serving.live import OpenInference
from mlcd.core.errors import UserError
from mlcd.core.job import Job
from mlcd.core.measurement import Ended, Outcome
from mlcd.planners.serve.measure import ServingProfiler
from mlcd.planners.serve.model_facts import ModelFacts
from mlcd.planners.serve.nouns import Endpoint, ServingTask

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def url(model: Path) -> Iterator[str]:
    with serving(model) as url:
        yield url


@contextmanager
def serving(model: Path) -> Iterator[str]:
    """A server that somebody else has started."""
    command = [sys.executable, "-m", "mlcd.clouds.servers", str(model), "--port", "0", "--name", "m"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().split()[1]
        server.terminate()


def broken_model(folder: Path) -> Path:
    """A model that loads, and picks a row that is not there whatever it is asked."""
    import onnx
    from onnx import helper

    ports = [[helper.make_tensor_value_info(name, kind, ["batch", 3])] for name, kind in (("x", 7), ("y", 1))]
    nodes = [helper.make_node("Add", ["x", "five"], ["row"]), helper.make_node("Gather", ["table", "row"], ["y"])]
    weights = {"five": np.array(5, dtype=np.int64), "table": np.zeros(2, dtype=np.float32)}
    kept = [onnx.numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "graph", *ports, kept)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(made, str(folder / "broken.onnx"))
    return folder / "broken.onnx"


class TestStartedByACommand(ServingContract):
    """Our own server, as any other: started by a command with knobs in it."""

    @pytest.fixture
    def backend(self, tmp_path, model):
        port = free_port()
        command = f"exec {sys.executable} -m mlcd.clouds.servers {model} --port {port} --name m --batch {{batch}}"
        return OpenInference(tmp_path, clock(), TIMING, endpoint=Endpoint(f"http://127.0.0.1:{port}", "m", command))

    @pytest.fixture
    def job(self):
        return Job("m", 1.0, ask=ServingTask(ModelFacts("m"), shapes={"tokens.1": 16}))

    def launch(self, number=1, lifetime_s=60.0, **knobs):
        return launch(number, lifetime_s, **{"batch": 1, **knobs})

    def test_a_command_that_fails_is_an_event_with_its_last_words(self, backend, job):
        failing = replace(
            backend, endpoint=replace(backend.endpoint, command="echo starting; echo no disk >&2; exit 4")
        )
        (ended,) = events_of(failing, job, self.launch())
        assert isinstance(ended, Ended)
        assert (ended.outcome, ended.detail) == (Outcome.FAILED, "no disk")
        assert "starting" in ended.log

    def test_a_server_that_never_gets_ready_is_given_up(self, backend, job):
        waiting = replace(
            backend,
            endpoint=replace(backend.endpoint, command="cat /dev/zero > /dev/null"),
            timing=replace(TIMING, startup_s=0.5),
        )
        (ended,) = events_of(waiting, job, self.launch())
        assert isinstance(ended, Ended)
        assert ended.outcome is Outcome.TIMED_OUT
        assert "not ready within" in ended.detail
        assert waiting.leftovers() == set()

    def test_a_knob_that_the_command_names_and_nobody_sets_is_a_mistake(self, backend, job):
        wrong = replace(backend, endpoint=replace(backend.endpoint, command="serve --batch {batches} ${HOME}"))
        with pytest.raises(UserError, match="unknown knob in the command 'batches': did you mean 'batch'"):
            events_of(wrong, job, self.launch())

    def test_knobs_are_in_the_commands_environment(self, backend, job):
        telling = replace(backend, endpoint=replace(backend.endpoint, command="echo $MLCD_KNOB_BATCH; exit 1"))
        (ended,) = events_of(telling, job, self.launch(batch=7))
        assert ended.detail == "7"


class TestRunningAlready:
    """An endpoint that somebody else looks after."""

    JOB = Job("m", 1.0, ask=ServingTask(ModelFacts("m"), shapes={"tokens.1": 16}))

    def backend(self, home: Path, url: str, **terms: object) -> OpenInference:
        return OpenInference(home, clock(), TIMING, endpoint=Endpoint(url, "m", **terms), request_timeout_s=0.5)  # type: ignore[arg-type]

    def test_it_is_loaded_and_left_alone(self, tmp_path, url):
        backend = self.backend(tmp_path, url)
        for number in (1, 2):
            events = events_of(backend, self.JOB, launch(number, concurrency=3))
            assert events[-1].samples > 0
            assert events[-1].evidence.peak_gb is None
        assert backend.leftovers() == set()

    def test_with_the_models_file_its_axes_have_the_names_of_the_file(self, tmp_path, url, model):
        job = Job("m", 1.0, ask=ServingTask(ModelFacts("m"), path=str(model), shapes={"sequence": 5}))
        assert events_of(self.backend(tmp_path, url), job, launch(concurrency=1))[-1].samples > 0

    def test_a_file_of_another_model_is_a_mistake(self, tmp_path, url):
        job = Job("m", 1.0, ask=ServingTask(ModelFacts("m"), path=str(broken_model(tmp_path))))
        with pytest.raises(UserError, match="its inputs are x; those of the server's model are tokens"):
            events_of(self.backend(tmp_path, url), job, launch())

    def test_a_knob_that_only_a_command_could_set_is_a_mistake(self, tmp_path, url):
        with pytest.raises(UserError, match="knob 'batch': a running server cannot be configured"):
            events_of(self.backend(tmp_path, url), self.JOB, launch(batch=2))

    def test_a_command_is_not_run_beside_a_server_that_answers_already(self, tmp_path, url):
        with pytest.raises(UserError, match="a server is already running there"):
            events_of(self.backend(tmp_path, url, command="true"), self.JOB, launch())

    def test_an_endpoint_that_is_down_is_one_clear_line(self, tmp_path):
        with pytest.raises(UserError) as error:
            events_of(self.backend(tmp_path, f"http://127.0.0.1:{free_port()}"), self.JOB, launch())
        assert str(error.value).endswith("connection refused; start the server, or give the command that starts it")

    @pytest.mark.parametrize("scheme", ["http", "grpc"])
    def test_an_endpoint_that_never_answers_is_one_clear_line(self, tmp_path, scheme):
        pytest.importorskip("grpc", reason="pip install 'mlcd[serve]'")
        with socket.create_server(("127.0.0.1", 0)) as silent:
            backend = self.backend(tmp_path, f"{scheme}://127.0.0.1:{silent.getsockname()[1]}")
            with pytest.raises(UserError) as error:
                events_of(backend, self.JOB, launch())
        assert "\n" not in str(error.value)
        assert "start the server, or give the command that starts it" in str(error.value)

    def test_a_model_that_it_does_not_have_is_told(self, tmp_path, url):
        other = OpenInference(tmp_path, clock(), TIMING, endpoint=Endpoint(url, "nobody"))
        with pytest.raises(UserError, match="no model 'nobody', only 'm'"):
            events_of(other, self.JOB, launch())

    def test_an_endpoint_that_answers_errors_is_a_failed_trial_with_the_reason(self, tmp_path):
        with serving(broken_model(tmp_path)) as url:
            trial = launch(lifetime_s=6.0, concurrency=2)
            job = Job("m", 1.0, ask=ServingTask(ModelFacts("m")))
            done = ServingProfiler(self.backend(tmp_path, url)).measure(job, trial)
        assert done.outcome is Outcome.FAILED, done
        assert done.detail.startswith('every request failed: HTTP 500: {"error": "')
        assert "indices element out of data bounds" in done.detail
        assert "\n" not in done.detail
