"""The actor on a node of a Ray cluster: starts the job's processes and returns their status and output.

The class is pickled by value, so the node needs only Python and Ray. A watchdog, a process that is not a child of the
actor, waits until the actor ends in any way or the launch's lifetime is over. Then it ends every process with the
launch's label in its environment.
"""

import codecs
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Mapping
from typing import IO

PORTS = 5
"""Consecutive ports that a job may need on a node: see frameworks/processes.py."""
MAX_READ_BYTES = 1_000_000
"""Limit of the output in one reply."""
WATCHDOG = """
import os, shutil, sys
from types import ModuleType
if os.fork():
    os._exit(0)  # so that this is no child of the actor: Ray kills the children of an actor that ends
os.setsid()
teardown = ModuleType("teardown")
exec(sys.argv[1], vars(teardown))
teardown.wait_for_end_of_input(None if sys.argv[3] == "none" else float(sys.argv[3]))
teardown.end_processes(sys.argv[2], 0.0)
shutil.rmtree(sys.argv[4], ignore_errors=True)
"""


class Node:
    """One node of a launch."""

    def __init__(self) -> None:
        self._held: list[socket.socket] = []
        self._started: list[_Started] = []
        self._watchdog: subprocess.Popen[bytes] | None = None
        self._folder = tempfile.mkdtemp(prefix="mlcd-")

    def exchange_addresses(self) -> tuple[str, int, str]:
        """This node's address, the first of its free ports, and its network interface.

        The ports are held until a process starts, so that another node on the same machine gets different ones.
        """
        import ray

        address = str(ray.util.get_node_ip_address())
        while not self._held:
            self._held = free_ports()
        return address, self._held[0].getsockname()[1], _interface(address)

    def watch(self, label: str, teardown: str, left_s: float | None) -> None:
        """Start the watchdog. `teardown`: the source code of `local/teardown.py`."""
        lifetime = "none" if left_s is None else repr(left_s)
        command = [sys.executable, "-I", "-S", "-c", WATCHDOG, teardown, label, lifetime, self._folder]
        self._watchdog = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._watchdog.wait()  # the parent exits at once; the forked child is the watchdog

    def start(
        self, command: str, environment: Mapping[str, str], inherited_names: Collection[str], excluded: str
    ) -> None:
        """Start a process in this launch's private copy of the job's folder.

        Ray keeps one copy for all launches of a run, in which a launch would see the files of earlier ones.
        `inherited_names`: variables that it inherits from the cluster, unless the value matches `excluded`.
        """
        while self._held:
            self._held.pop().close()
        if folder := environment.get("MLCD_CHECKPOINT_DIR"):
            os.makedirs(folder, exist_ok=True)
        if not self._started:
            shutil.copytree(os.getcwd(), self._folder, symlinks=True, dirs_exist_ok=True)
        output = tempfile.TemporaryFile()  # noqa: SIM115 (open as long as the actor)
        paths = [os.environ.get("PYTHONPATH"), environment.get("PYTHONPATH")]
        own = {
            "PATH": f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "PYTHONPATH": os.pathsep.join(path for path in paths if path),
            "PYTHONUNBUFFERED": "1",
        }
        inherited = {
            name: value
            for name, value in os.environ.items()
            if name in inherited_names and not re.search(excluded, value)
        }
        popen = subprocess.Popen(
            ["bash", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=self._folder,
            env={**inherited, **environment, **own},
            start_new_session=True,
        )
        self._started.append(_Started(popen, output))

    def poll(self) -> list[tuple[int | None, str]]:
        """The status of every process (None while it runs) and its output since the last call."""
        return [each.poll() for each in self._started]

    def end(self, grace_s: float) -> None:
        """End the job's processes: SIGTERM, and SIGKILL after the grace time. Idempotent."""
        self._signal(signal.SIGTERM)
        deadline_s = time.monotonic() + grace_s
        while time.monotonic() < deadline_s and any(each.popen.poll() is None for each in self._started):
            time.sleep(0.02)
        self._signal(signal.SIGKILL)
        if self._watchdog is not None and self._watchdog.stdin is not None and self._watchdog.stdout is not None:
            self._watchdog.stdin.close()
            self._watchdog.stdout.read()  # returns when the watchdog has ended
            self._watchdog = None
        shutil.rmtree(self._folder, ignore_errors=True)

    def _signal(self, number: signal.Signals) -> None:
        for each in self._started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(each.popen.pid, number)


class _Started:
    """A process, and the position up to which its output was read."""

    def __init__(self, popen: subprocess.Popen[bytes], output: IO[bytes]) -> None:
        self.popen, self._output, self._read = popen, output, 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def poll(self) -> tuple[int | None, str]:
        status = self.popen.poll()  # checked before reading, so that no output is missed
        new = os.pread(self._output.fileno(), MAX_READ_BYTES, self._read)
        self._read += len(new)
        return status if len(new) < MAX_READ_BYTES else None, self._decoder.decode(new)


def free_ports() -> list[socket.socket]:
    """Sockets on consecutive free ports; empty if the ports that were tried are not all free."""
    held: list[socket.socket] = []
    try:
        for i in range(PORTS):
            held.append(socket.socket())
            held[i].bind(("", held[0].getsockname()[1] + i if i else 0))
    except (OSError, OverflowError):
        for each in held:
            each.close()
        return []
    return held


def _interface(address: str) -> str:
    """The name of the network interface with this address, or ''."""
    import fcntl
    import struct

    for _, name in socket.if_nameindex():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
            reply = fcntl.ioctl(probe.fileno(), 0x8915, struct.pack("256s", name.encode()[:15]))  # SIOCGIFADDR
            if socket.inet_ntoa(reply[20:24]) == address:
                return name
    return ""
