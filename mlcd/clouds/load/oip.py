"""A client of the Open Inference Protocol v2 (http://host:port or grpc://host:port), and example inputs for it.

Inputs are made from the model's file, or from the server's description. The latter states types and sizes only, not
valid values, so integers are 0 and 1, which are valid in any vocabulary.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import cycle
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import numpy as np
from numpy.typing import NDArray

from mlcd.clouds.load.generate import Target
from mlcd.clouds.load.http import Answer, Http, Request, ask_once
from mlcd.clouds.load.oip_grpc import OverGrpc
from mlcd.clouds.tensors import BINARY, JSON_LENGTH, Port, Tensors, dtype_of, pack
from mlcd.core.errors import BackendError, UserError
from mlcd.planners.serve.nouns import ServingTask
from mlcd.planners.serve.operators import example_feed, open_model


@dataclass(frozen=True)
class OverHttp:
    """One model of a server. `timeout_s`: of every request except those of a load."""

    url: str
    model: str
    timeout_s: float = 5.0

    def is_ready(self) -> bool:
        """Whether the server and its model report that they are ready."""
        try:
            return all(200 <= self._get(path).status < 300 for path in ("/v2/health/ready", f"{self._path}/ready"))
        except BackendError:
            return False

    def inputs(self) -> tuple[Port, ...]:
        """The inputs of the model. BackendError if the server does not answer correctly."""
        metadata = self._document(self._path)
        try:
            return tuple(
                Port(str(i["name"]), str(i["datatype"]), tuple(i["shape"])) for i in metadata.get("inputs") or ()
            )
        except (KeyError, TypeError):
            raise BackendError(f"{self.url}: its description of '{self.model}' does not follow the protocol") from None

    def takes_bytes(self) -> bool:
        """Whether it supports binary tensors; JSON is always supported."""
        try:
            return BINARY in (self._document("/v2").get("extensions") or ())
        except BackendError:
            return False

    def server(self) -> str:
        """The server's name and version, as in 'mlserver 1.7.1'."""
        document = self._document("/v2")
        return f"{document.get('name', 'unknown')} {document.get('version', '')}".strip()

    def target(self, inputs: Tensors, binary: bool) -> Target:
        """A connection that repeats this request."""
        head = {"parameters": {"binary_data_output": True}} if binary else {}
        body, json_length = pack("inputs", inputs, head, binary)
        headers = {"Content-Type": "application/json"}
        if json_length is not None:
            headers = {"Content-Type": "application/octet-stream", JSON_LENGTH: str(json_length)}
        request = Request(f"{self.url}{self._path}/infer", body, headers)
        # Checked because a server may send an error with status 200.
        return Http(request, check=lambda answer: b'"outputs"' in answer.body)

    @property
    def _path(self) -> str:
        return f"/v2/models/{quote(self.model, safe='')}"

    def _document(self, path: str) -> dict[str, Any]:
        answer = self._get(path)
        if not 200 <= answer.status < 300:
            text = answer.body[:200].decode(errors="replace").strip()
            raise BackendError(" ".join(f"{self.url}{path}: HTTP {answer.status} {text}".split()))
        try:
            document = json.loads(answer.body)
        except ValueError:
            document = None
        if not isinstance(document, dict):
            raise BackendError(f"{self.url}{path}: the answer is not JSON: is it an inference server?")
        return document

    def _get(self, path: str) -> Answer:
        return ask_once(self.url, Request(f"{self.url}{path}"), self.timeout_s)


Oip = OverHttp | OverGrpc
"""One model of a server."""


def client_for(url: str, model: str, timeout_s: float = 5.0) -> Oip:
    """The client for a model at an address. UserError if the address is invalid."""
    parts = urlsplit(url)
    try:
        valid = parts.scheme in ("http", "https", "grpc") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # the port is not a number
        valid = False
    if not valid or (parts.scheme == "grpc" and parts.port is None):
        raise UserError(
            f"'{url}': expected the address of a server, such as http://localhost:8080 or grpc://localhost:8081"
        )
    if not model:
        raise UserError(f"{url}: name the model, since a server may have several")
    if parts.scheme == "grpc":
        return OverGrpc(parts.netloc, model, timeout_s)
    return OverHttp(url.rstrip("/").removesuffix("/v2"), model, timeout_s)


