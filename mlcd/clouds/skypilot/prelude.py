"""The files that every node gets: scripts that start the job's processes, and the tracker.

    start.sh            sourced by the task's `run`; the same for every job
    run.sh              the job's own `run`
    node-N/main.sh      variables of node N's main process; the one on node 0 reports progress
    node-N/M.also.sh    variables of further processes on node N: a parameter server, its worker
    node-0/release      the job ends with node 0's main process, whatever the other nodes do
    tracker/            mlcd_tracker

The nodes' addresses are known only when they are up, so the files have placeholders that the node's shell fills in.
"""

from __future__ import annotations

from pathlib import Path

import mlcd_tracker
from mlcd.clouds.platforms import Process, processes
from mlcd.core.job import Job

FIRST_PORT = 29_500
ELSEWHERE = "[mlcd, elsewhere] "
"""Prefix of output that is not parsed for reports: the user's `report:` pattern could match it, too."""

START = r"""# Written by MLCD: starts the job's processes on this node.
mlcd_here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mlcd_node=$mlcd_here/node-$SKYPILOT_NODE_RANK
readarray -t MLCD_IPS <<< "$SKYPILOT_NODE_IPS"
export PYTHONPATH=$mlcd_here/tracker${PYTHONPATH:+:$PYTHONPATH} PYTHONUNBUFFERED=1

mlcd_run() { (
  . "$1"
  left=0
  if [ -n "${MLCD_UNTIL:-}" ]; then
    left=$((MLCD_UNTIL - $(date +%s)))
    [ "$left" -gt 0 ] || exit 124
  fi
  # 0 is no limit; `timeout` passes a signal on to everything that the job has started.
  exec timeout -k 30 "$left" bash "$mlcd_here/run.sh"
) }
mlcd_elsewhere() { mlcd_run "$1" 2>&1 | sed -u 's/^/[mlcd, elsewhere] /'; return "${PIPESTATUS[0]}"; }

for mlcd_also in "$mlcd_node"/*.also.sh; do
  [ -e "$mlcd_also" ] || continue
  mlcd_elsewhere "$mlcd_also" &
done
if [ "$SKYPILOT_NODE_RANK" = 0 ]; then mlcd_run "$mlcd_node/main.sh"; else mlcd_elsewhere "$mlcd_node/main.sh"; fi
mlcd_status=$?
echo "@mlcd exit=$mlcd_status node=$SKYPILOT_NODE_RANK"
# Workers and servers never end by themselves. A failed node makes SkyPilot end the others, so that the cluster
# falls idle and goes away even if nobody listens any more.
if [ -e "$mlcd_node/release" ] && [ "$mlcd_status" = 0 ]; then exit 1; fi
exit "$mlcd_status"
"""


def shipped(job: Job, nodes: int, devices: int) -> dict[str, str]:
    """The files, by their path below the shipped folder."""
    job_processes = processes(job.communication, [_placeholder(node) for node in range(nodes)], FIRST_PORT, devices)
    files = {"start.sh": START, "run.sh": str(job.task.get("run") or "") + "\n"}
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
