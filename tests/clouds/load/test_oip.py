"""Clients of Open Inference Protocol servers ask correctly, and tell what is wrong with a server in one line."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from mlcd.clouds.load.generate import Closed, generate
from mlcd.clouds.load.oip import client_for, example_inputs, targets
from mlcd.clouds.load.oip_grpc import SERVICE, message
from mlcd.clouds.tensors import JSON_LENGTH, Port, pack, unpack
from mlcd.core.errors import BackendError, UserError

INPUTS = (Port("x", "FP32", (-1, 3)), Port("ids", "INT64", (-1, -1)))
SHAPES = {"ids.1": 4}


class Doubles(BaseHTTPRequestHandler):
    """Doubles x. A class of its own for each way to be wrong."""

    protocol_version = "HTTP/1.1"
    extensions = ("binary_tensor_data",)
    stalls: threading.Event | None = None
    ready, refused, metadata = 200, "", json.dumps({"inputs": [vars(each) for each in INPUTS]}).encode()

    def do_GET(self) -> None:
        told = {"/v2": json.dumps({"extensions": self.extensions}).encode(), "/v2/models/m": self.metadata}
        if self.path in ("/v2/health/ready", "/v2/models/m/ready"):
            self.reply(self.ready, b"{}")
        elif self.path in told:
            self.reply(200, told[self.path])
        else:
            self.reply(404, b'{"error": "no such\\nmodel"}')

    def do_POST(self) -> None:
        length = self.headers.get(JSON_LENGTH)
        assert (length is not None) == ("binary_tensor_data" in self.extensions)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        _, inputs = unpack("inputs", body, int(length) if length else None)
        if self.stalls is not None:
            self.stalls.wait()
            self.close_connection = True
        elif self.refused:
            self.reply(500, self.refused.encode())
        else:
            self.reply(200, pack("outputs", {"y": 2 * inputs["x"]}, {}, length is not None)[0])

    def reply(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Tests read what is told, not what is logged."""


@contextmanager
def http_server(**wrong: object) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Server", (Doubles,), wrong)) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@contextmanager
def grpc_server(refuses: bool = False) -> Iterator[str]:
    grpc = pytest.importorskip("grpc", reason="pip install 'mlcd[serve]'")

    def infer(request, context):
        if refuses:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "cannot be\nanswered")
        x = np.frombuffer(request.raw_input_contents[0], np.float32)
        assert [tuple(each.shape) for each in request.inputs] == [(1, 3), (1, 4)]
        answer = message("ModelInferResponse")(raw_output_contents=[(2 * x).tobytes()])
        answer.outputs.add(name="y", datatype="FP32", shape=[1, 3])
        return answer

    def metadata(request, context):
        if request.name != "m":
            context.abort(grpc.StatusCode.NOT_FOUND, f"no model {request.name}")
        answer = message("ModelMetadataResponse")(name="m")
        for each in INPUTS:
            answer.inputs.add(name=each.name, datatype=each.datatype, shape=each.shape)
        return answer

    ready = {name: lambda request, _, name=name: message(f"{name}Response")(ready=True) for name in READY}
    handlers = {
        name: grpc.unary_unary_rpc_method_handler(
            does, message(f"{name}Request").FromString, message(f"{name}Response").SerializeToString
        )
        for name, does in {"ModelInfer": infer, "ModelMetadata": metadata, **ready}.items()
    }
    server = grpc.server(ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE.strip("/"), handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"grpc://127.0.0.1:{port}"
    server.stop(None).wait()


READY = ("ServerReady", "ModelReady")


def loaded(url: str, timeout_s: float = 10.0):
    """The first reports of a load; on a busy machine, until a request was answered or failed."""
    server = client_for(url, "m")
    asked = [example_inputs(server.inputs(), SHAPES, seed) for seed in range(3)]
    with closing(
        generate(targets(server, asked, server.takes_bytes()), Closed(2), every_s=0.1, timeout_s=timeout_s)
    ) as reports:
        taken = []
        for report in reports:
            taken.append(report)
            if len(taken) >= 4 and any(each.answered or each.window.failures for each in taken):
                break
        return taken


def first_error(reports) -> str:
    return next(report.window.error for report in reports if report.window.failures)


@contextmanager
def endpoint(kind: str) -> Iterator[str]:
    with grpc_server() if kind == "grpc" else http_server(extensions=() if kind == "json" else (kind,)) as url:
        yield url


@pytest.mark.parametrize("kind", ["binary_tensor_data", "json", "grpc"])
def test_requests_use_the_format_that_the_server_supports(kind):
    with endpoint(kind) as url:
        server = client_for(url, "m")
        assert server.is_ready()
        assert server.inputs() == INPUTS
        last = loaded(url)[-1]
    assert last.answered > 0
    assert last.window.failures == 0, last.window.error


def test_an_answer_that_refuses_is_a_failure_with_its_reason():
    with http_server(refused="no\nsuch layer") as url:
        assert first_error(loaded(url)) == "HTTP 500: no such layer"
    with grpc_server(refuses=True) as url:
        assert first_error(loaded(url)) == "gRPC INVALID_ARGUMENT: cannot be answered"


def test_an_answer_that_does_not_come_is_a_failure_and_no_hang():
    over = threading.Event()
    with http_server(stalls=over) as url:
        reports = loaded(url, timeout_s=0.15)
        over.set()
    assert reports[-1].answered == 0
    assert first_error(reports) == "no answer within 0.15 s"


@contextmanager
def nothing(scheme: str) -> Iterator[str]:
    """Where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"{scheme}://127.0.0.1:{taken.getsockname()[1]}"


@contextmanager
def silence(scheme: str) -> Iterator[str]:
    """Where connections are taken, and nothing is ever answered."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"{scheme}://127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.parametrize(
    ("at", "told"),
    [
        (nothing("http"), "connection refused"),
        (silence("http"), "no answer within 0.2 s"),
        (http_server(metadata=b"hello"), "is not JSON: is it an inference server?"),
        (http_server(metadata=b'{"inputs": [{"name": "x"}]}'), "does not follow the protocol"),
    ],
    ids=["down", "silent", "no JSON", "not follow the protocol"],
)
def test_errors_of_a_server_are_one_line(at, told):
    with at as url:
        server = client_for(url, "m", timeout_s=0.2)
        with pytest.raises(BackendError) as error:
            server.inputs()
    assert str(error.value).startswith(url)
    assert told in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("at", [nothing, silence], ids=["down", "silent"])
