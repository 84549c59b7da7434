"""Anything that speaks the Open Inference Protocol v2, seen from outside: http://host:port or grpc://host:port."""

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
    """One model of a server, whatever carries the questions."""

    def is_ready(self) -> bool:
        """Whether the server and its model say that they are."""
        ...

    def inputs(self) -> tuple[Input, ...]:
        """What it says of its model's inputs. BackendError, on one line, if it does not answer well."""
        ...

    def takes_bytes(self) -> bool:
        """Whether it takes and gives tensors as bytes."""
        ...

    def target(self, inputs: Tensors, binary: bool) -> Target:
        """A connection that asks this again and again."""
        ...


def speak(url: str, model: str, timeout_s: float = 5.0) -> Oip:
    """The model of that name at an address."""
    parts = urlsplit(url)
    try:
        known = parts.scheme in ("http", "https", "grpc") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # what stands for the port is no number
        known = False
    if not known or (parts.scheme == "grpc" and parts.port is None):
        raise UserError(
            f"'{url}': expected the address of a server, such as http://localhost:8080 or grpc://localhost:8081"
        )
    if not model:
        raise UserError(f"{url}: which of its models? A server may have several; name one")
    if parts.scheme == "grpc":
        return OverGrpc(parts.netloc, model, timeout_s)
    return OverHttp(url.rstrip("/").removesuffix("/v2"), model, timeout_s)


def targets(server: Oip, examples: Sequence[Tensors], binary: bool) -> Callable[[], Target]:
    """Makes connections, each with the next of the examples, round and round."""
    turns = cycle(examples)
    return lambda: server.target(next(turns), binary)
