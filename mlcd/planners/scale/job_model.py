"""Predict time and cost of every configuration of workers and batch: seconds of a step x steps to the target x price.

Tyagi and Sharma (Scavenger, 2023), equations 3 to 5, with the models of `modeling/` in place of its linear ones.

Symbols   K    workers                       B     global batch            b = B / K    local batch
          tau  seconds of a step             e     epochs to the target    D            samples in the data set
          p    progress: the share of the work to the target that is done and saved
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
from mlcd.planners.scale.feasibility import DEFAULT_BATCH, Machine, fits_memory, global_batch, local_batch, machine_of
from mlcd.planners.scale.nouns import ScalingTask, noise_of

ROUNDING = 1.001
LEAST_LEFT = 0.02
"""The least share of the work that is left while the target has not been reached, whatever the progress model says."""
ENOUGH_POINTS = 4
"""With so many measurements a machine type needs no other type's measurements for its fit."""


@dataclass(frozen=True)
class JobModel:
    """Step times of each measured machine type, epochs to the target by batch, and the progress so far."""

    steps: Mapping[Machine, IterationTime]
    epochs: StatisticalEfficiency
    dataset_samples: float
    progress: float

    @property
    def predicts_time(self) -> bool:
        """Whether the epochs to the target are known; otherwise the model only compares configurations."""
        return self.epochs.reference_epochs is not None


def fit_job_model(job: Job, space: Space, history: History) -> JobModel | None:
    """Fit the model to measurements, noise and earlier runs; None if no step time is known."""
    steps = fit_step_times(job, history)
    if not steps and history.learned is not None:
        learned = read_performance_model(history.learned).steps
        steps = {machine_of(configuration): learned for configuration in space.configurations}
    if not steps:
        return None
    dataset = job.dataset_samples or job.work_samples + history.saved_samples  # the job is what is left of it
    epochs = fit_epochs(job, history, dataset)
    if epochs.reference_epochs is None:
        return JobModel(steps, epochs, dataset, 0.0)
    done = epochs_done(epochs, dataset, job, history) / epochs.reference_epochs
    return JobModel(steps, epochs, dataset, min(done, 1 - LEAST_LEFT))


def predict_all(job: Job, space: Space, history: History, model: JobModel) -> tuple[Prediction, ...]:
    """Predictions for every configuration that fits memory, with the Pareto boundary and the knee marked.

    A batch that needs more epochs than the job allows would miss the target; it is left out, unless all would.
    """
    measured = {m.configuration for m in history.good}
    fitting = [
        c
        for c in space.configurations
        if machine_of(c) in model.steps and (c in measured or fits_memory(job, c, history))
    ]
    if model.predicts_time:
        fitting = [c for c in fitting if _samples_left(job, model, c) <= ROUNDING * job.work_samples] or fitting
    if not fitting:
        return ()
    share = _work_shares(job, model, fitting)
    seconds, factor = np.array(
        [_predict_seconds(job, model, history, c, share[i] * job.work_samples) for i, c in enumerate(fitting)]
    ).T
    usd = np.array([c.usd(s) for c, s in zip(fitting, seconds, strict=True)])
    boundary, at = pareto_mask(seconds, usd), knee(seconds, usd)
    relative = not model.predicts_time
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


def launch_at_target(job: Job, history: History) -> Measurement | None:
    """The first launch that reached the target; None if none did."""
    if job.target is None:
        return None
    launches = (*history.measurements, *history.runs)
    return next((m for m in launches if m.metric is not None and job.target.reached(m.metric)), None)


def _work_shares(job: Job, model: JobModel, configurations: Sequence[Configuration]) -> Floats:
    """For each configuration, the samples to the target with its batch, as a share of the work that is left.

    While only ratios are known, the batch that needs the most is taken to need all of the work. On a smaller scale the
    start-ups, which count in seconds, would decide: the configuration with the shortest start-up would be the best.
    """
    samples = np.array([_samples_left(job, model, c) for c in configurations])
    shares: Floats = samples / (job.work_samples if model.predicts_time else samples.max())
    return shares


def _predict_seconds(
    job: Job, model: JobModel, history: History, configuration: Configuration, samples: float
) -> tuple[float, float]:
    """Predicted seconds for so many samples, start-up included, and the factor to both ends of the 90 % interval."""
    batch, nodes = global_batch(job, configuration), np.array([float(configuration.nodes)])
    step_s, step_error = model.steps[machine_of(configuration)].predict(
        nodes, np.array([local_batch(job, configuration)])
    )
    epochs_error = model.epochs.predict(np.array([float(batch)]))[1]
    factor = float(interval_factor(step_error, epochs_error)[0])
    return _startup_s(configuration, history) + samples / batch * float(step_s[0]), factor


