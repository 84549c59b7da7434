"""Where a scenario plays: a box of its own, MLCD in it, and what is held against each other at the end."""

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
"""100 samples a second on a node, without using its CPU. One that hangs says so on and on, after half of its work."""
GONE_WITHIN_S = 15 * 60.0


@dataclass
class Stage:
    """A scenario's box and folder. `notes`: what the scenario wants to be told in its row."""

    box: Box
    folder: Path
    notes: list[str] = field(default_factory=list)
    besides: set[str] = field(default_factory=set)
    """Functions that the scenario has called itself: they are none of MLCD's."""
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
        """A job of two parts: its file, and a program that sleeps and reports."""
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
        """A small model to serve: the smallest of MLCD's own."""
        zoo = self.folder / "zoo"
        assert self.mlcd("learn", "--zoo", zoo) == 0, self.said()
        return min(zoo.glob("*.onnx"), key=lambda path: path.stat().st_size)

    def aws(self, *arguments: object) -> Any:
        """What the `aws` command answers."""
        command = self.box.command(["aws", *map(str, arguments), "--output", "json"])
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout or "null")

    def start(self, *arguments: object) -> subprocess.Popen[str]:
        """Start `mlcd` in the box; its words go to a file."""
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
        """Run `mlcd` in the box to its end; its exit code."""
        return self.start(*arguments).wait()

    def said(self) -> str:
        """What the newest `mlcd` has said."""
        return (self.folder / f"mlcd-{len(self._processes)}.log").read_text()

    def signal(self, process: subprocess.Popen[str], number: signal.Signals) -> None:
        """Send a signal to `mlcd` itself: the process that entered the box is but its parent."""
        for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
            os.kill(int(child), number)

    def document(self, *arguments: object) -> Any:
        """What `mlcd ... -o json` prints."""
        command = self.box.command(["mlcd", *map(str, arguments), "-o", "json"])
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    def events(self, *kinds: str) -> list[Event]:
        """What has happened in the cloud so far."""
        return [event for event in read_events(self.box.folder / "events.jsonl") if event["kind"] in kinds]

    def until(
        self,
        happened: Callable[[], object],
        within_s: float = 1_800.0,
        during: subprocess.Popen[str] | None = None,
    ) -> None:
        """Wait for it. `during`: it cannot happen any more once this process has ended."""
        until_s = time.monotonic() + within_s
        while not happened():
            assert during is None or during.poll() is None or happened(), self.said()
            if time.monotonic() > until_s:
                raise TimeoutError(f"it did not happen in {within_s:.0f} s")
            time.sleep(0.5)

    def running(self) -> list[Event]:
        """The machines that run now, the newest last."""
        ended = {event["id"] for event in self.events("stopped", "terminated")}
        return [event for event in self.events("running") if event["id"] not in ended]

    def running_on(self, market: str) -> list[Event]:
        """The machines that run now on the spot market, or on demand."""
        of_market = {event["id"] for event in self.events("started") if event["market"] == market}
        return [event for event in self.running() if event["id"] in of_market]

    def most_clusters_at_once(self) -> int:
        """How many clusters had machines at the same time."""
        cluster = {event["id"]: event["tags"]["mlcd"] for event in self.events("started")}
        up: set[str] = set()
        most = 0
        for event in self.events("running", "stopped", "terminated"):
            name = cluster[event["id"]]
            up = up | {name} if event["kind"] == "running" else up - {name}
            most = max(most, len(up))
        return most

    def take_back(self, machine: str) -> None:
        """Take a spot machine back; the notice is short, so that the scenario is, too."""
        self.box.ask(f"interrupt?machine={machine}&notice_s=10", "POST")

    def lose_worker(self) -> None:
        """Pull the plug of the machine that came last: SkyPilot's head is the first."""
        self.box.ask(f"lose?machine={self.running()[-1]['id']}", "POST")

    def reports(self) -> int:
        """Progress that any job has reported so far, by the logs that MLCD keeps."""
        logs = (self.box.home / ".mlcd" / "launches").glob("*/0.log")
        return sum(log.read_text(errors="replace").count("@mlcd t=") for log in logs)

    def saved_in(self, bucket: str) -> bool:
        """Whether the job has saved something there."""
        return self.work_saved_in(bucket) > 0

    def work_saved_in(self, bucket: str) -> float:
        """The samples that the job's checkpoint holds, as the bucket has it."""
        listed = self.aws("s3api", "list-objects-v2", "--bucket", bucket) or {}
        keys = [each["Key"] for each in listed.get("Contents", []) if each["Key"].endswith("/done")]
        read = [self.box.command(["aws", "s3", "cp", f"s3://{bucket}/{key}", "-"]) for key in keys]
        return max((float(subprocess.check_output(each, text=True) or 0.0) for each in read), default=0.0)

    def entries(self, run: str, kind: str) -> list[Any]:
        """What the ledger has of a run."""
        return [entry for entry in self.document("ledger", run)["entries"] if entry["kind"] == kind]

    def has_begun(self, run: str) -> bool:
        """Whether the ledger knows this run."""
        return subprocess.run(self.box.command(["mlcd", "show", run]), capture_output=True, check=False).returncode == 0

    def finish(self, run: str) -> None:
        """Resume a run, if it has begun, until it says how it ended."""
        if self.has_begun(run):
            for _ in range(3):
                if self.mlcd("resume", run, "-y") == 0:
                    return
            raise AssertionError(self.said())

    def runs(self) -> list[str]:
        """The runs in the ledger."""
        return [run["run"] for run in self.document("runs")["runs"]]

    def left(self) -> int:
        """Machines and volumes that are still there, and calls of functions that run or wait."""
        state = self.box.ask("state")
        machines = [each for each in state["machines"] if each["state"] != "terminated"]
        return len(machines) + len(state["volumes"]) + int(state["calls"])

    def wait_until_nothing_is_left(self) -> float:
        """How long it took, from now."""
        began_s = time.monotonic()
        self.until(lambda: self.left() == 0, GONE_WITHIN_S)
        return time.monotonic() - began_s


@dataclass(frozen=True)
class Outcome:
    """What is held against each other: MLCD's books and the cloud's."""

    launches: int
    ledger_usd: float
    cloud_usd: float
    minutes_usd: float
    """A minute of each machine that ran."""

    def verdict(self) -> str:
        """Empty where the books hold the bill, and not much more."""
        if self.ledger_usd < self.cloud_usd - 1e-9:
            return "the ledger is below the bill"
        most_usd = max(1.05 * self.cloud_usd, self.cloud_usd + self.minutes_usd)
        if self.ledger_usd > most_usd + 1e-9:
            return "the ledger is far above the bill"
        return ""


def outcome(stage: Stage) -> Outcome:
    """Of all runs that the box has seen."""
    entries = [entry for run in stage.runs() for entry in stage.document("ledger", run)["entries"]]
    paid = [entry["measurement"]["usd"] for entry in entries if entry["kind"] == "settled"]
    items: list[Item] = stage.box.bill()
    # On machines the ledger does not have requests to S3: those are SkyPilot's own, and of what the job mounts.
    besides = stage.besides if stage.events("called") else {*stage.besides, S3}
    machines = stage.events("started")
    return Outcome(
        launches=len([entry for entry in entries if entry["kind"] == "reserved"]),
        ledger_usd=sum(paid),
        cloud_usd=sum(item.usd for item in items if item.id not in besides),
        minutes_usd=sum(machine["usd_per_hour"] for machine in machines) / 60,
    )
