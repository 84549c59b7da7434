"""What is believed of every configuration of workers and batch: seconds of a step x steps to the target, and the price.

Tyagi and Sharma (Scavenger, 2023), equations 3 to 5, with the models of `modeling/` in place of its linear ones.

Symbols   K    workers                       B     global batch            b = B / K    one worker's share
          tau  seconds of a step             e     epochs to the target    D            samples in the data set
          p    share of the way to the target that saved work has gone
          B_n  noise scale, in samples
          T = (1 - p) e D / B x tau          cost = T x price of the nodes

While e is known only relative to that of another batch, the largest e D is taken to be all of the work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, log

import numpy as np

from mlcd.core.configuration import Configuration, Floats, Space
from mlcd.core.decision import Prediction
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.measurement import Measurement
from mlcd.planners.modeling.iteration_time import IterationTime, fit_iteration_time
from mlcd.planners.modeling.performance import (
    NOISE_SCALE_ERROR,
    StatisticalEfficiency,
    alike,
    from_noise,
    interval_factor,
    read_performance_model,
)
from mlcd.planners.modeling.tradeoff import knee, pareto_mask
from mlcd.planners.scale.nouns import ScalingTask, noise_of
from mlcd.planners.scale.share import USUAL_BATCH, Machine, fits_memory, local_batch, machine_of, trained_batch

HAIR = 1.001
"""Room for rounding."""
NEARLY_DONE = 0.02
"""However much is done, this share of the way is left: the target has not been reached, or nobody would ask."""
ENOUGH = 4
"""Measurements of a type that speak for themselves."""


@dataclass(frozen=True)
class Belief:
    """Step times of each type that was measured, and epochs by batch."""

    steps: Mapping[Machine, IterationTime]
    epochs: StatisticalEfficiency
    dataset_samples: float
    progress: float

    @property
    def claims_a_time(self) -> bool:
        """Whether it is known what the target takes, and not only how configurations compare."""
        return self.epochs.reference_epochs is not None


def believe(job: Job, space: Space, history: History) -> Belief | None:
    """What measurements, noise and earlier runs say together; None if nothing says how long a step takes."""
    steps = measured_steps(job, history)
    if not steps and history.learned is not None:
        learned = read_performance_model(history.learned).steps
        steps = {machine_of(configuration): learned for configuration in space.configurations}
    if not steps:
        return None
    dataset = job.dataset_samples or job.work_samples + history.saved_samples  # the job is what is left of it
    epochs = epochs_by_batch(job, history, dataset)
    if epochs.reference_epochs is None:
        return Belief(steps, epochs, dataset, 0.0)
    done = epochs_at_reference(epochs, dataset, job, history) / epochs.reference_epochs
    return Belief(steps, epochs, dataset, min(done, 1 - NEARLY_DONE))


def curve(job: Job, space: Space, history: History, belief: Belief) -> tuple[Prediction, ...]:
    """What is expected of every configuration that fits memory, the boundary and the knee marked.

    A batch that needs more epochs than the job may take would end without its target; it is left out, unless all do.
    """
    measured = {m.configuration for m in history.good}
    fitting = [
        c
        for c in space.configurations
        if machine_of(c) in belief.steps and (c in measured or fits_memory(job, c, history))
    ]
    if belief.claims_a_time:
        fitting = [c for c in fitting if _samples_left(job, belief, c) <= HAIR * job.work_samples] or fitting
    if not fitting:
        return ()
    share = _work_shares(job, belief, fitting)
    seconds, factor = np.array(
        [_expected(job, belief, history, c, share[i] * job.work_samples) for i, c in enumerate(fitting)]
    ).T
    usd = np.array([c.usd(s) for c, s in zip(fitting, seconds, strict=True)])
    boundary, at = pareto_mask(seconds, usd), knee(seconds, usd)
    relative = not belief.claims_a_time
    return tuple(
        Prediction(
            c,
            float(seconds[i]),
            float(usd[i]),
            float(seconds[i] / factor[i]),
            float(seconds[i] * factor[i]),
            c in measured,
            relative,
            bool(boundary[i]),
            i == at,
            float(share[i]) if relative else 1.0,
        )
        for i, c in enumerate(fitting)
    )


def reached(job: Job, history: History) -> Measurement | None:
    """The launch that reached the target, if one did."""
    if job.target is None:
        return None
    launches = (*history.measurements, *history.runs)
    return next((m for m in launches if m.metric is not None and job.target.reached(m.metric)), None)


def _work_shares(job: Job, belief: Belief, configurations: Sequence[Configuration]) -> Floats:
    """The samples to the target with each configuration's batch, over all of the work that is left.

    While only ratios are known, the batch that needs the most is taken to need all of the work: start-ups count in
    seconds, so samples that are counted on too small a scale would make the smallest start-up the best of all.
    """
    samples = np.array([_samples_left(job, belief, c) for c in configurations])
    shares: Floats = samples / (job.work_samples if belief.claims_a_time else samples.max())
    return shares


def _expected(
    job: Job, belief: Belief, history: History, configuration: Configuration, samples: float
) -> tuple[float, float]:
    """Seconds that so many samples take from here, and the factor that leads to the ends of their 90 % interval."""
    batch, nodes = trained_batch(job, configuration), np.array([float(configuration.nodes)])
    step_s, step_error = belief.steps[machine_of(configuration)].predict(
        nodes, np.array([local_batch(job, configuration)])
    )
    epochs_error = belief.epochs.predict(np.array([float(batch)]))[1]
    factor = float(interval_factor(step_error, epochs_error)[0])
    return _startup_s(configuration, history) + samples / batch * float(step_s[0]), factor


def _samples_left(job: Job, belief: Belief, configuration: Configuration) -> float:
    """To the target, with this batch; where only ratios are known, relative to the reference batch."""
    epochs = epochs_at(belief.epochs, trained_batch(job, configuration))
    return (1 - belief.progress) * epochs * belief.dataset_samples


def _startup_s(configuration: Configuration, history: History) -> float:
    """What coming up took on this type, with as many nodes or more if that was seen."""
    seen = [m for m in history.good if machine_of(m.configuration) == machine_of(configuration)]
    larger = [m.startup_s for m in seen if m.configuration.nodes >= configuration.nodes]
    return min(larger, default=max((m.startup_s for m in seen), default=0.0))


def measured_steps(job: Job, history: History) -> dict[Machine, IterationTime]:
    """For each type that was measured, the law of its step times.

    A type that was hardly measured is taken to scale like the one that was measured most, at its own speed.
    """
    of: dict[Machine, list[Measurement]] = {}
    for m in (*history.good, *(run for run in history.runs if run.ok)):
        of.setdefault(machine_of(m.configuration), []).append(m)
    steps = {machine: _points(job, measured) for machine, measured in of.items()}
    if not steps:
        return {}
    most = max(steps, key=lambda machine: steps[machine].shape[1])
    model = fit_iteration_time(*steps[most])
    return {
        machine: model if machine == most else fit_iteration_time(*_with_the_shape_of(model, points))
        for machine, points in steps.items()
    }


def _points(job: Job, measured: Sequence[Measurement]) -> Floats:
    """Nodes, local batch and seconds of a step, a column for each measurement."""
    where = [(m.configuration, m.rate) for m in measured]
    return np.array([(float(c.nodes), local_batch(job, c), trained_batch(job, c) / rate) for c, rate in where]).T


def _with_the_shape_of(model: IterationTime, points: Floats) -> Floats:
    """The points and, while they are few, those of another type at the speed of these."""
    if points.shape[1] >= ENOUGH:
        return points
    slower = np.exp(np.mean(np.log(points[2] / model.predict(points[0], points[1])[0])))
    others = np.array([model.nodes, model.local_batch, np.array(model.seconds) * slower])
    return np.concatenate([points, others], axis=1)


def epochs_by_batch(job: Job, history: History, dataset: float) -> StatisticalEfficiency:
    """Epochs by batch: an earlier run of the same job knows best, then this run's own noise."""
    usual = float(job.hints.global_batch or USUAL_BATCH)
    whole = job.work_samples + history.saved_samples  # the job is what is left of it
    if job.target is None:
        return alike(usual, whole / dataset)
    known = job.ask.epochs if isinstance(job.ask, ScalingTask) else None
    if history.learned is not None:
        learned = read_performance_model(history.learned).epochs
        if learned.reference_epochs or _noise_scale(history) is None:
            return learned if known is None else replace(learned, reference_epochs=known, reference_batch=usual)
    scale = _noise_scale(history)
    return from_noise(usual, known, scale) if scale is not None else alike(usual, known)


