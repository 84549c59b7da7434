"""What stands between strangers and the routes. docs/reference/security.md says what it is for."""

from __future__ import annotations

from fastapi import FastAPI

from mlcd.service.web.safety.gate import Gate
from mlcd.service.web.safety.rates import Rates
from mlcd.service.web.safety.turns import Turns
from mlcd.service.web.state import State

__all__ = ["Gate", "Rates", "Turns", "protect"]


def protect(app: FastAPI, state: State) -> None:
    """Put the gate before all routes of this app."""
    app.state.rates, app.state.turns = Rates(state.settings.limits), Turns()
    app.add_middleware(Gate, state=state, rates=app.state.rates)
