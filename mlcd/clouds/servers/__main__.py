"""`python -m mlcd.clouds.servers MODEL`: serve an ONNX model over the Open Inference Protocol v2 until it is stopped.

It prints `ready: http://127.0.0.1:PORT` when it is ready. Exit codes: 12 if it exceeded its memory limit, 95 if the
model does not support the knobs, 2 for wrong input.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from dataclasses import fields
from pathlib import Path

from mlcd.clouds.servers.model import Model
from mlcd.clouds.servers.quantise import at_precision
from mlcd.clouds.servers.settings import PRECISIONS, UNSUPPORTED, Settings, end, limit, server_cores
from mlcd.core.errors import MissingExtra, MlcdError, UserError


def main() -> int:
    """Serve until SIGTERM or SIGINT."""
    arguments = _arguments().parse_args()
    knobs = {each.name: getattr(arguments, each.name) for each in fields(Settings)}
    try:
        settings = Settings.of({name: value for name, value in knobs.items() if value is not None})
        return _start(arguments, settings)
    except MemoryError:
        end(arguments.memory_gb, "there is less")
    except MlcdError as error:
        print(error, file=sys.stderr)
        return error.exit_code


def _start(arguments: argparse.Namespace, settings: Settings) -> int:
    try:
        from mlcd.clouds.servers.http import serve
    except ImportError:
        raise MissingExtra("serving a model", "serve") from None
    os.sched_setaffinity(0, server_cores(settings.threads))
    if settings.memory_gb is not None:
        limit(settings.memory_gb)
    try:
        path = at_precision(arguments.model, settings.precision, arguments.cache)
    except UserError as error:
        print(error, file=sys.stderr)
        return UNSUPPORTED
    model = Model(path, arguments.name or arguments.model.stem, settings.threads)
    asyncio.run(serve(model, settings, arguments.host, arguments.port))
    return 0


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m mlcd.clouds.servers", description="Serve an ONNX model.")
    parser.add_argument("model", type=Path)
    parser.add_argument("--name", help="the model's name in addresses; by default its file name without the suffix")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8_080, help="0 for any free port")
    parser.add_argument("--threads", type=int, default=Settings.threads)
    parser.add_argument("--batch", type=int, default=Settings.batch)
    parser.add_argument("--max-wait-ms", type=float, default=Settings.max_wait_ms)
    parser.add_argument("--memory-gb", type=float, default=Settings.memory_gb)
    parser.add_argument("--precision", choices=PRECISIONS, default=Settings.precision)
    parser.add_argument("--cache", type=Path, default=Path(".mlcd") / "quantised", help="folder for quantised models")
    return parser


if __name__ == "__main__":
    sys.exit(main())
