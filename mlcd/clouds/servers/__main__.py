"""`python -m mlcd.clouds.servers MODEL`: serve an ONNX model over the Open Inference Protocol v2 until it is ended.

It says `ready: http://127.0.0.1:PORT` once it is. Statuses: 12 if it held more memory than it may, 95 if the model
cannot be had as the knobs ask, 2 for a mistake.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from dataclasses import fields
from functools import partial
from pathlib import Path

from mlcd.clouds.servers import memory
from mlcd.clouds.servers.batching import Batcher
from mlcd.clouds.servers.cores import server_cores
from mlcd.clouds.servers.http import application
from mlcd.clouds.servers.model import Model
from mlcd.clouds.servers.precision import at_precision
from mlcd.clouds.servers.settings import PRECISIONS, UNSUPPORTED, Settings
from mlcd.core.errors import MlcdError, UserError

LEAVES_WITHIN_S = 0.5
"""For requests that are being answered when it is told to end."""


def main() -> int:
    """Serve until SIGTERM or SIGINT."""
    given = _arguments().parse_args()
    knobs = {each.name: getattr(given, each.name) for each in fields(Settings)}
    try:
        settings = Settings.of({name: value for name, value in knobs.items() if value is not None})
        return _start(given, settings)
    except MemoryError:
        memory.end(given.memory_gb, "there is less")
    except MlcdError as error:
        print(error, file=sys.stderr)
        return error.exit_code


def _start(given: argparse.Namespace, settings: Settings) -> int:
    os.sched_setaffinity(0, server_cores(settings.threads))
    if settings.memory_gb is not None:
        memory.limit(settings.memory_gb)
    try:
        path = at_precision(given.model, settings.precision, given.cache)
    except UserError as error:
        print(error, file=sys.stderr)
        return UNSUPPORTED
    model = Model(path, given.name or given.model.stem, settings.threads)
    asyncio.run(_serve(model, settings, given.host, given.port))
    return 0


async def _serve(model: Model, settings: Settings, host: str, port: int) -> None:
    from aiohttp import web

    over = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, over.set)
    batcher = partial(Batcher, model, settings.batch, settings.max_wait_ms / 1_000)
    app = application(model, batcher, partial(memory.end, settings.memory_gb))
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=LEAVES_WITHIN_S)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port, backlog=1_024).start()
    except (OSError, OverflowError) as error:  # taken, or no port at all
        await runner.cleanup()
        raise UserError(f"{host}:{port}: cannot be listened on: {getattr(error, 'strerror', None) or error}") from error
    print(f"ready: http://{host}:{runner.addresses[0][1]}", flush=True)
    await over.wait()
    await runner.cleanup()


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m mlcd.clouds.servers", description="Serve an ONNX model.")
    parser.add_argument("model", type=Path)
    parser.add_argument("--name", help="what the model is called in addresses; its file's name without the end")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8_080, help="0 for any that is free")
    parser.add_argument("--threads", type=int, default=Settings.threads)
    parser.add_argument("--batch", type=int, default=Settings.batch)
    parser.add_argument("--max-wait-ms", type=float, default=Settings.max_wait_ms)
    parser.add_argument("--memory-gb", type=float, default=Settings.memory_gb)
    parser.add_argument("--precision", choices=PRECISIONS, default=Settings.precision)
    parser.add_argument("--cache", type=Path, default=Path(".mlcd") / "quantised", help="folder for quantised models")
    return parser


if __name__ == "__main__":
    sys.exit(main())
