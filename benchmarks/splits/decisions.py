"""Decisions on held-out recordings: net value as shipped, compared with its lower bound and other methods.

Fastest without a limit; cheapest by a deadline, fastest within a budget, at 1.2, 1.5 and 3 times the possible. Probes
have 3 % noise. The lower bound is an oracle that must still certify: one whole probe of the right configuration.
Ratios are totals over an oracle that knows every rate and probes nothing, of runs with a choice.

Net value has four seeds, the others two. It uses only code that earlier versions have, too. When tuning net value, do
not look at single recordings: tables have totals only, and the single results are in the JSON.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp
from pathlib import Path

import numpy as np

from benchmarks.splits import made_decisions
from benchmarks.splits.measured_elsewhere import measured_elsewhere
from benchmarks.unusual.made_recordings import made as made_unlike
from mlcd.clouds.recording import Recording
from mlcd.core.job import Objective
from mlcd_bench.contest import Crash, Task, contest
from mlcd_bench.problems import Problem, Scenario, training_hours
from mlcd_bench.problems import problems as problems_of
from mlcd_bench.train import Result, Setting

SPLIT = (
    "By source: net value was made and tuned on the shared recordings of training (Pollux, Sia, Scout) and looked at "
    "14 kinds of made ones; held out are 26 jobs of four other public sources (MPT training by mosaic, Ribbon, "
    "LLM-Pilot, LLM deployments on silicon), 12 recordings by four laws that its model does not have, and 12 of other "
    "kinds or seeds of benchmarks/unlike (seeds 900 and up)."
)
FACTORS = (1.2, 1.5, 3.0)
SEEDS, RIVAL_SEEDS = 4, 2
NOISE, CERTIFICATE_Z = 0.03, 3.0
WHOLE = Setting(noise=NOISE)
SHIPS = "net-value"
METHODS = {
    SHIPS: ("net-value+guard", replace(WHOLE, early_look=0.3, parallel=4)),
    "heterbo": ("heterbo+guard", WHOLE),
    "cherrypick": ("cherrypick-improved+guard", WHOLE),
}
AHEAD_BY = 1.05
"""Another method is ahead on a recording if net value's median is more than this times its median."""
OTHER_LAWS = tuple((law, seed) for law in made_decisions.LAWS for seed in (1, 2, 3))
UNLIKE = tuple(
    (kind, 900 + i)
    for i, kind in enumerate(
        ("amdahl", "comm", "super", "cliffup", "osc", "step", "oom", "oomlinear", "fails", "random", "cpu", "pow2")
    )
)

Row = dict[str, object]


@dataclass(frozen=True)
class PosedProblem:
    """A problem, its source, and the lower bound over the oracle; None if nothing can be certified."""

    source: str
    problem: Problem
    floor: float | None


def recordings(shared: Path) -> dict[str, list[Recording]]:
    """All held-out recordings, by source."""
    return {
        **measured_elsewhere(shared),
        "made by other laws": [made_decisions.made(law, seed) for law, seed in OTHER_LAWS],
        "made, unlike real ones": [made_unlike(kind, seed) for kind, seed in UNLIKE],
    }


def make_problems(shared: Path) -> list[PosedProblem]:
    """Every problem of every recording."""
    return [
        PosedProblem(source, problem, floor(problem))
        for source, group in recordings(shared).items()
        for problem in problems_of(group, list(Scenario), FACTORS)
    ]


def floor(problem: Problem) -> float | None:
    """The least total of one whole probe and training, over the oracle's, if it can be certified."""
    cheapest, goal = problem.scenario.objective is Objective.CHEAPEST, problem.job.goal
    slower = exp(CERTIFICATE_Z * NOISE)
    ratios = []
    for where in problem.recording.points:
        hours = training_hours(problem.recording, where)
        if hours is None:
            continue
        probe_s, probe_usd = problem.space.worst_probe(where)
        usd = hours * where.usd_per_hour
        if goal.allows(probe_usd + usd * slower, probe_s + hours * 3_600 * slower):
            total = (probe_usd + usd) / problem.oracle_usd, (probe_s / 3_600 + hours) / problem.oracle_hours
            ratios.append(total[0] if cheapest else total[1])
    return min(ratios, default=None)


def run_method(
    method: str, problems: Sequence[PosedProblem], seeds: Sequence[int]
) -> list[tuple[PosedProblem, Result]]:
    """Run one method on every problem with every seed."""
    name, setting = METHODS[method]
    todo = [Task(i, name, seed) for i in range(len(problems)) for seed in seeds]
    found = []
    for task, outcome in contest([each.problem for each in problems], todo, setting):
        if isinstance(outcome, Crash):
            raise RuntimeError(f"crashed: {outcome}")
        found.append((problems[task.problem], outcome))
        if len(found) % 50 == 0 and sys.stderr.isatty():
            print(f"\r{method}: {len(found):,} of {len(todo):,}", end="", file=sys.stderr, flush=True)
    return found


