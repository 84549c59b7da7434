"""The driver's view of a launch's nodes: machines to start processes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import mlcd.clouds.local.teardown as teardown
from mlcd.clouds.environment import INHERITED, URL_WITH_USER
from mlcd.clouds.ray.cluster import connect

POLL_TIMEOUT_S = 2.0
"""Timeout of a poll. A node that has not replied gets no second request until it has."""
LOST = -9
"""The status of a process whose node is gone, as if it had been killed."""


@dataclass
class Process:
    """A process on a node, as of the last poll. Its output also goes to a log file."""

    nodes: Nodes
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
        ray, program = connect(), Path(teardown.__file__).read_text(encoding="utf-8")
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
        ray = connect()
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
        connect().wait(ends, num_returns=len(ends), timeout=teardown.GRACE_S + self.poll_timeout_s)
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
            results = connect().get(reply)
        except ActorUnavailableError:
            return  # for now: Ray decides whether the actor is lost
        except RayError:
            results = [(LOST, "")] * len(on_node)
        for process, (status, new) in zip(on_node, results, strict=False):  # a new process is not in it
            process.update(status, new)
