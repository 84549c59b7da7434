"""A service and workers that share PostgreSQL and nothing else: each has a network, processes and files of its own.

python benchmarks/two_hosts.py        # as root, on Linux, with `ip`, `unshare`, `openssl` and PostgreSQL; two minutes

The hosts are namespaces, joined by a cable with virtual ends; PostgreSQL asks for TLS and SCRAM passwords on it. Jobs
run on `local`, which is the worker's host. In turn: a run from its submission to its logs; a cable that is cut in the
middle of a run and mended; a host that dies in the middle of one, and is given up by an admin. The exit code says
whether all of it held.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import psycopg

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from mlcd_fixtures.postgres import PASSWORD, PostgresServer

NEAR, FAR, NETWORK = "10.213.77.1", "10.213.77.2", "10.213.77.0/24"
SPACE, CABLE = "mlcd-far", "mlcd-cable"
WAIT_S = 120.0
CUT_S = 50.0
"""Longer than the network's keep-alive: the database has given the run up by then."""
HOST = """
hostname {name}; mount -t tmpfs tmpfs {home}; mount -t tmpfs -o mode=1777 tmpfs /dev/shm; cd {home}
MLCD_HOME={home} exec {python} -m mlcd worker
"""
JOB = """\
name: {name}
run: |
  python3 -c "
  import os, time, mlcd_tracker
  print('host', os.uname().nodename, sorted(n for n in os.environ if n in ('MLCD_DATABASE_URL', 'MLCD_TOKEN')))
  for step in range({steps}):
      time.sleep(0.05)
      mlcd_tracker.step(10)
  "
mlcd: {{work: {work}, budget: $5, on: local, search: {{nodes: 1..1, instances: [medium]}}}}
"""


def main() -> int:
    """Print what was tried, and whether it held."""
    if os.geteuid() != 0:
        sys.exit("namespaces are made by root alone")
    with ExitStack() as stack:
        stack.enter_context(cable())
        team = stack.enter_context(service(stack.enter_context(database())))
        results = [
            ("a run elsewhere, its logs here, no secret in its environment", runs_elsewhere(team)),
            (f"a cable that is cut for {CUT_S:.0f} s in the middle of a run", outlives_a_cut(team)),
            ("a host that dies, given up: the books are closed", is_given_up(team)),
        ]
    for what, held in results:
        print(f"{'held  ' if held else 'BROKEN'}  {what}")
    return 0 if all(held for _, held in results) else 1


@dataclass
class Team:
    """A service, and how to reach it and its database."""

    client: httpx.Client
    far_url: str
    folder: Path

    def submit(self, name: str, steps: int) -> str:
        """A job for whichever host takes it."""
        job = JOB.format(name=name, steps=steps, work=10 * steps)
        return str(self._post("/runs", {"kind": "train", "job": job, "launch": True})["run"])

    def give_up(self, run: str) -> str:
        """Say that its host is gone."""
        return str(self._post(f"/runs/{run}/down", {"machine_gone": True})["words"])

    def status(self, run: str) -> str:
        return str(self.client.get(f"/runs/{run}").json()["summary"]["status"])

    def log(self, run: str) -> str:
        return str(self.client.get(f"/runs/{run}/logs").json().get("text", ""))

    def until(self, run: str, status: str) -> bool:
        """Whether the run comes to that in time."""
        return happens(lambda: self.status(run) == status)

    @contextmanager
    def worker(self, name: str) -> Iterator[subprocess.Popen[bytes]]:
        """A host of that name with a worker on it; dead, with all that is its, at the end."""
        home = self.folder / name
        home.mkdir()
        script = HOST.format(name=name, home=home, python=sys.executable)
        spaces = ["unshare", "--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child", "--mount-proc"]
        command = ["ip", "netns", "exec", SPACE, *spaces, "bash", "-c", script]
        host = subprocess.Popen(command, env={**os.environ, "MLCD_DATABASE_URL": self.far_url})
        try:
            yield host
        finally:
            host.kill()
            host.wait()

    def _post(self, path: str, body: dict[str, object]) -> dict[str, object]:
        answer = self.client.post(path, json=body)
        answer.raise_for_status()
        told: dict[str, object] = answer.json()
        return told


