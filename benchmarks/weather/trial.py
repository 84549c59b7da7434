"""One search and its run in some weather, by the product's own path; and the result."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import exp

from weather.backend import WeatheredCloud
from weather.conditions import ALL, ASSUMED_NOISE, Weather

from mlcd.clouds.places.recorded import recorded_cloud
from mlcd.core.clock import VirtualClock
from mlcd.core.decision import Decision, Relaxation
from mlcd.core.drive import launch, search
from mlcd.core.job import Goal, Job, Objective
from mlcd.core.ledger import Book, Ledger, Started
from mlcd.core.planner import planner_of
from mlcd.core.runs.run import with_probe_limit
from mlcd.core.version import VERSION
from mlcd.memory.earlier_runs import earlier_measurements
from mlcd.planners.modeling.outlook import usual_probe_limit
from mlcd.planners.profilers.training import TrainingProfiler
from mlcd_bench.problems import Problem, training_hours

CERTIFICATE_Z = 3.0
"""Standard errors assumed by the oracle for wrong refusals; not the product's constant, which may change."""
REPEAT_SEED = 1_000_003
"""Added to the seed when a search is repeated, for other weather."""
RELAXED_MORE = 1.07
"""Factor on a named limit: a new search spends and measures slightly differently."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The setting of all searches. `relaxations`: repeat refused ones with the relaxation that they name."""

    checkpoints: bool = False
    max_probe: bool = True
    relaxations: bool = False


@dataclass(frozen=True, slots=True)
class Task:
    """A search to make: its weather, the index of its problem, and its seed."""

    row: str
    problem: int
    seed: int


@dataclass(slots=True)
class Trial:
    """The result of a search and its run.

    `confidence`: the stated probability, None where none is stated. `kept`: the job ended within its limit.
    `ratio`: total over oracle of what was run, finished or not. `probing`: share of the limit that probes took.
    `possible`: one whole probe of some configuration could have been certified. `relaxed`: whether searching again,
    fresh, with the first way out that was named ends certified; `relaxed_more`: with 2 % more than that;
    `relaxed_known`: with this search known. None where it was not tried, or nothing was named.
    """

    row: str
    recording: str
    scenario: str
    factor: float
    seed: int
    certified: bool
    confidence: float | None
    kept: bool | None
    over: bool
    launches: int
    ratio: float | None
    probing: float
    possible: bool
    named: bool = False
    relaxed: bool | None = None
    relaxed_more: bool | None = None
    relaxed_known: bool | None = None


def run_trial(task: Task, problems: Sequence[Problem], setting: Setting) -> Trial:
    """Search, decide and, if anything was chosen, run it."""
    problem, weather = problems[task.problem], ALL[task.row]
    job = _job(problem, problem.job.goal, task.seed, setting)
    ledger = Ledger(None)
    book, decision, profiler = _search(job, problem, weather, task.seed, ledger)
    searched = book.account.history
    kept = None
    if decision.configuration is not None:
        launch(planner_of(job).run_strategy(job, decision, searched), job, problem.space, profiler, book)
        kept = book.account.ended is not None and book.account.ended.finished
    history = book.account.history
    assert problem.limit_factor is not None, "only limited problems"
    trial = Trial(
        row=task.row,
        recording=problem.recording.name,
        scenario=str(problem.scenario),
        factor=problem.limit_factor,
        seed=task.seed,
        certified=decision.certified,
        confidence=getattr(decision, "confidence", None),
        kept=kept,
        over=not job.goal.allows(history.spent_usd / (1 + 1e-9), history.elapsed_s / (1 + 1e-9)),
        launches=len(history.runs),
        ratio=_ratio(problem, history.spent_usd, history.elapsed_s) if kept is not None else None,
        probing=_share(job.goal, searched.spent_usd, searched.elapsed_s),
        possible=certifiable(problem, job.goal),
    )
    if setting.relaxations and decision.configuration is None:
        _try_relaxation(trial, decision, problem, weather, setting, ledger)
    ledger.close()
    return trial


def _job(problem: Problem, goal: Goal, seed: int, setting: Setting) -> Job:
    """The job with the default price limit for probes."""
    on = f"recorded:{problem.recording.name}"  # of a simulated cloud, each seed is another job
    job = replace(problem.job, goal=goal, on=on, checkpoints=setting.checkpoints)
    job = replace(job, search=replace(job.search, seed=seed))
    return with_probe_limit(job, usual_probe_limit(job, problem.space)) if setting.max_probe else job


