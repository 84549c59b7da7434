"""A service and a worker that share only PostgreSQL: each has its own network, processes and files.

python benchmarks/two_hosts.py        # as root, on Linux, with `ip`, `unshare`, `openssl` and PostgreSQL; two minutes

The hosts are network namespaces, joined by a virtual cable; PostgreSQL requires TLS and SCRAM passwords on it. Jobs run
on `local`, the worker's host. Tested: a run from its submission to its logs; a cable cut in the middle of a run and
restored; a host that dies during a run, and is given up by an admin. The exit code says whether all of it held.
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
"""Longer than the network's keep-alive: the database has closed the connection by then."""
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
    """Print each test, and whether it passed."""
    if os.geteuid() != 0:
        sys.exit("namespaces are made by root alone")
    with ExitStack() as stack:
        stack.enter_context(cable())
        team = stack.enter_context(service(stack.enter_context(database())))
        results = [
            ("a run elsewhere, its logs here, no secret in its environment", runs_elsewhere(team)),
            (f"a cable that is cut for {CUT_S:.0f} s in the middle of a run", survives_a_cut(team)),
            ("a host that dies, given up: the books are closed", is_given_up(team)),
        ]
    for what, held in results:
        print(f"{'held  ' if held else 'BROKEN'}  {what}")
    return 0 if all(held for _, held in results) else 1


@dataclass
class Team:
    """A service, its address and its database."""

    client: httpx.Client
    far_url: str
    folder: Path

    def submit(self, name: str, steps: int) -> str:
        """Submit a job for any host."""
        job = JOB.format(name=name, steps=steps, work=10 * steps)
        return str(self._post("/runs", {"kind": "train", "job": job, "launch": True})["run"])

    def give_up(self, run: str) -> str:
        """Give up a run's host."""
        return str(self._post(f"/runs/{run}/down", {"machine_gone": True})["words"])

    def status(self, run: str) -> str:
        return str(self.client.get(f"/runs/{run}").json()["summary"]["status"])

    def log(self, run: str) -> str:
        return str(self.client.get(f"/runs/{run}/logs").json().get("text", ""))

    def reaches_status(self, run: str, status: str) -> bool:
        """Whether the run gets to this status before the timeout."""
        return happens_in_time(lambda: self.status(run) == status)

    @contextmanager
    def worker(self, name: str) -> Iterator[subprocess.Popen[bytes]]:
        """A host of that name with a worker; killed with all its processes at the end."""
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
        document: dict[str, object] = answer.json()
        return document


def runs_elsewhere(team: Team) -> bool:
    """A run from its submission to its end, on a host that shares only the database."""
    with team.worker("worker-1"):
        run = team.submit("short", 60)
        return team.until(run, "finished") and happens_in_time(lambda: "host worker-1 []" in team.log(run))


def survives_a_cut(team: Team) -> bool:
    """A host continues after a cut of the cable, and nothing is measured twice."""
    with team.worker("worker-2"):
        run = team.submit("cut", 200)
        if not happens_in_time(lambda: "host worker-2" in team.log(run)):
            return False
        run_command(["ip", "link", "set", CABLE, "down"])
        time.sleep(CUT_S)
        run_command(["ip", "link", "set", CABLE, "up"])
        return team.until(run, "finished")


def is_given_up(team: Team) -> bool:
    """Another host does not take the run until its own host is given up."""
    with team.worker("worker-3"):
        run = team.submit("lost", 10_000)
        if not happens_in_time(lambda: "host worker-3" in team.log(run)):
            return False
    with team.worker("worker-4"):
        other = team.submit("after", 60)
        waited = team.until(other, "finished") and team.status(run) not in ("finished", "failed")
        words = team.give_up(run)
        print(words)
        return waited and team.status(run) == "failed" and "the most it can have cost" in words


@contextmanager
def cable() -> Iterator[None]:
    """Create another host's network, and a cable to it."""
    run_command(["ip", "netns", "add", SPACE])
    try:
        run_command(["ip", "link", "add", CABLE, "type", "veth", "peer", "name", "eth0", "netns", SPACE])
        for where, device, address in (([], CABLE, NEAR), (["-n", SPACE], "eth0", FAR)):
            run_command(["ip", *where, "addr", "add", f"{address}/24", "dev", device])
            run_command(["ip", *where, "link", "set", device, "up"])
        run_command(["ip", "-n", SPACE, "link", "set", "lo", "up"])
        yield
    finally:
        run_command(["ip", "netns", "del", SPACE])  # and its end of the cable, and with that the other


@contextmanager
def database() -> Iterator[PostgresServer]:
    """A PostgreSQL server that admits the other host only with TLS and SCRAM."""
    server = PostgresServer({"listen_addresses": f"127.0.0.1,{NEAR}", "password_encryption": "scram-sha-256"})
    try:
        data = server.folder / "data"
        key, certificate = data / "server.key", data / "server.crt"
        made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=database-host"]
        run_command([*made, "-keyout", str(key), "-out", str(certificate)])
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


def happens_in_time(what: Callable[[], bool]) -> bool:
    """Whether it happens before the timeout."""
    deadline_s = time.monotonic() + WAIT_S
    while not what():
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.2)
    return True


def run_command(command: list[str]) -> None:
    """Run a command; raises its errors if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")


if __name__ == "__main__":
    sys.exit(main())