def run(shared: Path, seeds: int = SEEDS, rival_seeds: int = RIVAL_SEEDS) -> list[Row]:
    """Figures by source, by limit, and of all; other methods; and how often one of them is ahead on a recording."""
    problems = make_problems(shared)
    ships = run_method(SHIPS, problems, range(seeds))
    rows = [_row("all", SHIPS, ships), _floor_row("all", problems)]
    for source in dict.fromkeys(each.source for each in problems):
        rows.append(_row(source, SHIPS, [(each, result) for each, result in ships if each.source == source]))
        rows.append(_floor_row(source, [each for each in problems if each.source == source]))
    for name, limit in {_limit(each): None for each in problems}:
        within = [(each, result) for each, result in ships if _limit(each) == (name, limit)]
        rows.append(_row(_words(name, limit), SHIPS, within))
        rows.append(_floor_row(_words(name, limit), [each for each in problems if _limit(each) == (name, limit)]))
    rivals = {rival: run_method(rival, problems, range(rival_seeds)) for rival in METHODS if rival != SHIPS}
    rows += [_row("all", rival, results) for rival, results in rivals.items()]
    return [*rows, *_rivals_ahead(ships, rivals)]


def _limit(each: PosedProblem) -> tuple[str, float]:
    return str(each.problem.scenario), each.problem.limit_factor or 0.0


def _words(scenario: str, factor: float) -> str:
    return f"{scenario.replace('-', ' ')}, x{factor:g}" if factor else scenario


def _row(of: str, method: str, results: Sequence[tuple[PosedProblem, Result]]) -> Row:
    limited = [result for _, result in results if result.limit is not None]
    return {
        "problems of": of,
        "method": method,
        "runs": len(results),
        **_ratios([result.ratio for _, result in results if result.ratio is not None]),
        "certified %": _percent(sum(result.certified for result in limited), len(limited)),
        "over the limit": sum(result.violated for _, result in results),
        "spent by refused %": _spent_by_refused(limited),
    }


def _floor_row(of: str, problems: Sequence[PosedProblem]) -> Row:
    limited = [each for each in problems if each.problem.limit is not None]
    return {
        "problems of": of,
        "method": "floor",
        "runs": len(problems),
        **_ratios([each.floor for each in problems if each.floor is not None]),
        "certified %": _percent(sum(each.floor is not None for each in limited), len(limited)),
        "over the limit": 0,
        "spent by refused %": None,
    }


def _ratios(ratios: Sequence[float]) -> Row:
    if not ratios:
        return {"median": None, "mean": None, "p95": None}
    values = np.array(ratios)
    median, p95 = np.quantile(values, [0.5, 0.95])
    return {"median": float(median), "mean": float(values.mean()), "p95": float(p95)}


def _percent(some: int, of: int) -> float | None:
    return 100 * some / of if of else None


def _spent_by_refused(limited: Sequence[Result]) -> float | None:
    """The mean share of the limit that was spent where nothing could be certified."""
    shares = []
    for result in limited:
        if not result.certified and result.limit is not None:
            hours = result.scenario == Scenario.CHEAPEST_BY_DEADLINE
            shares.append((result.probing_hours if hours else result.probing_usd) / result.limit)
    return 100 * float(np.mean(shares)) if shares else None


def _rivals_ahead(
    ships: Sequence[tuple[PosedProblem, Result]], rivals: Mapping[str, Sequence[tuple[PosedProblem, Result]]]
) -> list[Row]:
    """On how many recordings another method's median is better by more than 5 %. Which ones is only in the JSON.

    A refusal counts as worst, so that a method that refuses hard problems does not look better.
    """
    own = _medians(ships)
    others = {rival: _medians(results) for rival, results in rivals.items()}
    better = {name: min(medians[name] for medians in others.values()) for name in own}
    rows: list[Row] = []
    for rival, medians in {**others, "the better of them": better}.items():
        behind = {name: 1.0 if own[name] == medians[name] else own[name] / medians[name] for name in own}
        ahead = sorted((ratio for ratio in behind.values() if ratio > AHEAD_BY), reverse=True)
        rows.append(
            {
                "recordings": f"net-value's median against {rival}",
                "recordings in all": len(behind),
                "behind by over 5 %": len(ahead),
                "furthest behind": max(behind.values()),
                "median of the medians' ratio": float(np.median(list(behind.values()))),
                "details": behind,
            }
        )
    return rows


def _medians(results: Sequence[tuple[PosedProblem, Result]]) -> dict[str, float]:
    """The median over each recording's problems."""
    places: defaultdict[str, list[float]] = defaultdict(list)
    for each, result in results:
        places[each.problem.recording.name].append(np.inf if result.ratio is None else result.ratio)
    return {name: float(np.quantile(ratios, 0.5, method="lower")) for name, ratios in places.items()}
