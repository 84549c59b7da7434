"""What a rerun of the paper's experiments is made of.

A study poses cases (a problem for each seed), lets entrants play them, and then asks each claim of the paper
what the runs say about it. What the paper says is written down; what was measured is always computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from mlcd_bench.problems import Problem
from mlcd_bench.train import Result


class Verdict(StrEnum):
    """How a statement of the paper fares on the simulated cloud."""

    HOLDS = "holds"
    SMALLER = "smaller"
    """The right direction, but less than the paper's number."""
    IN_PART = "in part"
    """A statement about every run that is true of at least half of them."""
    NEARLY = "nearly"
    """Not the optimum, but within a tenth of it."""
    FAILS = "does not hold"


class Unit(StrEnum):
    """What a measured number counts."""

    TIMES = "times"
    SHARE = "share"
    COUNT = "count"


class Entrant(Protocol):
    """Somebody who plays: a method as the study lets it run."""

    @property
    def label(self) -> str:
        """How tables call it."""
        ...

    def play(self, problem: Problem, seed: int) -> Result:
        """One run."""
        ...


@dataclass(frozen=True)
class Case:
    """A problem of one seed: the seed draws the cloud, the noise of probes and whatever methods draw."""

    label: str
    problem: Problem


@dataclass(frozen=True)
class Runs:
    """Everything that was played in a study."""

    seeds: int
    problems: Mapping[tuple[str, int], Problem]
    results: Mapping[tuple[str, str, int], Result]

    @property
    def cases(self) -> list[str]:
        """Labels of the cases, in their order."""
        return list(dict.fromkeys(case for case, _ in self.problems))

    @property
    def entrants(self) -> list[str]:
        """Labels of the entrants, in their order."""
        return list(dict.fromkeys(entrant for _, entrant, _ in self.results))

    def of(self, case: str, entrant: str) -> list[Result]:
        """The runs of an entrant in a case, by seed."""
        return [self.results[case, entrant, seed] for seed in range(self.seeds)]


@dataclass(frozen=True)
class Measured:
    """A median over seeds, the 10th and 90th percentile, and what follows for the claim. None: nothing to measure."""

    value: float | None
    low: float | None
    high: float | None
    verdict: Verdict


Measure = Callable[[Runs, str], Measured]
"""From all runs and the label of whom the claim is about."""


@dataclass(frozen=True)
class Claim:
    """A statement of the paper: its words, its number, whom we test it on, and how it is measured.

    `said` is the number as the paper gives it; None where it states no number. `told` says it in short.
    """

    figure: str
    says: str
    told: str
    said: float | None
    who: tuple[str, ...]
    unit: Unit
    measure: Measure


@dataclass(frozen=True)
class Finding:
    """A claim, and what the runs of one entrant say about it."""

    claim: Claim
    who: str
    measured: Measured


@dataclass(frozen=True)
class Study:
    """One experiment of the paper: what it did, what we do in its place, and its claims."""

    name: str
    figures: tuple[int, ...]
    title: str
    paper: str
    ours: str
    cases: Callable[[int], list[Case]]
    entrants: tuple[Entrant, ...]
    claims: tuple[Claim, ...]
    seeds: int = 20
    traced: tuple[str, ...] = field(default=())
    """Whose searches are shown step by step."""

    @property
    def where(self) -> str:
        """The figures in words: 'Fig. 9-11'."""
        first, last = self.figures[0], self.figures[-1]
        run = self.figures == tuple(range(first, last + 1))
        listed = f"{first}-{last}" if run and last > first else ", ".join(map(str, self.figures))
        return f"Fig. {listed}"
