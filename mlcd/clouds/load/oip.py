"""A client of the Open Inference Protocol v2: http://host:port or grpc://host:port."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Protocol
from urllib.parse import urlsplit

from mlcd.clouds.load.oip_example import Input
from mlcd.clouds.load.oip_grpc import OverGrpc
from mlcd.clouds.load.oip_http import OverHttp
from mlcd.clouds.load.target import Target
from mlcd.clouds.tensors import Tensors
from mlcd.core.errors import UserError


class Oip(Protocol):
    """One model of a server, over HTTP or gRPC."""

    def is_ready(self) -> bool:
        """Whether the server and its model report to be ready."""
        ...

    def inputs(self) -> tuple[Input, ...]:
        """The inputs of the model. BackendError, on one line, if the server does not answer correctly."""
        ...

    def takes_bytes(self) -> bool:
        """Whether it supports binary tensors."""
        ...

    def target(self, inputs: Tensors, binary: bool) -> Target:
        """A connection that repeats this request."""
        ...


def speak(url: str, model: str, timeout_s: float = 5.0) -> Oip:
    """A client of the model of that name at an address."""
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
        raise UserError(f"{url}: which of its models? A server may have several; name one")
    if parts.scheme == "grpc":
        return OverGrpc(parts.netloc, model, timeout_s)
    return OverHttp(url.rstrip("/").removesuffix("/v2"), model, timeout_s)


def targets(server: Oip, examples: Sequence[Tensors], binary: bool) -> Callable[[], Target]:
    """A function that makes connections, each with the next example in turn."""
    turns = cycle(examples)
    return lambda: server.target(next(turns), binary)
