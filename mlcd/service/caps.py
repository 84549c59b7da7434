"""How much one member may have of a service's workers, so that nobody starves the others."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Caps:
    """Of one member: `running` runs at once on all workers, `queued` runs that wait.

    Of one run that only computes, on a simulated or recorded cloud: `probes`, and seconds of computing.
    """

    running: int = 4
    queued: int = 50
    probes: int = 2_000
    computing_s: float = 1_800.0


CAPS = Caps()
