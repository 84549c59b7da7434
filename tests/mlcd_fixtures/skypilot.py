"""A fake of SkyPilot and its cloud, in memory: machines come up, jobs report, and everything can go wrong.

It is used in place of `Sdk`. Like a real cloud it bills a cluster until it is torn down or ends by itself, whether or
not anybody follows it.
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

REPORT_EVERY_S = 5.0
HEARTBEAT_EVERY_S = 10.0
LEAVE_AFTER_S = 20.0
"""How long it takes until a job gets the request to exit."""


RECORDER = "usage"
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


class NoonClock(VirtualClock):
    """A virtual clock with a time of day, from noon on. Other threads get a turn while it waits."""

    def now(self) -> datetime:
        """Noon plus the elapsed time."""
        return NOON + timedelta(seconds=self.seconds)

    def wait(self, seconds: float) -> None:
        """Advance the clock."""
        for thread in threading.enumerate():
            # The recorder of usage runs as long as its launch: waiting for it would take the time of each wait.
            if thread.daemon and thread is not threading.current_thread() and thread.name != RECORDER:
                thread.join(0.001)
        super().wait(seconds)


@dataclass(frozen=True)
class Scenario:
    """What happens to a launch. Times count from when its machines are up."""

    startup_s: float = 200.0
    no_capacity: bool = False
    no_access: bool = False
    never_reached: bool = False
    """The machines come up, but nobody can log in."""
    preempted_after_s: float = inf
    fails_after_s: float = inf
    exit_status: int = 1
    error_output: str = ""
    """The last line of a job that fails."""
    silent_after_s: float = inf
    worker_lost_after_s: float = inf
    """When the last node is lost; the first one goes on as if nothing had happened."""
    worker_silent_after_s: float = inf
    """When the last node stops sending heartbeats, though it is up."""
    reported_down: tuple[float, float] = (inf, inf)
    """From when to when SkyPilot reports the cluster as not up, though it is."""
    logs_after_s: float = 0.0
    """No output arrives until then; then all of it at once."""
    node_clock_s: float = 0.0
    """How far the nodes' clocks are ahead of this machine's."""
    only_shutdown_works: bool = False
    """Autostop does not work: at the end of its lifetime the machines are stopped, not terminated."""
    workers_end: bool = True
    """The other nodes' jobs end with the first node's. False: they would go on, like parameter servers."""
    report: str = ""
    """The format of progress lines, instead of the tracker's."""
    saves_only_on_leave: bool = False
    """The job saves only when it is asked to exit."""
    uploads_s: float = 0.0
    """How long after the job's end the bucket is fully uploaded."""
    ignores_leave: bool = False
    """The job ignores the request to exit."""


@dataclass
class Cluster:
    """Machines with a job. Times are those of the clock."""

    name: str
    task: Mapping[str, Any]
    scenario: Scenario
    ordered_s: float
    samples_per_s: float
    until_s: float
    torn_down_s: float = inf
    leaves_s: float = inf
    """When the job exits because it was asked to."""

    @property
    def has_no_machines(self) -> bool:
        """Whether no machine ever comes up."""
        return self.scenario.no_capacity or self.scenario.no_access

    @property
    def up_s(self) -> float:
        """When the machines are up."""
        return self.ordered_s + self.scenario.startup_s

    @property
    def job_ends_s(self) -> float:
        """When the job ends: by itself, at its time limit, or on request."""
        works_s = float(self.task["envs"]["MLCD_SAMPLES"]) / self.samples_per_s
        by_itself_s = self.up_s + min(works_s, self.scenario.fails_after_s)
        return min(by_itself_s, max(self.until_s, self.up_s), self.leaves_s)

    @property
    def gone_s(self) -> float:
        """When the cluster is gone: torn down, preempted, or after autostop."""
        autostop = self.task["resources"].get("autostop") or {}
        idle_s = (
            60.0 * autostop["idle_minutes"] if autostop.get("down") and not self.scenario.only_shutdown_works else inf
        )
        return min(self.torn_down_s, self.up_s + self.scenario.preempted_after_s, self.job_ends_s + idle_s)

    def is_reported_down(self, now_s: float) -> bool:
        """Whether SkyPilot wrongly reports it as not up now."""
        begin_s, end_s = self.scenario.reported_down
        return begin_s <= now_s - self.up_s < end_s

    @property
    def bill_s(self) -> float:
        """The billed seconds; an order without machines costs nothing."""
        return 0.0 if self.has_no_machines else max(0.0, self.gone_s - self.ordered_s)


