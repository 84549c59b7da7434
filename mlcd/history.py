"""What a search has seen so far: all that a strategy may know. It is a replay of the ledger."""

from __future__ import annotations

from dataclasses import dataclass

from mlcd.configuration import Configuration
from mlcd.measurement import Measurement, Outcome


@dataclass(frozen=True, slots=True)
class Refusal:
    """A probe that was asked for and not allowed."""

    configuration: Configuration
    because: str


@dataclass(frozen=True, slots=True)
class History:
    """Measurements and refusals in the order they came, and what is gone of the limits.

    `measurements` are the probes, `runs` the launches of the job itself.
    """

    measurements: tuple[Measurement, ...] = ()
    runs: tuple[Measurement, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    spent_usd: float = 0.0
    elapsed_s: float = 0.0

    @property
    def good(self) -> tuple[Measurement, ...]:
        """The newest measurement of each configuration that has a rate, in the order they came."""
        newest = {m.configuration: m for m in self.measurements if m.ok}
        return tuple(newest.values())

    @property
    def tried(self) -> frozenset[Configuration]:
        """Configurations with an answer: measured, whatever came out, or refused. Ctrl-C is not an answer."""
        measured = {m.configuration for m in self.measurements if m.outcome is not Outcome.INTERRUPTED}
        return frozenset(measured | {refusal.configuration for refusal in self.refusals})
