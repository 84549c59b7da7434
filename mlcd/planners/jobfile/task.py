"""What SkyPilot reads of a job file: passed on untouched, and checked where the search reads it, too."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from mlcd.planners.jobfile.keys import listed
from mlcd.planners.jobfile.source import Trail

TASK_KEYS = (
    *("name", "workdir", "num_nodes", "setup", "run", "envs", "secrets", "file_mounts", "volumes", "resources"),
    *("service", "config", "inputs", "outputs"),
)
"""What SkyPilot lets a task say; passed on untouched."""

Found = Iterator[tuple[Trail, str]]
"""Mistakes: where, and what."""


def task_of(written: Mapping[str, Any]) -> dict[str, Any]:
    """The task. Secrets keep their names only: a ledger is no safe."""
    task = {key: value for key, value in written.items() if key in TASK_KEYS}
    if isinstance(task.get("secrets"), dict):
        task["secrets"] = dict.fromkeys(task["secrets"])
    return task


def task_mistakes(written: Mapping[str, Any]) -> Found:
    """What is wrong with the task, where MLCD reads it."""
    if isinstance(written.get("name"), dict | list):
        yield ("name",), "name: expected a word, such as resnet50"
    yield from _in_resources(written.get("resources") or {})
    yield from _in_processes(written)


def _in_processes(written: Mapping[str, Any]) -> Found:
    """What processes are started with: no system takes a zero byte there, or a variable whose name is none."""
    for key in ("setup", "run", "workdir"):
        if "\0" in str(written.get(key)):
            yield (key,), f"{key}: has a zero byte in it; take it out"
    envs = written.get("envs") or {}
    if not isinstance(envs, dict):
        yield ("envs",), "envs: expected names and values, such as `EPOCHS: 90`"
        return
    for name, value in envs.items():
        if not re.fullmatch(r"[^=\0]+", str(name)) or "\0" in str(value):
            expected = "expected a variable's name, such as EPOCHS, and a value without zero bytes"
            yield ("envs", name), f"envs {str(name)!r}: {expected}"


def _in_resources(resources: Any) -> Found:
    """What the search reads of SkyPilot's `resources`; the rest is SkyPilot's to judge."""
    if not isinstance(resources, dict):
        yield ("resources",), "resources: expected keys such as `accelerators: A100:8`"
        return
    for key in ("any_of", "ordered"):
        if key in resources:
            instead = "name the types in `mlcd: search: instances:` instead"
            yield ("resources", key), f"{key}: not read by the search; {instead}"
    for key in ("cpus", "memory"):
        value = resources.get(key)
        if value is not None and not re.fullmatch(r"\d+(\.\d+)?\+?", str(value)):
            expected = "expected a number, such as 16, or 16+ for at least that many"
            yield ("resources", key), f"{key} '{value}': {expected}"
    wanted = resources.get("accelerators") or {}
    counts = wanted.items() if isinstance(wanted, dict) else [str(w).partition(":")[::2] for w in listed(wanted)]
    for name, count in counts:
        if not re.fullmatch(r"[1-9]\d*|", str(count or "")):
            expected = "expected a type and a whole number, such as A100:8"
            yield ("resources", "accelerators"), f"accelerators '{name}:{count}': {expected}"
