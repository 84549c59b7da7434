"""Falcon's key operators: the few kinds of operator that take most of a model's time and memory.

Wu et al., 'Serving Unseen Deep Learning Models with Near-Optimal Configurations', SoCC 2022, sections 2.3, 3.1 and 5.3.

Symbols   KOP   key operator: at least 5 % of the device's time, or of its memory
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from mlcd.service import ModelFacts

THRESHOLD = 0.05
"""Section 5.3, figure 14."""


def key_operators(facts: ModelFacts) -> Mapping[str, float]:
    """The KOPs of a model in Algorithm 1's descending order, each with the average of its two shares.

    Shares are averaged over the passes that were profiled. None at all where nobody looked.
    """
    time, memory = _shares(facts)
    key = {name for name in time if time[name] >= THRESHOLD or memory[name] >= THRESHOLD}
    both = {name: (time[name] + memory[name]) / 2 for name in key}
    return {name: both[name] for name in sorted(both, key=lambda name: (-both[name], name))}


def _shares(facts: ModelFacts) -> tuple[Mapping[str, float], Mapping[str, float]]:
    time: dict[str, float] = defaultdict(float)
    memory: dict[str, float] = defaultdict(float)
    for profile in facts.profiles:
        held_mb = sum(max(operator.memory_mb, 0.0) for operator in profile.operators)
        for operator in profile.operators:  # one that frees more than it takes counts as taking nothing
            time[operator.name] += operator.seconds / (profile.seconds or 1.0) / len(facts.profiles)
            memory[operator.name] += max(operator.memory_mb, 0.0) / (held_mb or 1.0) / len(facts.profiles)
    return time, memory