def runs_elsewhere(team: Team) -> bool:
    """From its submission to its end, on a host that only the database is shared with."""
    with team.worker("worker-1"):
        run = team.submit("short", 60)
        return team.until(run, "finished") and happens(lambda: "host worker-1 []" in team.log(run))


def outlives_a_cut(team: Team) -> bool:
    """The host goes on when it is joined again, and nothing is measured twice."""
    with team.worker("worker-2"):
        run = team.submit("cut", 200)
        if not happens(lambda: "host worker-2" in team.log(run)):
            return False
        told(["ip", "link", "set", CABLE, "down"])
        time.sleep(CUT_S)
        told(["ip", "link", "set", CABLE, "up"])
        return team.until(run, "finished")


def is_given_up(team: Team) -> bool:
    """Another host leaves it alone, until it is said that its own is gone."""
    with team.worker("worker-3"):
        run = team.submit("lost", 10_000)
        if not happens(lambda: "host worker-3" in team.log(run)):
            return False
    with team.worker("worker-4"):
        other = team.submit("after", 60)
        waited = team.until(other, "finished") and team.status(run) not in ("finished", "failed")
        words = team.give_up(run)
        print(words)
        return waited and team.status(run) == "failed" and "the most it can have cost" in words


@contextmanager
def cable() -> Iterator[None]:
    """Another host's network, and a cable to it."""
    told(["ip", "netns", "add", SPACE])
    try:
        told(["ip", "link", "add", CABLE, "type", "veth", "peer", "name", "eth0", "netns", SPACE])
        for where, device, address in (([], CABLE, NEAR), (["-n", SPACE], "eth0", FAR)):
            told(["ip", *where, "addr", "add", f"{address}/24", "dev", device])
            told(["ip", *where, "link", "set", device, "up"])
        told(["ip", "-n", SPACE, "link", "set", "lo", "up"])
        yield
    finally:
        told(["ip", "netns", "del", SPACE])  # and its end of the cable, and with that the other


@contextmanager
def database() -> Iterator[PostgresServer]:
    """A server that lets the other host in by TLS and SCRAM alone."""
    server = PostgresServer({"listen_addresses": f"127.0.0.1,{NEAR}", "password_encryption": "scram-sha-256"})
    try:
        data = server.folder / "data"
        key, certificate = data / "server.key", data / "server.crt"
        made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=database-host"]
        told([*made, "-keyout", str(key), "-out", str(certificate)])
        owner = data.stat()
        for path in (key, certificate):
            os.chown(path, owner.st_uid, owner.st_gid)
        with (data / "pg_hba.conf").open("a") as rules:
            rules.write(f"hostssl all mlcd {NETWORK} scram-sha-256\n")
        with psycopg.connect(server.url(), autocommit=True) as db:
            db.execute(f"ALTER ROLE mlcd PASSWORD '{PASSWORD}'".encode())  # kept as SCRAM from now on
            db.execute("ALTER SYSTEM SET ssl = on")
            db.execute("SELECT pg_reload_conf()")
        yield server
    finally:
        server.close()


@contextmanager
def service(server: PostgresServer) -> Iterator[Team]:
    """`mlcd service` without workers, and its admin."""
    near_url = server.new_database()
    far_url = near_url.replace("127.0.0.1", NEAR) + "?sslmode=require"
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "mlcd", "service", "--port", "0", "--workers", "0", "--places", "local"]
        environment = {**os.environ, "MLCD_DATABASE_URL": near_url, "MLCD_HOME": f"{folder}/home"}
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        try:
            token, url = (re.findall(r"mlcd_\S+|http://\S+", process.stdout.readline())[0] for _ in range(2))
            headers = {"Authorization": f"Bearer {token}"}
            with httpx.Client(base_url=f"{url}/api/v1", headers=headers, timeout=60.0) as client:
                yield Team(client, far_url, Path(folder))
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def happens(what: Callable[[], bool]) -> bool:
    """Whether it does in time."""
    until = time.monotonic() + WAIT_S
    while not what():
        if time.monotonic() > until:
            return False
        time.sleep(0.2)
    return True


def told(command: list[str]) -> None:
    """Run it; what it complains of is told when it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")


if __name__ == "__main__":
    sys.exit(main())
