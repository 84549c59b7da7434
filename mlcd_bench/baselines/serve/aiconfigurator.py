"""NVIDIA's aiconfigurator: deployments in the order of its own estimates (`pip install 'mlcd[aiconfigurator]'`)."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

from mlcd.core.configuration import Space
from mlcd.core.errors import UserError
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.strategy import Step
from mlcd.planners.serve.known_models import Knowledge

NAME = "aiconfigurator"


def is_installed() -> bool:
    """Whether its package is here."""
    return find_spec(NAME) is not None


def not_installed() -> UserError:
    """What a user can do about it."""
    return UserError(f"{NAME} is not installed: pip install 'mlcd[{NAME}]'")


@dataclass(frozen=True)
class Aiconfigurator:
    """What it estimates to be best, in order; it learns nothing from its trials."""

    knowledge: Knowledge
    seed: int = 0

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """Refused where it is not installed."""
        raise not_installed()
