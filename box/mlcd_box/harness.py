"""The test harness of a scenario: its own box, MLCD in it, and the comparison of ledger and cloud bill at the end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mlcd_box.bill import S3, Item
from mlcd_box.boxes import Box
from mlcd_box.events import Event, read_events

JOB = """
name: {name}
workdir: .
run: {run}
resources: {resources}
file_mounts: {mounts}
mlcd:
  work: {work}
  goal: cheapest
  {limit}
  search: {search}
  checkpoints: {checkpoints}
  on: skypilot:aws
  {scale}
"""
PROGRAM = """
import os, pathlib, time
import mlcd_tracker
nodes, rank = int(os.environ["SKYPILOT_NUM_NODES"]), os.environ["SKYPILOT_NODE_RANK"]
folder = os.environ.get("MLCD_CHECKPOINT_DIR")
saved = pathlib.Path(folder, "done") if folder else None
done = float(saved.read_text()) if saved is not None and saved.exists() else 0.0
total, step = float(os.environ["TOTAL"]), 50.0 * nodes**0.9
while done < total:
    time.sleep(0.5)
    done += step
    if rank == "0":
        mlcd_tracker.step(step)
        leaving = mlcd_tracker.leaving()
        if saved is not None and (leaving or int(done / 1000) > int((done - step) / 1000)):
            saved.parent.mkdir(parents=True, exist_ok=True)
            whole = saved.with_name("done.new")
            whole.write_text(str(done))
            whole.replace(saved)
            mlcd_tracker.saved()
        if leaving:
            break
    while os.environ.get("HANGS") and done > total / 2:
        time.sleep(0.5)
        mlcd_tracker.step(0.0)