def test_errors_over_grpc_are_one_line(at):
    pytest.importorskip("grpc", reason="pip install 'mlcd[serve]'")
    with at("grpc") as url:
        server = client_for(url, "m", timeout_s=0.2)
        with pytest.raises(BackendError) as error:
            server.inputs()
        assert not server.is_ready()
    assert str(error.value).startswith(url)
    assert "\n" not in str(error.value)


def test_a_missing_model_is_reported():
    with http_server() as url, pytest.raises(BackendError, match=r"HTTP 404 .*no such"):
        client_for(url, "other").inputs()
    with grpc_server() as url, pytest.raises(BackendError, match="gRPC NOT_FOUND: no model other"):
        client_for(url, "other").inputs()


def test_a_server_that_says_so_is_not_ready():
    with http_server(ready=503) as url:
        assert not client_for(url, "m").is_ready()


@pytest.mark.parametrize("url", ["localhost:8080", "ftp://host", "http://", "http://host:many", "grpc://host"])
def test_an_invalid_address_is_reported(url):
    with pytest.raises(UserError, match="expected the address of a server"):
        client_for(url, "m")


def test_examples_are_one_sample_each_and_the_same_for_a_seed():
    first, again = (example_inputs(INPUTS, SHAPES, 3) for _ in range(2))
    assert {name: array.shape for name, array in first.items()} == {"x": (1, 3), "ids": (1, 4)}
    assert all((first[name] == again[name]).all() for name in first)
    assert set(first["ids"].ravel()) <= {0, 1}


@pytest.mark.parametrize(
    ("inputs", "shapes", "told"),
    [
        (INPUTS, {}, "such as --shape ids.1=128"),
        (INPUTS, {**SHAPES, "ids.2": 4}, "shape 'ids.2': the model has no such free axis; it has: ids.1"),
        ((), {}, "does not describe its model's inputs"),
        ((Port("x", "BF16", (1,)),), {}, "input 'x': datatype 'BF16'"),
    ],
)
def test_impossible_shapes_are_reported(inputs, shapes, told):
    with pytest.raises(UserError, match=told):
        example_inputs(inputs, shapes, 0)
