"""One run of one method on one problem, through the product's own loop with the ledger in memory.

total     all probes, then training on the chosen configuration at its recorded rate
ratio     total over the oracle's, in the scenario's objective
violated  the total exceeds the limit
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
"""Added to the seed of the earlier run."""


@dataclass(frozen=True)
class Setting:
    """Settings of all runs of a comparison.

    `noise` is the relative error of a probe's rate, `failures` the share of probes that fail at random.
    `early_look` and `parallel` apply to methods that support them; other methods make whole probes, one at a time.
    `checkpoints`: the work of a probe counts as done, for every method. `earlier`: the same job was run once before
    under the same limits, with other noise.
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
        """As plain data. Nested data is shared, not copied."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @staticmethod
    def of(document: dict[str, Any]) -> Result:
        """The inverse of `document`, also after a conversion to JSON."""
        chosen = document["chosen"]
        return Result(**{**document, "chosen": tuple(chosen) if chosen is not None else None})


def run(problem: Problem, name: str, seed: int, setting: Setting) -> Result:
    """Run a method, raw or guarded."""
    search = Search(name.removesuffix(GUARDED), early_look=setting.early_look, parallel=setting.parallel)
    return play(problem, name, lambda seed: method(replace(search, seed=seed)), seed, setting)


def play(
    problem: Problem, name: str, strategy: Callable[[int], Strategy], seed: int, setting: Setting = DEFAULT
) -> Result:
    """Run the strategy made from a seed. `name` labels the result; the run is guarded if the name says so."""
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
    """One search: its history, ledger entries, choice, and whether the choice is certified."""
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
    """The choice of a raw method: the configuration that it names, measured or not.

    If it names none, the product chooses, as for any strategy: the best that can be certified, or
    nothing.
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
    """The result of a search followed by training on its choice. `lines`: the search's ledger entries."""
    probing_usd, probing_hours = history.spent_usd, history.elapsed_s / 3_600
    total_usd, total_hours, ratio = probing_usd, probing_hours, None
    # A raw choice that was never measured may not run at all. Then the total is that of the probes, without a ratio.
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
    """The probes in the ledger: the share of its time that each took, and its round."""
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
    """1 for a whole probe and for a failed one, although a failed probe takes half the time."""
    whole_s = settled.launch.lifetime_s
    if whole_s is None or not settled.measurement.ok:
        return 1.0
    return min(1.0, round(settled.measurement.seconds / whole_s, 9))


def _no_guard(job: Job, space: Space, history: History, configurations: Sequence[Configuration], share: float) -> None:
    """Refuses nothing: the raw method."""