"""
"""A job of 100 samples a second and node that uses no CPU. With HANGS it stops after half of its work, but goes on
reporting that it makes no progress.
"""
GONE_WITHIN_S = 15 * 60.0


@dataclass
class Harness:
    """A scenario's box and folder. `notes`: texts that the scenario adds to its row."""

    box: Box
    folder: Path
    notes: list[str] = field(default_factory=list)
    own_functions: set[str] = field(default_factory=set)
    """Functions that the scenario itself has called, which are not in MLCD's ledger."""
    _processes: list[subprocess.Popen[str]] = field(default_factory=list)

    def job(
        self,
        name: str = "play",
        *,
        work: int = 4_000,
        nodes: str = "1..1",
        instances: str = "[m5.large]",
        limit: str = "budget: $2",
        spot: bool | str = False,
        zones: str = "",
        hangs: bool = False,
        bucket: str | None = None,
        mount: str = "MOUNT",
        method: str = "net-value",
        scale: str = "",
    ) -> Path:
        """Write a job file, and a program that sleeps and reports; return the path of the job file."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "job.py").write_text(PROGRAM)
        path, where = self.folder / f"{name}.yaml", f", zones: {zones}" if zones else ""
        path.write_text(
            JOB.format(
                name=name,
                run=f"TOTAL={work} {'HANGS=1 ' if hangs else ''}python3 job.py",
                resources=f"{{infra: aws/us-east-1, disk_size: 30, use_spot: {str(spot).lower()}}}",
                mounts=f"{{/checkpoints: {{name: {bucket}, mode: {mount}}}}}" if bucket else "{}",
                work=work,
                limit=limit,
                search=f"{{instances: {instances}, nodes: {nodes}, method: {method}{where}}}",
                checkpoints=str(bucket is not None).lower(),
                scale=f"scale: {scale}" if scale else "",
            )
        )
        return path

    def model(self) -> Path:
        """The smallest of MLCD's own models, to serve it."""
        zoo = self.folder / "zoo"
        assert self.mlcd("learn", "--zoo", zoo) == 0, self.output()
        return min(zoo.glob("*.onnx"), key=lambda path: path.stat().st_size)

    def aws(self, *arguments: object) -> Any:
        """The output of an `aws` command, parsed from JSON."""
        command = self.box.command(["aws", *map(str, arguments), "--output", "json"])
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout or "null")

    def start(self, *arguments: object) -> subprocess.Popen[str]:
        """Start `mlcd` in the box; its output goes to a file."""
        number = len(self._processes) + 1
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / f"mlcd-{number}.log").open("w") as log:
            process = subprocess.Popen(
                self.box.command(["mlcd", *map(str, arguments)]),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
        self._processes.append(process)
        return process

    def mlcd(self, *arguments: object) -> int:
        """Run `mlcd` in the box and return its exit code."""
        return self.start(*arguments).wait()

    def output(self) -> str:
        """The output of the `mlcd` that was started last."""
        return (self.folder / f"mlcd-{len(self._processes)}.log").read_text()

    def signal(self, process: subprocess.Popen[str], number: signal.Signals) -> None:
        """Send a signal to `mlcd` itself, which is a child of the process that entered the box."""
        for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
            os.kill(int(child), number)

    def document(self, *arguments: object) -> Any:
        """The output of `mlcd ... -o json`, parsed."""
        command = self.box.command(["mlcd", *map(str, arguments), "-o", "json"])
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    def events(self, *kinds: str) -> list[Event]:
        """The cloud's events of these kinds so far."""
        return [event for event in read_events(self.box.folder / "events.jsonl") if event["kind"] in kinds]

    def until(
        self,
        condition: Callable[[], object],
        within_s: float = 1_800.0,
        during: subprocess.Popen[str] | None = None,
    ) -> None:
        """Wait for a condition. Fails if this process (`during`) ends before it is true."""
        until_s = time.monotonic() + within_s
        while not condition():
            assert during is None or during.poll() is None or condition(), self.output()
            if time.monotonic() > until_s:
                raise TimeoutError(f"the condition was not true within {within_s:.0f} s")
            time.sleep(0.5)

    def running(self) -> list[Event]:
        """The events of the machines that run now, the newest last."""
        ended = {event["id"] for event in self.events("stopped", "terminated")}
        return [event for event in self.events("running") if event["id"] not in ended]

    def running_on(self, market: str) -> list[Event]:
        """The machines that run now in this market: `spot` or `on-demand`."""
        of_market = {event["id"] for event in self.events("started") if event["market"] == market}
        return [event for event in self.running() if event["id"] in of_market]

    def most_clusters_at_once(self) -> int:
        """The maximum number of clusters that had machines at the same time."""
        cluster = {event["id"]: event["tags"]["mlcd"] for event in self.events("started")}
        up: set[str] = set()
        most = 0
        for event in self.events("running", "stopped", "terminated"):
            name = cluster[event["id"]]
            up = up | {name} if event["kind"] == "running" else up - {name}
            most = max(most, len(up))
        return most

    def interrupt_spot(self, machine: str) -> None:
        """Preempt a spot machine, with a short notice to keep the scenario short."""
        self.box.ask(f"interrupt?machine={machine}&notice_s=10", "POST")

    def lose_worker(self) -> None:
        """Let the newest machine fail. SkyPilot's head node is the first one, so this is a worker."""
        self.box.ask(f"lose?machine={self.running()[-1]['id']}", "POST")

    def reports(self) -> int:
        """The number of progress reports of all jobs so far, from MLCD's logs."""
        logs = (self.box.home / ".mlcd" / "launches").glob("*/0.log")
        return sum(log.read_text(errors="replace").count("@mlcd t=") for log in logs)

    def saved_in(self, bucket: str) -> bool:
        """Whether the job has saved something in this bucket."""
        return self.work_saved_in(bucket) > 0

    def work_saved_in(self, bucket: str) -> float:
        """The samples in the job's checkpoint in this bucket."""
        listed = self.aws("s3api", "list-objects-v2", "--bucket", bucket) or {}
        keys = [each["Key"] for each in listed.get("Contents", []) if each["Key"].endswith("/done")]
        read = [self.box.command(["aws", "s3", "cp", f"s3://{bucket}/{key}", "-"]) for key in keys]
        return max((float(subprocess.check_output(each, text=True) or 0.0) for each in read), default=0.0)

    def entries(self, run: str, kind: str) -> list[Any]:
        """The ledger entries of this kind of a run."""
        return [entry for entry in self.document("ledger", run)["entries"] if entry["kind"] == kind]

    def has_begun(self, run: str) -> bool:
        """Whether this run is in the ledger."""
        return subprocess.run(self.box.command(["mlcd", "show", run]), capture_output=True, check=False).returncode == 0

    def finish(self, run: str) -> None:
        """Resume a run, if it has begun, until it ends."""
        if self.has_begun(run):
            for _ in range(3):
                if self.mlcd("resume", run, "-y") == 0:
                    return
            raise AssertionError(self.output())

    def runs(self) -> list[str]:
        """The runs in the ledger."""
        return [run["run"] for run in self.document("runs")["runs"]]

    def left(self) -> int:
        """The number of machines and volumes that still exist, and of function calls that run or wait."""
        state = self.box.ask("state")
        machines = [each for each in state["machines"] if each["state"] != "terminated"]
        return len(machines) + len(state["volumes"]) + int(state["calls"])

    def wait_until_nothing_is_left(self) -> float:
        """Wait until the cloud is empty; return how long that took."""
        began_s = time.monotonic()
        self.until(lambda: self.left() == 0, GONE_WITHIN_S)
        return time.monotonic() - began_s


@dataclass(frozen=True)
class Outcome:
    """MLCD's ledger compared with the cloud's bill."""

    launches: int
    ledger_usd: float
    cloud_usd: float
    minutes_usd: float
    """The price of a minute of each machine that ran."""

    def verdict(self) -> str:
        """What is wrong; empty if the ledger covers the bill and is not far above it."""
        if self.ledger_usd < self.cloud_usd - 1e-9:
            return "the ledger is below the bill"
        most_usd = max(1.05 * self.cloud_usd, self.cloud_usd + self.minutes_usd)
        if self.ledger_usd > most_usd + 1e-9:
            return "the ledger is far above the bill"
        return ""


def outcome(harness: Harness) -> Outcome:
    """The comparison over all runs in the box."""
    entries = [entry for run in harness.runs() for entry in harness.document("ledger", run)["entries"]]
    paid = [entry["measurement"]["usd"] for entry in entries if entry["kind"] == "settled"]
    items: list[Item] = harness.box.bill()
    # For jobs on machines, the ledger does not contain S3 requests: SkyPilot and mounted buckets make them.
    left_out = harness.own_functions if harness.events("called") else {*harness.own_functions, S3}
    machines = harness.events("started")
    return Outcome(
        launches=len([entry for entry in entries if entry["kind"] == "reserved"]),
        ledger_usd=sum(paid),
        cloud_usd=sum(item.usd for item in items if item.id not in left_out),
        minutes_usd=sum(machine["usd_per_hour"] for machine in machines) / 60,
    )
