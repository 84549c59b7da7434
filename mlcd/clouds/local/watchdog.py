"""A watchdog process that outlives MLCD: it ends a launch if MLCD is killed, or when the launch's lifetime is over."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import mlcd.clouds.local.teardown as teardown
from mlcd.clouds.environment import inherited


class Watchdog:
    """Watches the launch of a folder while the `with` block runs."""

    def __init__(self, folder: Path, lifetime_s: float | None) -> None:
        lifetime = "none" if lifetime_s is None else repr(lifetime_s)
        self._folder = folder
        command = [sys.executable, "-I", "-S", teardown.__file__, str(folder), lifetime]
        self._popen = subprocess.Popen(command, stdin=subprocess.PIPE, env=inherited(), start_new_session=True)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        # After a complete teardown the watchdog is not needed. After an interrupted one (Ctrl-C), closing its standard
        # input makes it tear down.
        if (self._folder / "ended").exists():
            self._popen.kill()
        self._popen.communicate()
