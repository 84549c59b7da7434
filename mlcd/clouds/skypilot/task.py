"""A launch as a SkyPilot task: the user's own, on the launch's machines, gone by itself when its time is over.

Three things end a launch that nobody listens to any more, each without the others:
`timeout`    on every node ends the job at the end of the launch's time, less what it takes to go away
autostop     is set when the cluster starts: idle for a minute, it tears itself down
`shutdown`   on every node, ordered before anything of the user's runs, some minutes after the launch's time
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from pathlib import Path
from typing import Any

from mlcd.clouds.environment import wanted
from mlcd.core.backend import Launch
from mlcd.core.errors import UserError
from mlcd.core.job import Job

IDLE_MINUTES = 1
"""Before a cluster without a job tears itself down: the least that SkyPilot knows."""
GOING_S = 180.0
"""Kept at the end of a lifetime: a minute idle, up to a minute until that is looked at, and going."""
SHUTDOWN_S = 600.0
"""After the end of a lifetime. Late: from five minutes before it, nobody can log in."""
SHIPPED = "~/.mlcd_launch"

CHOSEN = {
    *("infra", "cloud", "region", "zone", "instance_type", "accelerators", "cpus", "memory", "any_of", "ordered"),
    *("use_spot", "autostop", "job_recovery", "spot_recovery"),
}
"""Of the user's `resources`, what a launch says itself."""


def task_of(
    job: Job, launch: Launch, name: str, shipped: Path, started_at: float, secrets: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The task, in SkyPilot's words. `started_at`: the time of day, in seconds, at which the launch was ordered."""
    written = dict(job.task)
    until = None if launch.lifetime_s is None else started_at + launch.lifetime_s
    own = {
        "MLCD_LAUNCH": launch.label,
        "MLCD_SAMPLES": f"{launch.samples:.12g}",
        **({} if until is None else {"MLCD_UNTIL": str(int(until - GOING_S))}),
        **({"MLCD_CHECKPOINT_DIR": checkpoint_folder(job, launch.label.rpartition("-")[0])} if job.checkpoints else {}),
    }
    task: dict[str, Any] = {
        "name": name,
        "resources": _resources(job, launch, name),
        "num_nodes": launch.configuration.nodes,
        "envs": {**own, **wanted(job)},
        "file_mounts": {**_mounts(job), SHIPPED: str(shipped)},
        "setup": _setup(str(written.get("setup") or ""), launch.lifetime_s),
        "run": f"source {SHIPPED}/start.sh\n",
    }
    if secrets:
        task["secrets"] = dict(secrets)
    if (workdir := written.get("workdir")) is not None:
        task["workdir"] = _local(job, workdir) if isinstance(workdir, str) else workdir
    return task | {key: written[key] for key in ("volumes", "config") if written.get(key) is not None}


def checkpoint_folder(job: Job, run: str) -> str:
    """Where the job's checkpoints outlive its machines: what the job says, or a bucket that it mounts."""
    told = (job.task.get("envs") or {}).get("MLCD_CHECKPOINT_DIR")
    if told:
        return str(told)
    for path, source in (job.task.get("file_mounts") or {}).items():
        if isinstance(source, dict) and str(source.get("mode", "MOUNT")).upper() in ("MOUNT", "MOUNT_CACHED"):
            return f"{str(path).rstrip('/')}/{run}"
    raise UserError(
        "checkpoints: the machines' disks go with them; mount a bucket, such as "
        "`file_mounts: {/checkpoints: {name: my-bucket, mode: MOUNT}}`, or set MLCD_CHECKPOINT_DIR in `envs`"
    )


def _resources(job: Job, launch: Launch, name: str) -> dict[str, Any]:
    offer = launch.configuration.offer
    kept = {key: value for key, value in (job.task.get("resources") or {}).items() if key not in CHOSEN}
    machine, _, attached = offer.instance_type.partition("+")  # n1-standard-8+1xT4: on GCP, GPUs come apart
    count, _, accelerator = attached.partition("x")
    return {
        **kept,
        "infra": "/".join(part for part in (offer.cloud, offer.region) if part),
        "instance_type": machine,
        **({"accelerators": f"{accelerator}:{count}"} if attached else {}),
        "use_spot": offer.spot,
        "labels": {**(kept.get("labels") or {}), "mlcd": name},
        # Of jobs alone: a connection that nobody closed must not keep the machines.
        "autostop": {"idle_minutes": IDLE_MINUTES, "down": True, "wait_for": "jobs"},
    }


def _setup(users: str, lifetime_s: float | None) -> str:
    if lifetime_s is None:
        return users
    minutes = ceil((lifetime_s + SHUTDOWN_S) / 60)
    return f"sudo shutdown -h +{minutes} >/dev/null 2>&1 || true  # MLCD: should all else fail\n{users}"


def _mounts(job: Job) -> dict[str, Any]:
    """The user's file mounts, with paths of this machine made absolute."""
    found: dict[str, Any] = {}
    for path, source in (job.task.get("file_mounts") or {}).items():
        if isinstance(source, str):
            found[path] = _local(job, source)
        elif isinstance(source, dict) and isinstance(source.get("source"), str):
            found[path] = {**source, "source": _local(job, source["source"])}
        else:
            found[path] = source
    return found


def _local(job: Job, path: str) -> str:
    """A path as the job file means it: from the folder that it lies in. An address of a bucket stays as it is."""
    if "://" in path or path.startswith("~"):
        return path
    return str((Path(job.folder or ".") / path).resolve())
