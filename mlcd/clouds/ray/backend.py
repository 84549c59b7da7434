"""The Ray backend: runs real jobs on the nodes of an existing Ray cluster."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import IO, Any

import mlcd.clouds.local.teardown as teardown
import mlcd.clouds.ray.cluster as cluster
from mlcd.clouds.environment import INHERITED, URL_WITH_USER
from mlcd.clouds.frameworks import checkpoint_environment
from mlcd.clouds.launches import KeepsLaunches, before_ordering
from mlcd.clouds.live_job import LiveJob, Timeouts
from mlcd.clouds.local.workspace import working_folder
from mlcd.clouds.node_types import NodeTypes, load_ray_types
from mlcd.clouds.usage_recorder import Recorder
from mlcd.core.backend import AlreadyGone, Events, Launch
from mlcd.core.clock import Clock
from mlcd.core.configuration import Choice
from mlcd.core.errors import UserError
from mlcd.core.job import Job
from mlcd.core.measurement import Ended, Outcome

REPORT_TIMEOUT_S = 300.0
"""Timeout of the next report, after the first one."""
TEARDOWN_S = teardown.GRACE_S + 2.0
"""Reserved at the end of a lifetime for teardown."""
POLL_TIMEOUT_S = 2.0
"""Timeout of a poll. A node gets the next request only after it has replied."""
LOST = -9
"""The status of a process whose node is gone, as if it had been killed."""


@dataclass(frozen=True)
class Ray(KeepsLaunches):
    """Runs jobs on nodes of a Ray cluster. `home`: the state folder."""

    node_types: NodeTypes
    home: Path
    clock: Clock

    def run(self, job: Job, launch: Launch) -> Events:
        """Reserve the nodes, run the job on them, release them."""
        return self.node_types.drill.run(self._run, job, launch, self.clock.elapsed_s())

    def _run(self, job: Job, launch: Launch) -> Events:
        started_s = self.clock.elapsed_s()
        environment = self._environment(job, launch)
        with before_ordering():
            cluster.connect(working_folder(job).resolve())  # it is copied to the nodes
        folder = self.launches.open(launch, lifetime_s=launch.lifetime_s)
        with ExitStack() as stack:
            stack.enter_context(teardown.Watchdog(folder, launch.lifetime_s))
            stack.callback(teardown.tear_down, folder, 0.0)  # records the end, after everything else is gone
            stack.callback(cluster.tear_down, launch.label, teardown.GRACE_S)
            nodes = self._bring_up(launch, folder, started_s)
            if nodes is None:
                detail = f"the cluster has no {launch.configuration} free"
                yield Ended(self.clock.elapsed_s() - started_s, Outcome.LAUNCH_FAILED, detail)
                return
            stack.callback(nodes.close)
            stack.enter_context(Recorder(folder))  # the nodes are elsewhere, so it records only the log sizes
            timeouts = Timeouts(self.node_types.startup_s, REPORT_TIMEOUT_S, TEARDOWN_S)
            live = LiveJob(job, launch, nodes, self.clock, timeouts, started_s, environment, nodes.first_ports)
            yield from live.events()

    def reclaim(self, label: str) -> float | None:
        """Tear down what a crash left of a launch. If anything was left, it was up until now."""
        folder = self.launches.find(label)
        if folder is None:
            return None
        was_there = cluster.tear_down(label, grace_s=0.0)
        if was_there:
            (folder / "ended").unlink(missing_ok=True)
        lifetime_s = self.launches.order(folder).get("lifetime_s")
        seconds = min(teardown.tear_down(folder, 0.0), inf if lifetime_s is None else float(lifetime_s))
        return seconds if was_there else AlreadyGone(seconds)

    def leftovers(self) -> set[str]:
        """Launches of this state folder that still have actors or a placement group."""
        return {label for label in cluster.labels() if self.launches.find(label) is not None}

    def _bring_up(self, launch: Launch, folder: Path, started_s: float) -> "Nodes | None":
        most_s = min(self.node_types.startup_s, inf if launch.lifetime_s is None else launch.lifetime_s - TEARDOWN_S)
        until_s, bundle = started_s + most_s, self.node_types.bundle(launch.configuration.offer)
        wait_s = until_s - self.clock.elapsed_s()
        actors = cluster.bring_up(launch.label, bundle, launch.configuration.nodes, wait_s)
        if actors is None:
            return None
        nodes, now_s = Nodes(actors, folder), self.clock.elapsed_s()
        left_s = None if launch.lifetime_s is None else started_s + launch.lifetime_s - now_s
        return nodes if nodes.exchange_addresses(launch.label, left_s, until_s - now_s) else None

    def _environment(self, job: Job, launch: Launch) -> dict[str, str]:
        """A process's environment variables besides those of the framework."""
        variables = {"OMP_NUM_THREADS": str(max(1, round(launch.configuration.offer.vcpus)))}
        if job.checkpoints:
            folder = Path(self.node_types.checkpoints) / launch.label.rpartition("-")[0]
            variables |= checkpoint_environment(str(folder), launch.label)
        return variables


