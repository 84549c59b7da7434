"""What keeps a service that can be reached from doing its work."""

from __future__ import annotations

from mlcd.service.web.state import State

NO_WORKER = "no worker is running: what is submitted waits; start one with mlcd worker, or mlcd service --workers N"


def nobody_drives(here: State) -> str:
    """That no worker has shown a sign of life lately; '' where one has, and for one person, whose runs need none."""
    return NO_WORKER if here.settings.mode == "service" and here.crew.alive() == 0 else ""