def _samples_left(job: Job, model: JobModel, configuration: Configuration) -> float:
    """Samples to the target with this batch; where only ratios are known, relative to the reference batch."""
    epochs = epochs_with_batch(model.epochs, global_batch(job, configuration))
    return (1 - model.progress) * epochs * model.dataset_samples


def _startup_s(configuration: Configuration, history: History) -> float:
    """The start-up time measured on this type: the shortest with as many nodes or more, else the longest with fewer."""
    measured = [m for m in history.good if machine_of(m.configuration) == machine_of(configuration)]
    larger = [m.startup_s for m in measured if m.configuration.nodes >= configuration.nodes]
    return min(larger, default=max((m.startup_s for m in measured), default=0.0))


def fit_step_times(job: Job, history: History) -> dict[Machine, IterationTime]:
    """The step-time law of each measured type.

    A type with few measurements is taken to scale like the most measured type, at its own speed.
    """
    by_type: dict[Machine, list[Measurement]] = {}
    for m in (*history.good, *(run for run in history.runs if run.ok)):
        by_type.setdefault(machine_of(m.configuration), []).append(m)
    points_of = {machine: _points(job, measured) for machine, measured in by_type.items()}
    if not points_of:
        return {}
    most_measured = max(points_of, key=lambda machine: points_of[machine].shape[1])
    model = fit_iteration_time(*points_of[most_measured])
    return {
        machine: model if machine == most_measured else fit_iteration_time(*_with_shape_of(model, points))
        for machine, points in points_of.items()
    }


def _points(job: Job, measured: Sequence[Measurement]) -> Floats:
    """Nodes, local batch and seconds of a step, a column for each measurement."""
    where = [(m.configuration, m.rate) for m in measured]
    return np.array([(float(c.nodes), local_batch(job, c), global_batch(job, c) / rate) for c, rate in where]).T


def _with_shape_of(model: IterationTime, points: Floats) -> Floats:
    """The points and, while they are few, those of another type's model, scaled to the speed of these."""
    if points.shape[1] >= ENOUGH_POINTS:
        return points
    slower = np.exp(np.mean(np.log(points[2] / model.predict(points[0], points[1])[0])))
    others = np.array([model.nodes, model.local_batch, np.array(model.seconds) * slower])
    return np.concatenate([points, others], axis=1)


def fit_epochs(job: Job, history: History, dataset: float) -> StatisticalEfficiency:
    """Epochs to the target by batch: from an earlier run of the same job, else from this run's gradient noise."""
    usual = float(job.hints.global_batch or DEFAULT_BATCH)
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


def epochs_done(epochs: StatisticalEfficiency, dataset_samples: float, job: Job, history: History) -> float:
    """The work done so far, converted to epochs at the reference batch."""
    one = replace(epochs, reference_epochs=None)
    saved = saved_by_batch(job, history)
    return sum(samples / dataset_samples / epochs_with_batch(one, batch) for batch, samples in saved)


def saved_by_batch(job: Job, history: History) -> Iterator[tuple[int, float]]:
    """The saved work of each launch: its batch, and its samples."""
    before = 0.0
    for m in (*history.measurements, *history.runs):
        if m.saved_samples > before:
            yield global_batch(job, m.configuration), m.saved_samples - before
            before = m.saved_samples


def epochs_with_batch(epochs: StatisticalEfficiency, batch: float) -> float:
    """Epochs to the target with this batch."""
    return float(epochs.predict(np.array([float(batch)]))[0][0])


def _noise_scale(history: History) -> float | None:
    """The mean noise scale of all launches, in the log, weighted by each launch's work and by its exactness.

    Noise varies along a run by about a third (`NOISE_SCALE_ERROR`): an error below that hardly lowers the weight.
    """
    launches = [(noise_of(m), max(m.samples_done, 1.0)) for m in (*history.measurements, *history.runs)]
    known = [(noise, work) for noise, work in launches if noise is not None]
    if not known:
        return None
    weights = [work / (1 + (noise.rel_error / NOISE_SCALE_ERROR) ** 2) for noise, work in known]
    return exp(sum(w * log(noise.scale) for (noise, _), w in zip(known, weights, strict=True)) / sum(weights))
