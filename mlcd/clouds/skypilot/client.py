"""The interface between MLCD and SkyPilot: every request that MLCD makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

CHECK = "check the network and your credentials: sky check"
"""What to do when SkyPilot cannot rent."""


class ClusterState(StrEnum):
    """State of an existing cluster. One that is starting, or has lost nodes, is NOT_UP."""

    UP = "up"
    NOT_UP = "not up"


class EndKind(StrEnum):
    """How a launch ended, as far as SkyPilot knows."""

    DONE = "done"
    FAILED = "failed"
    """The job or its setup failed."""
    NO_CAPACITY = "no capacity"
    """The machines were not available; a later launch may get them."""
    NO_ACCESS = "no access"
    """SkyPilot cannot use any cloud, or this user cannot use SkyPilot: every other launch would fail, too."""
    BROKEN = "broken"
    """SkyPilot, or the connection to it, failed."""


@dataclass(frozen=True)
class End:
    """The end of a launch, in one sentence."""

    kind: EndKind
    message: str = ""


class Following(Protocol):
    """A launch in progress: the machines, then the job on them. Only `stop` blocks."""

    def submitted(self) -> bool:
        """Whether the machines are up and have the job."""
        ...

    def read(self) -> str:
        """Output of the launch, and then of the job, since the last call."""
        ...

    def end(self) -> End | None:
        """How it ended; None while it runs."""
        ...

    def stop(self) -> None:
        """Stop following. After this returns, `Client.down` finds everything that may still start."""
        ...


class Client(Protocol):
    """SkyPilot. Failures are raised as `BackendError` with a message of one sentence."""

    def launch(self, name: str, task: Mapping[str, Any]) -> Following:
        """Order a cluster of this name with the job on it; returns at once."""
        ...

    def follow(self, name: str) -> Following:
        """Follow the job of a running cluster from its beginning; returns at once."""
        ...

    def state(self, name: str) -> ClusterState | None:
        """The state of a cluster according to its cloud; None if it does not exist."""
        ...

    def down(self, name: str) -> None:
        """Cancel its launch, if that is in progress, and tear it down; no error if it does not exist."""
        ...

    def names(self) -> set[str]:
        """The names of all existing clusters."""
        ...

    def billed_s(self, name: str) -> float | None:
        """How long a cluster that is gone was up; None if it never existed."""
        ...
