"""The SkyPilot part of a job file: what the search reads of it, and what is passed on untouched."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mlcd.core.errors import JobFileError
from mlcd.planners.jobfile.marks import Marks, at

TASK_KEYS = (
    "name",
    "workdir",
    "num_nodes",
    "setup",
    "run",
    "envs",
    "secrets",
    "file_mounts",
    "volumes",
    "resources",
    "service",
    "config",
    "inputs",
    "outputs",
)
"""What SkyPilot lets a task say; passed on untouched."""


def task_of(written: Mapping[str, Any], path: Path, marks: Marks) -> dict[str, Any]:
    """The task, checked where the search will read it. Secrets keep their names only: a ledger is no safe."""
    if isinstance(written.get("name"), dict | list):
        raise JobFileError(at(path, marks, ("name",)) + "name: expected a word, such as resnet50")
    _check_resources(written.get("resources") or {}, path, marks)
    _check_processes(written, path, marks)
    task = {key: value for key, value in written.items() if key in TASK_KEYS}
    if isinstance(task.get("secrets"), dict):
        task["secrets"] = dict.fromkeys(task["secrets"])
    return task


def _check_processes(written: Mapping[str, Any], path: Path, marks: Marks) -> None:
    """What processes are started with: no system takes a zero byte there, or a variable whose name is none."""
    for key in ("setup", "run", "workdir"):
        if "\0" in str(written.get(key)):
            raise JobFileError(at(path, marks, (key,)) + f"{key}: has a zero byte in it; take it out")
    envs = written.get("envs") or {}
    if not isinstance(envs, dict):
        raise JobFileError(at(path, marks, ("envs",)) + "envs: expected names and values, such as `EPOCHS: 90`")
    for name, value in envs.items():
        if not re.fullmatch(r"[^=\0]+", str(name)) or "\0" in str(value):
            told = f"envs {str(name)!r}: expected a variable's name, such as EPOCHS, and a value without zero bytes"
            raise JobFileError(at(path, marks, ("envs", name)) + told)


def _check_resources(resources: Any, path: Path, marks: Marks) -> None:
    """What the search reads of SkyPilot's `resources`; the rest is SkyPilot's to judge."""
    if not isinstance(resources, dict):
        raise JobFileError(at(path, marks, ("resources",)) + "resources: expected keys such as `accelerators: A100:8`")
    for key in ("any_of", "ordered"):
        if key in resources:
            told = f"{key}: not read by the search; name the types in `mlcd: search: instances:` instead"
            raise JobFileError(at(path, marks, ("resources", key)) + told)
    for key in ("cpus", "memory"):
        value = resources.get(key)
        if value is not None and not re.fullmatch(r"\d+(\.\d+)?\+?", str(value)):
            told = f"{key} '{value}': expected a number, such as 16, or 16+ for at least that many"
            raise JobFileError(at(path, marks, ("resources", key)) + told)
    wanted = resources.get("accelerators") or {}
    counts = wanted.items() if isinstance(wanted, dict) else [str(w).partition(":")[::2] for w in listed(wanted)]
    for name, count in counts:
        if not re.fullmatch(r"[1-9]\d*|", str(count or "")):
            told = f"accelerators '{name}:{count}': expected a type and a whole number, such as A100:8"
            raise JobFileError(at(path, marks, ("resources", "accelerators")) + told)


def listed(written: Any) -> list[Any]:
    """One value, or a list of them, as a list."""
    return written if isinstance(written, list) else [written]
