"""Nodes of a launch that are up, seen from here: machines to start processes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import mlcd.clouds.local.teardown as teardown
from mlcd.clouds.environment import KEPT, URL_WITH_USER
from mlcd.clouds.ray.cluster import connect

ANSWER_S = 2.0
"""How long nodes have to answer; one that has not is asked no more until it has."""
LOST = -9
"""The status of a process whose node is gone, as if it had been killed."""


@dataclass
class Process:
    """A process on a node, as the last look has found it; its output is kept in a file too."""

    nodes: Nodes
    node: int
    log: IO[str]
    found: int | None = None
    unread: str = ""
    told: bool = True

    def status(self) -> int | None:
        """Its exit status; asking again looks again, at all processes at once."""
        if self.told:
            self.nodes.look()
        self.told = True
        return self.found

    def read(self) -> str:
        """What it has written since it was last asked."""
        new, self.unread = self.unread, ""
        return new

    def learn(self, status: int | None, new: str) -> None:
        """What a look has found."""
        self.found = status if self.found is None else self.found
        self.unread += new
        self.log.write(new)
        self.log.flush()


@dataclass
class Nodes:
    """The actors of a launch. `folder`: where its logs are kept. `answer_s`: how long a look waits."""

    actors: list[Any]
    folder: Path
    addresses: tuple[str, ...] = ()
    first_ports: tuple[int, ...] = ()
    interfaces: tuple[str, ...] = ()
    answer_s: float = ANSWER_S
    processes: list[Process] = field(default_factory=list)
    _asked: dict[int, Any] = field(default_factory=dict)

    def meet(self, label: str, left_s: float | None, wait_s: float) -> bool:
        """Find out where the nodes are, and have each watched; False if they are not there within this time."""
        ray, program = connect(), Path(teardown.__file__).read_text(encoding="utf-8")
        asked = [actor.meet.remote() for actor in self.actors]
        if len(ray.wait(asked, num_returns=len(asked), timeout=max(wait_s, 0.0))[0]) < len(asked):
            return False
        self.addresses, self.first_ports, self.interfaces = zip(*ray.get(asked), strict=True)
        ray.get([actor.watch.remote(label, program, left_s) for actor in self.actors])
        return True

    def start(self, node: int, command: str, environment: Mapping[str, str]) -> Process:
        """Start a shell command on a node."""
        libraries = ("GLOO", "NCCL", "TP") if self.interfaces[node] else ()
        network = {f"{library}_SOCKET_IFNAME": self.interfaces[node] for library in libraries}
        log = (self.folder / f"{len(self.processes)}.log").open("w", encoding="utf-8")
        self.processes.append(Process(self, node, log))
        self.actors[node].start.remote(command, {**network, **environment}, KEPT, URL_WITH_USER)
        return self.processes[-1]

    def look(self) -> None:
        """Ask all nodes at once how their processes are."""
        ray = connect()
        for node in {process.node for process in self.processes}:
            if node not in self._asked:
                self._asked[node] = self.actors[node].look.remote()
        asked = list(self._asked.values())
        answered, _ = ray.wait(asked, num_returns=len(asked), timeout=self.answer_s)
        for node, answer in list(self._asked.items()):
            if answer in answered:
                del self._asked[node]
                self._learn(node, answer)
        for process in self.processes:
            process.told = False

    def end(self) -> None:
        """End all processes, and hear what they had still to say."""
        ends = [actor.end.remote(teardown.GRACE_S) for actor in self.actors]
        connect().wait(ends, num_returns=len(ends), timeout=teardown.GRACE_S + self.answer_s)
        self.look()  # an answer from before the end may have been on its way
        self.look()

    def close(self) -> None:
        """Let go of the logs."""
        for process in self.processes:
            process.log.close()

    def _learn(self, node: int, answer: Any) -> None:
        from ray.exceptions import ActorUnavailableError, RayError

        here = [process for process in self.processes if process.node == node]
        try:
            found = connect().get(answer)
        except ActorUnavailableError:
            return  # for now; whether it is lost is Ray's to say
        except RayError:
            found = [(LOST, "")] * len(here)
        for process, (status, new) in zip(here, found, strict=False):  # one that was started since is not in it
            process.learn(status, new)
