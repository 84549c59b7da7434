"""What a live backend has to bring: machines that are up, and processes on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class RunningProcess(Protocol):
    """A process of the job on one of the machines."""

    def status(self) -> int | None:
        """Its exit status, negative for a signal; None while it runs."""
        ...

    def read(self) -> str:
        """What it has written since it was last asked."""
        ...


class Machines(Protocol):
    """Machines that are up, until whoever brought them up tears them down."""

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where the nodes find each other, in order."""
        ...

    def start(self, node: int, command: str, environment: Mapping[str, str]) -> RunningProcess:
        """Start a shell command on a node, with these variables beside the machine's own."""
        ...

    def end(self) -> None:
        """End all processes, asked first and then killed. What they have written until then can be read."""
        ...
