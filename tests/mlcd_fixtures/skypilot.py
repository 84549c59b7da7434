"""A cloud behind the seam that is only imagined: machines that come up, jobs that report, and all that goes wrong.

For tests, and to try the whole path without an account. It keeps what a cloud keeps: a cluster goes on costing until
it is torn down or goes by itself, whoever listens, and its bill is the cloud's own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatch
from math import inf
from typing import Any

from mlcd.clouds.skypilot.launch_thread import NeverReached
from mlcd.clouds.skypilot.sdk import no_access
from mlcd.core.clock import Clock, VirtualClock
from mlcd.core.errors import BackendError, NoCapacity

REPORTS_EVERY_S = 5.0
BEATS_EVERY_S = 10.0
TOLD_AFTER_S = 20.0
"""How long it takes until a job hears that it is to leave."""


NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


class Noon(VirtualClock):
    """A clock whose time of day goes with it too. Threads that follow a job get their turn while it waits."""

    def now(self) -> datetime:
        """Noon, and what has passed since."""
        return NOON + timedelta(seconds=self.seconds)

    def wait(self, seconds: float) -> None:
        """Move on."""
        for thread in threading.enumerate():
            if thread.daemon and thread is not threading.current_thread():
                thread.join(0.001)
        super().wait(seconds)


@dataclass(frozen=True)
class Fate:
    """What is to become of a launch; times are counted from when its machines are up."""

    startup_s: float = 200.0
    no_capacity: bool = False
    no_access: bool = False
    never_reached: bool = False
    """The machines come, and nobody can log in."""
    preempted_after_s: float = inf
    fails_after_s: float = inf
    exit_status: int = 1
    says: str = ""
    silent_after_s: float = inf
    worker_lost_after_s: float = inf
    """The last node; the first one goes on as if nothing had happened."""
    worker_mute_after_s: float = inf
    """The last node says no more that it is there, though it is."""
    unwell: tuple[float, float] = (inf, inf)
    """From when to when SkyPilot takes the cluster for not up, though it is."""
    logs_after_s: float = 0.0
    """Until then nothing is heard; then all of it at once."""
    node_clock_s: float = 0.0
    """How far the nodes' clocks are ahead of this machine's."""
    shuts_down: bool = False
    """Nothing but the last safety net works: when its time is over the machines are stopped, and stay."""
    workers_end: bool = True
    """With the first node; False: they would go on, as parameter servers do."""
    prints: str = ""
    """Lines like this instead of the tracker's."""
    saves_as_it_leaves: bool = False
    """And never before."""
    uploads_s: float = 0.0
    """How long after its end the bucket has everything."""
    stays: bool = False
    """Though it is asked to leave."""


@dataclass
class Cluster:
    """Machines with a job: when they were asked for, and when they were torn down."""

    name: str
    task: Mapping[str, Any]
    fate: Fate
    asked_s: float
    samples_per_s: float
    until_s: float
    downed_s: float = inf
    leaves_s: float = inf
    """When the job ends because it was asked to."""

    @property
    def never(self) -> bool:
        """Whether no machine ever comes of it."""
        return self.fate.no_capacity or self.fate.no_access

    @property
    def up_s(self) -> float:
        """When the machines are up."""
        return self.asked_s + self.fate.startup_s

    @property
    def job_ends_s(self) -> float:
        """By itself, or when its time is over."""
        works_s = float(self.task["envs"]["MLCD_SAMPLES"]) / self.samples_per_s
        by_itself_s = self.up_s + min(works_s, self.fate.fails_after_s)
        return min(by_itself_s, max(self.until_s, self.up_s), self.leaves_s)

    @property
    def gone_s(self) -> float:
        """When nothing of it is left: torn down, taken back, or idle and gone by itself."""
        autostop = self.task["resources"].get("autostop") or {}
        idle_s = 60.0 * autostop["idle_minutes"] if autostop.get("down") and not self.fate.shuts_down else inf
        return min(self.downed_s, self.up_s + self.fate.preempted_after_s, self.job_ends_s + idle_s)

    def is_unwell(self, now_s: float) -> bool:
        """Whether it is taken for not up now."""
        begin_s, end_s = self.fate.unwell
        return begin_s <= now_s - self.up_s < end_s

    @property
    def bill_s(self) -> float:
        """How long it was up; asking for what cannot be had costs nothing."""
        return 0.0 if self.never else max(0.0, self.gone_s - self.asked_s)


