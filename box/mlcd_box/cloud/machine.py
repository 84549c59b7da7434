"""A machine of the cloud: network, mount, process and host-name namespaces, a Debian root of overlays, an sshd."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from mlcd_box.cloud.user_data import FirstBoot
from mlcd_box.image import SHELL

BRIDGE = "br0"


@dataclass
class Machine:
    """A machine. `folder`: contains its disk, and is deleted with it."""

    id: str
    folder: Path
    address: str
    _process: subprocess.Popen[bytes] = field(init=False)

    def boot(self, image: Path, first_boot: FirstBoot, ssh_after_s: float, endpoint: str) -> None:
        """Start it. After a stop, its disk still has what it wrote before."""
        self._write(first_boot, ssh_after_s)
        namespaces = ["unshare", "-n", "-m", "-p", "-u", "--fork", "--kill-child=KILL", "--propagation", "private"]
        boot = ["bash", str(SHELL / "boot.sh"), str(image), str(self.folder), self.address, endpoint]
        with (self.folder / "console.log").open("ab") as console:
            self._process = subprocess.Popen(
                [*namespaces, *boot],
                stdin=subprocess.PIPE,
                stdout=console,
                stderr=console,
            )
        self._connect()

    def wait(self) -> None:
        """Wait until it is off, for any reason."""
        self._process.wait()

    def kill(self) -> None:
        """Switch it off: killing the first process of its namespace ends all others."""
        self._process.kill()
        self._process.wait()

    def remove(self) -> None:
        """Delete its disk. Its mounts have disappeared with its namespace."""
        shutil.rmtree(self.folder / "layer", ignore_errors=True)

    def _write(self, first_boot: FirstBoot, ssh_after_s: float) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for name, text in {
            "user": first_boot.user,
            "keys": "\n".join(first_boot.keys) + "\n",
            "first_boot.sh": first_boot.script,
            "ssh_after_s": f"{ssh_after_s:.0f}",
            **{f"files/{path.lstrip('/')}": text for path, text in first_boot.files.items()},
        }.items():
            target = self.folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")

    def _connect(self) -> None:
        """Connect it to the bridge, then write a line to its standard input, for which its boot waits."""
        ours, pid = os.readlink("/proc/self/ns/net"), self._process.pid
        while os.readlink(f"/proc/{pid}/ns/net") == ours:
            time.sleep(0.01)
        plug = f"v{self.id[-8:]}"
        for command in (
            f"ip link add {plug} type veth peer name eth0 netns {pid}",
            f"ip link set {plug} master {BRIDGE} up",
        ):
            subprocess.run(command.split(), check=True)
        assert self._process.stdin is not None
        self._process.stdin.write(b"go\n")
        self._process.stdin.close()