@dataclass
class Process:
    """A process on a node, as of the last poll. Its output also goes to a log file."""

    nodes: "Nodes"
    node: int
    log: IO[str]
    exit_status: int | None = None
    unread: str = ""
    was_read: bool = True

    def status(self) -> int | None:
        """Its exit status. A second call polls all processes again."""
        if self.was_read:
            self.nodes.poll()
        self.was_read = True
        return self.exit_status

    def read(self) -> str:
        """Its output since the last call."""
        new, self.unread = self.unread, ""
        return new

    def update(self, status: int | None, new: str) -> None:
        """Store the result of a poll."""
        self.exit_status = status if self.exit_status is None else self.exit_status
        self.unread += new
        self.log.write(new)
        self.log.flush()


@dataclass
class Nodes:
    """The actors of a launch. `folder`: for its logs. `poll_timeout_s`: how long a poll waits."""

    actors: list[Any]
    folder: Path
    addresses: tuple[str, ...] = ()
    first_ports: tuple[int, ...] = ()
    interfaces: tuple[str, ...] = ()
    poll_timeout_s: float = POLL_TIMEOUT_S
    processes: list[Process] = field(default_factory=list)
    _pending: dict[int, Any] = field(default_factory=dict)

    def exchange_addresses(self, label: str, left_s: float | None, wait_s: float) -> bool:
        """Get the nodes' addresses and start their watchdogs; False if they do not reply within `wait_s`."""
        ray, program = cluster.connect(), Path(teardown.__file__).read_text(encoding="utf-8")
        requests = [actor.exchange_addresses.remote() for actor in self.actors]
        if len(ray.wait(requests, num_returns=len(requests), timeout=max(wait_s, 0.0))[0]) < len(requests):
            return False
        self.addresses, self.first_ports, self.interfaces = zip(*ray.get(requests), strict=True)
        ray.get([actor.watch.remote(label, program, left_s) for actor in self.actors])
        return True

    def start(self, node: int, command: str, environment: Mapping[str, str]) -> Process:
        """Start a shell command on a node."""
        libraries = ("GLOO", "NCCL", "TP") if self.interfaces[node] else ()
        network = {f"{library}_SOCKET_IFNAME": self.interfaces[node] for library in libraries}
        log = (self.folder / f"{len(self.processes)}.log").open("w", encoding="utf-8")
        self.processes.append(Process(self, node, log))
        self.actors[node].start.remote(command, {**network, **environment}, INHERITED, URL_WITH_USER)
        return self.processes[-1]

    def poll(self) -> None:
        """Ask all nodes at once for the status and output of their processes."""
        ray = cluster.connect()
        for node in {process.node for process in self.processes}:
            if node not in self._pending:
                self._pending[node] = self.actors[node].poll.remote()
        requests = list(self._pending.values())
        replied, _ = ray.wait(requests, num_returns=len(requests), timeout=self.poll_timeout_s)
        for node, reply in list(self._pending.items()):
            if reply in replied:
                del self._pending[node]
                self._update(node, reply)
        for process in self.processes:
            process.was_read = False

    def end(self) -> None:
        """End all processes and read their last output."""
        ends = [actor.end.remote(teardown.GRACE_S) for actor in self.actors]
        cluster.connect().wait(ends, num_returns=len(ends), timeout=teardown.GRACE_S + self.poll_timeout_s)
        self.poll()  # twice: the first reply may have been sent before the end
        self.poll()

    def close(self) -> None:
        """Close the logs."""
        for process in self.processes:
            process.log.close()

    def _update(self, node: int, reply: Any) -> None:
        from ray.exceptions import ActorUnavailableError, RayError

        on_node = [process for process in self.processes if process.node == node]
        try:
            results = cluster.connect().get(reply)
        except ActorUnavailableError:
            return  # not final: Ray has not decided yet whether the actor is lost
        except RayError:
            results = [(LOST, "")] * len(on_node)
        for process, (status, new) in zip(on_node, results, strict=False):  # a new process is not in the reply yet
            process.update(status, new)


def available(job: Job, types: Path | None) -> tuple[NodeTypes, tuple[Choice, ...]]:
    """The types of a file, and for each the node counts that the cluster has."""
    cluster.connect(working_folder(job).resolve())
    names = ", ".join(cluster.resources()) or "none: start its nodes with `ray start --resources '{\"small\": 1}'`"
    if types is None:
        raise UserError(f"prices are missing: --on ray:FILE, with a type for each of the cluster's resources ({names})")
    node_types = load_ray_types(types)
    if job.checkpoints and not node_types.checkpoints:
        raise UserError(f"{types}: the job saves checkpoints; add `checkpoints:`, a folder that all nodes share")
    fewest, most = node_types.nodes
    counts = {offer: min(most, cluster.count(node_types.bundle(offer))) for offer in node_types.offers}
    choices = tuple(Choice(offer, tuple(range(fewest, n + 1))) for offer, n in counts.items() if n >= fewest)
    if not choices:
        raise UserError(f"{types}: the cluster has no node of these types; its resources: {names}")
    return node_types, choices
