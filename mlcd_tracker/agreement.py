"""Messages between the workers of a job, by which they act in the same step."""

from __future__ import annotations

from dataclasses import dataclass

Observation = tuple[float, float, float, float]
"""s, m, B and K of one step; symbols as in noise.py."""


@dataclass(frozen=True)
class Instructions:
    """Rank 0's instructions to all workers."""

    leave: bool = False
    wait: int = 1
    """Steps until the next exchange."""
    measures: bool = True
    """Whether the workers measure the noise in that step."""
    noise: float = 0.0
    """Bn in samples, for AdaScale; 0 while unknown."""


@dataclass(frozen=True)
class ExchangeResult:
    """The result of an exchange: instructions, and the observation if that step measured the noise."""

    instructions: Instructions
    observation: Observation | None = None
    steps_ago: int = 0
