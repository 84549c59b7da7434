"""Why a service that is reachable does not drive runs."""

from __future__ import annotations

from mlcd.service.web.state import State

NO_WORKER = "no worker is running: submitted runs wait; start one with mlcd worker, or mlcd service --workers N"


def missing_workers(state: State) -> str:
    """A message if no worker has a recent heartbeat, else ''; always '' in ui mode, which needs no workers."""
    return NO_WORKER if state.settings.mode == "service" and state.crew.alive() == 0 else ""
