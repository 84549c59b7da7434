"""The SkyPilot part of a job file: passed on unchanged, and checked where the search also reads it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from mlcd.planners.jobfile.keys import listed
from mlcd.planners.jobfile.source import Trail

TASK_KEYS = {
    "name": "The job's name.",
    "workdir": "The folder whose files the job needs.",
    "num_nodes": "Nodes of a cluster; MLCD chooses how many.",
    "setup": "Commands that prepare a node.",
    "run": "Commands that each node runs.",
    "envs": "Environment variables of the job.",
    "secrets": "Variables whose values are not stored.",
    "file_mounts": "Files and buckets, by their path in the job.",
    "volumes": "Volumes, by their path in the job.",
    "resources": "The machines that the job may use.",
    "service": "Only for SkyPilot: how it is served.",
    "config": "Only for SkyPilot: its settings for this task.",
    "inputs": "Only for SkyPilot: data that is read.",
    "outputs": "Only for SkyPilot: data that is written.",
}
"""The keys of a SkyPilot task, with their descriptions."""
RESOURCES: dict[str, Any] = {
    "infra": {"description": "The cloud, and its region and zone: aws, aws/us-east-1."},
    "accelerators": {"description": "A type, or a list of them: A100, A100:8, [A10G, L4]."},
    "cpus": {"description": "Of a node: 16; 16+ for at least that many.", "type": ["number", "string", "null"]},
    "memory": {"description": "GB of a node: 64; 64+ for at least that much.", "type": ["number", "string", "null"]},
    "use_spot": {"description": "Spot machines: true, false, or any for whatever is better."},
    "any_of": False,
    "ordered": False,
}
"""JSON Schema of the part of `resources` that the search reads."""

Found = Iterator[tuple[Trail, str]]
"""Mistakes: the path of each, and its message."""


def task_of(written: Mapping[str, Any]) -> dict[str, Any]:
    """The SkyPilot task of a file. The values of secrets are dropped, so that the ledger does not store them."""
    task = {key: value for key, value in written.items() if key in TASK_KEYS}
    if isinstance(task.get("secrets"), dict):
        task["secrets"] = dict.fromkeys(task["secrets"])
    return task


def task_mistakes(written: Mapping[str, Any]) -> Found:
    """Mistakes in the part of the task that MLCD reads."""
    if isinstance(written.get("name"), dict | list):
        yield ("name",), "name: expected a word, such as resnet50"
    yield from _in_resources(written.get("resources") or {})
    yield from _in_processes(written)


def _in_processes(written: Mapping[str, Any]) -> Found:
    """Zero bytes and invalid variable names, with which no process can be started."""
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
    """Mistakes in the part of `resources` that the search reads; SkyPilot checks the rest."""
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
