"""`python3 -m mlcd_bench.learn.on_gpu --to DIR --minutes 9`: measure PyTorch models on this machine's GPU.

Needs only numpy, torch, torchvision and transformers. It continues where the files in DIR end, so it can be repeated
until all is measured. Each model has its own process, so that an error that makes a device unusable, a crash or a hang
costs only one cell: it is written to failed.csv with the reason, and the next cell follows.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from mlcd_bench.learn.attended import Tell, attended
from mlcd_bench.learn.gpu_work import Plan, Work, failed, measure, profile, works
from mlcd_bench.learn.host import CORES, host_rows
from mlcd_bench.learn.table import Tables, key
from mlcd_bench.learn.torch_device import Cuda
from mlcd_bench.learn.torch_measure import Cells, Loaded, operators
from mlcd_bench.learn.torch_operators import OPERATORS
from mlcd_bench.learn.torch_zoo import MODELS

SILENT_S = 90.0
"""A process without a report for so long counts as hung."""
TRIES = 6
"""Restarts of a model after it broke its process."""
CUT_AT_LEAST = 4.0
"""A product on 12 % of a device must take at least so many times longer, or cutting the device has no effect."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all that is missing, until the time is up."""
    began, asked = time.monotonic(), _asked(arguments)
    cells = Cells(**{name: value for name in Cells.KNOBS if (value := getattr(asked, name))})
    plan = Plan(Tables(Path(asked.to), Cells.KNOBS), cells, asked.device, began + 60 * asked.minutes)
    plan.tables.folder.mkdir(parents=True, exist_ok=True)
    _preload()
    if not asked.models:
        _measure_host(plan)
    plan = _described(plan)
    chosen = [model.name for model in MODELS if not asked.models or model.name in asked.models.split(",")]
    alone = [] if asked.models else [operator.name for operator in OPERATORS]
    for work in works(chosen, alone):
        if not plan.time_is_up and not plan.is_done(work):
            _measure(work, plan)
            _say(f"{time.monotonic() - began:5.0f} s  {', '.join(work.names)}: {_state(work, plan)}")
    left = [name for work in works(chosen, alone) if not plan.is_done(work) for name in work.names]
    _say(f"left: {', '.join(left) or 'nothing'}")


def _measure(work: Work, plan: Plan) -> None:
    """Run a process for the cells, restart it without a cell that broke it, then run one for profiles."""
    for _ in range(TRIES):
        last, ended = attended(measure, work, plan, silent_s=SILENT_S, start=plan.start)
        if ended == 0 or plan.time_is_up:
            break
        if last is None:
            _say(f"  {', '.join(work.names)}: the process ended with {ended} before it began")
            return
        model, cell = last
        _say(f"  {model} {cell}: the process ended with {ended}; continuing without it")
        if key(model, *cell) not in plan.tables.failed.keys("model", *Cells.KNOBS):
            plan.tables.failed.append([failed(model, cell, f"the process died ({ended})")])
    if not work.alone and not plan.time_is_up and any(map(plan.profiles_left, work.names)):
        attended(profile, work, plan, silent_s=SILENT_S, start=plan.start)


def _measure_host(plan: Plan) -> None:
    kinds = sorted({model.inputs for model in MODELS})
    if len(plan.tables.host.rows()) < len(kinds) * len(CORES):
        plan.tables.host.path.unlink(missing_ok=True)
        plan.tables.host.append(host_rows(kinds))
        _say(f"host: {len(kinds)} kinds of input")