def _search(
    job: Job, problem: Problem, weather: Weather, seed: int, ledger: Ledger
) -> tuple[Book, Decision, TrainingProfiler]:
    """Search as `mlcd train` on a recorded cloud, with this weather."""
    cloud = recorded_cloud(problem.recording, job, noise=ASSUMED_NOISE, seed=seed)
    assert isinstance(cloud.clock, VirtualClock)
    assert isinstance(cloud.profiler, TrainingProfiler)
    profiler = replace(
        cloud.profiler, backend=WeatheredCloud(problem.recording, cloud.clock, weather, weather_seed(problem, seed))
    )
    known = earlier_measurements(ledger, job, problem.space)
    first = Started(job, problem.space, "recorded", cloud.provenance, VERSION, known)
    book = ledger.begin(job.name, cloud.clock, first)
    planner = planner_of(job)
    decision = search(planner.search_strategy(job), job, problem.space, profiler, book, guard=planner.guard(job))
    return book, decision, profiler


def weather_seed(problem: Problem, seed: int) -> int:
    """The seed of a problem's weather: its own, else one lucky launch would appear in many problems."""
    name = f"{problem.recording.name} {problem.scenario} {problem.limit_factor} {seed}"
    return zlib.crc32(name.encode())


def _ratio(problem: Problem, usd: float, seconds: float) -> float:
    cheapest = problem.scenario.objective is Objective.CHEAPEST
    return usd / problem.oracle_usd if cheapest else seconds / 3_600 / problem.oracle_hours


def _share(goal: Goal, usd: float, seconds: float) -> float:
    """The share of the limit that was spent."""
    return usd / goal.budget_usd if goal.budget_usd is not None else seconds / (goal.deadline_s or 1.0)


def certifiable(problem: Problem, goal: Goal) -> bool:
    """Whether an oracle could certify: one whole probe of one configuration, then all of the work there.

    It knows the recorded rate, and its probe shows exactly that with the assumed error.
    """
    slower = exp(CERTIFICATE_Z * ASSUMED_NOISE)
    for where in problem.recording.points:
        hours = training_hours(problem.recording, where)
        if hours is not None:
            probe_s, probe_usd = problem.space.worst_probe(where)
            worst_s = hours * 3_600 * slower
            if goal.allows(probe_usd + worst_s / 3_600 * where.usd_per_hour, probe_s + worst_s):
                return True
    return False


def _try_relaxation(
    trial: Trial, decision: Decision, problem: Problem, weather: Weather, setting: Setting, ledger: Ledger
) -> None:
    """Search again with the first relaxation of a limit, and slightly more, since another search differs."""
    ways = [way for way in decision.relaxations if way.budget_usd is not None or way.deadline_s is not None]
    trial.named = bool(ways)
    if not ways:
        return
    another = trial.seed + REPEAT_SEED

    def certified(more: float, ledger: Ledger) -> bool:
        job = _job(problem, _relaxed(problem.job.goal, ways[0], more), another, setting)
        return _search(job, problem, weather, another, ledger)[1].certified

    trial.relaxed = certified(1.0, Ledger(None))
    trial.relaxed_more = trial.relaxed or certified(1.02, Ledger(None))
    trial.relaxed_known = certified(1.0, ledger)


def _relaxed(goal: Goal, way: Relaxation, more: float) -> Goal:
    budget = goal.budget_usd if way.budget_usd is None else way.budget_usd * RELAXED_MORE * more
    deadline = goal.deadline_s if way.deadline_s is None else way.deadline_s * RELAXED_MORE * more
    return replace(goal, budget_usd=budget, deadline_s=deadline)


def tasks(rows: Sequence[str], problems: int, searches: int, first_seed: int = 0) -> Iterator[Task]:
    """So many searches of each row, cycling through the same problems for every row, with a new seed each cycle.

    In steps of 617, so that few searches are still spread over all recordings and limits.
    """
    for row in rows:
        for i in range(searches):
            yield Task(row, (i * 617) % problems, first_seed + i // problems)
