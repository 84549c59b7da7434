"""What a live backend provides: machines that are up, and processes on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class RunningProcess(Protocol):
    """A process of the job on one of the machines."""

    def status(self) -> int | None:
        """Its exit status, negative for a signal; None while it runs."""
        ...

    def read(self) -> str:
        """Its output since the last call."""
        ...


class Machines(Protocol):
    """Machines that are up until the backend tears them down."""

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses of the nodes, in order."""
        ...

    def start(self, node: int, command: str, environment: Mapping[str, str]) -> RunningProcess:
        """Start a shell command on a node, with these variables in addition to the machine's own."""
        ...

    def end(self) -> None:
        """End all processes: SIGTERM first, then SIGKILL. Their output can still be read."""
        ...
