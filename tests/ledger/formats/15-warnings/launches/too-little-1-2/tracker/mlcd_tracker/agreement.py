"""What the workers of a job agree on while they train."""

from __future__ import annotations

from dataclasses import dataclass

Observation = tuple[float, float, float, float]
"""s, m, B and K of one step, as in noise.py."""


@dataclass(frozen=True)
class Told:
    """What rank 0 tells the others."""

    leave: bool = False
    wait: int = 1
    """Steps until the workers talk again."""
    measures: bool = True
    """Whether they measure then."""
    noise: float = 0.0
    """Bn in samples, for AdaScale; 0 while it is not known."""


@dataclass(frozen=True)
class Heard:
    """What was said in a step, and what that step measured."""

    told: Told
    seen: Observation | None = None
    steps_ago: int = 0
