"""A hostile job on `local` of a real service: it finds nothing of the service's, nor of another member's job."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("procrastinate", reason="pip install 'mlcd[service]'")

from mlcd_fixtures.postgres import PASSWORD, PostgresServer

from mlcd.clouds.local.job_user import why_no_job_user
from mlcd.core.ledger import Ledger, Status

pytestmark = pytest.mark.live

if (why := why_no_job_user()) is not None:
    pytest.skip(f"a service gives jobs users of their own only as root: {why}", allow_module_level=True)

Until = Callable[[Callable[[], bool]], None]
CLOUD_KEY, STATE_FILE, OF_ANOTHER = (
    "AKIA-of-the-service",
    "whatever-is-in-the-state-folder",
    "weights-of-another-member",
)
ATTACK = """
import ctypes, glob, itertools, os, sys, time
import mlcd_tracker

home, service = sys.argv[1], int(sys.argv[2])

def read(path):
    try:
        with open(path, "rb") as file:
            print("READ", path, file.read(100_000).replace(b"\\0", b" "))
    except OSError:
        pass

for process in glob.glob("/proc/[0-9]*") + [f"/proc/{service}", "/proc/1"]:
    for name in ("environ", "cmdline", "root/etc/shadow", "cwd/job-users.key"):
        read(f"{process}/{name}")
    try:
        for number in os.listdir(f"{process}/fd"):
            print("LINK", process, os.readlink(f"{process}/fd/{number}"))
    except OSError:
        pass
for folder in (home, "/root", "/tmp", "/run/mlcd", os.path.dirname(os.getcwd())):
    inside = (os.path.join(place, name) for place, _, names in os.walk(folder) for name in names)
    for path in itertools.islice((path for path in inside if not path.startswith(sys.base_prefix)), 300):
        read(path)
for number in (0, 15):
    try:
        os.kill(service, number)
        print("KILLED", number)
    except OSError:
        pass
if ctypes.CDLL(None).ptrace(16, service, 0, 0) == 0:
    print("TRACED")
for path in (home, "/etc", os.path.join(home, "launches"), "/sys/fs/cgroup/cpu/mlcd", "/sys/fs/cgroup/mlcd"):
    try:
        open(os.path.join(path, "left-by-a-job"), "w").close()
        print("WROTE", path)
    except OSError:
        pass
try:
    os.setuid(0)
    print("ROOT")
except OSError:
    pass
print("attacked as", os.getuid(), flush=True)
for _ in range(20):
    time.sleep(0.02)
    mlcd_tracker.step(10)
"""
PEACEFUL = f"""
import os, time
import mlcd_tracker
open(os.path.join(os.environ["MLCD_CHECKPOINT_DIR"], "weights"), "w").write("{OF_ANOTHER}")
open("result", "w").write("{OF_ANOTHER}")
open("/tmp/result", "w").write("{OF_ANOTHER}")
print("peaceful as", os.getuid(), flush=True)
for _ in range(20):
    time.sleep(0.02)
    mlcd_tracker.step(10)
"""
JOB = """\
name: {name}
envs:
  BASH_ENV: /run/mlcd/work/as_root
  LD_PRELOAD: /run/mlcd/work/as_root.so
  PATH: /run/mlcd/work:/usr/bin:/bin
run: |
  unset LD_PRELOAD
  python3 - {arguments} <<'PROGRAM'
{program}
  PROGRAM
mlcd:
  work: 200
  checkpoints: true
  budget: $5
  on: local
  search: {{nodes: 1..1, instances: [medium]}}