@dataclass
class FakeSkyPilot:
    """A fake of `Sdk`. Launches get the `scenarios` in order; further launches succeed."""

    clock: Clock
    rate: Callable[[Mapping[str, Any]], float]
    scenarios: list[Scenario] = field(default_factory=list)
    down_s: float = 20.0
    failing_downs: int = 0
    ineffective_downs: int = 0
    """Number of teardowns that report success and do nothing."""
    notices_ends_late: bool = False
    """SkyPilot notices that a cluster has ended by itself only when asked for the bill."""
    before_launch: Callable[[], None] = lambda: None
    after_launch: Callable[[], None] = lambda: None
    reports_ends: bool = True
    """Whether AWS says when machines have ended; it does not always."""
    lost_database: bool = False
    """SkyPilot does not know any cluster any more; AWS still does."""
    job_output: Callable[[float, float], str] | None = None
    """Output of a job at a time and number of samples, instead of the tracker's line."""
    clusters: dict[str, Cluster] = field(default_factory=dict)
    status_requests_s: list[float] = field(default_factory=list)
    """When the status was requested."""

    def load(self) -> None:
        """Nothing has to be imported."""

    def launch(self, name: str, task: Mapping[str, Any], first_boot: Sequence[str] = ()) -> FakeLaunch:
        """Order a cluster of this name with the job on it."""
        self.before_launch()
        if name in self.clusters:
            raise AssertionError(f"{name} is launched twice")
        now_s, scenario = self.clock.elapsed_s(), self.scenarios.pop(0) if self.scenarios else Scenario()
        until = task["envs"].get("MLCD_UNTIL")
        until_s = inf if until is None else now_s + float(until) - self.clock.now().timestamp()
        self.clusters[name] = Cluster(name, task, scenario, now_s, self.rate(task), until_s)
        self.after_launch()
        return FakeLaunch(self.clusters[name], self.clock, self.job_output)

    def follow(self, name: str) -> FakeLaunch:
        """Follow the job of a cluster that is up, from its beginning."""
        return FakeLaunch(self.clusters[name], self.clock, self.job_output)

    def is_up(self, name: str) -> bool | None:
        """Whether a cluster is up; None if there is none."""
        cluster, now_s = self.clusters.get(name), self.clock.elapsed_s()
        if cluster is None or self.lost_database or cluster.has_no_machines or now_s >= cluster.gone_s:
            return None
        if now_s >= cluster.up_s + cluster.scenario.worker_lost_after_s:
            return False
        if cluster.scenario.only_shutdown_works and now_s >= cluster.job_ends_s:
            return False
        return cluster.up_s <= now_s and not cluster.is_reported_down(now_s)

    def request_status(self, name: str) -> FakeAnswer:
        """The same, as an answer that is ready at once."""
        self.status_requests_s.append(self.clock.elapsed_s())
        return FakeAnswer(self.is_up(name))

    def request_leave(self, name: str, nodes: int) -> FakeAnswer:
        """Ask the job to save and exit; it gets the request a little later."""
        cluster = self.clusters[name]
        if cluster.task["num_nodes"] != nodes:
            raise AssertionError("the request has to go to all nodes: SkyPilot would choose some of them")
        cluster.leaves_s = inf if cluster.scenario.ignores_leave else self.clock.elapsed_s() + LEAVE_AFTER_S
        return FakeAnswer(True)

    def down(self, name: str) -> None:
        """Tear it down, which takes time and may fail."""
        if self.failing_downs:
            self.failing_downs -= 1
            raise BackendError("the cloud did not answer")
        if self.ineffective_downs:
            self.ineffective_downs -= 1
        elif self.is_up(name) is not None:
            self.clock.wait(self.down_s)
            self.clusters[name].torn_down_s = self.clock.elapsed_s()

    def names(self) -> set[str]:
        """The names of all existing clusters."""
        return {name for name in self.clusters if self.is_up(name) is not None}

    def billed_usd(self) -> dict[str, float]:
        """The cost of every cluster, at a cent a second."""
        return {
            cluster.name: 0.01 * cluster.bill_s for cluster in self.clusters.values() if not cluster.has_no_machines
        }

    def billed_s(self, name: str) -> float | None:
        """How long a cluster was up that is gone; None if it never existed."""
        cluster = self.clusters.get(name)
        if cluster is None or self.lost_database or cluster.scenario.no_access:
            return None
        if (
            cluster.scenario.no_capacity or self.notices_ends_late
        ):  # SkyPilot records a cluster before it orders machines
            return self.clock.elapsed_s() - cluster.ordered_s
        return cluster.bill_s

    def rents_with_credentials_here(self) -> bool:
        """Always: the cloud can be asked directly."""
        return True

    def ec2(self, region: str) -> FakeEc2:
        """EC2 of a region, with the same machines."""
        return FakeEc2(self, region)