def _described(plan: Plan) -> Plan:
    """Determine in a separate process how to cut the device and start processes; write the description."""
    told, ended = attended(describe, plan, silent_s=SILENT_S, start=plan.start)
    _say(f"{told} (ended with {ended})")
    if not told:
        sys.exit("the device could not be opened: see above")
    if not told["profiles"]:  # the profiler may not see the device in a forked process
        again, ended = attended(describe, plan, silent_s=SILENT_S, start="spawn")
        _say(f"spawned instead: {again} (ended with {ended})")
        plan = replace(plan, start="spawn") if again and again["profiles"] else plan
    plan = replace(plan, by_stream=told["by_stream"])
    way = "the stream of a green context" if plan.by_stream else "a green context made current"
    source = (
        f"{told['machine']}; Python {platform.python_version()}, {told['versions']}; shares by {way}; random weights, "
        f"eager mode, one batch at a time, GB of 1e9 bytes; measured {time.strftime('%Y-%m-%d', time.gmtime())} "
        "by python3 -m mlcd_bench.learn.on_gpu"
    )
    anatomy = {"cell": list(Cells.KNOBS), "host": "cpu_cores", "memory": "memory_gb"}
    about = {"kind": "device", "anatomy": anatomy, "resources": {}, "source": source}
    (plan.tables.folder / "knowledge.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    return plan


def describe(plan: Plan, tell: Tell) -> None:
    """The machine's description, whether profiles contain device times, and which way of cutting the device works."""
    device = plan.open()
    told: dict[str, Any] = {"machine": platform.machine(), "versions": _versions(), "by_stream": True}
    try:
        told["profiles"] = bool(operators(Loaded(OPERATORS[0], device, "fp32"), 8))
    except RuntimeError as error:
        told["profiles"] = False
        told["profiler"] = " ".join(str(error).split())[:160]
    if isinstance(device, Cuda):
        cuts = ", ".join(f"{share} % is {device.part(share)}" for share in plan.cells.sm_share if share < 100)
        told["machine"] = f"{device.words} ({cuts})"
        told["by_stream"] = _cut(device, told, by_stream=True)
        if not told["by_stream"]:
            _cut(device, told, by_stream=False)
    tell(told)


def _cut(device: Cuda, told: dict[str, Any], by_stream: bool) -> bool:
    """Whether this way of cutting the device slows it down as it should. The factors are noted."""
    device.by_stream = by_stream
    note = f"slower under 50, 25, 12 %, {'stream' if by_stream else 'context'}"
    try:
        told[note] = [round(device.slower_by(share), 2) for share in (50, 25, 12)]
        return bool(told[note][-1] > CUT_AT_LEAST)
    except (RuntimeError, AttributeError, TypeError) as error:
        told[note] = " ".join(str(error).split())[:160]
        return False


def _versions() -> str:
    found = []
    for library in ("torch", "torchvision", "transformers"):
        try:
            found.append(f"{library} {import_module(library).__version__}")
        except ImportError:
            continue
    return ", ".join(found)


def _preload() -> None:
    """Import libraries before forking, so that each process has them. CUDA cannot be forked, so it is left to them."""
    for library in ("torch", "torchvision.models", "transformers"):
        try:
            import_module(library)
        except ImportError as error:
            _say(f"{library}: {error}; its models are left out")


def _state(work: Work, plan: Plan) -> str:
    table, column = (plan.tables.curves, "operator") if work.alone else (plan.tables.points, "model")
    ran = sum(row[column] in work.names for row in table.rows())
    lost = [row for row in plan.tables.failed.rows() if row["model"] in work.names]
    return f"{ran} cells ran, {len(lost)} did not" + (f": {lost[-1]['reason'][:100]}" if lost else "")


def _say(words: str) -> None:
    print(words, flush=True)


def _asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", required=True, help="the knowledge folder")
    parser.add_argument("--minutes", type=float, default=9.0, help="stop before the next cell after so long")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: to test the script")
    parser.add_argument(
        "--start", choices=("fork", "spawn"), default="fork", help="how processes begin; fork is faster"
    )
    parser.add_argument("--models", default="", help="only these models, with commas; no operators, no host")
    parser.add_argument("--precision", type=lambda text: tuple(text.split(",")), help="fp32,bf16")
    for name in ("sm-share", "batch"):
        parser.add_argument(f"--{name}", type=lambda text: tuple(map(int, text.split(","))), help="1,8,64")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
