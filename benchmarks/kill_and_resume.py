"""Kill `mlcd` with SIGKILL at random moments of real runs: nothing may be left running, paid twice, or lost.

python benchmarks/kill_and_resume.py --times 30 [--on local|ray] [--seed 0]

`--on ray` starts its own cluster of three nodes, in a network namespace with only loopback.

Each time: start or resume a run on real nodes, kill MLCD at a random moment, check that all its processes end, check
the ledger. Every few kills the run may finish, and a new one is started.
"""

from __future__ import annotations

import argparse
import os
import random
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mlcd.clouds.local import teardown
from mlcd.core.home import open_ledger
from mlcd.core.ledger import Account
from mlcd.core.version import VERSION

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from mlcd_fixtures.live_jobs import SAVING, TWO_TYPES

KILLS_OF_ONE_RUN = 4
RAY_NODES = """
probe: 8s
startup: 60s
checkpoints: {home}/kept
types:
  a: {{cpus: 1, memory: 1GB, link: 1Gbit, usd_per_hour: $1}}
"""
RAY_CLUSTER = """
import sys
from ray.cluster_utils import Cluster
node = dict(num_cpus=1, object_store_memory=80_000_000, node_ip_address="127.0.0.1", resources={"a": 1})
cluster = Cluster(initialize_head=True, head_node_args=dict(node, include_dashboard=False))
for _ in range(2):
    cluster.add_node(wait=False, **node)
cluster.wait_for_nodes()
print(cluster.address, flush=True)
sys.stdin.read()
"""
ALONE = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-c"]
ROOM = "ip link set lo up && mount -t tmpfs none /mnt && export RAY_TMPDIR=/mnt MLCD_ALONE=1 && "


def mlcd(home: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "mlcd", *arguments]
    env = {**os.environ, "MLCD_HOME": str(home / "home")}
    return subprocess.Popen(command, cwd=home, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def account(home: Path) -> Account | None:
    ledger = open_ledger(home / "home")
    try:
        return ledger.account("last") if ledger.runs() else None
    finally:
        ledger.close()


def still_running(home: Path) -> set[str]:
    """What is still running of this run's launches, on this machine and in the cluster."""
    folders = list((home / "home" / "launches").glob("*"))
    found = teardown.marks() & {teardown.mark_of(folder) for folder in folders}
    if "RAY_ADDRESS" in os.environ:
        from mlcd.clouds.ray import cluster

        found |= cluster.labels() | {folder.name for folder in folders if teardown.processes_of(folder.name)}
    return found


def seconds_until_gone(home: Path, within_s: float = 20.0) -> float:
    """Seconds until nothing was running."""
    start_s = time.monotonic()
    while still_running(home):
        assert time.monotonic() < start_s + within_s, f"left behind: {still_running(home)}"
        time.sleep(0.02)
    return time.monotonic() - start_s


def check(before: Account | None, after: Account) -> None:
    paid = sum(m.usd for m in (*after.history.measurements, *after.history.runs))
    assert abs(paid - after.history.spent_usd) < 1e-9, "the ledger does not add up"
    if before is not None:
        kept = len(before.history.measurements)
        assert after.history.measurements[:kept] == before.history.measurements, "a probe was lost or paid twice"


def start_ray() -> subprocess.Popen[str]:
    """Start a cluster, and put its address into the environment."""
    running = subprocess.Popen(
        [sys.executable, "-c", RAY_CLUSTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert running.stdout is not None
    os.environ["RAY_ADDRESS"] = running.stdout.readline().strip()
    return running


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--on", choices=("local", "ray"), default="local")
    chosen = parser.parse_args()
    if chosen.on == "ray" and "MLCD_ALONE" not in os.environ:
        again = f"{ROOM} {sys.executable} {shlex.join(sys.argv)}; exit $?"
        sys.exit(subprocess.run([*ALONE, again], check=False).returncode)
    rng = random.Random(chosen.seed)
    home = Path(tempfile.mkdtemp(prefix="mlcd-killing-"))
    cluster = start_ray() if chosen.on == "ray" else None
    (home / "nodes.yaml").write_text(TWO_TYPES if cluster is None else RAY_NODES.format(home=home))
    (home / "job").mkdir()
    (home / "job" / "train.py").write_text(SAVING.replace("TOTAL", "12_000"))
    (home / "job" / "job.yaml").write_text(
        f"name: killed{os.getpid()}\nrun: python3 train.py\n"
        "mlcd: {work: 12k, goal: cheapest, budget: $5, checkpoints: true, search: {nodes: 1..2}}\n"
    )
    kill_and_resume(home, f"{chosen.on}:nodes.yaml", rng, chosen.times, chosen.seed)
    if cluster is not None:
        cluster.kill()


def kill_and_resume(home: Path, on: str, rng: random.Random, times: int, seed: int) -> None:
    kills, finished, slowest_s, phases = 0, 0, 0.0, {"searching": 0, "running": 0, "between": 0}
    while kills < times:
        go = ("train", "job/job.yaml", "--on", on, "-y")
        for _ in range(KILLS_OF_ONE_RUN):
            before = account(home) if go[0] == "resume" else None
            process = mlcd(home, *go)
            try:
                process.wait(timeout=rng.uniform(0.3, 20.0))
                break  # it ended first
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
            slowest_s = max(slowest_s, seconds_until_gone(home))
            after = account(home)
            if after is None:
                continue  # killed before the run was begun
            check(before, after)
            kills += 1
            phases[str(after.status) if after.open else "between"] += 1
            go = ("resume", "last", "-y")
        if (now := account(home)) is not None and now.ended is None:
            _, err = mlcd(home, *go).communicate(timeout=240)
            now = account(home)
            assert now is not None
            assert now.ended is not None, err
        assert now is not None
        assert now.ended is not None
        assert now.ended.finished, now.ended
        check(None, now)
        seconds_until_gone(home)
        finished += 1
    print(
        f"mlcd {VERSION}, {on.partition(':')[0]}, seed {seed}: {kills} kills ({phases}), {finished} runs, all finished."
    )
    print(f"Nothing was left behind; the slowest was gone after {slowest_s:.2f} s. Every ledger adds up.")


if __name__ == "__main__":
    main()
