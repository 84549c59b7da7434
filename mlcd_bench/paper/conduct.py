"""Runs a study and summarises its results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from mlcd_bench.paper.cloud import optimum
from mlcd_bench.paper.measures import median, training_ratio
from mlcd_bench.paper.study import Case, Finding, Runs, Study
from mlcd_bench.problems import Problem
from mlcd_bench.train import Result


@dataclass(frozen=True)
class Standing:
    """The results of an entrant in a case: medians over the seeds, totals with quartiles over the runs that chose."""

    case: str
    entrant: str
    runs: int
    chose: int
    over: int
    probes: float | None
    probing_hours: float | None
    probing_usd: float | None
    total_hours: tuple[float, float, float] | None
    total_usd: tuple[float, float, float] | None
    training_over_optimum: float | None


@dataclass(frozen=True)
class Step:
    """One probe of a search shown step by step."""

    instance_type: str
    nodes: int
    samples_per_s: float | None
    hours: float
    usd: float


@dataclass(frozen=True)
class Trace:
    """A search step by step, and its choice, for seed 0."""

    case: str
    entrant: str
    steps: tuple[Step, ...]
    chosen: tuple[str, int] | None
    optimum: tuple[str, int]


@dataclass(frozen=True)
class Outcome:
    """The results of a study."""

    study: Study
    seeds: int
    findings: tuple[Finding, ...]
    standings: tuple[Standing, ...]
    traces: tuple[Trace, ...]

    def document(self) -> dict[str, Any]:
        """As plain data: what `mlcd bench paper -o json` prints."""
        return {
            "study": self.study.name,
            "figures": list(self.study.figures),
            "title": self.study.title,
            "paper": self.study.paper,
            "ours": self.study.ours,
            "seeds": self.seeds,
            "claims": [
                {
                    "figure": finding.claim.figure,
                    "says": finding.claim.says,
                    "paper": finding.claim.short,
                    "paper_value": finding.claim.paper_value,
                    "entrant": finding.who,
                    "unit": str(finding.claim.unit),
                    "measured": finding.measured.value,
                    "p10": finding.measured.low,
                    "p90": finding.measured.high,
                    "verdict": str(finding.measured.verdict),
                }
                for finding in self.findings
            ],
            "standings": [asdict(standing) for standing in self.standings],
            "traces": [asdict(trace) for trace in self.traces],
        }


def size(study: Study, seeds: int) -> int:
    """How many runs `play` makes."""
    return len(study.cases(0)) * len(study.entrants) * seeds


def play(study: Study, seeds: int) -> Iterator[tuple[Case, int, Result]]:
    """Every case and entrant with every seed, one run at a time."""
    with threadpool_limits(1):  # the matrices are tiny, and arithmetic is the same on every machine
        for seed in range(seeds):
            for case in study.cases(seed):
                for entrant in study.entrants:
                    yield case, seed, entrant.play(case.problem, seed)


def conclude(study: Study, seeds: int, played: Sequence[tuple[Case, int, Result]]) -> Outcome:
    """Findings on each claim from the runs."""
    problems = {(case.label, seed): case.problem for case, seed, _ in played}
    runs = Runs(seeds, problems, {(case.label, result.method, seed): result for case, seed, result in played})
    findings = [Finding(claim, who, claim.measure(runs, who)) for claim in study.claims for who in claim.who]
    standings = [_standing(runs, case, entrant) for case in runs.cases for entrant in runs.entrants]
    traces = [_trace(runs, case, entrant) for case in runs.cases for entrant in study.traced]
    return Outcome(study, seeds, tuple(findings), tuple(standings), tuple(traces))


def conduct(study: Study, seeds: int) -> Outcome:
    """Run the whole study."""
    return conclude(study, seeds, list(play(study, seeds)))


def _standing(runs: Runs, case: str, entrant: str) -> Standing:
    results = runs.of(case, entrant)
    chose = [result for result in results if result.ratio is not None]
    return Standing(
        case,
        entrant,
        runs=len(results),
        chose=len(chose),
        over=sum(result.violated for result in results),
        probes=median([len(result.probes) for result in results]),
        probing_hours=median([result.probing_hours for result in results]),
        probing_usd=median([result.probing_usd for result in results]),
        total_hours=_quartiles([result.total_hours for result in chose]),
        total_usd=_quartiles([result.total_usd for result in chose]),
        training_over_optimum=median([training_ratio(runs, case, result) for result in results]),
    )


def _quartiles(values: Sequence[float]) -> tuple[float, float, float] | None:
    if not values:
        return None
    low, middle, high = (float(q) for q in np.quantile(values, (0.25, 0.5, 0.75)))
    return low, middle, high


def _trace(runs: Runs, case: str, entrant: str) -> Trace:
    result, problem = runs.results[case, entrant, 0], runs.problems[case, 0]
    best = optimum(problem)
    return Trace(case, entrant, tuple(_steps(problem, result)), result.chosen, (best.offer.instance_type, best.nodes))


def _steps(problem: Problem, result: Result) -> Iterator[Step]:
    """The probes with their times. A failed one takes half its time."""
    places = {(c.offer.instance_type, c.nodes): c for c in problem.recording.points}
    for probe in result.probes:
        configuration = places[probe["instance_type"], probe["nodes"]]
        rate = problem.recording.points[configuration].samples_per_s
        seconds = problem.recording.probe_time.seconds(configuration.nodes)
        seconds *= probe["fraction"] if rate is not None else 0.5
        yield Step(probe["instance_type"], probe["nodes"], rate, seconds / 3_600, configuration.usd(seconds))
