"""What runs on a node of a Ray cluster: an actor that starts the job's processes and tells what they do.

It is sent to the node as it stands, so it needs nothing there but Python and Ray. Beside the actor, and not below
it, a watchman waits for the actor to end in whatever way, or for the launch's time to be over; then it ends every
process that carries the launch's label, however deep below the job it was started.
"""

from __future__ import annotations

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
"""In a row, that a job may need on a node: see platforms/processes.py."""
MOST_READ = 1_000_000
"""Bytes of output in one answer."""
WATCHMAN = """
import os, shutil, sys
from types import ModuleType
if os.fork():
    os._exit(0)  # nobody's child: Ray kills the children of an actor that ends, and this one is needed then
os.setsid()
teardown = ModuleType("teardown")
exec(sys.argv[1], vars(teardown))
teardown.wait_for_the_end(None if sys.argv[3] == "none" else float(sys.argv[3]))
teardown.end_processes(sys.argv[2], 0.0)
shutil.rmtree(sys.argv[4], ignore_errors=True)
"""


class Node:
    """One node of a launch."""

    def __init__(self) -> None:
        self._held: list[socket.socket] = []
        self._started: list[_Started] = []
        self._watchman: subprocess.Popen[bytes] | None = None
        self._folder = tempfile.mkdtemp(prefix="mlcd-")

    def meet(self) -> tuple[str, int, str]:
        """Where the other nodes find this one: its address, the first of its free ports, its network interface.

        The ports are held until a process starts, so that a second node on the same machine finds others.
        """
        import ray

        address = str(ray.util.get_node_ip_address())
        while not self._held:
            self._held = free_ports()
        return address, self._held[0].getsockname()[1], _interface(address)

    def watch(self, label: str, teardown: str, left_s: float | None) -> None:
        """Have a watchman, who knows how to tear down from this program's text."""
        left = "none" if left_s is None else repr(left_s)
        command = [sys.executable, "-I", "-S", "-c", WATCHMAN, teardown, label, left, self._folder]
        self._watchman = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._watchman.wait()  # for the one who has left it there

    def start(self, command: str, environment: Mapping[str, str], kept: Collection[str], left_out: str) -> None:
        """Start a process in a copy of the job's folder that is this launch's own.

        Ray keeps one copy for all launches of a run: the next one would find what this one leaves there.
        `kept`: what it gets of the cluster's environment, unless the value matches `left_out`.
        """
        while self._held:
            self._held.pop().close()
        if folder := environment.get("MLCD_CHECKPOINT_DIR"):
            os.makedirs(folder, exist_ok=True)
        if not self._started:
            shutil.copytree(os.getcwd(), self._folder, symlinks=True, dirs_exist_ok=True)
        output = tempfile.TemporaryFile()  # noqa: SIM115 (open as long as the actor, and without a name to be left behind)
        paths = [os.environ.get("PYTHONPATH"), environment.get("PYTHONPATH")]
        own = {
            "PATH": f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "PYTHONPATH": os.pathsep.join(path for path in paths if path),
            "PYTHONUNBUFFERED": "1",
        }
        here = {name: value for name, value in os.environ.items() if name in kept and not re.search(left_out, value)}
        popen = subprocess.Popen(
            ["bash", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=self._folder,
            env={**here, **environment, **own},
            start_new_session=True,
        )
        self._started.append(_Started(popen, output))

    def look(self) -> list[tuple[int | None, str]]:
        """Of every process, its status (None while it runs) and what it has written since the last look."""
        return [each.look() for each in self._started]

    def end(self, grace_s: float) -> None:
        """End the job's processes: asked first, killed when the grace is over. Safe to call again."""
        self._signal(signal.SIGTERM)
        until_s = time.monotonic() + grace_s
        while time.monotonic() < until_s and any(each.popen.poll() is None for each in self._started):
            time.sleep(0.02)
        self._signal(signal.SIGKILL)
        if self._watchman is not None and self._watchman.stdin is not None and self._watchman.stdout is not None:
            self._watchman.stdin.close()
            self._watchman.stdout.read()  # to its end: the watchman has ended
            self._watchman = None
        shutil.rmtree(self._folder, ignore_errors=True)

    def _signal(self, number: signal.Signals) -> None:
        for each in self._started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(each.popen.pid, number)


class _Started:
    """A process, and how far its output is read."""

    def __init__(self, popen: subprocess.Popen[bytes], output: IO[bytes]) -> None:
        self.popen, self._output, self._read = popen, output, 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def look(self) -> tuple[int | None, str]:
        status = self.popen.poll()  # before reading: then nothing is missed
        new = os.pread(self._output.fileno(), MOST_READ, self._read)
        self._read += len(new)
        return status if len(new) < MOST_READ else None, self._decoder.decode(new)


def free_ports() -> list[socket.socket]:
    """Sockets on free ports in a row; none, if the row that was tried is not free."""
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
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked, contextlib.suppress(OSError):
            told = fcntl.ioctl(asked.fileno(), 0x8915, struct.pack("256s", name.encode()[:15]))  # SIOCGIFADDR
            if socket.inet_ntoa(told[20:24]) == address:
                return name
    return ""
