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
    began, options = time.monotonic(), _options(arguments)
    cells = Cells(**{name: value for name in Cells.KNOBS if (value := getattr(options, name))})
    plan = Plan(Tables(Path(options.to), Cells.KNOBS), cells, options.device, began + 60 * options.minutes)
    plan.tables.folder.mkdir(parents=True, exist_ok=True)
    _preload()
    if not options.models:
        _measure_host(plan)
    plan = _described(plan)
    chosen = [model.name for model in MODELS if not options.models or model.name in options.models.split(",")]
    alone = [] if options.models else [operator.name for operator in OPERATORS]
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
    facts, ended = attended(describe, plan, silent_s=SILENT_S, start=plan.start)
    _say(f"{facts} (ended with {ended})")
    if not facts:
        sys.exit("the device could not be opened: see above")
    if not facts["profiles"]:  # the profiler may not see the device in a forked process
        again, ended = attended(describe, plan, silent_s=SILENT_S, start="spawn")
        _say(f"spawned instead: {again} (ended with {ended})")
        plan = replace(plan, start="spawn") if again and again["profiles"] else plan
    plan = replace(plan, by_stream=facts["by_stream"])
    way = "the stream of a green context" if plan.by_stream else "a green context made current"
    source = (
        f"{facts['machine']}; Python {platform.python_version()}, {facts['versions']}; shares by {way}; "
        f"random weights, eager mode, one batch at a time, GB of 1e9 bytes; "
        f"measured {time.strftime('%Y-%m-%d', time.gmtime())} "
        "by python3 -m mlcd_bench.learn.on_gpu"
    )
    anatomy = {"cell": list(Cells.KNOBS), "host": "cpu_cores", "memory": "memory_gb"}
    about = {"kind": "device", "anatomy": anatomy, "resources": {}, "source": source}
    (plan.tables.folder / "knowledge.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    return plan


def describe(plan: Plan, tell: Tell) -> None:
    """The machine's description, whether profiles contain device times, and which way of cutting the device works."""
    device = plan.open()
    facts: dict[str, Any] = {"machine": platform.machine(), "versions": _versions(), "by_stream": True}
    try:
        facts["profiles"] = bool(operators(Loaded(OPERATORS[0], device, "fp32"), 8))
    except RuntimeError as error:
        facts["profiles"] = False
        facts["profiler"] = " ".join(str(error).split())[:160]
    if isinstance(device, Cuda):
        cuts = ", ".join(f"{share} % is {device.part(share)}" for share in plan.cells.sm_share if share < 100)
        facts["machine"] = f"{device.words} ({cuts})"
        facts["by_stream"] = _cut(device, facts, by_stream=True)
        if not facts["by_stream"]:
            _cut(device, facts, by_stream=False)
    tell(facts)


def _cut(device: Cuda, facts: dict[str, Any], by_stream: bool) -> bool:
    """Whether this way of cutting the device slows it down as it should. The factors are noted."""
    device.by_stream = by_stream
    note = f"slower under 50, 25, 12 %, {'stream' if by_stream else 'context'}"
    try:
        facts[note] = [round(device.slower_by(share), 2) for share in (50, 25, 12)]
        return bool(facts[note][-1] > CUT_AT_LEAST)
    except (RuntimeError, AttributeError, TypeError) as error:
        facts[note] = " ".join(str(error).split())[:160]
        return False


def _versions() -> str:
    versions = []
    for library in ("torch", "torchvision", "transformers"):
        try:
            versions.append(f"{library} {import_module(library).__version__}")
        except ImportError:
            continue
    return ", ".join(versions)


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


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
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
