"""What holds wherever machines are real."""

from __future__ import annotations

from mlcd.core.backend import Backend
from mlcd.planners.profilers.training import TrainingProfiler

LIVE_NOISE = 0.02
"""Relative error that is assumed of a real probe at the least: minutes cannot see what hours bring."""

LIVE_SETTLES_S = 60.0
"""Real rates wander: neighbours, caches, clocks. Ten seconds differed from the next ten by 8 % on a quiet machine."""


def live_profiler(backend: Backend) -> TrainingProfiler:
    """Ends a probe once its rate is known about as well as minutes allow."""
    # Tight is wider than the noise that is assumed at the least: otherwise no probe would ever end before its time.
    return TrainingProfiler(backend, noise_floor=LIVE_NOISE, settles_s=LIVE_SETTLES_S, tight=4 * LIVE_NOISE)
