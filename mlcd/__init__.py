"""MLCD finds the right cloud configuration for a machine-learning job, and runs it within budget and deadline.

    import mlcd

    job = mlcd.load_job("job.yaml")
    run = mlcd.start(job, mlcd.open_ledger())
    decision = run.search()
    if decision.certified:
        run.launch()

The names below are public; docs/reference/python.md describes them. Each is imported on first use, so that
`mlcd --help` does not wait for numpy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mlcd.core.version import VERSION

if TYPE_CHECKING:
    from mlcd.catalog import load_offers
    from mlcd.clouds.recording import load_recording
    from mlcd.core.backend import Backend
    from mlcd.core.configuration import Configuration, Offer, Space
    from mlcd.core.decision import Decision
    from mlcd.core.errors import MlcdError
    from mlcd.core.history import History
    from mlcd.core.home import open_ledger
    from mlcd.core.job import Goal, Hints, Job, Objective, Search, Target
    from mlcd.core.ledger import Ledger
    from mlcd.core.measurement import Measurement, Outcome
    from mlcd.core.runs.run import Run, resume, start, what_if
    from mlcd.core.strategy import Strategy
    from mlcd.planners.jobfile.read import load_job
    from mlcd.planners.scale.nouns import Mode, ScalingTask

_MODULES = {
    "Backend": "mlcd.core.backend",
    "Configuration": "mlcd.core.configuration",
    "Decision": "mlcd.core.decision",
    "ScalingTask": "mlcd.planners.scale.nouns",
    "Goal": "mlcd.core.job",
    "Hints": "mlcd.core.job",
    "History": "mlcd.core.history",
    "Job": "mlcd.core.job",
    "Ledger": "mlcd.core.ledger",
    "Measurement": "mlcd.core.measurement",
    "MlcdError": "mlcd.core.errors",
    "Mode": "mlcd.planners.scale.nouns",
    "Objective": "mlcd.core.job",
    "Offer": "mlcd.core.configuration",
    "Outcome": "mlcd.core.measurement",
    "Run": "mlcd.core.runs.run",
    "Search": "mlcd.core.job",
    "Space": "mlcd.core.configuration",
    "Strategy": "mlcd.core.strategy",
    "Target": "mlcd.core.job",
    "load_job": "mlcd.planners.jobfile.read",
    "load_offers": "mlcd.catalog",
    "load_recording": "mlcd.clouds.recording",
    "open_ledger": "mlcd.core.home",
    "resume": "mlcd.core.runs.run",
    "start": "mlcd.core.runs.run",
    "what_if": "mlcd.core.runs.run",
}

__version__ = VERSION

__all__ = [
    "Backend",
    "Configuration",
    "Decision",
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
    "ScalingTask",
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
    """Import a public name on first use."""
    if name not in _MODULES:
        raise AttributeError(f"module 'mlcd' has no attribute '{name}'")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    """The public names."""
    return __all__
