"""Where each storage is reached: at the URL that the job names, or at a server that is started when it is needed."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

from mlcd.storages.local import serve


class Endpoints(Mapping[str, str]):
    """URLs by the name of the storage. Servers that were started here go when this does, or with the process."""

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
            folder = self._folder / name
            folder.mkdir(parents=True, exist_ok=True)
            self._urls[name] = self._started.enter_context(serve(name, folder)).url
        return self._urls[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def close(self) -> None:
        """Stop what was started."""
        self._end()