def epochs_at_reference(epochs: StatisticalEfficiency, dataset_samples: float, job: Job, history: History) -> float:
    """What was done so far, in epochs at the reference batch: another batch's count for as much as they bring."""
    one = replace(epochs, reference_epochs=None)
    saved = saved_by_batch(job, history)
    return sum(samples / dataset_samples / epochs_at(one, batch) for batch, samples in saved)


def saved_by_batch(job: Job, history: History) -> Iterator[tuple[int, float]]:
    """The saved work, launch by launch: the batch that it was done with, and how much it was."""
    before = 0.0
    for m in (*history.measurements, *history.runs):
        if m.saved_samples > before:
            yield trained_batch(job, m.configuration), m.saved_samples - before
            before = m.saved_samples


def epochs_at(epochs: StatisticalEfficiency, batch: float) -> float:
    """With this batch."""
    return float(epochs.predict(np.array([float(batch)]))[0][0])


def _noise_scale(history: History) -> float | None:
    """The noise along the way: averaged in the log, each launch for the work that it did and for how well it knows.

    Noise differs along a run by about a third: what is known better counts fully, what is hardly known hardly.
    """
    launches = [(noise_of(m), max(m.samples_done, 1.0)) for m in (*history.measurements, *history.runs)]
    known = [(noise, work) for noise, work in launches if noise is not None]
    if not known:
        return None
    weights = [work / (1 + (noise.rel_error / NOISE_SCALE_ERROR) ** 2) for noise, work in known]
    return exp(sum(w * log(noise.scale) for (noise, _), w in zip(known, weights, strict=True)) / sum(weights))
