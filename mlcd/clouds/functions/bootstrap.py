"""The entry point of a function on a cloud: it fetches MLCD's code and the job's code, then runs the order.

Lithops sends this code by value, since MLCD is not installed there; so it uses the standard library only.
"""

from __future__ import annotations

import os
import sys
import time
import zipfile
from importlib import import_module
from typing import Any


def fetch_code_and_run(order: dict[str, Any], storage: Any) -> dict[str, Any]:
    """Run the order. `storage`: Lithops' client of the bucket; Lithops passes it by this name."""
    place = f"/tmp/mlcd-{order['code'].split('/')[-1]}"
    _fetch(storage, order["code"], place)
    sys.path.insert(0, f"{place}.zip")
    work = getattr(import_module("mlcd.clouds.functions.worker"), order["work"])
    report: dict[str, Any] = work({**order, "folder": f"{place}/job"}, storage)
    return {**report, "process_at": _process_began_at(os.getppid())}


def _fetch(storage: Any, key: str, place: str) -> None:
    """Fetch the code, unless an earlier call in this environment has."""
    if os.path.exists(f"{place}.zip"):
        return
    partial = f"{place}.{os.getpid()}"
    with open(partial, "wb") as file:
        file.write(storage.get_object(storage.bucket, key))
    with zipfile.ZipFile(partial) as packed:
        packed.extractall(place, [name for name in packed.namelist() if name.startswith("job/")])
    os.rename(partial, f"{place}.zip")


def _process_began_at(process: int) -> float:
    """The start (Unix time) of a process; a new environment is billed from the start of Lithops' process."""
    with open(f"/proc/{process}/stat") as stat:
        ticks = float(stat.read().rpartition(")")[2].split()[19])
    with open("/proc/uptime") as uptime:
        up_s = float(uptime.read().split()[0])
    return time.time() - up_s + ticks / os.sysconf("SC_CLK_TCK")
