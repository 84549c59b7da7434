"""Makes the SkyPilot task of a launch: the user's own task, on machines that end by themselves.

Three independent mechanisms end a launch that nobody follows any more:
`timeout`    on every node, ends the job at the end of the lifetime, minus the time for teardown
autostop     set when the cluster starts: tears it down after a minute of idling
`shutdown`   on every node at the end of the lifetime. Set at the first boot on AWS, elsewhere before any user code
             runs. It terminates a machine of AWS. It stops one of another cloud; `mlcd clean` removes its disk

The files that every node gets, in `SHIPPED`:
`start.sh`            sourced by the task's `run`; the same for every job
`run.sh`              the job's own `run`
`stamp.py`            adds a timestamp to each line of the reporting process
`terminate.py`        on AWS: makes the machine's own shutdown terminate it
`node-N/main.sh`      variables of node N's main process; the one on node 0 reports progress
`node-N/M.also.sh`    variables of further processes on node N: a parameter server, its worker
`node-0/release`      if it exists, the job ends with node 0's main process, whatever the other nodes do
`tracker/`            mlcd_tracker
`leave`               created later to ask the job to save its work and exit: see `leave_request.py`
The nodes' addresses are known only when they are up, so the files have placeholders that the node's shell fills in.
"""

import base64
import gzip
import hashlib
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Any

import mlcd_tracker
from mlcd.clouds.environment import job_variables
from mlcd.clouds.frameworks import Process, processes, scaling_environment
from mlcd.clouds.launches import Launches
from mlcd.clouds.skypilot import stamp, terminate
from mlcd.core.backend import Launch
from mlcd.core.errors import UserError
from mlcd.core.job import Job

IDLE_MINUTES = 1
"""A cluster without a job tears itself down after this time, SkyPilot's minimum."""
TEARDOWN_S = 360.0
"""Reserved at the end of a lifetime: a minute idle, up to a minute until SkyPilot checks, and the teardown.

More than five minutes, because nobody can log in during the last five minutes before a shutdown.
"""
SHIPPED = "~/.mlcd_launch"

TERMINATE = f"""\
mlcd_python=$(cat "${{SKY_RUNTIME_DIR:-$HOME}}/.sky/python_path" 2>/dev/null || command -v python3 || true)
timeout 60 "$mlcd_python" -I {SHIPPED}/terminate.py >/dev/null 2>&1 || true  # MLCD: AWS would only stop the machine
"""
"""A second try, in case it failed at the first boot. Run with the Python that SkyPilot has installed for itself."""
TRIES_AT_BOOT = 10

SET_BY_LAUNCH = {
    *("infra", "cloud", "region", "zone", "instance_type", "accelerators", "cpus", "memory", "any_of", "ordered"),
    *("use_spot", "autostop", "job_recovery", "spot_recovery"),
}
"""Keys of the user's `resources` that the launch sets itself."""
MAX_LABEL = 22
"""Characters kept of a label, so that the whole name has at most the 42 characters that Azure allows."""
FIRST_PORT = 29_500
ELSEWHERE = "[mlcd, elsewhere] "
"""Prefix of output that is not parsed for reports: the user's `report:` pattern could match it, too."""

START = r"""# Written by MLCD: starts the job's processes on this node.
mlcd_here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mlcd_node=$mlcd_here/node-$SKYPILOT_NODE_RANK
readarray -t MLCD_IPS <<< "$SKYPILOT_NODE_IPS"
export PYTHONPATH=$mlcd_here/tracker${PYTHONPATH:+:$PYTHONPATH} PYTHONUNBUFFERED=1 MLCD_LEAVE=$mlcd_here/leave

mlcd_run() { (
  . "$1"
  shift
  left=0
  if [ -n "${MLCD_UNTIL:-}" ]; then
    left=$((MLCD_UNTIL - $(date +%s)))
    [ "$left" -gt 0 ] || exit 124
  fi
  # 0 means no limit; `timeout` passes signals on to everything that the job has started.
  exec "$@" timeout -k 30 "$left" bash "$mlcd_here/run.sh"
) }
mlcd_elsewhere() { mlcd_run "$1" 2>&1 | sed -u 's/^/[mlcd, elsewhere] /'; return "${PIPESTATUS[0]}"; }

# Adds the time to each line. Without Python, lines have the time at which they are read.
mlcd_stamp=(python3 -I -S "$mlcd_here/stamp.py")
"${mlcd_stamp[@]}" true >/dev/null 2>&1 || mlcd_stamp=()
# A heartbeat of this node. The first node needs none: its output shows that it is up.
mlcd_alive() { printf '@mlcd alive node=%s at=%(%s)T\n' "$SKYPILOT_NODE_RANK" -1; }
mlcd_alive_process=
if [ "$SKYPILOT_NODE_RANK" != 0 ]; then
  mlcd_alive
  while sleep 10 >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do mlcd_alive; done &
  mlcd_alive_process=$!
  disown
fi

for mlcd_also in "$mlcd_node"/*.also.sh; do
  [ -e "$mlcd_also" ] || continue
  mlcd_elsewhere "$mlcd_also" &
done
if [ "$SKYPILOT_NODE_RANK" = 0 ]; then
  mlcd_run "$mlcd_node/main.sh" "${mlcd_stamp[@]}"
else
  mlcd_elsewhere "$mlcd_node/main.sh"
fi
mlcd_status=$?
[ -z "$mlcd_alive_process" ] || kill "$mlcd_alive_process" 2>/dev/null
printf '@mlcd exit=%s node=%s at=%(%s)T\n' "$mlcd_status" "$SKYPILOT_NODE_RANK" -1
# Workers and servers never end by themselves. A failed node makes SkyPilot end the others, so that the cluster
# becomes idle and is torn down even if nobody follows it.
if [ -e "$mlcd_node/release" ] && [ "$mlcd_status" = 0 ]; then mlcd_status=1; fi
# Not `exit`: SkyPilot's own commands follow, which wait until a bucket of mode MOUNT_CACHED is uploaded.
(exit "$mlcd_status")
"""


