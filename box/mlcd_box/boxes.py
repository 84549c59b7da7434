"""A box on this host: starts and ends it, runs commands in it, sends requests to its cloud.

FOLDER/home           the home folder of SkyPilot and MLCD in the box
FOLDER/events.jsonl   the cloud's event log (`events.py`)
FOLDER/faults.json    injected faults (`cloud/faults.py`)
FOLDER/market.json    the trace that its spot market follows (`cloud/market.py`)
FOLDER/machines/      a folder for each machine
FOLDER/*.log          the logs of the cloud and of SkyPilot's server
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from mlcd_box.bill import Item, bill
from mlcd_box.cloud.__main__ import ENDPOINT
from mlcd_box.cloud.faults import Faults
from mlcd_box.cloud.functions.control_groups import remove_all
from mlcd_box.cloud.functions.runtime import runtime
from mlcd_box.cloud.market import Market
from mlcd_box.events import read_events
from mlcd_box.image import cache, image
from mlcd_box.skypilot_home import write_home

SERVER = "http://127.0.0.1:46580"
"""SkyPilot's API server in the box."""
WITHIN_S = 300.0
PROGRAMS = ("unshare", "nsenter", "ip", "sshd", "rsync", "curl", "openssl")


@dataclass(frozen=True)
class Box:
    """A cloud in a box. Any number of boxes can run side by side."""

    name: str

    @property
    def folder(self) -> Path:
        """Its folder; emptied when the box is started again."""
        return cache().parent / "boxes" / self.name

    @property
    def home(self) -> Path:
        """The home folder of commands in the box."""
        return self.folder / "home"

    @property
    def faults(self) -> Faults:
        """The injected faults of its cloud."""
        return Faults(self.folder / "faults.json")

    @property
    def market(self) -> Market:
        """The trace that its spot market follows."""
        return Market(self.folder / "market.json")

    def up(self) -> None:
        """Start the cloud and SkyPilot's API server."""
        check_host()
        if self.is_up():
            raise click.ClickException(f"box '{self.name}' is up already; end it with: box down")
        built = image()
        runtime()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        write_home(self.home)
        with (self.folder / "cloud.log").open("wb") as log:
            # The first process of a namespace has to reap orphaned processes; bash does.
            cloud = [sys.executable, "-m", "mlcd_box.cloud", str(self.folder), str(built)]
            reaper = ["bash", "-c", '"$@" & while :; do sleep 3600 & wait $!; done', "box", *cloud]
            outer = subprocess.Popen(
                [
                    "unshare",
                    "-n",
                    "-m",
                    "-p",
                    "--fork",
                    "--kill-child",
                    "--propagation",
                    "private",
                    "--mount-proc",
                    *reaper,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        (self.folder / "pid").write_text(str(outer.pid))
        _until(lambda: (self.folder / "ready").exists(), f"the cloud did not start; see {self.folder}/cloud.log")
        self.start_server()

    def start_server(self) -> None:
        """Start SkyPilot's API server. The one that `sky` starts by itself would end with the `sky` command."""
        with (self.folder / "server.log").open("ab") as log:
            subprocess.Popen(
                self.command([sys.executable, "-m", "sky.server.server", "--host", "127.0.0.1"]),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        _until(self.server_answers, f"SkyPilot's server did not start; see {self.folder}/server.log")

    def server_answers(self) -> bool:
        """Whether SkyPilot's API server answers."""
        health = ["curl", "-s", "-m", "2", "-o", "/dev/null", f"{SERVER}/api/health"]
        return subprocess.run(self.command(health), check=False).returncode == 0

    def kill_server(self) -> None:
        """Kill SkyPilot's API server with all of its processes, as a crash of its machine would."""
        children = f"{Path(sys.executable).parent}/python[0-9.]* -c from multiprocessing"
        subprocess.run(self.command(["pkill", "-KILL", "-f", f"sky.server|SkyPilot:|{children}"]), check=False)

    def lose_database(self) -> None:
        """Delete SkyPilot's database of clusters. Its server must not run."""
        for path in (self.home / ".sky").glob("*.db*"):
            path.unlink()

    def down(self) -> None:
        """End the box and everything in it. Killing the first process of its namespace ends all others."""
        pid = self._pid()
        if pid is None:
            raise click.ClickException(f"box '{self.name}' is not up")
        os.kill(pid, signal.SIGKILL)
        _until(lambda: not self.is_up(), f"box '{self.name}' does not end")
        remove_all(self.name)

    def is_up(self) -> bool:
        """Whether it runs."""
        return self._pid() is not None

    def command(self, command: Sequence[str]) -> list[str]:
        """The command line that runs this command in the box."""
        first = self._first_process()
        bin = str(Path(sys.executable).parent)
        environment = {
            "HOME": str(self.home),
            "USER": "root",
            "TERM": os.environ.get("TERM", "dumb"),
            "LANG": "C.UTF-8",
            "PATH": f"{bin}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "AWS_ENDPOINT_URL": ENDPOINT,
            "AWS_EC2_METADATA_DISABLED": "true",
            "SKYPILOT_DISABLE_USAGE_COLLECTION": "1",
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),  # so that another working tree can be tried in a box
        }
        inside = ["nsenter", "-t", str(first), "-m", "-n", "-p", "--wd=" + os.getcwd(), "--"]
        return [*inside, "env", "-i", *(f"{name}={value}" for name, value in environment.items()), *command]

    def ask(self, path: str, method: str = "GET") -> dict[str, Any]:
        """Send a request to the cloud's test API (`cloud/box_api.py`), and return its answer."""
        request = self.command(["curl", "-sf", "-X", method, f"{ENDPOINT}/box/{path}"])
        done = subprocess.run(request, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise click.ClickException(f"the cloud of box '{self.name}' does not answer")
        return dict(json.loads(done.stdout))

    def bill(self, now_s: float | None = None) -> list[Item]:
        """What the cloud would charge."""
        return bill(read_events(self.folder / "events.jsonl"), time.time() if now_s is None else now_s)

    def _pid(self) -> int | None:
        """The process of the box; None if the box does not run."""
        try:
            pid = int((self.folder / "pid").read_text())
            ours = b"mlcd_box.cloud" in Path(f"/proc/{pid}/cmdline").read_bytes()
        except (OSError, ValueError):
            return None
        return pid if ours else None

    def _first_process(self) -> int:
        pid = self._pid()
        if pid is None:
            raise click.ClickException(f"box '{self.name}' is not up; start it with: box up")
        return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def check_host() -> None:
    """Raise an error unless this process is root and the host has the programs that a box needs."""
    if os.geteuid() != 0:
        raise click.ClickException("a box needs root: it makes namespaces and mounts")
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    missing = [program for program in PROGRAMS if shutil.which(program, path=path) is None]
    if missing:
        raise click.ClickException(
            f"{', '.join(missing)} not found: apt install util-linux iproute2 openssh-server rsync curl openssl"
        )


def _until(condition: Callable[[], bool], error: str) -> None:
    until_s = time.monotonic() + WITHIN_S
    while not condition():
        if time.monotonic() > until_s:
            raise click.ClickException(error)
        time.sleep(0.2)
