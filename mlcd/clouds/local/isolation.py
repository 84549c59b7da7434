"""A node on this machine: a process group with a share of the CPU, behind a network link of its own.

With root, a node has a control group (its CPU quota) and a network namespace, whose only interface leads to a
switch in a namespace of the launch; a token bucket limits it in both directions. Memory is limited for each
process. Everything carries the launch's mark in its name, and going away takes no more than the names.
Without root a node is a plain process group, and nothing is limited.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from mlcd.clouds.local.node_types import NodeType
from mlcd.clouds.local.teardown import CGROUP_ROOTS, NAMESPACES
from mlcd.core.errors import BackendError

PERIOD_US = 20_000
"""Of a CPU quota: short, so that a step does not wait long for its next share."""
INTERFACE = "eth0"
NAMED = """{ hostname "$1" && mount -t tmpfs mlcd /mnt && printf "$2" > /mnt/hosts && mount --bind /mnt/hosts /etc/hosts
umount -l /mnt; } 2> /dev/null; shift 2; exec "$@"
"""
"""Gives a node a name of its own that leads to its own address: JAX has its peers connect to the host's name."""


def why_not_isolated() -> str | None:
    """What keeps this machine from isolating nodes, or None."""
    if os.geteuid() != 0:
        return "not root"
    missing = [tool for tool in ("ip", "tc", "nsenter", "unshare", "prlimit") if shutil.which(tool) is None]
    if missing:
        return f"{', '.join(missing)} not found (Debian: apt-get install iproute2 util-linux)"
    return None if _cgroup_root() is not None else "no writable control group for the CPU"


def what_nodes_lack() -> str:
    """What is lost where nodes cannot be isolated, in a line; nothing where they can."""
    why = why_not_isolated()
    lost = "nodes are plain processes without limits on CPU, memory and network, so all types measure alike"
    return f"{why}: {lost}" if why is not None else ""


class IsolatedNodes:
    """Nodes with quotas and links of their own."""

    def __init__(self, mark: str, node_type: NodeType, count: int) -> None:
        """Bring them up."""
        self._mark, self._type = mark, node_type
        self.environment = {f"{library}_SOCKET_IFNAME": INTERFACE for library in ("GLOO", "NCCL", "TP")}
        self.addresses = tuple(f"10.77.{1 + i // 250}.{1 + i % 250}" for i in range(count))
        switch = self._namespace("switch")
        _do(["ip", "netns", "add", switch])
        _do(["ip", "-n", switch, "link", "add", "hub", "type", "bridge"])
        _do(["ip", "-n", switch, "link", "set", "hub", "up"])
        for i, address in enumerate(self.addresses):
            self._limit_cpu(i)
            self._connect(i, address, switch)

    def enter(self, node: int, command: str) -> list[str]:
        """The command line that runs a shell command inside a node."""
        root = _cgroup_root()
        assert root is not None
        procs = root / f"{self._mark}.{node}" / "cgroup.procs"
        inside = ["nsenter", f"--net={NAMESPACES / self._namespace(str(node))}"]
        hosts = "127.0.0.1 localhost\\n" + "".join(f"{each} node-{i}\\n" for i, each in enumerate(self.addresses))
        private = ["unshare", "--mount", "--uts", "--propagation", "slave"]
        named = [*private, "bash", "-c", NAMED, "mlcd", f"node-{node}", hosts]
        limited = ["prlimit", f"--data={int(self._type.memory_gb * 1e9)}", "bash", "-c", command]
        line = shlex.join([*inside, *named, *limited])
        return ["bash", "-c", f"echo $$ > {shlex.quote(str(procs))} && exec {line}"]

    def _limit_cpu(self, node: int) -> None:
        root = _cgroup_root()
        assert root is not None
        group, quota = root / f"{self._mark}.{node}", int(self._type.cpus * PERIOD_US)
        try:
            group.mkdir(parents=True, exist_ok=True)
            if (group / "cpu.cfs_quota_us").exists():
                (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
                (group / "cpu.cfs_quota_us").write_text(str(quota))
            else:
                (group / "cpu.max").write_text(f"{quota} {PERIOD_US}")
        except OSError as error:
            raise BackendError(f"no control group for a node: {error}") from error

    def _connect(self, node: int, address: str, switch: str) -> None:
        here, port = self._namespace(str(node)), f"p{node}"
        _do(["ip", "netns", "add", here])
        _do(["ip", "link", "add", INTERFACE, "netns", here, "type", "veth", "peer", "name", port, "netns", switch])
        _do(["ip", "-n", switch, "link", "set", port, "master", "hub", "up"])
        _do(["ip", "-n", here, "addr", "add", f"{address}/16", "dev", INTERFACE])
        for interface in (INTERFACE, "lo"):
            _do(["ip", "-n", here, "link", "set", interface, "up"])
        rate = f"{self._type.link_mbit:g}mbit"
        # The burst is one large packet: more would let a small gradient through at full speed.
        bucket = ["root", "tbf", "rate", rate, "burst", "64kb", "latency", "200ms"]
        for namespace, interface in ((here, INTERFACE), (switch, port)):
            _do(["tc", "-n", namespace, "qdisc", "add", "dev", interface, *bucket])

    def _namespace(self, which: str) -> str:
        return f"mlcd.{self._mark}.{which}"


class PlainNodes:
    """Nodes that are nothing but process groups."""

    def __init__(self, mark: str, node_type: NodeType, count: int) -> None:
        self.environment: dict[str, str] = {}
        # All of 127/8 is this machine: an address of its own keeps one node's ports apart from another's.
        self.addresses = tuple(f"127.0.0.{1 + i}" for i in range(count))

    def enter(self, node: int, command: str) -> list[str]:
        """The command line that runs a shell command."""
        return ["bash", "-c", command]


def _cgroup_root() -> Path | None:
    """Where control groups for the CPU can be made."""
    for root in CGROUP_ROOTS:
        if os.access(root.parent, os.W_OK):
            if root.parent.name != "cgroup":
                return root
            controllers = root.parent / "cgroup.controllers"
            if controllers.exists() and "cpu" in controllers.read_text().split():
                return _version_2(root)
    return None


def _version_2(root: Path) -> Path | None:
    """In version 2 each level has to pass the controller on to the next."""
    try:
        root.mkdir(exist_ok=True)
        for level in (root.parent, root):
            (level / "cgroup.subtree_control").write_text("+cpu")
    except OSError:
        return None
    return root


def _do(command: Sequence[str]) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise BackendError(f"{shlex.join(command)}: {done.stderr.strip()}")
