"""The Open Inference Protocol v2 over HTTP, with the binary tensor data extension."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mlcd.clouds.servers.batching import Batcher
from mlcd.clouds.servers.model import Runs, metadata
from mlcd.clouds.tensors import BINARY, JSON_LENGTH, pack, unpack
from mlcd.core.errors import MissingExtra
from mlcd.core.version import VERSION

if TYPE_CHECKING:
    from aiohttp import web

LARGEST_BYTES = 1 << 30
"""Largest request."""
OutOfMemory = Callable[[str], None]


def application(model: Runs, batcher: Callable[[], Batcher], out_of_memory: OutOfMemory) -> web.Application:
    """The web application. `batcher` is called when the event loop runs."""
    try:
        from aiohttp import web
    except ImportError:
        raise MissingExtra("serving a model", "serve") from None

    handlers = _Handlers(model, out_of_memory)
    app = web.Application(client_max_size=LARGEST_BYTES)

    async def batching(_: web.Application) -> Any:
        handlers.batcher = batcher()
        yield
        await handlers.batcher.close()

    app.cleanup_ctx.append(batching)
    app.router.add_get("/v2", handlers.server)
    app.router.add_get("/v2/health/live", handlers.healthy)
    app.router.add_get("/v2/health/ready", handlers.healthy)
    app.router.add_get("/v2/models/{name}", handlers.model_metadata)
    app.router.add_get("/v2/models/{name}/ready", handlers.model_metadata)
    app.router.add_post("/v2/models/{name}/infer", handlers.infer)
    return app


class _Handlers:
    def __init__(self, model: Runs, out_of_memory: OutOfMemory) -> None:
        self.model = model
        self.out_of_memory = out_of_memory
        self.batcher: Batcher

    async def server(self, _: web.Request) -> web.Response:
        return _json({"name": "mlcd", "version": VERSION, "extensions": [BINARY]})

    async def healthy(self, _: web.Request) -> web.Response:
        return _json({"live": True, "ready": True})

    async def model_metadata(self, request: web.Request) -> web.Response:
        return self._unknown(request) or _json(dict(metadata(self.model)))

    async def infer(self, request: web.Request) -> web.Response:
        if (unknown := self._unknown(request)) is not None:
            return unknown
        try:
            length = request.headers.get(JSON_LENGTH)
            head, inputs = unpack("inputs", await request.read(), int(length) if length else None)
            answer = await self.batcher.answer(inputs)
        except ValueError as error:  # includes malformed JSON and UTF-8
            return _json({"error": str(error)}, 400)
        except Exception as error:  # any error of the model is a 500 with its reason
            if isinstance(error, MemoryError) or "allocat" in str(error):
                self.out_of_memory("the model asked for more than there is")
            return _json({"error": f"{type(error).__name__}: {error}".splitlines()[0]}, 500)
        binary = bool((head.get("parameters") or {}).get("binary_data_output"))
        head_out = {"model_name": self.model.name, **({"id": head["id"]} if "id" in head else {})}
        body, length_of_json = pack("outputs", answer, head_out, binary)
        if length_of_json is None:
            return _body(body, "application/json")
        return _body(body, "application/octet-stream", {JSON_LENGTH: str(length_of_json)})

    def _unknown(self, request: web.Request) -> web.Response | None:
        name = request.match_info["name"]
        return (
            None if name == self.model.name else _json({"error": f"no model '{name}', only '{self.model.name}'"}, 404)
        )


def _json(document: dict[str, Any], status: int = 200) -> web.Response:
    return _body(json.dumps(document).encode(), "application/json", status=status)


def _body(body: bytes, kind: str, headers: dict[str, str] | None = None, status: int = 200) -> web.Response:
    from aiohttp import web

    return web.Response(body=body, content_type=kind, headers=headers, status=status)
