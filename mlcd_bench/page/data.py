"""The data that the page of a comparison shows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spread:
    """Quantiles of the ratios: the box is q1 to q3, the whiskers p5 to p95."""

    p5: float
    q1: float
    median: float
    q3: float
    p95: float
    mean: float


@dataclass(frozen=True, slots=True)
class Standing:
    """Many runs of one method under one scenario and limit, pooled over recordings and seeds.

    `ratios` are those of the runs that chose a configuration that works; None if no run did. `whole_median` is over all
    runs, a refusal counting as worse than any ratio; None if most refuse. `over_low` and
    `over_high` are the 95 % interval (Wilson) of the share of runs past their limit.
    """

    method: str
    guarded: bool
    runs: int
    chose: int
    certified: int
    over: int
    over_low: float
    over_high: float
    certified_over: int
    ratios: Spread | None
    whole_median: float | None
    probing_share: float
    probes: float


@dataclass(frozen=True, slots=True)
class Panel:
    """A scenario under one limit factor: the methods, best median first.

    `best` has the lowest median over all its runs, refusals counting as worst, of those that never passed a limit.
    """

    scenario: str
    limit_factor: float | None
    standings: tuple[Standing, ...]
    best: str | None

    @property
    def title(self) -> str:
        """'fastest-within-budget, limit x3'."""
        return self.scenario + (f", limit x{self.limit_factor:g}" if self.limit_factor is not None else "")


@dataclass(frozen=True, slots=True)
class Duel:
    """One method against another over the same problems and seeds; a refusal is worse than any ratio.

    Gaps are ratio over ratio, minus one: 0.1 is 10 % worse. None if there is nothing to compare.
    """

    rival: str
    wins: int
    ties: int
    losses: int
    won_by: float | None
    lost_by: float | None
    worst_loss: float | None
    worst_on: str


@dataclass(frozen=True, slots=True)
class Place:
    """A recording under a scenario: the best method, and the method in focus. None: it refuses."""

    recording: str
    best: str
    best_median: float
    median: float | None


@dataclass(frozen=True, slots=True)
class Focus:
    """The method in focus: where it wins, and where it loses."""

    method: str
    duels: tuple[Duel, ...]
    places: tuple[tuple[Panel, tuple[Place, ...]], ...]


@dataclass(frozen=True, slots=True)
class Path:
    """One search: after each round the spending and the best training so far, both over the oracle's total."""

    method: str
    steps: tuple[tuple[float, float | None], ...]
    chosen: float | None


@dataclass(frozen=True, slots=True)
class Trace:
    """The searches of several methods on one problem with one seed."""

    recording: str
    scenario: str
    limit_factor: float | None
    seed: int
    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Contest:
    """All data of the page."""

    panels: tuple[Panel, ...]
    focus: Focus | None
    traces: tuple[Trace, ...]
    recordings: tuple[str, ...]
    runs: int
    facts: tuple[tuple[str, str], ...]
    crashes: tuple[str, ...] = ()
