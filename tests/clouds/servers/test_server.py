"""The embedded server, as a process: what it answers, what it refuses, and how it ends."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from mlcd.clouds.servers.quantise import at_precision
from mlcd.clouds.servers.settings import OUT_OF_MEMORY, UNSUPPORTED, peak_gb
from mlcd.clouds.tensors import JSON_LENGTH, pack, unpack

pytestmark = pytest.mark.live

onnx = pytest.importorskip("onnx", reason="pip install 'mlcd[serve]'")
pytest.importorskip("onnxruntime", reason="pip install 'mlcd[serve]'")
pytest.importorskip("aiohttp", reason="pip install 'mlcd[serve]'")

WEIGHTS = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A matrix to multiply with, and another file beside it."""
    return save(tmp_path_factory.mktemp("model") / "linear.onnx", [("MatMul", ["x", "w"], ["y"], {})], {"w": WEIGHTS})


def save(path: Path, nodes, weights) -> Path:
    """A model of these operators from x, three numbers in a row, to y."""
    x, y = (onnx.helper.make_tensor_value_info(name, 1, ["batch", length]) for name, length in (("x", 3), ("y", None)))
    made = [onnx.helper.make_node(kind, inputs, outputs, **terms) for kind, inputs, outputs, terms in nodes]
    kept = [onnx.numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = onnx.helper.make_graph(made, "graph", [x], [y], kept)
    opset = [onnx.helper.make_opsetid("", 17)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opset, ir_version=8), str(path))
    return path


def start(model: Path, *arguments: object) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "-m",
        "mlcd.clouds.servers",
        str(model),
        "--port",
        "0",
        *(str(word) for word in arguments),
    ]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=model.parent)


@contextmanager
def serving(model: Path, *arguments: object) -> Iterator[tuple[http.client.HTTPConnection, subprocess.Popen[str]]]:
    """A server that is ready, and a connection to it."""
    with start(model, *arguments) as server:
        try:
            assert server.stdout is not None
            told = server.stdout.readline()
            assert told.startswith("ready: http://127.0.0.1:"), server.communicate()
            connection = http.client.HTTPConnection("127.0.0.1", int(told.rpartition(":")[2]), timeout=300)
            yield connection, server
            connection.close()
        finally:
            server.kill()


def ended(model: Path, *arguments: object) -> tuple[int, str]:
    """The status and the words of a server that does not come up."""
    with start(model, *arguments) as server:
        _, err = server.communicate(timeout=300)
        return server.returncode, err


def get(connection: http.client.HTTPConnection, path: str):
    connection.request("GET", path)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def infer(connection: http.client.HTTPConnection, tensors, *, binary: bool, name: str = "linear"):
    head = {"id": "1", "parameters": {"binary_data_output": binary}}
    body, length = pack("inputs", tensors, head, binary)
    connection.request("POST", f"/v2/models/{name}/infer", body, {JSON_LENGTH: str(length)} if length else {})
    answer = connection.getresponse()
    said = answer.read()
    if answer.status != 200:
        return answer.status, json.loads(said)["error"]
    told = answer.getheader(JSON_LENGTH)
    head, outputs = unpack("outputs", said, int(told) if told else None)
    assert head == {"model_name": name, "id": "1"}
    return 200, outputs


@pytest.fixture(scope="module")
def connection(model: Path) -> Iterator[http.client.HTTPConnection]:
    with serving(model, "--threads", 1, "--batch", 4, "--max-wait-ms", 0) as (one, _):
        yield one


