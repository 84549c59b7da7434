"""Training to a target loss: each method on simulated functions, driven by the product's own loop.

No method knows how many epochs the target takes. A seed draws a loss curve that reaches it after the job's epochs,
apart from noise (see `mlcd/clouds/functions/simulated.py`), and an estimate from sampling beforehand: the job's epochs
times a log-normal error with the mean that CE-scaling found (figure 4: up to 40 %). Methods know the time of an epoch,
apart from its noise.

no plan       no allocation of the method is within the limit even if the epochs were known: nothing is run
violated      the limit was exceeded, or the run stopped before it without reaching the target
planning_ms   the Pareto boundary, every decision and every fit of a loss curve of a run. Boundary and fits are made
              once for all limits of a seed, and counted for each run that uses them
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mlcd.clouds.functions.simulated import Losses, SimulatedFunctions
from mlcd.clouds.functions.simulated_epochs import Platform
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Space
from mlcd.core.drive import launch
from mlcd.core.history import History
from mlcd.core.job import Job, Target
from mlcd.core.ledger import Ledger, Started
from mlcd.core.strategy import Step
from mlcd.core.version import VERSION
from mlcd.planners.functions.adaptive import AdaptiveTraining
from mlcd.planners.functions.decide import METHODS
from mlcd.planners.functions.epoch_forecast import forecast_from_losses
from mlcd.planners.functions.measure import FunctionsProfiler
from mlcd.planners.functions.nouns import Stage, evidence_of
from mlcd.planners.functions.problem import StageProblem
from mlcd.planners.functions.space import calibration_space
from mlcd_bench.functions.jobs import BenchJob
from mlcd_bench.functions.limits import BUDGET, Limit, limits
from mlcd_bench.functions.runs import TRAINING, Run

OFFLINE_SPREAD = 0.35
"""Standard deviation of the log of estimate over truth: 29 % mean error."""
NOISE = 0.05
"""Scatter of the log of every part of an epoch's time, as far as the paper finds its model off (up to 4.9 %)."""
MOST_EPOCHS = 10
"""A run that has not reached the target after so many times its epochs has failed."""


@dataclass(frozen=True)
class KnownEpochs(Losses):
    """Loss curves of any shape that reach the target after the same number of epochs, apart from noise."""

    epochs: float = 1.0

    def epochs_to_target(self, job: Job, sampled: bool = False) -> float:
        """The same for all seeds and jobs."""
        return self.epochs


class Timed:
    """The strategy of a method for one seed, with its computing time."""

    def __init__(self, strategy: AdaptiveTraining) -> None:
        self.strategy = strategy
        self.seconds = 0.0

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """The step that the strategy takes."""
        before_s = time.perf_counter()
        step = self.strategy.next_step(job, space, history)
        self.seconds += time.perf_counter() - before_s
        return step


def train(bench_job: BenchJob, methods: Sequence[str], seed: int, factors: Sequence[float]) -> list[Run]:
    """Every method and limit on one seed. Limits are multiples of the least that the true epochs need."""
    problem = StageProblem(bench_job.model, bench_job.serverless, (Stage(1, bench_job.epochs),))
    all_limits, fits_ms = limits(problem, factors), _fit_all(bench_job, seed)
    # the planner knows the true model, so it needs no margin for model errors
    calibration, results = replace(bench_job.model.calibration, rel_error=0.0), []
    for method in methods:
        strategy = METHODS[method](calibration, estimate(bench_job, seed))
        first = Timed(strategy)
        first.next_step(_job(bench_job, all_limits[0], seed), Space(()), History())  # it computes its Pareto boundary
        for limit in all_limits:
            if METHODS[method].plan_stages(problem, limit.goal) is None:
                results.append(Run.of(bench_job.name, TRAINING, limit, method))
            else:
                run = _train(bench_job, strategy, limit, seed, fits_ms)
                results.append(replace(run, planning_ms=run.planning_ms + 1_000 * first.seconds))
    return results


def estimate(bench_job: BenchJob, seed: int) -> float:
    """The number of epochs estimated by sampling."""
    error = OFFLINE_SPREAD * np.random.default_rng(_own(bench_job, seed)).standard_normal()
    return bench_job.epochs * float(np.exp(error))


def _train(bench_job: BenchJob, strategy: AdaptiveTraining, limit: Limit, seed: int, fits_ms: list[float]) -> Run:
    """One run, with the ledger in memory."""
    job, timed, clock = _job(bench_job, limit, seed), Timed(strategy), VirtualClock()
    losses, truth = _losses(bench_job, seed), bench_job.model.calibration
    backend = SimulatedFunctions(clock, truth, _own(bench_job, seed), Platform(NOISE), losses)
    space, ledger, fits = calibration_space(bench_job.serverless), Ledger(None), forecast_from_losses.cache_info()
    book = ledger.begin(job.name, clock, Started(job, space, job.on, backend.provenance, VERSION))
    launch(timed, job, space, FunctionsProfiler(backend), book)
    history = book.account.history
    ledger.close()
    seen = [epoch.loss for run in history.runs for epoch in evidence_of(run).epochs]
    reached = any(loss <= bench_job.target_loss for loss in seen)
    hours, usd = history.elapsed_s / 3_600, history.spent_usd
    fitted_ms = sum(fits_ms[: len(seen)]) if forecast_from_losses.cache_info() != fits else 0.0
    return Run.of(
        bench_job.name,
        TRAINING,
        limit,
        strategy.method,
        hours=hours,
        usd=usd,
        violated=not reached or limit.broken(hours, usd),
        planning_ms=1_000 * timed.seconds + fitted_ms,
    )


def _losses(bench_job: BenchJob, seed: int) -> KnownEpochs:
    return KnownEpochs(_own(bench_job, seed), epochs=float(bench_job.epochs))


def _own(bench_job: BenchJob, seed: int) -> int:
    """A seed of its own for each job, so that their random numbers are independent."""
    return zlib.crc32(f"{bench_job.name}/{seed}".encode())


def _fit_all(bench_job: BenchJob, seed: int) -> list[float]:
    """Make all fits of a seed, and return the milliseconds of each. They are the same for all methods and limits."""
    job, losses = _job(bench_job, Limit(BUDGET, 1.0), seed), _losses(bench_job, seed)
    assert job.target is not None
    seen: tuple[float, ...] = ()
    results: list[float] = []
    while len(results) < MOST_EPOCHS * bench_job.epochs and not (seen and job.target.reached(seen[-1])):
        seen = (*seen, losses.loss(job, 0, len(seen) + 1))
        before_s = time.perf_counter()
        forecast_from_losses(seen, job.target, estimate(bench_job, seed), MOST_EPOCHS * bench_job.epochs)
        results.append(1_000 * (time.perf_counter() - before_s))
    return results


def _job(bench_job: BenchJob, limit: Limit, seed: int) -> Job:
    samples = float(bench_job.workload.samples)
    return Job(
        bench_job.name,
        samples * MOST_EPOCHS * bench_job.epochs,
        limit.goal,
        checkpoints=True,
        on="functions:simulated",
        dataset_samples=samples,
        target=Target("loss", bench_job.target_loss, at_least=False),
        ask=replace(bench_job.serverless, epochs=estimate(bench_job, seed)),
    )
