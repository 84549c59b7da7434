"""Functions to train on: real ones through Lithops, and simulated ones.

Each name is imported when it is first used: `worker.py` is beside them, and a function should be up soon.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlcd.clouds.functions.endpoints import Endpoints
    from mlcd.clouds.functions.lithops_functions import LithopsFunctions
    from mlcd.clouds.functions.simulated import SimulatedFunctions

_HOMES = {"Endpoints": "endpoints", "LithopsFunctions": "lithops_functions", "SimulatedFunctions": "simulated"}

__all__ = ["Endpoints", "LithopsFunctions", "SimulatedFunctions"]


def __getattr__(name: str) -> Any:
    """Import a name when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
