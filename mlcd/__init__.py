"""MLCD finds the right cloud configuration for a machine-learning job, and runs it within budget and deadline.

    import mlcd

    job = mlcd.load_job("job.yaml")
    run = mlcd.start(job, mlcd.open_ledger())
    decision = run.search()
    if decision.certified:
        run.launch()

The names below are the public ones; docs/reference/python.md describes them. Each is imported when it
is first used, so that `mlcd --help` does not wait for numpy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mlcd.version import VERSION

if TYPE_CHECKING:
    from mlcd.assemble import Run, open_ledger, resume, start, what_if
    from mlcd.backend import Backend
    from mlcd.backends import load_recording
    from mlcd.catalog import load_offers
    from mlcd.configuration import Configuration, Offer, Space
    from mlcd.decision import Decision
    from mlcd.errors import MlcdError
    from mlcd.history import History
    from mlcd.job import Elastic, Goal, Hints, Job, Mode, Objective, Search, Target
    from mlcd.jobfile import load_job
    from mlcd.ledger import Ledger
    from mlcd.measurement import Measurement, Outcome
    from mlcd.strategy import Strategy

_HOMES = {
    "Backend": "mlcd.backend",
    "Configuration": "mlcd.configuration",
    "Decision": "mlcd.decision",
    "Elastic": "mlcd.job",
    "Goal": "mlcd.job",
    "Hints": "mlcd.job",
    "History": "mlcd.history",
    "Job": "mlcd.job",
    "Ledger": "mlcd.ledger",
    "Measurement": "mlcd.measurement",
    "MlcdError": "mlcd.errors",
    "Mode": "mlcd.job",
    "Objective": "mlcd.job",
    "Offer": "mlcd.configuration",
    "Outcome": "mlcd.measurement",
    "Run": "mlcd.assemble",
    "Search": "mlcd.job",
    "Space": "mlcd.configuration",
    "Strategy": "mlcd.strategy",
    "Target": "mlcd.job",
    "load_job": "mlcd.jobfile",
    "load_offers": "mlcd.catalog",
    "load_recording": "mlcd.backends",
    "open_ledger": "mlcd.assemble",
    "resume": "mlcd.assemble",
    "start": "mlcd.assemble",
    "what_if": "mlcd.assemble",
}

__version__ = VERSION

__all__ = [
    "Backend",
    "Configuration",
    "Decision",
    "Elastic",
    "Goal",
    "Hints",
    "History",
    "Job",
    "Ledger",
    "Measurement",
    "MlcdError",
    "Mode",
    "Objective",
    "Offer",
    "Outcome",
    "Run",
    "Search",
    "Space",
    "Strategy",
    "Target",
    "__version__",
    "load_job",
    "load_offers",
    "load_recording",
    "open_ledger",
    "resume",
    "start",
    "what_if",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module 'mlcd' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """The public names."""
    return __all__
