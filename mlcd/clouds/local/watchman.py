"""A process beside MLCD that outlives it: it ends a launch should MLCD be killed, or the launch's time be over."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import mlcd.clouds.local.teardown as teardown
from mlcd.clouds.environment import inherited


class Watchman:
    """Watches over the launch of a folder, from when it is entered until it is left."""

    def __init__(self, folder: Path, lifetime_s: float | None) -> None:
        lifetime = "none" if lifetime_s is None else repr(lifetime_s)
        self._folder = folder
        command = [sys.executable, "-I", "-S", teardown.__file__, str(folder), lifetime]
        self._popen = subprocess.Popen(command, stdin=subprocess.PIPE, env=inherited(), start_new_session=True)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        # Over in good order, there is nothing left to watch for. If not, as when Ctrl-C has cut the teardown short, the
        # watchman tears down: its standard input is closed.
        if (self._folder / "ended").exists():
            self._popen.kill()
        self._popen.communicate()