def test_it_tells_what_the_protocol_asks(connection):
    assert get(connection, "/v2")[1]["extensions"] == ["binary_tensor_data"]
    assert get(connection, "/v2/health/ready")[0] == get(connection, "/v2/health/live")[0] == 200
    status, told = get(connection, "/v2/models/linear")
    assert status == 200
    assert told["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 3]}]
    assert told["outputs"] == [{"name": "y", "datatype": "FP32", "shape": [-1, 4]}]


@pytest.mark.parametrize("binary", [True, False], ids=["bytes", "JSON"])
def test_it_answers_what_the_model_computes(connection, binary):
    x = np.array([[1, 2, 3], [0, 1, 0]], dtype=np.float32)
    status, outputs = infer(connection, {"x": x}, binary=binary)
    assert status == 200
    np.testing.assert_array_equal(outputs["y"], x @ WEIGHTS)


@pytest.mark.parametrize(
    ("tensors", "name", "status", "told"),
    [
        ({"z": np.zeros((1, 3), np.float32)}, "linear", 400, "the inputs are x, not z"),
        ({"x": np.zeros((1, 5), np.float32)}, "linear", 400, "input 'x' is FP32 [-1, 3], not FP32 [1, 5]"),
        ({"x": np.zeros((1, 3), np.float32)}, "other", 404, "no model 'other', only 'linear'"),
    ],
)
def test_what_it_cannot_answer_it_refuses_with_a_reason(connection, tensors, name, status, told):
    assert infer(connection, tensors, binary=True, name=name) == (status, told)


def test_what_is_no_request_it_refuses_and_goes_on(connection):
    connection.request("POST", "/v2/models/linear/infer", b"\x00nonsense")
    answer = connection.getresponse()
    assert answer.status == 400
    answer.read()
    assert get(connection, "/v2/health/ready")[0] == 200


def test_it_keeps_to_its_cores_and_leaves_when_asked(model):
    with serving(model, "--threads", 1) as (_, server):
        assert len(os.sched_getaffinity(server.pid)) == 1
        assert (peak_gb([server.pid]) or 0.0) > 0.01
        server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=300) == 0


def test_int8_is_made_once_and_answers_nearly_the_same(model, tmp_path):
    x = np.array([[1, 2, 3]], dtype=np.float32)
    with serving(model, "--precision", "int8", "--cache", tmp_path) as (connection, _):
        status, outputs = infer(connection, {"x": x}, binary=True)
        assert status == 200
        np.testing.assert_allclose(outputs["y"], x @ WEIGHTS, rtol=0.05)
    (made,) = tmp_path.glob("*.int8.onnx")
    when = made.stat().st_mtime_ns
    assert at_precision(model, "int8", tmp_path) == made
    assert made.stat().st_mtime_ns == when


def test_another_model_of_the_same_name_is_quantised_anew(model, tmp_path):
    first = at_precision(model, "int8", tmp_path / "cache")
    other = save(tmp_path / model.name, [("MatMul", ["x", "w"], ["y"], {})], {"w": WEIGHTS + 1})
    assert at_precision(other, "int8", tmp_path / "cache") != first


def test_a_model_that_cannot_be_quantised_says_so(tmp_path):
    relu = save(tmp_path / "relu.onnx", [("Relu", ["x"], ["y"], {})], {})
    status, told = ended(relu, "--precision", "int8", "--cache", tmp_path)
    assert status == UNSUPPORTED
    assert told.strip() == f"{relu}: has no operator that int8 speeds up: leave int8 out of `precision`"


def test_a_server_that_holds_more_than_it_may_ends_and_says_so(model):
    status, told = ended(model, "--memory-gb", 0.02)
    assert status == OUT_OF_MEMORY
    assert "out of memory: the server held" in told
    assert "of the 0.02 GB that it may hold" in told


def test_memory_that_a_request_takes_counts_too(tmp_path):
    """The answer is one number, but on the way there are 400 MB."""
    nodes = [("Tile", ["x", "times"], ["tiled"], {}), ("ReduceMax", ["tiled"], ["y"], {"axes": [1]})]
    wide = save(tmp_path / "wide.onnx", nodes, {"times": np.array([1, 33_000_000], dtype=np.int64)})
    with serving(wide, "--memory-gb", 0.3) as (connection, server):
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            infer(connection, {"x": np.ones((1, 3), np.float32)}, binary=True, name="wide")
        assert server.wait(timeout=300) == OUT_OF_MEMORY


@pytest.mark.parametrize(
    ("content", "arguments", "told"),
    [
        (b"not a model", (), "ONNX Runtime cannot run it"),
        (b"not a model", ("--precision", "int8"), "cannot be"),
        (None, ("--threads", 10_000), "knob threads = 10000: there are"),
        (None, ("--port", 1 << 20), "cannot be listened on"),
        (None, ("--batch", 0), "knob batch = 0: expected 1 or more"),
    ],
    ids=["no model", "no model, int8", "too many threads", "no port", "no batch"],
)
def test_a_server_that_cannot_start_says_why_on_one_line(model, tmp_path, content, arguments, told):
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(content or model.read_bytes())
    status, err = ended(broken, "--cache", tmp_path, *arguments)
    assert status in (2, UNSUPPORTED)
    assert told in err
    assert len(err.strip().splitlines()) == 1, err
