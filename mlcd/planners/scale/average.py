"""The average of what other jobs have taught, for a job that nothing is known of: Scavenger's 'universal' model.

Jobs differ in how long a step takes and in what batch is large for them; they are alike in shape. So each job's steps
are taken relative to their own mean, over a local batch relative to its own largest, and its noise scale relative to
its own largest global batch. The average says how configurations compare, and nothing about how long anything takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mlcd.core.configuration import Floats
from mlcd.planners.modeling.iteration_time import fit_iteration_time
from mlcd.planners.modeling.performance import PerformanceModel
from mlcd.planners.modeling.statistical_efficiency import Direction, StatisticalEfficiency

LARGEST_SHARE = 4.0
"""A noise scale is about so many times the largest batch that is tried, where no stored model says."""


def average_model(models: Sequence[PerformanceModel], largest_local: float, largest_batch: float) -> PerformanceModel:
    """One model out of many, stretched to a job whose largest shares and batches are these."""
    steps = [model.steps for model in models]
    nodes = np.concatenate([np.asarray(each.nodes) for each in steps])
    local = np.concatenate([_relative_to_largest(each.local_batch) * largest_local for each in steps])
    seconds = np.concatenate([_relative_to_mean(each.seconds) for each in steps])
    rising = [model.epochs for model in models if model.epochs.direction is Direction.RISING]
    shares = [each.noise_scale / each.reference_batch for each in rising] or [LARGEST_SHARE]
    shape = StatisticalEfficiency(
        Direction.RISING,
        largest_batch,
        None,
        float(np.exp(np.mean(np.log(shares))) * largest_batch),
        0.0,
        shape_error=1.0,
        run_error=1.0,
        evidence=f"the average of {len(models)} stored models",
    )
    return replace(models[0], steps=fit_iteration_time(nodes, local, seconds), epochs=shape)


def _relative_to_largest(values: Sequence[float]) -> Floats:
    found: Floats = np.asarray(values, float) / max(values)
    return found


def _relative_to_mean(values: Sequence[float]) -> Floats:
    found: Floats = np.asarray(values, float) / float(np.exp(np.log(values).mean()))
    return found