@dataclass
class InMemory:
    """SkyPilot, imagined. `fates` go to launches in their order, the others are lucky."""

    clock: Clock
    rate: Callable[[Mapping[str, Any]], float]
    fates: list[Fate] = field(default_factory=list)
    down_s: float = 20.0
    failing_downs: int = 0
    idle_downs: int = 0
    """That say they are done and have done nothing."""
    notices_late: bool = False
    """That clusters have gone by themselves: only when it is asked for the bill."""
    before_launch: Callable[[], None] = lambda: None
    after_launch: Callable[[], None] = lambda: None
    tells_ends: bool = True
    """Whether AWS says when machines have ended; it does not always."""
    lost_database: bool = False
    """SkyPilot does not know any cluster any more; the cloud does."""
    says: Callable[[float, float], str] | None = None
    """What a job says so long after it began, with so many samples done, in place of the tracker's line."""
    clusters: dict[str, Cluster] = field(default_factory=dict)
    asked_s: list[float] = field(default_factory=list)
    """When it was asked for a cluster while its job ran."""

    def launch(self, name: str, task: Mapping[str, Any], first_boot: Sequence[str] = ()) -> InMemoryLaunch:
        """Order a cluster of this name with the job on it."""
        self.before_launch()
        if name in self.clusters:
            raise AssertionError(f"{name} is launched twice")
        now_s, fate = self.clock.elapsed_s(), self.fates.pop(0) if self.fates else Fate()
        until = task["envs"].get("MLCD_UNTIL")
        until_s = inf if until is None else now_s + float(until) - self.clock.now().timestamp()
        self.clusters[name] = Cluster(name, task, fate, now_s, self.rate(task), until_s)
        self.after_launch()
        return InMemoryLaunch(self.clusters[name], self.clock, self.says)

    def follow(self, name: str) -> InMemoryLaunch:
        """Follow the job of a cluster that is up, from its beginning."""
        return InMemoryLaunch(self.clusters[name], self.clock, self.says)

    def is_up(self, name: str) -> bool | None:
        """Whether a cluster is up; None if there is none."""
        cluster, now_s = self.clusters.get(name), self.clock.elapsed_s()
        if cluster is None or self.lost_database or cluster.never or now_s >= cluster.gone_s:
            return None
        if now_s >= cluster.up_s + cluster.fate.worker_lost_after_s:
            return False
        if cluster.fate.shuts_down and now_s >= cluster.job_ends_s:
            return False
        return cluster.up_s <= now_s and not cluster.is_unwell(now_s)

    def request_status(self, name: str) -> InMemoryAnswer:
        """The same; the answer comes at once."""
        self.asked_s.append(self.clock.elapsed_s())
        return InMemoryAnswer(self.is_up(name))

    def request_leave(self, name: str, nodes: int) -> InMemoryAnswer:
        """Ask the job to save and to leave; it hears of it a little later."""
        cluster = self.clusters[name]
        if cluster.task["num_nodes"] != nodes:
            raise AssertionError("SkyPilot would choose the node that is told")
        cluster.leaves_s = inf if cluster.fate.stays else self.clock.elapsed_s() + TOLD_AFTER_S
        return InMemoryAnswer(True)

    def down(self, name: str) -> None:
        """Tear it down; takes its time, and may fail."""
        if self.failing_downs:
            self.failing_downs -= 1
            raise BackendError("the cloud did not answer")
        if self.idle_downs:
            self.idle_downs -= 1
        elif self.is_up(name) is not None:
            self.clock.wait(self.down_s)
            self.clusters[name].downed_s = self.clock.elapsed_s()

    def names(self) -> set[str]:
        """Of all clusters that exist."""
        return {name for name in self.clusters if self.is_up(name) is not None}

    def billed_usd(self) -> dict[str, float]:
        """A cent a second, of every cluster that there was."""
        return {cluster.name: 0.01 * cluster.bill_s for cluster in self.clusters.values() if not cluster.never}

    def billed_s(self, name: str) -> float | None:
        """How long a cluster was up that is gone now; None if there never was one."""
        cluster = self.clusters.get(name)
        if cluster is None or self.lost_database or cluster.fate.no_access:
            return None
        if cluster.fate.no_capacity or self.notices_late:  # SkyPilot records a cluster before it orders machines
            return self.clock.elapsed_s() - cluster.asked_s
        return cluster.bill_s

    def rents_with_credentials_here(self) -> bool:
        """Whether the cloud can be asked from here."""
        return True

    def ec2(self, region: str) -> InMemoryEc2:
        """The same machines, as AWS itself shows them."""
        return InMemoryEc2(self, region)