@dataclass
class FakeEc2:
    """A fake of EC2 in a region, with a machine for each node of the clusters."""

    sky: FakeSkyPilot
    region: str

    def describe_regions(self) -> dict[str, Any]:
        """The regions of the account."""
        return {"Regions": [{"RegionName": "us-east-1"}, {"RegionName": "us-west-2"}]}

    def get_paginator(self, call: str) -> FakeEc2:
        """A paginator of `describe_instances`, the only call that is used."""
        assert call == "describe_instances"
        return self

    def paginate(self, Filters: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Pages of machines whose tag matches."""
        [by_tag] = Filters
        tag, [pattern] = by_tag["Name"].removeprefix("tag:"), by_tag["Values"]
        machines = [
            self._machine(cluster, node)
            for cluster in self.sky.clusters.values()
            for node in range(cluster.task["num_nodes"])
            if not cluster.has_no_machines and self._is_in_region(cluster)
            if fnmatch(cluster.task["resources"]["labels"].get(tag, ""), pattern)
        ]
        return [{"Reservations": [{"Instances": [machine]}]} for machine in machines]

    def terminate_instances(self, InstanceIds: list[str]) -> None:
        """End machines at once."""
        for cluster in self.sky.clusters.values():
            if any(f"i-{cluster.name}-{node}" in InstanceIds for node in range(cluster.task["num_nodes"])):
                cluster.torn_down_s = min(cluster.torn_down_s, self.sky.clock.elapsed_s())

    def _at(self, elapsed_s: float) -> datetime:
        return self.sky.clock.now() + timedelta(seconds=elapsed_s - self.sky.clock.elapsed_s())

    def _is_in_region(self, cluster: Cluster) -> bool:
        return str(cluster.task["resources"]["infra"]).endswith(f"/{self.region}")

    def _machine(self, cluster: Cluster, node: int) -> dict[str, Any]:
        gone = self.sky.clock.elapsed_s() >= cluster.gone_s
        ended = f"User initiated ({self._at(cluster.gone_s):%Y-%m-%d %H:%M:%S} GMT)" if gone else ""
        return {
            "InstanceId": f"i-{cluster.name}-{node}",
            "State": {"Name": "terminated" if gone else "running"},
            "LaunchTime": self._at(cluster.ordered_s).replace(microsecond=0),
            "StateTransitionReason": ended if self.sky.reports_ends else "",
            "Tags": [{"Key": key, "Value": value} for key, value in cluster.task["resources"]["labels"].items()],
        }


@dataclass
class FakeAnswer:
    """An answer that is ready at once."""

    value: bool | BackendError | None

    def is_ready(self) -> bool:
        """Always."""
        return True


@dataclass
class FakeLaunch:
    """A launch on the fake cloud, in place of `LaunchThread`. Its output depends only on the time."""

    cluster: Cluster
    clock: Clock
    job_output: Callable[[float, float], str] | None = None
    _reports: int = 0
    _heartbeats: int = 0
    _ended: bool = False
    _status: int | None = None

    def __post_init__(self) -> None:
        self._zero = self.clock.now().timestamp() - self.clock.elapsed_s() + self.cluster.scenario.node_clock_s

    def submitted(self) -> bool:
        """Whether the machines are up and run the job."""
        return not self.cluster.has_no_machines and self.clock.elapsed_s() >= self.cluster.up_s

    def read(self) -> str:
        """Output since the last call, each line as SkyPilot shows it."""
        cluster, scenario = self.cluster, self.cluster.scenario
        now_s = self.clock.elapsed_s()
        last_s = min(now_s, cluster.job_ends_s, cluster.gone_s, cluster.up_s + scenario.silent_after_s)
        if not self.submitted() or now_s < cluster.up_s + scenario.logs_after_s:
            return ""
        lines = []
        while (at_s := self._reports * REPORT_EVERY_S) <= last_s - cluster.up_s + 1e-6:
            lines += [*self._alive(at_s), self._report(at_s)]
            self._reports += 1
        if not self._ended and cluster.job_ends_s <= min(now_s, cluster.gone_s) and not lines:
            self._ended = True
            lines += self._last_lines(cluster.job_ends_s - cluster.up_s)
        return "".join(f"\x1b[36m(head, rank=0, pid=2317)\x1b[0m {line}\n" for line in lines)

    def _last_lines(self, done_s: float) -> list[str]:
        scenario, over = self.cluster.scenario, self.cluster.job_ends_s >= self.cluster.until_s
        self._status = status = 124 if over else scenario.exit_status if done_s >= scenario.fails_after_s else 0
        error = [scenario.error_output] if status and scenario.error_output else []
        lines = [*([] if status else [self._report(done_s)]), *error]
        at, nodes = self._at(done_s), self.cluster.task["num_nodes"]
        if scenario.workers_end and not status:
            up = nodes - (done_s >= scenario.worker_lost_after_s)
            lines += [f"@mlcd exit=0 node={node} at={at:.0f}" for node in range(1, up)]
        return [*lines, f"@mlcd exit={status} node=0 at={at:.0f}"]

    def _alive(self, until_s: float) -> list[str]:
        """The other nodes' heartbeats since the last call."""
        scenario, nodes, lines = self.cluster.scenario, self.cluster.task["num_nodes"], []
        while (at_s := self._heartbeats * HEARTBEAT_EVERY_S) <= until_s + 1e-6:
            heard = nodes - (at_s >= min(scenario.worker_lost_after_s, scenario.worker_silent_after_s))
            lines += [f"@mlcd alive node={node} at={self._at(at_s):.0f}" for node in range(1, heard)]
            self._heartbeats += 1
        return lines

    def _at(self, at_s: float) -> float:
        """The nodes' time of day, `at_s` seconds after they are up."""
        return self._zero + self.cluster.up_s + at_s

    def _report(self, at_s: float) -> str:
        whole = float(self.cluster.task["envs"]["MLCD_SAMPLES"])
        done = min(at_s * self.cluster.samples_per_s, whole)
        has_left = self.cluster.up_s + at_s >= self.cluster.leaves_s - 1e-6
        saves = has_left or done >= whole - 1e-3 or not self.cluster.scenario.saves_only_on_leave
        saved = done if "MLCD_CHECKPOINT_DIR" in self.cluster.task["envs"] and saves else 0.0
        own_format = self.cluster.scenario.report
        output = self.job_output(at_s, done) if self.job_output is not None else own_format.format(done)
        report = output or f"@mlcd t={at_s:.4f} samples={done:.12g} saved={saved:.12g}"
        return f"{report} [mlcd {self._at(at_s):.3f}]"

    def end(self) -> int | BackendError | None:
        """The job's exit code, or the error of the launch; None while it runs. A preempted job has no end."""
        if self.cluster.scenario.no_access:
            return no_access("the credentials have expired")
        if self.cluster.scenario.never_reached and self.submitted():
            return NeverReached("the machines could not be reached: timeout")
        if self.cluster.scenario.no_capacity:
            return NoCapacity("no machines available: nothing left of this type")
        uploaded_s = self.cluster.job_ends_s + self.cluster.scenario.uploads_s
        return self._status if self.clock.elapsed_s() >= uploaded_s else None

    def stop(self) -> None:
        """Nothing to wait for."""
