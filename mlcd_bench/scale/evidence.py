"""What a search may know before its first probe.

One earlier run to the target at one batch size, the reference: the samples it took and its gradient noise along the
way. And two short starts, at the smallest and the largest batch: a tenth of the evaluations of a run, for the
direction. The time of no other run is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mlcd.core.configuration import Floats
from mlcd.core.errors import UserError
from mlcd.planners.modeling.performance import StatisticalEfficiency
from mlcd_bench.scale.folder import Run
from mlcd_bench.scale.gradient_noise import noise_scale, noise_scale_error
from mlcd_bench.scale.problem import Problem
from mlcd_bench.scale.starts import METRIC_ERROR, Starts, from_noise
from mlcd_bench.scale.target import Reached, best_so_far

START = 0.1
MIN_EVALUATIONS = 2
FIRST_EVALUATION = 4.0
"""The first evaluation's metric may have been reached at any time after 1 / FIRST_EVALUATION of the way to it."""

ONE_GRADIENT = 0.5
"""Bias of the log noise scale measured from one gradient at a time, each of the smallest batch: low by 0.6 on both real
models that were tuned on; with two at a time by 0.2 to 0.3, with four hardly."""


def reference_run(runs: Sequence[Reached], reference: str) -> Reached:
    """The earlier run: at the smallest, middle or largest batch; of an even number, the lower middle."""
    index = {"smallest": 0, "middle": (len(runs) - 1) // 2, "largest": len(runs) - 1}[reference]
    return runs[index]


def statistical_efficiency(problem: Problem, reference: Reached) -> StatisticalEfficiency:
    """Samples to the target over the batch size (an 'epoch' is one sample: the data set's size is not recorded)."""
    return from_noise(
        reference.run.global_batch,
        reference.samples,
        run_noise(problem, reference, reference.evaluation + 1),
        looks=reference.evaluation + 1,
        flatness=flatness(problem, reference),
        noise_error=_noise_error(problem, reference),
        starts=starts(problem, reference),
    )


def starts(problem: Problem, reference: Reached) -> Starts:
    """The results of the two short starts, and their position along the reference run."""
    curve = best_so_far(reference.run, problem.target.sign)
    evaluations = min(int(np.argmax(curve >= _early_level(problem))) + 1, reference.evaluation + 1)
    found = noise_scale(*_noise_of(reference, evaluations), problem.runs[0].run.global_batch)
    small, large = _early(problem)
    return Starts(
        (problem.runs[0].run.global_batch, problem.runs[-1].run.global_batch),
        (small.samples, large.samples),
        (small.sooner, large.sooner),
        early_error(problem),
        found if np.isfinite(found) else None,
        evaluations / (reference.evaluation + 1),
    )


def run_noise(problem: Problem, reached: Reached, evaluations: int) -> float:
    """Noise scale of the first evaluations of a run; variances are recorded for the smallest batch of the model."""
    found = noise_scale(*_noise_of(reached, evaluations), problem.runs[0].run.global_batch)
    if not np.isfinite(found):
        batch = reached.run.global_batch
        raise UserError(f"{problem.model}: the run at batch {batch:g} has no gradient noise to its target")
    return found


def _noise_error(problem: Problem, reference: Reached) -> float:
    """Standard error of the log noise scale, from few evaluations and few distinct gradients in a step."""
    reading_error = noise_scale_error(*_noise_of(reference, reference.evaluation + 1))
    return float(np.hypot(reading_error, ONE_GRADIENT * problem.runs[0].run.global_batch / reference.run.global_batch))


def _noise_of(reached: Reached, evaluations: int) -> tuple[Floats, Floats, Floats]:
    """Squared norms, variances and iterations of the first evaluations of a run."""
    run = reached.run
    return run.grad_sqr[:evaluations], run.grad_var[:evaluations], np.diff(run.iterations[:evaluations], prepend=0.0)


def flatness(problem: Problem, reference: Reached) -> float:
    """How much earlier, in the log, a slightly worse metric was reached than the target: the random part of the time.

    Before the first evaluation nothing is known: its metric counts as reached there.
    """
    curve, target = best_so_far(reference.run, problem.target.sign), problem.target.sign * problem.target.level
    worse = target - METRIC_ERROR * abs(target)
    return float(np.log(_evaluations_to(curve, target) / _evaluations_to(curve, worse)))


def _evaluations_to(curve: Floats, level: float) -> float:
    """Evaluations until a rising curve passes a level, interpolated linearly."""
    at = int(np.argmax(curve >= level))
    return 1.0 if at == 0 else at + (level - curve[at - 1]) / (curve[at] - curve[at - 1])


def short_start(reached: Reached) -> int:
    """The number of evaluations of a short start."""
    return min(len(reached.run.metric), max(MIN_EVALUATIONS, round(START * len(reached.run.metric))))


def early_samples(problem: Problem) -> tuple[float, float]:
    """Samples to a level that the starts at the smallest and at the largest batch both reached."""
    small, large = _early(problem)
    return small.samples, large.samples


def early_error(problem: Problem) -> float:
    """The standard error of the log of their ratio, since each level was passed between two evaluations."""
    small, large = _early(problem)
    return float(np.hypot(small.width, large.width) / np.sqrt(12))


def _early_level(problem: Problem) -> float:
    """The best metric that both starts reached (higher is better)."""
    ends = (problem.runs[0], problem.runs[-1])
    return float(min(best_so_far(one.run, problem.target.sign)[short_start(one) - 1] for one in ends))


@dataclass(frozen=True)
class _Passed:
    """When a start passed a level: its samples, log distance of the evaluations around it, unobserved part."""

    samples: float
    width: float
    sooner: float


def _early(problem: Problem) -> tuple[_Passed, _Passed]:
    """Where the starts at both ends passed the early level."""
    level, sign = _early_level(problem), problem.target.sign
    small, large = (_passed(one.run, best_so_far(one.run, sign), level) for one in (problem.runs[0], problem.runs[-1]))
    return small, large


def _passed(run: Run, curve: Floats, level: float) -> _Passed:
    """Interpolated between two evaluations. If the first one is already past the level, the true time is unknown."""
    at = int(np.argmax(curve >= level))
    seen = max(float(run.iterations[at]), 1.0)
    before = float(run.iterations[at - 1]) if at else 0.0
    share = (level - curve[at - 1]) / (curve[at] - curve[at - 1]) if at else 1.0
    samples = max(before + share * (seen - before), 1.0) * run.global_batch
    sooner = FIRST_EVALUATION if at == 0 and curve[0] > level else 1.0
    return _Passed(float(samples), float(np.log(seen / max(before, seen / FIRST_EVALUATION))), sooner)
