"""The one seam between MLCD and SkyPilot: all that is ever asked of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

CHECK = "check the network and your credentials: sky check"
"""What to do when SkyPilot cannot rent."""


class ClusterState(StrEnum):
    """Of a cluster that exists. One that is starting, or has lost nodes, is not UP."""

    UP = "up"
    NOT_UP = "not up"


class EndKind(StrEnum):
    """How a launch came to its end, as far as SkyPilot knows."""

    DONE = "done"
    FAILED = "failed"
    """The job, or its set-up."""
    NO_CAPACITY = "no capacity"
    """The machines could not be had; a later launch may find them."""
    NO_ACCESS = "no access"
    """SkyPilot may not use any cloud, or this user not SkyPilot: no other launch would fare better."""
    BROKEN = "broken"
    """SkyPilot, or the way to it."""


@dataclass(frozen=True)
class End:
    """The end of a launch, in one sentence."""

    kind: EndKind
    message: str = ""


class Following(Protocol):
    """A launch under way: the machines, then the job on them. Nothing here waits, but for `stop`."""

    def submitted(self) -> bool:
        """Whether the machines are up and have the job."""
        ...

    def read(self) -> str:
        """What the launch and then the job have written since it was last asked."""
        ...

    def end(self) -> End | None:
        """How it ended, None while it goes on."""
        ...

    def stop(self) -> None:
        """Listen no more. When this returns, nothing can come up any more that `Client.down` would not find."""
        ...


class Client(Protocol):
    """SkyPilot. What it cannot do, it raises as a `BackendError` of one sentence."""

    def launch(self, name: str, task: Mapping[str, Any]) -> Following:
        """Order a cluster of this name with the job on it; returns at once."""
        ...

    def follow(self, name: str) -> Following:
        """Follow the job of a cluster that is up, from its beginning; returns at once."""
        ...

    def state(self, name: str) -> ClusterState | None:
        """Of a cluster, as its cloud tells; None if there is none."""
        ...

    def down(self, name: str) -> None:
        """Stop launching it, if that is under way, and tear it down; nothing to do is fine."""
        ...

    def names(self) -> set[str]:
        """Of all clusters that exist."""
        ...

    def billed_s(self, name: str) -> float | None:
        """How long a cluster was up that is gone now; None if there never was one."""
        ...