def cluster_name(owner: str, label: str) -> str:
    """The name of a launch's cluster: unique for each label, and known before the cluster exists."""
    # The label itself if it is short and plain. Other names contain an underscore, so they cannot equal a plain one.
    plain = re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")
    if label and plain == label and len(label) <= MAX_LABEL:
        return f"mlcd-{owner}-{label}"
    digest = hashlib.sha256(label.encode()).hexdigest()[:8]
    return f"mlcd-{owner}-{plain[:MAX_LABEL]}_{digest}"


def cluster_of(launches: Launches, folder: Path, owner: str) -> str:
    """The name of a launch's cluster, as it was ordered."""
    return str(launches.order(folder).get("cluster") or cluster_name(owner, folder.name))


def owner_of(home: Path) -> str:
    """The id of this state folder: on a shared SkyPilot server, all users share one set of cluster names."""
    path = home / "skypilot-owner"
    if not path.exists():
        home.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError), path.open("x", encoding="utf-8") as file:  # another process may be faster
            file.write(token_hex(2))
    return path.read_text(encoding="utf-8").strip()


def first_boot(launch: Launch, started_at: float) -> tuple[str, ...]:
    """Shell commands for each machine's first boot, before SkyPilot reaches it: they schedule the machine's own end.

    So it ends even if MLCD and SkyPilot's server die before autostop is set. An on-demand machine of AWS also has to be
    told to terminate: it would only stop, and its disk would stay. SkyPilot supports such commands only on AWS.
    """
    offer = launch.rented.offer
    if launch.lifetime_s is None or offer.cloud != "aws":
        return ()
    end = _shutdown(started_at + launch.lifetime_s)
    return (end,) if offer.spot else (end, _terminate_at_boot())


def _terminate_at_boot() -> str:
    """A shell command that makes a shutdown terminate the machine; in base64, because SkyPilot pastes it into YAML."""
    script = gzip.compress(Path(terminate.__file__ or "").read_bytes(), mtime=0)  # AWS takes 16 KB in all
    return f"echo {base64.b64encode(script).decode()} | base64 -d | gunzip | python3 -I - {TRIES_AT_BOOT}"


def _shutdown(at: float) -> str:
    """A shell command that shuts a machine down at a Unix time, or up to a minute before; at once if it has passed.

    SkyPilot pastes it into YAML unquoted, so it must not contain quotes, or a colon before a space.
    """
    return f"shutdown -h +$(( ({int(at)} - $(date +%s)) / 60 * ({int(at)} > $(date +%s)) ))"


