"""A few searches as curves: spending against the best training found so far."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import inf

from mlcd.core.configuration import Configuration
from mlcd_bench.methods import GUARDED
from mlcd_bench.page import Panel, Path, Trace
from mlcd_bench.problems import Problem, Scenario, training_hours
from mlcd_bench.train import Result

MOST_TRACES, MOST_METHODS = 4, 6
SHOWN_FIRST = ("net-value+guard", "heterbo+guard", "convbo", "cherrypick")


def traces(problems: Sequence[Problem], results: Sequence[Result], panels: Sequence[Panel]) -> list[Trace]:
    """A sample of problems, each with the lowest seed and a few methods."""
    if not results or not problems:
        return []
    seed, methods = min(result.seed for result in results), _methods(results, panels)
    found = []
    for problem in _spread_out(problems):
        mine = (problem.recording.name, str(problem.scenario), problem.limit_factor, seed)
        at = {r.method: r for r in results if (r.recording, r.scenario, r.limit_factor, r.seed) == mine}
        paths = tuple(_path(problem, at[name]) for name in methods if name in at)
        found.append(Trace(problem.recording.name, str(problem.scenario), problem.limit_factor, seed, paths))
    return found


def _methods(results: Sequence[Result], panels: Sequence[Panel]) -> list[str]:
    took_part = dict.fromkeys(result.method for result in results)
    best = [standing.method for panel in panels for standing in panel.standings[:2]]
    found: dict[str, str] = {}
    for name in (*SHOWN_FIRST, *best, *took_part):  # only one form of each method: raw and guarded often coincide
        if name in took_part:
            found.setdefault(name.removesuffix(GUARDED), name)
    return list(found.values())[:MOST_METHODS]


def _spread_out(problems: Sequence[Problem]) -> list[Problem]:
    """Different recordings under different scenarios, evenly over the list."""
    count = min(MOST_TRACES, len(problems))
    return [problems[i * (len(problems) - 1) // max(1, count - 1)] for i in range(count)]


def _path(problem: Problem, result: Result) -> Path:
    """The search round by round, with the true rates of the recording instead of the measured ones."""
    by_name = {(c.offer.instance_type, c.nodes): c for c in problem.space.configurations}
    cheapest = problem.scenario is Scenario.CHEAPEST_BY_DEADLINE
    oracle = problem.oracle_usd if cheapest else problem.oracle_hours
    gone, best = 0.0, inf
    steps: list[tuple[float, float | None]] = [(0.0, None)]
    for _, probes in groupby(result.probes, key=lambda probe: probe["round"]):
        places = [(by_name[p["instance_type"], p["nodes"]], float(p["fraction"])) for p in probes]
        hours = [_probe_hours(problem, place, fraction) for place, fraction in places]
        paid = [took * place.usd_per_hour for took, (place, _) in zip(hours, places, strict=True)]
        gone += sum(paid) if cheapest else max(hours)
        best = min(best, *(_training(problem, place, cheapest) for place, _ in places if _within(problem, place)), inf)
        steps.append((gone / oracle, best / oracle if best < inf else None))
    chosen = by_name[result.chosen] if result.chosen is not None and result.ratio is not None else None
    return Path(result.method, tuple(steps), _training(problem, chosen, cheapest) / oracle if chosen else None)


def _probe_hours(problem: Problem, configuration: Configuration, fraction: float) -> float:
    whole_s = problem.recording.probe_time.seconds(configuration.nodes) * fraction
    return whole_s / 3_600 * (1 if training_hours(problem.recording, configuration) is not None else 0.5)


def _training(problem: Problem, configuration: Configuration, cheapest: bool) -> float:
    """Hours or dollars of training there; infinite if it fails."""
    hours = training_hours(problem.recording, configuration)
    if hours is None:
        return inf
    return hours * configuration.usd_per_hour if cheapest else hours


def _within(problem: Problem, configuration: Configuration) -> bool:
    """Whether training there, without probes, is within the limit."""
    if problem.limit is None:
        return True
    by_deadline = problem.job.goal.deadline_s is not None
    return _training(problem, configuration, cheapest=not by_deadline) <= problem.limit
