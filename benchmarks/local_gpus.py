"""GPUs of local nodes on a real machine: what a job sees, what is recorded, and that no two launches share a GPU.

python benchmarks/local_gpus.py [--plain] [--packages DIR]

Runs a job of a few seconds with `mlcd train --on local`, once on a node type with a GPU and once on one without, and
prints one table. Needs nvidia-smi and no root; the job computes with PyTorch or, without it, with the driver's
library. `--plain`: nodes without limits, also for root. `--packages`: a folder with packages that MLCD needs and this
Python does not have. Exit code 1: something is wrong. It takes about a minute.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
NEEDED = {"yaml": "pyyaml", "re2": "google-re2"} | {
    name: name for name in ("click", "numpy", "pydantic", "rich", "scipy", "sqlalchemy", "threadpoolctl")
}
"""The package of each module."""
STEPS = 240
NODES = """
probe: 40s
startup: 60s
nodes: 1..1
types:
  gpu: {{cpus: 4, memory: 64GB, link: 1Gbit, usd_per_hour: $3, accelerators: '{kind}:1'}}
  cpu: {{cpus: 2, memory: 64GB, link: 1Gbit, usd_per_hour: $0.20}}
"""
JOB = "name: {name}\nrun: python3 work.py\nmlcd: {{work: {steps}, goal: cheapest, deadline: 20m}}\n"
WORK = """
import ctypes, json, os, time
import mlcd_tracker

GIB, STEP_S = 1 << 30, 0.05

def with_torch():
    import torch
    seen = torch.cuda.device_count()
    if not seen:
        return "torch " + torch.__version__, 0, "-", lambda: time.sleep(STEP_S)
    kept = torch.zeros(4 * GIB, dtype=torch.uint8, device="cuda")
    left = torch.randn(4096, 4096, device="cuda", dtype=torch.float16)
    def compute():
        until_s = time.monotonic() + STEP_S
        while time.monotonic() < until_s:
            for _ in range(20):
                left @ left
            torch.cuda.synchronize()
        return kept
    return "torch " + torch.__version__, seen, torch.cuda.get_device_name(0), compute

def with_driver():
    cuda, seen, name = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(0), ctypes.create_string_buffer(100)
    if cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(seen)) or not seen.value:
        return "libcuda", 0, "-", lambda: time.sleep(STEP_S)
    device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
    assert cuda.cuDeviceGet(ctypes.byref(device), 0) == 0
    assert cuda.cuDeviceGetName(name, 100, device) == 0
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
    assert cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(4 * GIB)) == 0
    def compute():
        until_s = time.monotonic() + STEP_S
        while time.monotonic() < until_s:
            for _ in range(20):
                cuda.cuMemsetD32_v2(memory, 1, ctypes.c_size_t(GIB))
            cuda.cuCtxSynchronize()
    return "libcuda", seen.value, name.value.decode(), compute

for way in (with_torch, with_driver):
    try:
        through, seen, name, compute = way()
        break
    except (ImportError, OSError) as error:
        through, seen, name, compute = f"nothing: {error}", 0, "-", lambda: time.sleep(STEP_S)
visible = os.environ["CUDA_VISIBLE_DEVICES"]
print("@seen " + json.dumps({"visible": visible, "through": through, "seen": seen, "name": name}), flush=True)
for _ in range(int(os.environ["MLCD_SAMPLES"])):
    compute()
    mlcd_tracker.step(1)
