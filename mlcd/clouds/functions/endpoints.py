"""The URL of each storage: the one in the job, or that of a local server, which is started when it is first needed."""

from __future__ import annotations

import os
import shutil
import weakref
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import mkdtemp

from mlcd.planners.functions.storages.local import serve


class Endpoints(Mapping[str, str]):
    """URLs by the name of the storage. Servers that were started end with this object, or with the process.

    Each has its own folder: two servers on the same files would break each other, and other runs may be active.
    """

    def __init__(self, names: tuple[str, ...], named: Mapping[str, str], folder: Path) -> None:
        self._names = names
        self._urls = dict(named)
        self._folder = folder
        self._started = ExitStack()
        self._end = weakref.finalize(self, self._started.close)

    def __getitem__(self, name: str) -> str:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._urls:
            self._folder.mkdir(parents=True, exist_ok=True)
            _remove_dead(self._folder)
            folder = Path(mkdtemp(prefix=f"{name}.{os.getpid()}.", dir=self._folder))
            self._started.callback(shutil.rmtree, folder, ignore_errors=True)
            self._urls[name] = self._started.enter_context(serve(name, folder)).url
        return self._urls[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def close(self) -> None:
        """Stop the servers."""
        self._end()


def _remove_dead(folder: Path) -> None:
    """Delete the folders of servers whose process was killed."""
    for leftover in folder.glob("*.*.*"):
        process = leftover.name.split(".")[1]
        if process.isdecimal() and not _is_alive(int(process)):
            shutil.rmtree(leftover, ignore_errors=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        return True
    return True
