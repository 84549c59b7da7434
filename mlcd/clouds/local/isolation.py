"""Creates the nodes of a launch on this machine: process groups with limited CPU, memory and network.

As root, a node has control groups (CPU quota, memory) and a network namespace. The namespace's only interface leads to
a switch in another namespace of the launch, and a token bucket limits it in both directions. The memory of each single
process is limited, too, because most scripts then report that they are out of memory. All names contain the launch's
mark, which is all that teardown needs. Without root, a node is a plain process group without limits.
"""

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from functools import partial

from mlcd.clouds.local.control_groups import NodeGroups, group_root
from mlcd.clouds.local.meters import GIB, Meter, this_machine
from mlcd.clouds.local.teardown import NAMESPACES, processes_of
from mlcd.core.configuration import Offer
from mlcd.core.errors import BackendError

INTERFACE = "eth0"
NAMED = """{ hostname "$1" && mount -t tmpfs mlcd /mnt && printf "$2" > /mnt/hosts && mount --bind /mnt/hosts /etc/hosts
umount -l /mnt; } 2> /dev/null; shift 2; exec "$@"
"""
"""Shell code that gives a node a host name which resolves to its own address: JAX peers connect by host name."""


def why_not_isolated() -> str | None:
    """Why nodes cannot be isolated on this machine; None if they can."""
    if os.geteuid() != 0:
        return "not root"
    missing = [tool for tool in ("ip", "tc", "nsenter", "unshare", "prlimit") if shutil.which(tool) is None]
    if missing:
        return f"{', '.join(missing)} not found (Debian: apt-get install iproute2 util-linux)"
    return None if group_root() is not None else "no writable control group for the CPU"


def isolation_warning() -> str:
    """A one-line warning if nodes cannot be isolated; empty if they can."""
    why = why_not_isolated()
    effect = "nodes are plain processes without limits on CPU, memory and network, so all types measure alike"
    return f"{why}: {effect}" if why is not None else ""


class IsolatedNodes:
    """Nodes with limited CPU, memory and network."""

    def __init__(self, mark: str, offer: Offer, count: int) -> None:
        """Create them."""
        self._mark, self._offer = mark, offer
        self.environment = {f"{library}_SOCKET_IFNAME": INTERFACE for library in ("GLOO", "NCCL", "TP")}
        self.addresses = tuple(f"10.77.{1 + i // 250}.{1 + i % 250}" for i in range(count))
        switch = self._namespace("switch")
        _run(["ip", "netns", "add", switch])
        _run(["ip", "-n", switch, "link", "add", "hub", "type", "bridge"])
        _run(["ip", "-n", switch, "link", "set", "hub", "up"])
        for i, address in enumerate(self.addresses):
            self._groups(i).create(offer.vcpus, offer.memory_gb)
            self._connect(i, address, switch)

    def enter(self, node: int, command: str) -> list[str]:
        """The command line that runs a shell command inside a node."""
        groups = shlex.join(map(str, self._groups(node).procs))
        inside = ["nsenter", f"--net={NAMESPACES / self._namespace(str(node))}"]
        hosts = "127.0.0.1 localhost\\n" + "".join(f"{each} node-{i}\\n" for i, each in enumerate(self.addresses))
        private = ["unshare", "--mount", "--uts", "--propagation", "slave"]
        named = [*private, "bash", "-c", NAMED, "mlcd", f"node-{node}", hosts]
        limited = ["prlimit", f"--data={int(self._offer.memory_gb * 1e9)}", "bash", "-c", command]
        line = shlex.join([*inside, *named, *limited])
        return ["bash", "-c", f"for group in {groups}; do echo $$ > $group || exit; done; exec {line}"]

    def ran_out_of_memory(self, node: int) -> bool:
        """Whether the kernel has killed a process of the node because its memory was full."""
        return self._groups(node).memory_kills() > 0

    def memory_share(self, node: int) -> float | None:
        """The share of the node's memory that its processes use now; None if its groups do not count it."""
        used = self._groups(node).memory_bytes()
        return used / (self._offer.memory_gb * 1e9) if used is not None else None

    def meters(self) -> list[Meter]:
        """A meter of CPU and memory for each node."""
        nodes = enumerate(map(self._groups, range(len(self.addresses))))
        memory_gib = self._offer.memory_gb * 1e9 / GIB
        return [Meter(f"node {i}", self._offer.vcpus, memory_gib, groups.processes) for i, groups in nodes]

    def _connect(self, node: int, address: str, switch: str) -> None:
        namespace, port = self._namespace(str(node)), f"p{node}"
        _run(["ip", "netns", "add", namespace])
        peer = ["peer", "name", port, "netns", switch]
        _run(["ip", "link", "add", INTERFACE, "netns", namespace, "type", "veth", *peer])
        _run(["ip", "-n", switch, "link", "set", port, "master", "hub", "up"])
        _run(["ip", "-n", namespace, "addr", "add", f"{address}/16", "dev", INTERFACE])
        for interface in (INTERFACE, "lo"):
            _run(["ip", "-n", namespace, "link", "set", interface, "up"])
        rate = f"{1_000 * self._offer.network_gbps:g}mbit"
        # The burst is one large packet: with more, a small gradient would be sent at full speed.
        bucket = ["root", "tbf", "rate", rate, "burst", "64kb", "latency", "200ms"]
        for side, interface in ((namespace, INTERFACE), (switch, port)):
            _run(["tc", "-n", side, "qdisc", "add", "dev", interface, *bucket])

    def _groups(self, node: int) -> NodeGroups:
        return NodeGroups(f"{self._mark}.{node}")

    def _namespace(self, which: str) -> str:
        return f"mlcd.{self._mark}.{which}"


class PlainNodes:
    """Nodes that are plain process groups, without limits."""

    def __init__(self, mark: str, offer: Offer, count: int) -> None:
        self.environment: dict[str, str] = {}
        self._mark = mark
        # All of 127/8 is this machine: with different addresses, nodes can use the same ports.
        self.addresses = tuple(f"127.0.0.{1 + i}" for i in range(count))

    def enter(self, node: int, command: str) -> list[str]:
        """The command line that runs a shell command."""
        return ["bash", "-c", command]

    def ran_out_of_memory(self, node: int) -> bool:
        """Always False: without limits this is not known."""
        return False

    def memory_share(self, node: int) -> float | None:
        """Always None: without limits this is not known."""
        return None

    def meters(self) -> list[Meter]:
        """One meter of CPU and memory for all nodes together."""
        return [this_machine(partial(processes_of, self._mark))]


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise BackendError(f"{shlex.join(command)}: {done.stderr.strip()}")
