"""Key operators: the few kinds of operator that decide how a model behaves.

Wu et al., 'Serving Unseen Deep Learning Models with Near-Optimal Configurations' (Falcon), SoCC 2022, section 3.1: an
operator with at least 5 % of a model's computing time or of its memory is a key operator (KOP). Table 3 compares 1, 5
and 10 %. Algorithm 1 visits them by the mean of both shares, largest first.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlcd.planners.serve.nouns import Operator, Profile

KEY_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Part:
    """An operator's part in a pass: its shares of time and memory, each of 1, and if that makes it a key operator."""

    operator: Operator
    time_share: float
    memory_share: float
    key: bool

    @property
    def weight(self) -> float:
        """By which key operators are ordered."""
        return (self.time_share + self.memory_share) / 2


def parts(profile: Profile, threshold: float = KEY_SHARE) -> tuple[Part, ...]:
    """All operators of a pass, as the profile orders them. One that frees more memory than it takes takes none."""
    seconds = profile.seconds or 1.0
    held_mb = sum(max(each.memory_mb, 0.0) for each in profile.operators) or 1.0
    found = []
    for each in profile.operators:
        time_share, memory_share = each.seconds / seconds, max(each.memory_mb, 0.0) / held_mb
        found.append(Part(each, time_share, memory_share, max(time_share, memory_share) >= threshold))
    return tuple(found)


def key_operators(profile: Profile, threshold: float = KEY_SHARE) -> tuple[str, ...]:
    """The names of the key operators, that of the largest shares first."""
    found = sorted((part for part in parts(profile, threshold) if part.key), key=lambda part: -part.weight)
    return tuple(part.operator.name for part in found)
