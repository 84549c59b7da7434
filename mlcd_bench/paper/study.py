"""The parts of a study that reruns an experiment of the paper.

A study has cases (a problem for each seed), entrants that run on them, and claims of the paper that are checked against
the runs. The paper's numbers are constants; measured numbers are always computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from mlcd_bench.problems import Problem
from mlcd_bench.train import Result


class Verdict(StrEnum):
    """Whether a claim of the paper holds on the simulated cloud."""

    HOLDS = "holds"
    SMALLER = "smaller"
    """The right direction, but less than the paper's number."""
    IN_PART = "in part"
    """A claim about every run that holds for at least half of them."""
    NEARLY = "nearly"
    """Not the optimum, but within 10 % of it."""
    FAILS = "does not hold"


class Unit(StrEnum):
    """The unit of a measured number."""

    TIMES = "times"
    SHARE = "share"
    COUNT = "count"


class Entrant(Protocol):
    """A method with the settings of the study."""

    @property
    def label(self) -> str:
        """Its name in tables."""
        ...

    def play(self, problem: Problem, seed: int) -> Result:
        """One run."""
        ...


@dataclass(frozen=True)
class Case:
    """A problem of one seed: the seed determines the cloud, the noise of probes and the methods' random numbers."""

    label: str
    problem: Problem


@dataclass(frozen=True)
class Runs:
    """All runs of a study."""

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
    """A median over seeds, the 10th and 90th percentile, and the verdict on the claim. None: nothing to measure."""

    value: float | None
    low: float | None
    high: float | None
    verdict: Verdict


Measure = Callable[[Runs, str], Measured]
"""Measures a claim, given all runs and the label of its entrant."""


@dataclass(frozen=True)
class Claim:
    """A claim of the paper: its words, its number, the entrants it is tested on, and how it is measured.

    `paper_value` is the paper's number; None if it states none. `short` is a short form.
    """

    figure: str
    says: str
    short: str
    paper_value: float | None
    who: tuple[str, ...]
    unit: Unit
    measure: Measure


@dataclass(frozen=True)
class Finding:
    """A claim and its result for one entrant."""

    claim: Claim
    who: str
    measured: Measured


@dataclass(frozen=True)
class Study:
    """One experiment of the paper: what it did, what we do instead, and its claims."""

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
    """Entrants whose searches are shown step by step."""

    @property
    def where(self) -> str:
        """The figures in words: 'Fig. 9-11'."""
        first, last = self.figures[0], self.figures[-1]
        run = self.figures == tuple(range(first, last + 1))
        listed = f"{first}-{last}" if run and last > first else ", ".join(map(str, self.figures))
        return f"Fig. {listed}"
