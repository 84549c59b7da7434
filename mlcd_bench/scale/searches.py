"""Searches over nodes and batch size on recorded step times: ours, and Scavenger's as published.

Each uses the evidence (evidence.py) and the step times that it probes, and predicts every configuration.

- full: every step time. partial: four probes on three levels of nodes; then the choice is measured and repeated, with
  at most six probes. none: the average of the folder's other models; it ranks, without predicting times.
- scavenger-full, scavenger-partial, scavenger-none: Tyagi and Sharma 2023, sections III-C and III-D.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

import mlcd_bench.scale.evidence as evidence
from mlcd.core.configuration import Floats
from mlcd.core.errors import UserError
from mlcd.core.job import Objective
from mlcd.planners.modeling.iteration_time import fit_iteration_time
from mlcd.planners.modeling.tradeoff import choose, first_probes, verified_choice
from mlcd_bench.scale.forecast import Epochs, Forecast, StepTimes, forecast
from mlcd_bench.scale.gradient_noise import normalised_noise
from mlcd_bench.scale.problem import Problem
from mlcd_bench.scale.scavenger import LinearSteps, NoiseEpochs, corner_probes, fit_linear_steps, fit_noise_epochs
from mlcd_bench.scale.target import Reached

MOST_PROBES = 6


@dataclass(frozen=True)
class SearchResult:
    """The predictions of a search for every configuration, and its choice for its objective."""

    forecast: Forecast
    chosen: int
    probes: tuple[int, ...]


Search = Callable[[Problem, str, Objective, Sequence[Problem]], SearchResult]
"""(problem, position of the reference batch, objective, the folder's other models on the cluster)."""


def full(problem: Problem, reference: str, objective: Objective, others: Sequence[Problem]) -> SearchResult:
    """Every step time is measured."""
    everywhere = list(range(len(problem.nodes)))
    forecast = _forecast(problem, _steps(problem, everywhere), _epochs(problem, reference))
    return SearchResult(forecast, _best(forecast, objective), tuple(everywhere))


def partial(problem: Problem, reference: str, objective: Objective, others: Sequence[Problem]) -> SearchResult:
    """A few step times, the choice's own among them."""
    epochs = _epochs(problem, reference)
    probes = first_probes(problem.nodes, problem.local_batch)
    forecast = _forecast(problem, _steps(problem, probes), epochs)
    while (best := _best(forecast, objective)) not in probes and len(probes) < MOST_PROBES:
        probes.append(best)
        forecast = _forecast(problem, _steps(problem, probes), epochs)
    return SearchResult(forecast, verified_choice(forecast.seconds, forecast.usd, objective, probes), tuple(probes))


def none(problem: Problem, reference: str, objective: Objective, others: Sequence[Problem]) -> SearchResult:
    """Nothing is measured: other models' curves, each scaled to this one's batches, averaged in the log."""
    logs = [np.log(_stretched(other, problem, reference).seconds) for other in others]
    seconds = np.exp(np.mean([log - log.mean() for log in logs], axis=0))
    usd = seconds / 3600 * problem.price.usd_per_node_hour * problem.nodes
    forecast = Forecast(seconds, usd, np.full_like(seconds, np.inf), absolute=False)
    return SearchResult(forecast, _best(forecast, objective), ())


def scavenger_full(problem: Problem, reference: str, objective: Objective, others: Sequence[Problem]) -> SearchResult:
    """Every step time, and the noise at every batch: epochs are proportional to it."""
    run = evidence.reference_run(problem.runs, reference)
    gamma = _gammas(problem)
    noise = np.array([gamma[batch] for batch in problem.global_batch])
    samples = run.samples * noise / gamma[run.run.global_batch]
    seconds = samples / problem.global_batch * problem.step_s
    forecast = _certain(problem, seconds)
    return SearchResult(forecast, _best(forecast, objective), tuple(range(len(seconds))))


def scavenger_partial(
    problem: Problem, reference: str, objective: Objective, others: Sequence[Problem]
) -> SearchResult:
    """Corners of nodes and batch, the noise at both ends of the batch, and straight lines."""
    probes, steps, epochs = _scavenger(problem, reference)
    forecast = _forecast(problem, steps, epochs)
    return SearchResult(forecast, _best(forecast, objective), probes)


def scavenger_none(problem: Problem, reference: str, objective: Objective, others: Sequence[Problem]) -> SearchResult:
    """The 'universal' model: the plain average of the other models' coefficients."""
    stored = [_scavenger(other, reference) for other in others]
    lines = np.mean([[s.constant_s, s.per_sample_s, s.per_node_s] for _, s, _ in stored], axis=0)
    g0, g1 = np.mean([[e.theta * e.g0, e.theta * e.g1] for _, _, e in stored], axis=0)
    forecast = _forecast(problem, LinearSteps(*lines), NoiseEpochs(g0, g1, theta=1.0))
    return SearchResult(forecast, _best(forecast, objective), ())


SEARCHES: dict[str, Search] = {
    "full": full,
    "partial": partial,
    "none": none,
    "scavenger-full": scavenger_full,
    "scavenger-partial": scavenger_partial,
    "scavenger-none": scavenger_none,
}
NEEDS_OTHERS = ("none", "scavenger-none")


def without_noise(problem: Problem, reference: str, searches: Sequence[str]) -> str | None:
    """The run, of this model or one to learn from, that lacks a gradient noise which one of the searches needs."""
    try:
        if not {"full", "partial", "none"}.isdisjoint(searches):
            _epochs(problem, reference)
        if not {"scavenger-partial", "scavenger-none"}.isdisjoint(searches):
            _scavenger(problem, reference)
        if "scavenger-full" in searches:
            _gammas(problem)
    except UserError as error:
        return str(error)
    return None


def _best(forecast: Forecast, objective: Objective) -> int:
    best = choose(forecast.seconds, forecast.usd, objective)
    assert best is not None, "without limits there is always a choice"
    return best


def _epochs(problem: Problem, reference: str) -> Epochs:
    return evidence.statistical_efficiency(problem, evidence.reference_run(problem.runs, reference))


def _steps(problem: Problem, probes: Sequence[int]) -> StepTimes:
    at = np.array(probes)
    return fit_iteration_time(problem.nodes[at], problem.local_batch[at], problem.step_s[at])


def _forecast(problem: Problem, steps: StepTimes, epochs: Epochs) -> Forecast:
    return forecast(steps, epochs, 1.0, problem.devices_per_node, problem.price, problem.nodes, problem.global_batch)


def _certain(problem: Problem, seconds: Floats) -> Forecast:
    usd = seconds / 3600 * problem.price.usd_per_node_hour * problem.nodes
    return Forecast(seconds, usd, np.ones_like(seconds), absolute=True)


def _stretched(other: Problem, problem: Problem, reference: str) -> Forecast:
    """Another model's forecast, as if its largest local and global batch were this one's."""
    everywhere = list(range(len(other.nodes)))
    run = evidence.reference_run(other.runs, reference)
    longer = problem.runs[-1].run.global_batch / other.runs[-1].run.global_batch
    wider = other.local_batch.max() / problem.local_batch.max()
    known = evidence.statistical_efficiency(other, run)
    epochs = replace(known, reference_batch=known.reference_batch * longer, noise_scale=known.noise_scale * longer)
    step_s, _ = _steps(other, everywhere).predict(problem.nodes, problem.local_batch * wider)
    seconds = epochs.predict(problem.global_batch)[0] / problem.global_batch * step_s
    return _certain(problem, seconds)


def _scavenger(problem: Problem, reference: str) -> tuple[tuple[int, ...], LinearSteps, NoiseEpochs]:
    """Its partial search's probes and both of its models."""
    probes = corner_probes(problem.nodes, problem.global_batch)
    at = np.array(probes)
    steps = fit_linear_steps(problem.nodes[at], problem.local_batch[at], problem.step_s[at])
    run = evidence.reference_run(problem.runs, reference)
    ends = [problem.runs[0], problem.runs[-1]]
    batches = np.array([reached.run.global_batch for reached in ends])
    gammas = np.array([_gamma(problem, reached) for reached in ends])
    return tuple(probes), steps, fit_noise_epochs(batches, gammas, run.run.global_batch, run.samples)


def _gammas(problem: Problem) -> dict[float, float]:
    """By batch size."""
    return {reached.run.global_batch: _gamma(problem, reached) for reached in problem.runs}


def _gamma(problem: Problem, reached: Reached) -> float:
    """Normalised noise in a start at one batch, on the fewest nodes; the paper waits until there is a noise to read."""
    readable = np.isfinite(reached.run.grad_sqr) & np.isfinite(reached.run.grad_var)
    evaluations = max(evidence.short_start(reached), int(np.argmax(readable)) + 1)
    scale = evidence.run_noise(problem, reached, evaluations)
    workers = problem.nodes.min() * problem.devices_per_node
    return float(normalised_noise(np.array(scale), workers, np.array(reached.run.global_batch)))