def targets(server: Oip, examples: Sequence[Tensors], binary: bool) -> Callable[[], Target]:
    """A function that makes connections, each with the next example in turn."""
    turns = cycle(examples)
    return lambda: server.target(next(turns), binary)


EXAMPLES = 8
"""Number of different samples in a load test."""
MOST_BYTES = 256 << 20
"""Most bytes of all samples together: there are fewer of large ones, but at least one."""


def from_file(service: ServingTask, folder: Path) -> tuple[Tensors, ...]:
    """Samples that fit the model's file. UserError if the file is not a model that can be run."""
    return _from_file(folder / service.path, tuple(service.shapes.items()))


def from_server(server: Oip, service: ServingTask, folder: Path) -> tuple[Tensors, ...]:
    """Samples from the model's file if there is one, since it says more about the inputs. UserError if they differ."""
    inputs = server.inputs()
    if not service.path:
        return tuple(example_inputs(inputs, service.shapes, seed) for seed in range(EXAMPLES))
    samples = from_file(service, folder)
    expected, given = {each.name for each in inputs}, set(samples[0])
    if expected and expected != given:
        names = f"{', '.join(sorted(given))}; those of the server's model are {', '.join(sorted(expected))}"
        raise UserError(f"{service.path}: its inputs are {names}: use the same model in both")
    return samples


@lru_cache(maxsize=8)
def _from_file(path: Path, shapes: tuple[tuple[str, int], ...]) -> tuple[Tensors, ...]:
    model = open_model(path)
    first = example_feed(model, model.batch or 1, dict(shapes), 0)
    size_bytes = sum(each.nbytes for each in first.values())
    count = max(1, min(EXAMPLES, MOST_BYTES // max(1, size_bytes)))
    return first, *(example_feed(model, model.batch or 1, dict(shapes), seed) for seed in range(1, count))


def example_inputs(inputs: Sequence[Port], shapes: Mapping[str, int], seed: int) -> dict[str, NDArray[Any]]:
    """One sample. `shapes`: sizes of free axes, by 'INPUT.AXIS'; the first axis is the batch."""
    if not inputs:
        raise UserError("the server does not describe its model's inputs: state them in its settings")
    free_axes = {f"{each.name}.{axis}" for each in inputs for axis, side in enumerate(each.shape) if axis and side < 0}
    for name in shapes:
        if name not in free_axes:
            raise UserError(
                f"shape '{name}': the model has no such free axis; it has: {', '.join(sorted(free_axes)) or 'none'}"
            )
    rng = np.random.default_rng(seed)
    return {each.name: _filled(each, shapes, rng) for each in inputs}


def _filled(one: Port, shapes: Mapping[str, int], rng: np.random.Generator) -> NDArray[Any]:
    sides = [abs(side) if axis == 0 else _side(one, axis, side, shapes) for axis, side in enumerate(one.shape)]
    try:
        dtype = dtype_of(one.datatype)
    except ValueError as error:
        raise UserError(f"input '{one.name}': {error}") from None
    if dtype.kind == "f":
        return rng.standard_normal(sides).astype(dtype)
    if dtype.kind == "O":
        return np.full(sides, b"a", dtype=object)
    return rng.integers(0, 2, sides).astype(dtype)


def _side(one: Port, axis: int, side: int, shapes: Mapping[str, int]) -> int:
    if side >= 0:
        return side
    name = f"{one.name}.{axis}"
    if name not in shapes:
        raise UserError(f"input '{one.name}' has a free axis {axis}: give its length, such as --shape {name}=128")
    return shapes[name]