"""


@dataclass
class Team:
    """A service, its administrator, and a runner."""

    home: Path
    process: subprocess.Popen[str]
    ledger: Ledger
    admin: httpx.Client
    runner: httpx.Client

    def run(self, name: str, program: str, until: Until) -> str:
        """What the job has written, in all of its launches."""
        indented = "\n".join(f"  {line}" for line in program.splitlines())
        job = JOB.format(name=name, program=indented, arguments=f"{self.home} {self.process.pid}")
        answer = self.runner.post("/api/v1/runs", json={"kind": "train", "job": job})
        assert answer.status_code == 202, answer.text
        run = answer.json()["run"]
        until(lambda: self._is_over(run))
        return "".join(log.read_text() for log in (self.home / "launches").glob(f"{run}-*/0.log"))

    def _is_over(self, run: str) -> bool:
        asked = self.ledger.submission(run)
        assert asked is None or asked.refused is None, asked
        return self.ledger.has_begun(run) and self.ledger.account(run).status is not Status.SEARCHING


@pytest.fixture(scope="module")
def team(running_postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    url, home = running_postgres.new_database(), tmp_path_factory.mktemp("service")
    home.chmod(0o755)  # as an earlier version has left it
    (home / "notes").write_text(STATE_FILE)
    command = [sys.executable, "-m", "mlcd", "service", "--port", "0", "--workers", "1", "--places", "local"]
    secrets = {"MLCD_DATABASE_URL": url, "AWS_SECRET_ACCESS_KEY": CLOUD_KEY, "PGPASSWORD": CLOUD_KEY}
    environment = {**os.environ, **secrets, "MLCD_HOME": str(home), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, env=environment, cwd=home, stdout=subprocess.PIPE, text=True)
    try:
        output = output_until(process, "MLCD serves")
        token, address = (re.search(what, output) for what in (r"only once: (\S+)", r"serves (\S+)"))
        assert token is not None
        assert address is not None
        with closing(Ledger(url)) as ledger, client(address[1], token[1]) as admin:
            added = admin.post("/api/v1/members", json={"name": "mallory", "role": "runner", "budget_usd": 50.0})
            assert added.status_code == 201, added.text
            with client(address[1], added.json()["token"]) as runner:
                yield Team(home, process, ledger, admin, runner)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=300)


def client(address: str, token: str) -> httpx.Client:
    return httpx.Client(base_url=address, headers={"Authorization": f"Bearer {token}", "X-MLCD": "1"}, timeout=300.0)


def output_until(process: subprocess.Popen[str], wanted: str) -> str:
    assert process.stdout is not None
    output, timer = "", threading.Timer(120.0, process.kill)  # whoever reads waits no longer than this
    timer.start()
    try:
        for line in process.stdout:
            output += line
            if wanted in line:
                return output
    finally:
        timer.cancel()
    raise AssertionError(output)


def test_a_hostile_job_gets_at_nothing_and_stays_what_it_is(team: Team, until: Until) -> None:
    peaceful = team.run("peaceful", PEACEFUL, until)
    output = team.run("hostile", ATTACK, until)
    assert "attacked as" in output
    for secret in (PASSWORD, CLOUD_KEY, STATE_FILE, OF_ANOTHER, "mlcd_"):
        assert secret not in _of_others(output), secret
    for deed in ("ROOT", "TRACED", "KILLED", "WROTE"):  # lines of their own: a file in /tmp may have such a word
        assert not re.search(rf"^{deed}\b", output, re.MULTILINE), deed
    (own,) = set(re.findall(r"attacked as (\d+)", output))
    (of_the_other,) = set(re.findall(r"peaceful as (\d+)", peaceful))
    assert len({own, of_the_other, "0", str(os.getuid())}) == 3, "a user for each run, and none is the service's"
    assert team.process.poll() is None
    assert team.home.stat().st_mode & 0o077 == 0
    members: dict[str, Any] = {each["name"]: each for each in team.admin.get("/api/v1/members").json()["members"]}
    assert members["mallory"]["role"] == "runner"
    assert team.runner.get("/api/v1/audit").status_code == 403


def _of_others(output: str) -> str:
    """Without the job's own program, which it may read, and which has all the words in it that are looked for."""
    program = re.compile(r"^READ \S+/(cmdline|mlcd_tracker/\S+) .*$", re.MULTILINE)
    own = [line for line in output.splitlines() if program.match(line) and "mlcd service" not in line]
    return "\n".join(line for line in output.splitlines() if line not in own)
