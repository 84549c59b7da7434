"""One run of one method on one problem, with the ledger in memory: the product's own loop, nothing else.

total     all probes, and then training on the chosen configuration at its recorded rate
ratio     total over oracle, in the scenario's objective
violated  the total passes the limit
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from mlcd.clouds.places.recorded import recorded_cloud
from mlcd.core.backend import Purpose
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Configuration, Space
from mlcd.core.drive import drive, search
from mlcd.core.forecasts import remaining_job
from mlcd.core.guarantee import certifiable_forecasts, decide
from mlcd.core.history import History
from mlcd.core.job import Job, Objective, Search
from mlcd.core.ledger import Ledger, Line, Settled, Started
from mlcd.core.place import Cloud
from mlcd.core.strategy import Finish, Strategy
from mlcd.core.version import VERSION
from mlcd.memory.earlier_runs import earlier_measurements
from mlcd.planners.profilers.training import TrainingProfiler
from mlcd_bench.failing import Failing
from mlcd_bench.methods import GUARDED, is_guarded, method
from mlcd_bench.problems import Problem, training_hours

OTHER_NOISE = 1_000
"""Added to the seed of a run that was made before."""


@dataclass(frozen=True)
class Setting:
    """What holds for every run of a contest.

    `noise` is the relative error of a probe's rate, `failures` the share of probes that fail by chance.
    `early_look` and `parallel` are for methods that know of them: probes are whole and one at a time otherwise.
    `checkpoints`: the work that a probe does counts, for every method. `earlier`: one run of the same job under
    the same limits was made before, with other noise.
    """

    noise: float = 0.03
    failures: float = 0.0
    early_look: float | None = None
    parallel: int = 1
    checkpoints: bool = False
    earlier: bool = False


DEFAULT = Setting()


@dataclass(frozen=True)
class Result:
    """One run of one method: the row that `mlcd bench train -o json` prints."""

    recording: str
    scenario: str
    limit_factor: float | None
    limit: float | None
    method: str
    seed: int
    probes: list[dict[str, Any]]
    chosen: tuple[str, int] | None
    certified: bool
    probing_usd: float
    probing_hours: float
    total_usd: float
    total_hours: float
    oracle_usd: float
    oracle_hours: float
    ratio: float | None
    violated: bool

    def document(self) -> dict[str, Any]:
        """As plain data. What is nested is shared, not copied."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @staticmethod
    def of(document: dict[str, Any]) -> Result:
        """From what `document` gave, perhaps by way of JSON."""
        chosen = document["chosen"]
        return Result(**{**document, "chosen": tuple(chosen) if chosen is not None else None})


def run(problem: Problem, name: str, seed: int, setting: Setting) -> Result:
    """Run a method, raw or guarded, and count what it came to."""
    asked = Search(name.removesuffix(GUARDED), early_look=setting.early_look, parallel=setting.parallel)
    return play(problem, name, lambda seed: method(replace(asked, seed=seed)), seed, setting)


def play(
    problem: Problem, name: str, strategy: Callable[[int], Strategy], seed: int, setting: Setting = DEFAULT
) -> Result:
    """Run a strategy, made of a seed, under the name that its results are to have; guarded if the name says so."""
    if setting.checkpoints:
        problem = replace(problem, job=replace(problem.job, checkpoints=True))
    ledger = Ledger(None)
    if setting.earlier:
        other = seed + OTHER_NOISE
        _search(problem, strategy(other), is_guarded(name), other, setting, ledger)
    history, lines, chosen, certified = _search(problem, strategy(seed), is_guarded(name), seed, setting, ledger)
    ledger.close()
    return result(problem, name, seed, history, chosen, certified, lines)


