"""A launch as a SkyPilot task: the user's own task on the launch's machines, which end by themselves.

Three independent mechanisms end a launch that nobody follows any more:
`timeout`    on every node ends the job at the end of the lifetime, minus the time for teardown
autostop     set when the cluster starts: after a minute of idling it tears itself down
`shutdown`   on every node, scheduled before any user code runs, some minutes after the lifetime
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from pathlib import Path
from typing import Any

from mlcd.clouds.environment import job_variables
from mlcd.core.backend import Launch
from mlcd.core.errors import UserError
from mlcd.core.job import Job

IDLE_MINUTES = 1
"""After which a cluster without a job tears itself down: SkyPilot's minimum."""
TEARDOWN_S = 180.0
"""Reserved at the end of a lifetime: a minute idle, up to a minute until SkyPilot checks, and the teardown."""
SHUTDOWN_S = 600.0
"""After the end of a lifetime. Late enough: in the last five minutes before a shutdown nobody can log in."""
SHIPPED = "~/.mlcd_launch"

SET_BY_LAUNCH = {
    *("infra", "cloud", "region", "zone", "instance_type", "accelerators", "cpus", "memory", "any_of", "ordered"),
    *("use_spot", "autostop", "job_recovery", "spot_recovery"),
}
"""Keys of the user's `resources` that the launch sets itself."""


def task_of(
    job: Job, launch: Launch, name: str, shipped: Path, started_at: float, secrets: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The task as SkyPilot's YAML. `started_at`: Unix time of the order."""
    written = dict(job.task)
    until = None if launch.lifetime_s is None else started_at + launch.lifetime_s
    own = {
        "MLCD_LAUNCH": launch.label,
        "MLCD_SAMPLES": f"{launch.samples:.12g}",
        **({} if until is None else {"MLCD_UNTIL": str(int(until - TEARDOWN_S))}),
        **({"MLCD_CHECKPOINT_DIR": checkpoint_folder(job, launch.label.rpartition("-")[0])} if job.checkpoints else {}),
    }
    task: dict[str, Any] = {
        "name": name,
        "resources": _resources(job, launch, name),
        "num_nodes": launch.configuration.nodes,
        "envs": {**own, **job_variables(job)},
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
    """A folder that survives the machines: the one that the job names, or a bucket that it mounts."""
    folder = (job.task.get("envs") or {}).get("MLCD_CHECKPOINT_DIR")
    if folder:
        return str(folder)
    for path, source in (job.task.get("file_mounts") or {}).items():
        if isinstance(source, dict) and str(source.get("mode", "MOUNT")).upper() in ("MOUNT", "MOUNT_CACHED"):
            return f"{str(path).rstrip('/')}/{run}"
    raise UserError(
        "checkpoints: the machines' disks go with them; mount a bucket, such as "
        "`file_mounts: {/checkpoints: {name: my-bucket, mode: MOUNT}}`, or set MLCD_CHECKPOINT_DIR in `envs`"
    )


def _resources(job: Job, launch: Launch, name: str) -> dict[str, Any]:
    offer = launch.configuration.offer
    resources = {key: value for key, value in (job.task.get("resources") or {}).items() if key not in SET_BY_LAUNCH}
    machine, _, attached = offer.instance_type.partition("+")  # n1-standard-8+1xT4: on GCP, GPUs are ordered separately
    count, _, accelerator = attached.partition("x")
    return {
        **resources,
        "infra": "/".join(part for part in (offer.cloud, offer.region) if part),
        "instance_type": machine,
        **({"accelerators": f"{accelerator}:{count}"} if attached else {}),
        "use_spot": offer.spot,
        "labels": {**(resources.get("labels") or {}), "mlcd": name},
        # "jobs": an SSH connection that was left open must not keep the machines up.
        "autostop": {"idle_minutes": IDLE_MINUTES, "down": True, "wait_for": "jobs"},
    }


def _setup(users: str, lifetime_s: float | None) -> str:
    if lifetime_s is None:
        return users
    minutes = ceil((lifetime_s + SHUTDOWN_S) / 60)
    return f"sudo shutdown -h +{minutes} >/dev/null 2>&1 || true  # MLCD: should all else fail\n{users}"


def _mounts(job: Job) -> dict[str, Any]:
    """The user's file mounts, with paths of this machine made absolute."""
    mounts: dict[str, Any] = {}
    for path, source in (job.task.get("file_mounts") or {}).items():
        if isinstance(source, str):
            mounts[path] = _local(job, source)
        elif isinstance(source, dict) and isinstance(source.get("source"), str):
            mounts[path] = {**source, "source": _local(job, source["source"])}
        else:
            mounts[path] = source
    return mounts


def _local(job: Job, path: str) -> str:
    """A path relative to the job file's folder, made absolute. A bucket's address stays as it is."""
    if "://" in path or path.startswith("~"):
        return path
    return str((Path(job.folder or ".") / path).resolve())
