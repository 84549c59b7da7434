"""The Open Inference Protocol v2 over HTTP, with the binary tensor data extension."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from functools import partial
from typing import Any

from aiohttp import web

from mlcd.clouds.servers.model import Batcher, Model, Runs, metadata
from mlcd.clouds.servers.settings import Settings, end
from mlcd.clouds.tensors import BINARY, JSON_LENGTH, pack, unpack
from mlcd.core.errors import UserError
from mlcd.core.version import VERSION

SHUTDOWN_TIMEOUT_S = 0.5
"""For requests in progress at the end."""
LARGEST_BYTES = 1 << 30
"""Largest request."""


async def serve(model: Model, settings: Settings, host: str, port: int) -> None:
    """Serve until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    batcher = partial(Batcher, model, settings.batch, settings.max_wait_ms / 1_000)
    app = application(model, batcher, partial(end, settings.memory_gb))
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN_TIMEOUT_S)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port, backlog=1_024).start()
    except (OSError, OverflowError) as error:  # already in use, or not a port
        await runner.cleanup()
        raise UserError(f"{host}:{port}: cannot be listened on: {getattr(error, 'strerror', None) or error}") from error
    print(f"ready: http://{host}:{runner.addresses[0][1]}", flush=True)
    await stop.wait()
    await runner.cleanup()


def application(model: Runs, batcher: Callable[[], Batcher], out_of_memory: Callable[[str], None]) -> web.Application:
    """The web application. `batcher` is called when the event loop runs."""
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
    def __init__(self, model: Runs, out_of_memory: Callable[[str], None]) -> None:
        self.model, self.out_of_memory = model, out_of_memory
        self.batcher: Batcher

    async def server(self, _: web.Request) -> web.Response:
        return web.json_response({"name": "mlcd", "version": VERSION, "extensions": [BINARY]})

    async def healthy(self, _: web.Request) -> web.Response:
        return web.json_response({"live": True, "ready": True})

    async def model_metadata(self, request: web.Request) -> web.Response:
        return self._unknown(request) or web.json_response(metadata(self.model))

    async def infer(self, request: web.Request) -> web.Response:
        if (unknown := self._unknown(request)) is not None:
            return unknown
        try:
            length = request.headers.get(JSON_LENGTH)
            head, inputs = unpack("inputs", await request.read(), int(length) if length else None)
            answer = await self.batcher.answer(inputs)
        except ValueError as error:  # includes malformed JSON and UTF-8
            return web.json_response({"error": str(error)}, status=400)
        except Exception as error:  # any error of the model is a 500 with its reason
            if isinstance(error, MemoryError) or "allocat" in str(error):
                self.out_of_memory("the model asked for more than there is")
            return web.json_response({"error": f"{type(error).__name__}: {error}".splitlines()[0]}, status=500)
        binary = bool((head.get("parameters") or {}).get("binary_data_output"))
        head_out = {"model_name": self.model.name, **({"id": head["id"]} if "id" in head else {})}
        body, json_length = pack("outputs", answer, head_out, binary)
        if json_length is None:
            return web.Response(body=body, content_type="application/json")
        return web.Response(body=body, content_type="application/octet-stream", headers={JSON_LENGTH: str(json_length)})

    def _unknown(self, request: web.Request) -> web.Response | None:
        name = request.match_info["name"]
        if name == self.model.name:
            return None
        return web.json_response({"error": f"no model '{name}', only '{self.model.name}'"}, status=404)