def task_of(
    job: Job, launch: Launch, name: str, shipped: Path, started_at: float, secrets: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The task as SkyPilot's YAML. `started_at`: Unix time of the order."""
    written = dict(job.task)
    setup, own = (
        str(written.get("setup") or ""),
        {"MLCD_LAUNCH": launch.label, "MLCD_SAMPLES": f"{launch.samples:.12g}"},
    )
    if launch.lifetime_s is not None:
        own["MLCD_UNTIL"] = str(int(started_at + launch.lifetime_s - TEARDOWN_S))
        end = _shutdown(started_at + launch.lifetime_s)
        setup = (
            f"sudo {end} >/dev/null 2>&1 || true  # MLCD: the last resort\n"
            + (TERMINATE if launch.rented.offer.cloud == "aws" else "")
            + setup
        )
    if job.checkpoints:
        own["MLCD_CHECKPOINT_DIR"] = checkpoint_folder(job, launch.label.rpartition("-")[0])
    task: dict[str, Any] = {
        "name": name,
        "resources": _resources(job, launch, name),
        "num_nodes": launch.configuration.nodes,
        "envs": {**own, **scaling_environment(job, launch.configuration), **job_variables(job)},
        "file_mounts": {**_mounts(job), SHIPPED: str(shipped)},
        "setup": setup,
        "run": f"source {SHIPPED}/start.sh\n",
    }
    if secrets:
        task["secrets"] = dict(secrets)
    if (workdir := written.get("workdir")) is not None:
        task["workdir"] = _local(job, workdir)
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
        "checkpoints: the machines' disks are deleted with them; mount a bucket, such as "
        "`file_mounts: {/checkpoints: {name: my-bucket, mode: MOUNT}}`, or set MLCD_CHECKPOINT_DIR in `envs`"
    )


def has_cached_mount(job: Job) -> bool:
    """Whether the job writes to a bucket through a cache, so that uploads go on for a while after the job has ended."""
    mounts = (job.task.get("file_mounts") or {}).values()
    return any(isinstance(each, dict) and str(each.get("mode", "")).upper() == "MOUNT_CACHED" for each in mounts)


def _resources(job: Job, launch: Launch, name: str) -> dict[str, Any]:
    offer = launch.rented.offer
    resources = {key: value for key, value in (job.task.get("resources") or {}).items() if key not in SET_BY_LAUNCH}
    machine, _, attached = offer.instance_type.partition("+")  # n1-standard-8+1xT4: on GCP, GPUs are ordered separately
    count, _, accelerator = attached.partition("x")
    return {
        **resources,
        "infra": "/".join(part for part in (offer.cloud, offer.region, offer.zone) if part),
        "instance_type": machine,
        **({"accelerators": f"{accelerator}:{count}"} if attached else {}),
        "use_spot": offer.spot,
        "labels": {**(resources.get("labels") or {}), "mlcd": name},
        # "jobs": an SSH connection that was left open must not keep the machines up.
        "autostop": {"idle_minutes": IDLE_MINUTES, "down": True, "wait_for": "jobs"},
    }


def _mounts(job: Job) -> dict[str, Any]:
    """The user's file mounts, with paths of this machine made absolute."""
    mounts = dict(job.task.get("file_mounts") or {})
    for path, source in mounts.items():
        has_source = isinstance(source, dict) and "source" in source
        mounts[path] = {**source, "source": _local(job, source["source"])} if has_source else _local(job, source)
    return mounts


def _local(job: Job, path: Any) -> Any:
    """A path relative to the job file's folder, made absolute. A bucket's address or block stays as it is."""
    if not isinstance(path, str) or "://" in path or path.startswith("~"):
        return path
    return str((Path(job.folder or ".") / path).resolve())


def shipped(job: Job, nodes: int, devices: int) -> dict[str, str]:
    """The content of the shipped files, by their path in the shipped folder."""
    job_processes = processes(job.communication, [_placeholder(node) for node in range(nodes)], FIRST_PORT, devices)
    files = {"start.sh": START, "run.sh": str(job.task.get("run") or "") + "\n"}
    for module in (stamp, terminate):
        files[Path(module.__file__ or "").name] = Path(module.__file__ or "").read_text(encoding="utf-8")
    for i, process in enumerate(job_processes):
        first = f"node-{process.node}/main.sh"
        files[first if first not in files else f"node-{process.node}/{i}.also.sh"] = _variables(process, nodes)
    if any(not process.ends for process in job_processes):
        files["node-0/release"] = ""
    package = Path(mlcd_tracker.__file__).parent
    for path in sorted(package.rglob("*.py")):
        files[f"tracker/mlcd_tracker/{path.relative_to(package)}"] = path.read_text(encoding="utf-8")
    return files


def _placeholder(node: int) -> str:
    """The placeholder of a node's address. The final '@' distinguishes node 1 from node 10."""
    return f"@node-{node}@"


def _variables(process: Process, nodes: int) -> str:
    """Shell `export` lines, without the variables that SkyPilot sets itself."""
    lines = []
    for name, value in process.environment.items():
        if name.startswith("SKYPILOT_"):
            continue
        quoted = "'" + value.replace("'", "'\"'\"'") + "'"
        for node in range(nodes):
            quoted = quoted.replace(_placeholder(node), f"'\"${{MLCD_IPS[{node}]}}\"'")
        lines.append(f"export {name}={quoted}")
    return "\n".join(lines) + "\n"