"""
PLAIN = """
import mlcd.clouds.local.isolation as isolation
isolation.why_not_isolated = lambda: "asked for plain nodes"
from mlcd.cli import main
main()
"""
Rows = dict[str, dict[str, str]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plain", action="store_true", help="nodes without limits, also for root")
    parser.add_argument("--packages", type=Path, help="a folder with packages that this Python does not have")
    asked = parser.parse_args()
    paths = [str(ROOT), *([str(asked.packages.resolve())] if asked.packages else [])]
    sys.path[:] = [paths[0], *sys.path, *paths[1:]]  # what this Python has itself comes first
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [*paths, os.environ.get("PYTHONPATH")]))
    missing = [package for module, package in NEEDED.items() if importlib.util.find_spec(module) is None]
    print(f"Python {platform.python_version()} at {sys.executable}, Linux {platform.release()}, user {os.geteuid()}")
    print(f"PyTorch: {'found' if importlib.util.find_spec('torch') else 'not found, so libcuda is used'}")
    if missing:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        install = f"pip install --target DIR --python-version {version} --only-binary=:all: {' '.join(missing)}"
        print(f"MLCD needs more packages; where there is a network: {install}; then here: --packages DIR")
        return 1
    return compare(asked.plain)


def compare(plain: bool) -> int:
    """Run both jobs; print the table and all errors."""
    from mlcd.clouds.local.gpus import ask_nvidia_smi, usable_gpus
    from mlcd.clouds.local.isolation import isolation_warning
    from mlcd.core.version import VERSION

    found = usable_gpus()
    print(f"MLCD {VERSION}; GPUs: {found.kinds or f'none ({found.why_none})'}")
    if not found.gpus:
        return 1
    print(f"Nodes: {'plain, as asked' if plain else isolation_warning() or 'isolated'}")
    began_s = time.monotonic()
    for _ in range(5):
        ask_nvidia_smi()
    print(f"nvidia-smi answers in {(time.monotonic() - began_s) / 5:.3f} s\n")
    with tempfile.TemporaryDirectory(prefix="mlcd-gpus-") as folder:
        columns = {kind: one_run(Path(folder), kind, found.gpus[0].name, plain) for kind in ("gpu", "cpu")}
    print_table(columns)
    wrong = violations(columns, found.gpus[0].uuid)
    for each in wrong:
        print(f"NOT KEPT: {each}")
    print("Everything is as it should be." if not wrong else "")
    return 1 if wrong else 0


def one_run(folder: Path, kind: str, gpu: str, plain: bool) -> dict[str, str]:
    """`mlcd train` on one of the node types; without limits if nodes cannot be isolated here."""
    from mlcd.clouds.local.gpus import short_name

    work = folder / kind
    work.mkdir()
    (work / "nodes.yaml").write_text(NODES.format(kind=short_name(gpu)))
    (work / "job.yaml").write_text(JOB.format(name=f"on-{kind}", steps=STEPS))
    (work / "work.py").write_text(WORK)
    seconds, code, out, err, second = train(work, kind, plain)
    if code and not plain:
        print(f"{kind}: mlcd train ends with {code}: {err.strip()[-400:]}\nOnce more, with plain nodes:")
        seconds, code, out, err, second = train(work, kind, plain=True)
    if code:
        print(f"{kind}: mlcd train ends with {code}: {err.strip()[-400:]}")
    document: dict[str, Any] = json.loads(out) if out.startswith("{") else {}
    row = {"mlcd train": f"{document.get('status', '?')}, exit code {code}, {seconds:.0f} s", **last_launch(work)}
    return {**row, "another launch meanwhile": second}


def train(work: Path, kind: str, plain: bool) -> tuple[float, int, str, str, str]:
    """Seconds, exit code, output and errors; and whether another launch could get the GPU meanwhile."""
    program = ["-c", PLAIN] if plain else ["-m", "mlcd"]
    command = [sys.executable, *program, "train", "job.yaml", "-y", "-o", "json"]
    command += ["--on", "local:nodes.yaml", "--instances", kind]
    began_s, second = time.monotonic(), "-"
    environment = {**os.environ, "MLCD_HOME": str(work / "home")}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=work, env=environment, **pipes) as process:
        while process.poll() is None and time.monotonic() < began_s + 60 and second == "-" and kind == "gpu":
            if any(work.glob("home/launches/*/usage.jsonl")):
                second = try_to_share()
            time.sleep(0.2)
        try:
            out, err = process.communicate(timeout=100)
        except subprocess.TimeoutExpired:
            process.terminate()
            out, err = process.communicate()
    return time.monotonic() - began_s, process.returncode, out, err, second


def try_to_share() -> str:
    """Request all GPUs while a launch holds one."""
    from mlcd.clouds.local.gpus import HeldGpus, usable_gpus
    from mlcd.core.configuration import Configuration, Offer
    from mlcd.core.errors import NothingOrdered

    try:
        with HeldGpus(Configuration(Offer("all", 1.0, 1.0, 1.0, "GPU", len(usable_gpus().gpus)), 1)):
            return "got the same GPU"
    except NothingOrdered:
        return "refused"


def last_launch(work: Path) -> dict[str, str]:
    """The output of the last launch, and the recorded GPU figures."""
    from mlcd.clouds.usage import usage_in

    folders = sorted(work.glob("home/launches/*/0.log"), key=lambda log: log.stat().st_mtime)
    if not folders:
        return {}
    lines = folders[-1].read_text(errors="replace").splitlines()
    seen = json.loads(next((line[6:] for line in lines if line.startswith("@seen ")), "{}"))
    usage = usage_in(folders[-1].parent)
    peak_gib = usage.gpu_peak_gib if usage is not None else None
    most = f"{peak_gib:.1f} of {usage.gpus[0].memory_gib:.1f} GiB" if usage and peak_gib is not None else "-"
    busy = usage.gpu_percent if usage is not None else None
    return {
        "launches": str(len(folders)),
        "CUDA_VISIBLE_DEVICES": repr(seen.get("visible", "?")),
        "the job computes with": str(seen.get("through", "?")),
        "GPUs that it sees": str(seen.get("seen", "?")),
        "the first of them": str(seen.get("name", "?")),
        "busy on average": "-" if busy is None else f"{busy:.0f} %",
        "most memory used": most,
        "readings": "-" if usage is None else str(len(usage.lines)),
    }


def violations(columns: Rows, uuid: str) -> list[str]:
    """The violated expectations about a GPU node and a CPU node."""
    gpu, cpu = columns["gpu"], columns["cpu"]
    expected = [
        ("gpu: the job has run", gpu["mlcd train"].startswith("finished")),
        ("gpu: one GPU is named", gpu.get("CUDA_VISIBLE_DEVICES") == repr(uuid)),
        ("gpu: the job sees one", gpu.get("GPUs that it sees") == "1"),
        ("gpu: it was busy", gpu.get("busy on average", "-").rstrip(" %") not in ("-", "0")),
        ("gpu: nobody else gets it", gpu["another launch meanwhile"] == "refused"),
        ("cpu: the job has run", cpu["mlcd train"].startswith("finished")),
        ("cpu: no GPU is named", cpu.get("CUDA_VISIBLE_DEVICES") == "''"),
        ("cpu: the job sees none", cpu.get("GPUs that it sees") == "0"),
    ]
    return [what for what, holds in expected if not holds]


def print_table(columns: Rows) -> None:
    names = list(dict.fromkeys(name for column in columns.values() for name in column))
    rows = [("", *columns), *((name, *(column.get(name, "?") for column in columns.values())) for name in names)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


if __name__ == "__main__":
    sys.exit(main())