@dataclass
class InMemoryEc2:
    """EC2 of a region, with a machine for each node of the clusters."""

    sky: InMemory
    region: str

    def describe_regions(self) -> dict[str, Any]:
        """The regions of the account."""
        return {"Regions": [{"RegionName": "us-east-1"}, {"RegionName": "us-west-2"}]}

    def get_paginator(self, call: str) -> InMemoryEc2:
        """Of `describe_instances`, the only one that is used."""
        assert call == "describe_instances"
        return self

    def paginate(self, Filters: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Pages of machines whose tag matches."""
        [by_tag] = Filters
        tag, [pattern] = by_tag["Name"].removeprefix("tag:"), by_tag["Values"]
        found = [
            self._machine(cluster, node)
            for cluster in self.sky.clusters.values()
            for node in range(cluster.task["num_nodes"])
            if not cluster.never and self._is_here(cluster)
            if fnmatch(cluster.task["resources"]["labels"].get(tag, ""), pattern)
        ]
        return [{"Reservations": [{"Instances": [machine]}]} for machine in found]

    def terminate_instances(self, InstanceIds: list[str]) -> None:
        """End machines at once."""
        for cluster in self.sky.clusters.values():
            if any(f"i-{cluster.name}-{node}" in InstanceIds for node in range(cluster.task["num_nodes"])):
                cluster.downed_s = min(cluster.downed_s, self.sky.clock.elapsed_s())

    def _at(self, elapsed_s: float) -> datetime:
        return self.sky.clock.now() + timedelta(seconds=elapsed_s - self.sky.clock.elapsed_s())

    def _is_here(self, cluster: Cluster) -> bool:
        return str(cluster.task["resources"]["infra"]).endswith(f"/{self.region}")

    def _machine(self, cluster: Cluster, node: int) -> dict[str, Any]:
        gone = self.sky.clock.elapsed_s() >= cluster.gone_s
        ended = f"User initiated ({self._at(cluster.gone_s):%Y-%m-%d %H:%M:%S} GMT)" if gone else ""
        return {
            "InstanceId": f"i-{cluster.name}-{node}",
            "State": {"Name": "terminated" if gone else "running"},
            "LaunchTime": self._at(cluster.asked_s).replace(microsecond=0),
            "StateTransitionReason": ended if self.sky.tells_ends else "",
            "Tags": [{"Key": key, "Value": value} for key, value in cluster.task["resources"]["labels"].items()],
        }


@dataclass
class InMemoryAnswer:
    """An answer that has come already."""

    value: bool | BackendError | None

    def is_ready(self) -> bool:
        """Whether the answer has come."""
        return True


@dataclass
class InMemoryLaunch:
    """A launch on the imagined cloud: its output is a matter of what time it is."""

    cluster: Cluster
    clock: Clock
    says: Callable[[float, float], str] | None = None
    _told: int = 0
    _beats: int = 0
    _ended: bool = False
    _status: int | None = None

    def __post_init__(self) -> None:
        self._zero = self.clock.now().timestamp() - self.clock.elapsed_s() + self.cluster.fate.node_clock_s

    def submitted(self) -> bool:
        """Whether the machines are up and have the job."""
        return not self.cluster.never and self.clock.elapsed_s() >= self.cluster.up_s

    def read(self) -> str:
        """What was written since it was last asked, each line as SkyPilot shows it."""
        cluster, fate = self.cluster, self.cluster.fate
        now_s = self.clock.elapsed_s()
        last_s = min(now_s, cluster.job_ends_s, cluster.gone_s, cluster.up_s + fate.silent_after_s)
        if not self.submitted() or now_s < cluster.up_s + fate.logs_after_s:
            return ""
        lines = []
        while (at_s := self._told * REPORTS_EVERY_S) <= last_s - cluster.up_s + 1e-6:
            lines += [*self._alive(at_s), self._report(at_s)]
            self._told += 1
        if not self._ended and cluster.job_ends_s <= min(now_s, cluster.gone_s) and not lines:
            self._ended = True
            lines += self._last_lines(cluster.job_ends_s - cluster.up_s)
        return "".join(f"\x1b[36m(head, rank=0, pid=2317)\x1b[0m {line}\n" for line in lines)

    def _last_lines(self, done_s: float) -> list[str]:
        fate, over = self.cluster.fate, self.cluster.job_ends_s >= self.cluster.until_s
        self._status = status = 124 if over else fate.exit_status if done_s >= fate.fails_after_s else 0
        lines = [*([] if status else [self._report(done_s)]), *([fate.says] if status and fate.says else [])]
        at, nodes = self._at(done_s), self.cluster.task["num_nodes"]
        if fate.workers_end and not status:
            there = nodes - (done_s >= fate.worker_lost_after_s)
            lines += [f"@mlcd exit=0 node={node} at={at:.0f}" for node in range(1, there)]
        return [*lines, f"@mlcd exit={status} node=0 at={at:.0f}"]

    def _alive(self, until_s: float) -> list[str]:
        """What the other nodes have said since the last call."""
        fate, nodes, lines = self.cluster.fate, self.cluster.task["num_nodes"], []
        while (at_s := self._beats * BEATS_EVERY_S) <= until_s + 1e-6:
            there = nodes - (at_s >= min(fate.worker_lost_after_s, fate.worker_mute_after_s))
            lines += [f"@mlcd alive node={node} at={self._at(at_s):.0f}" for node in range(1, there)]
            self._beats += 1
        return lines

    def _at(self, at_s: float) -> float:
        """The time on the nodes, so long after they are up."""
        return self._zero + self.cluster.up_s + at_s

    def _report(self, at_s: float) -> str:
        whole = float(self.cluster.task["envs"]["MLCD_SAMPLES"])
        done = min(at_s * self.cluster.samples_per_s, whole)
        has_left = self.cluster.up_s + at_s >= self.cluster.leaves_s - 1e-6
        saves = has_left or done >= whole - 1e-3 or not self.cluster.fate.saves_as_it_leaves
        saved = done if "MLCD_CHECKPOINT_DIR" in self.cluster.task["envs"] and saves else 0.0
        said = self.says(at_s, done) if self.says is not None else self.cluster.fate.prints.format(done)
        report = said or f"@mlcd t={at_s:.4f} samples={done:.12g} saved={saved:.12g}"
        return f"{report} [mlcd {self._at(at_s):.3f}]"

    def end(self) -> int | BackendError | None:
        """How it ended, None while it goes on. What was taken back says nothing for long."""
        if self.cluster.fate.no_access:
            return no_access("the credentials have expired")
        if self.cluster.fate.never_reached and self.submitted():
            return NeverReached("the machines could not be reached: timeout")
        if self.cluster.fate.no_capacity:
            return NoCapacity("no machines available: nothing left of this type")
        uploaded_s = self.cluster.job_ends_s + self.cluster.fate.uploads_s
        return self._status if self.clock.elapsed_s() >= uploaded_s else None

    def stop(self) -> None:
        """Nothing is under way here that would have to be waited for."""