def _search(
    problem: Problem, strategy: Strategy, guarded: bool, seed: int, setting: Setting, ledger: Ledger
) -> tuple[History, list[Line], Configuration | None, bool]:
    """One search in the ledger: what was seen, its entries, the choice, and whether that is certified."""
    cloud, job = _cloud(problem, setting, seed), problem.job
    known = earlier_measurements(ledger, job, problem.space)
    first = Started(job, problem.space, "recorded", cloud.provenance, VERSION, known)
    lines: list[Line] = []
    book = ledger.begin(job.name, cloud.clock, first, lines.append)
    if guarded:
        decision = search(strategy, job, problem.space, cloud.profiler, book)
        return book.account.history, lines, decision.configuration, decision.certified
    finish = drive(strategy, job, problem.space, cloud.profiler, book, guard=_no_guard)
    history = book.account.history
    chosen = _pick(problem, history, finish)
    certified = chosen in certifiable_forecasts(remaining_job(job, history), problem.space, history)
    return history, lines, chosen, certified


def _cloud(problem: Problem, setting: Setting, seed: int) -> Cloud:
    cloud = recorded_cloud(problem.recording, problem.job, noise=setting.noise, seed=seed)
    if not setting.failures:
        return cloud
    assert isinstance(cloud.clock, VirtualClock)
    assert isinstance(cloud.profiler, TrainingProfiler)
    backend = Failing(cloud.backend, cloud.clock, problem.recording.probe_time, setting.failures, seed)
    return replace(cloud, backend=backend, profiler=replace(cloud.profiler, backend=backend))


def _pick(problem: Problem, history: History, finish: Finish) -> Configuration | None:
    """What a raw method ends with: the configuration that it names, measured or not.

    One that names none leaves the choice to the product, as strategies may: the best that can be
    certified, or nothing.
    """
    if finish.configuration is not None:
        return finish.configuration
    return decide(remaining_job(problem.job, history), problem.space, history, finish.because).configuration


def result(
    problem: Problem,
    name: str,
    seed: int,
    history: History,
    chosen: Configuration | None,
    certified: bool,
    lines: Sequence[Line] = (),
) -> Result:
    """What a search and then training on its choice come to. `lines`: the search's entries."""
    probing_usd, probing_hours = history.spent_usd, history.elapsed_s / 3_600
    total_usd, total_hours, ratio = probing_usd, probing_hours, None
    # A raw pick that was never measured may not run at all; then there is no total to compare, only what is gone.
    training = training_hours(problem.recording, chosen) if chosen is not None else None
    if chosen is not None and training is not None:
        training *= remaining_job(problem.job, history).work_samples / problem.job.work_samples
        total_hours += training
        total_usd += training * chosen.usd_per_hour
        cheapest = problem.scenario.objective is Objective.CHEAPEST
        ratio = total_usd / problem.oracle_usd if cheapest else total_hours / problem.oracle_hours
    gone = total_hours if problem.job.goal.deadline_s is not None else total_usd
    return Result(
        recording=problem.recording.name,
        scenario=str(problem.scenario),
        limit_factor=problem.limit_factor,
        limit=problem.limit,
        method=name,
        seed=seed,
        probes=_probes(lines),
        chosen=(chosen.offer.instance_type, chosen.nodes) if chosen is not None else None,
        certified=certified,
        probing_usd=probing_usd,
        probing_hours=probing_hours,
        total_usd=total_usd,
        total_hours=total_hours,
        oracle_usd=problem.oracle_usd,
        oracle_hours=problem.oracle_hours,
        ratio=ratio,
        violated=problem.limit is not None and gone > problem.limit,
    )


def _probes(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """The probes as they are in the ledger: which share of its time each took, and in which round."""
    return [
        {
            "instance_type": line.entry.launch.configuration.offer.instance_type,
            "nodes": line.entry.launch.configuration.nodes,
            "fraction": _fraction(line.entry),
            "round": line.entry.launch.round,
        }
        for line in lines
        if isinstance(line.entry, Settled) and line.entry.launch.purpose is Purpose.PROBE
    ]


def _fraction(settled: Settled) -> float:
    """1 for a whole probe, and for one that failed: that it took half as long is what failing means here."""
    whole_s = settled.launch.lifetime_s
    if whole_s is None or not settled.measurement.ok:
        return 1.0
    return min(1.0, round(settled.measurement.seconds / whole_s, 9))


def _no_guard(job: Job, space: Space, history: History, configurations: Sequence[Configuration], share: float) -> None:
    """No protection at all: what a method does by itself."""
