"""Protection of the routes against untrusted clients. The threats: docs/reference/security.md."""

from __future__ import annotations

from fastapi import FastAPI

from mlcd.service.web.safety.concurrency import ConcurrencyLimits
from mlcd.service.web.safety.gate import Gate
from mlcd.service.web.safety.rate_limits import RateLimits
from mlcd.service.web.state import State

__all__ = ["ConcurrencyLimits", "Gate", "RateLimits", "protect"]


def protect(app: FastAPI, state: State) -> None:
    """Put the gate in front of all routes of this app."""
    app.state.rates, app.state.concurrency = RateLimits(state.settings.limits), ConcurrencyLimits()
    app.add_middleware(Gate, state=state, rates=app.state.rates)
