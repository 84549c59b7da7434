"""What a search may know before its first probe.

One earlier run to the target at one batch size, the reference: the samples it took and its gradient noise along the
way. And two short starts, at the smallest and the largest batch: a tenth of the looks of a run, for the direction.
The time of no other run is ever read.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlcd.bench.elastic.problem import Problem
from mlcd.bench.elastic.target import Reached, best_so_far
from mlcd.errors import UserError
from mlcd.modeling.gradient_noise import noise_scale
from mlcd.modeling.statistical_efficiency import StatisticalEfficiency, from_noise

START = 0.1
FEWEST_LOOKS = 2


def reference_run(runs: Sequence[Reached], reference: str) -> Reached:
    """The earlier run: at the smallest, middle or largest batch; of an even number, the lower middle."""
    index = {"smallest": 0, "middle": (len(runs) - 1) // 2, "largest": len(runs) - 1}[reference]
    return runs[index]


def statistical_efficiency(problem: Problem, reference: Reached) -> StatisticalEfficiency:
    """Samples to the target over the batch size (an 'epoch' is one sample: the data set's size is not recorded)."""
    return from_noise(
        reference.run.global_batch,
        reference.samples,
        run_noise(problem, reference, reference.look + 1),
        looks=reference.look + 1,
        early_samples=early_samples(problem),
        extremes=(problem.runs[0].run.global_batch, problem.runs[-1].run.global_batch),
    )


def run_noise(problem: Problem, reached: Reached, looks: int) -> float:
    """Noise scale of the first looks of a run; variances are recorded for the smallest batch of the model."""
    run = reached.run
    steps = np.diff(run.iterations[:looks], prepend=0.0)
    found = noise_scale(run.grad_sqr[:looks], run.grad_var[:looks], steps, problem.runs[0].run.global_batch)
    if not np.isfinite(found):
        raise UserError(f"{problem.model}: the run at batch {run.global_batch:g} has no gradient noise to its target")
    return found


def short_start(reached: Reached) -> int:
    """How many looks a short start has."""
    return min(len(reached.run.metric), max(FEWEST_LOOKS, round(START * len(reached.run.metric))))


def early_samples(problem: Problem) -> tuple[float, float]:
    """Samples to a level that the starts at the smallest and at the largest batch both reached."""
    ends = [problem.runs[0], problem.runs[-1]]
    curves = [best_so_far(reached.run, problem.target.sign)[: short_start(reached)] for reached in ends]
    level = min(curve[-1] for curve in curves)
    samples = []
    for reached, curve in zip(ends, curves, strict=True):
        at = int(np.argmax(curve >= level))
        done = reached.run.iterations[at]
        if at:
            share = (level - curve[at - 1]) / (curve[at] - curve[at - 1])
            done = reached.run.iterations[at - 1] + share * (done - reached.run.iterations[at - 1])
        samples.append(float(max(done, 1.0) * reached.run.global_batch))
    return samples[0], samples[1]
