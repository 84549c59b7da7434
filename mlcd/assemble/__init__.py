"""Names to objects: the one room that knows every strategy, cloud and profiler.

Only the way to this machine's ledger is imported at once, all else when it is first used: `mlcd runs` needs no method.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mlcd.assemble.home import home, launches, open_ledger

if TYPE_CHECKING:
    from mlcd.assemble.clouds import BACKENDS, Cloud, cloud
    from mlcd.assemble.functions import PlanAhead, boundary_of, plan_ahead
    from mlcd.assemble.methods import METHODS, method
    from mlcd.assemble.places.local import local_backend
    from mlcd.assemble.places.recorded import recorded_cloud
    from mlcd.assemble.places.skypilot import skypilot_cloud
    from mlcd.assemble.real_money import rents
    from mlcd.assemble.runs import (
        Listener,
        Run,
        beginning,
        decide_again,
        first_probes,
        go_on,
        resume,
        start,
        what_if,
    )

_ROOMS = {
    "clouds": ("BACKENDS", "Cloud", "cloud"),
    "places.local": ("local_backend",),
    "places.recorded": ("recorded_cloud",),
    "places.skypilot": ("skypilot_cloud",),
    "functions": ("PlanAhead", "boundary_of", "plan_ahead"),
    "methods": ("METHODS", "method"),
    "real_money": ("rents",),
    "runs": (
        "Listener",
        "Run",
        "beginning",
        "decide_again",
        "first_probes",
        "go_on",
        "resume",
        "start",
        "what_if",
    ),
}

__all__ = [
    "BACKENDS",
    "METHODS",
    "Cloud",
    "Listener",
    "PlanAhead",
    "Run",
    "beginning",
    "boundary_of",
    "cloud",
    "decide_again",
    "first_probes",
    "go_on",
    "home",
    "launches",
    "local_backend",
    "method",
    "open_ledger",
    "plan_ahead",
    "recorded_cloud",
    "rents",
    "resume",
    "skypilot_cloud",
    "start",
    "what_if",
]


def __getattr__(name: str) -> Any:
    """Import a name when it is first asked for."""
    for room, names in _ROOMS.items():
        if name in names:
            found = globals()[name] = getattr(import_module(f"mlcd.assemble.{room}"), name)
            return found
    raise AttributeError(f"module 'mlcd.assemble' has no attribute '{name}'")
