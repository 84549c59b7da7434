"""What methods are held against: the optimum, and random search by its number of probes.

Neither has a name that `bench.train.run` knows: the one never searches, the other has a number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlcd.assemble import recorded_cloud
from mlcd.bench.paper.cloud import optimum
from mlcd.bench.problems import Problem, training_hours
from mlcd.bench.train import Result, Setting
from mlcd.configuration import Configuration
from mlcd.drive import drive, no_guard
from mlcd.job import Objective
from mlcd.ledger import Ledger, Started
from mlcd.planners.train import RandomSearch
from mlcd.version import VERSION


@dataclass(frozen=True)
class Optimum:
    """The paper's 'Opt': trains on the best configuration at once. What it gains is the most that anybody could."""

    label: str = "opt"

    def play(self, problem: Problem, seed: int) -> Result:
        """No probe at all."""
        return _result(problem, self.label, seed, (), 0.0, 0.0, optimum(problem))


@dataclass(frozen=True)
class Drawn:
    """So many probes by lot, and then the best of them."""

    probes: int

    @property
    def label(self) -> str:
        """Such as 'random, 3 probes'."""
        return f"random, {self.probes} probe{'s' if self.probes > 1 else ''}"

    def play(self, problem: Problem, seed: int) -> Result:
        """One run, on the same cloud and through the same loop as all others."""
        cloud = recorded_cloud(problem.recording, problem.job, noise=Setting().noise, seed=seed)
        ledger = Ledger(None)
        first = Started(problem.job, problem.space, "recorded", cloud.provenance, VERSION)
        book = ledger.begin(problem.recording.name, cloud.clock, first)
        strategy = RandomSearch(seed, self.probes)
        finish = drive(strategy, problem.job, problem.space, cloud.profiler, book, guard=no_guard)
        ledger.close()
        assert finish.configuration is not None  # it draws until something runs the job
        history = book.account.history
        tried = [m.configuration for m in history.measurements]
        spent_usd, hours = history.spent_usd, history.elapsed_s / 3_600
        return _result(problem, self.label, seed, tried, spent_usd, hours, finish.configuration)


def _result(
    problem: Problem,
    label: str,
    seed: int,
    tried: Sequence[Configuration],
    probing_usd: float,
    probing_hours: float,
    chosen: Configuration,
) -> Result:
    training = training_hours(problem.recording, chosen)
    assert training is not None  # what is named here was measured, or is the optimum
    total_usd, total_hours = probing_usd + training * chosen.usd_per_hour, probing_hours + training
    cheapest = problem.scenario.objective is Objective.CHEAPEST
    gone = total_hours if problem.job.goal.deadline_s is not None else total_usd
    return Result(
        recording=problem.recording.name,
        scenario=str(problem.scenario),
        limit_factor=problem.limit_factor,
        limit=problem.limit,
        method=label,
        seed=seed,
        probes=[
            {"instance_type": c.offer.instance_type, "nodes": c.nodes, "fraction": 1.0, "round": i}
            for i, c in enumerate(tried)
        ],
        chosen=(chosen.offer.instance_type, chosen.nodes),
        certified=False,
        probing_usd=probing_usd,
        probing_hours=probing_hours,
        total_usd=total_usd,
        total_hours=total_hours,
        oracle_usd=problem.oracle_usd,
        oracle_hours=problem.oracle_hours,
        ratio=total_usd / problem.oracle_usd if cheapest else total_hours / problem.oracle_hours,
        violated=problem.limit is not None and gone > problem.limit,
    )
