"""A client of the Open Inference Protocol v2: http://host:port or grpc://host:port."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any, Protocol
from urllib.parse import quote, urlsplit

from mlcd.clouds.load.generate import RequestFailed, Target
from mlcd.clouds.load.http import Answer, Http, Request
from mlcd.clouds.load.oip_grpc import OverGrpc
from mlcd.clouds.tensors import BINARY, JSON_LENGTH, Port, Tensors, pack
from mlcd.core.errors import BackendError, UserError


@dataclass(frozen=True)
class OverHttp:
    """One model of a server. `timeout_s`: of every request except those of a load."""

    url: str
    model: str
    timeout_s: float = 5.0

    def is_ready(self) -> bool:
        """Whether the server and its model report to be ready."""
        try:
            return all(200 <= self._get(path).status < 300 for path in ("/v2/health/ready", f"{self._path}/ready"))
        except BackendError:
            return False

    def inputs(self) -> tuple[Port, ...]:
        """The inputs of the model. BackendError, on one line, if the server does not answer correctly."""
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

    def target(self, inputs: Tensors, binary: bool) -> Target:
        """A connection that repeats this request."""
        return Http(self.request(inputs, binary), check=_has_outputs)

    def request(self, inputs: Tensors, binary: bool) -> Request:
        """One inference request."""
        head = {"parameters": {"binary_data_output": True}} if binary else {}
        body, json_length = pack("inputs", inputs, head, binary)
        headers = {"Content-Type": "application/json"}
        if json_length is not None:
            headers = {"Content-Type": "application/octet-stream", JSON_LENGTH: str(json_length)}
        return Request(f"{self.url}{self._path}/infer", body, headers)

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
        return asyncio.run(self._answer(Http(Request(f"{self.url}{path}"))))

    async def _answer(self, http: Http) -> Answer:
        try:
            async with asyncio.timeout(self.timeout_s):
                return await http.ask()
        except TimeoutError:
            raise BackendError(f"{self.url}: no answer within {self.timeout_s:g} s") from None
        except RequestFailed as error:
            raise BackendError(f"{self.url}: {error}") from None
        finally:
            await http.close()


def _has_outputs(answer: Answer) -> bool:
    """Checked because a server may send an error with status 200."""
    return b'"outputs"' in answer.body


class Oip(Protocol):
    """One model of a server, over HTTP or gRPC."""

    def is_ready(self) -> bool:
        """Whether the server and its model report to be ready."""
        ...

    def inputs(self) -> tuple[Port, ...]:
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
