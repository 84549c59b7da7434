"""A fake vLLM engine with its command line: it serves only timing. `vllm serve MODEL --port N ...`.

More threads make a step shorter, fp32 longer, and each sequence that decodes adds to it; `--max-num-seqs` bounds what
runs at once. `--crash TEXT` ends it at the start with this error, `--bad WORD` makes its answers wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import stat
import sys
from pathlib import Path

from mlcd_fixtures.openai_server import Connection, Engine, Timing

STEP_S = 0.002


def fake_vllm(folder: Path) -> Path:
    """Write a program named `vllm` into a folder, and return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "vllm"
    start = f"PYTHONPATH={Path(__file__).parents[1]} exec {sys.executable} -m mlcd_fixtures.fake_engine"
    program.write_text(f'#!/bin/sh\n{start} "$@"\n', encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(prog="vllm")
    parser.add_argument("command", choices=["serve"])
    parser.add_argument("model")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--max-num-seqs", type=int, default=256)
    parser.add_argument("--max-num-batched-tokens", type=int, default=2_048)
    parser.add_argument("--load-format", default="auto")
    parser.add_argument("--crash", default="")
    parser.add_argument("--bad", default="")
    given = parser.parse_args()
    if given.crash:
        sys.exit(f"(APIServer pid={os.getpid()}) {given.crash}")
    slow = 2.0 if given.dtype == "float32" else 1.0
    step_s = slow * STEP_S / int(os.environ.get("OMP_NUM_THREADS", "1"))
    asyncio.run(
        serve(given.host, given.port, Timing(step_s, sequence_s=STEP_S, sequences=given.max_num_seqs, bad=given.bad))
    )


async def serve(host: str, port: int, timing: Timing) -> None:
    engine, loop = Engine(timing), asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(engine), host, port, backlog=4_096)
    await server.serve_forever()


if __name__ == "__main__":
    main()
