"""Learning curves of the simulated cloud: the target is reached after as many samples as the batch needs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.clouds.simulated import STABLE_AFTER_S, Learning
from mlcd.core.backend import Launch, Purpose
from mlcd.core.configuration import Configuration, Offer
from mlcd.core.job import Hints, Job, Target
from mlcd.core.measurement import Ended, Event, Outcome, Sample
from mlcd.planners.scale.nouns import Batch, Noise, ScalingTask

JOB = Job(
    "job",
    6e6,
    hints=Hints(global_batch=128),
    dataset_samples=1e5,
    target=Target("accuracy", 0.9),
    ask=ScalingTask((1, 4), (64, 128, 256)),
)


def order(batch: int | None = 128, saved: float = 0.0, job: Job = JOB) -> Launch:
    place = Configuration(Offer("x", 1.0, 4, 16), 1, None if batch is None else Batch(batch))
    return Launch("run-1", place, Purpose.RUN, job.work_samples - saved, None, 0, 0, saved)


def with_tracker_data(events: list[Event], launch: Launch, job: Job = JOB, seed: int = 0) -> list[Event]:
    return list(Learning(seed).with_tracker_data(events, job, launch, np.random.default_rng(1)))


@given(st.integers(0, 50), st.sampled_from([64, 128, 256]), st.floats(0.0, 0.99))
def test_the_target_is_reached_exactly_at_the_needed_samples(seed: int, batch: int, before: float) -> None:
    saved = before * Learning(seed).samples_to_target(JOB, batch)
    launch = order(batch, min(saved, 0.9 * JOB.work_samples))
    left = Learning(seed).remaining_samples(JOB, launch)
    early, last = with_tracker_data([Sample(100.0, 0.9 * left), Sample(200.0, left)], launch, seed=seed)
    assert isinstance(early, Sample)
    assert isinstance(last, Sample)
    assert JOB.target is not None
    assert early.metric is not None
    assert last.metric is not None
    assert not JOB.target.reached(early.metric)
    assert JOB.target.reached(last.metric) is (left < launch.samples)


@given(st.integers(0, 50))
def test_larger_batches_need_more_samples_and_the_default_batch_the_jobs_own(seed: int) -> None:
    learning, known = Learning(seed), replace(JOB, ask=ScalingTask(epochs=7.0))
    needed = [learning.samples_to_target(known, batch) for batch in (64, 128, 256)]
    assert needed == sorted(needed)
    assert needed[1] == pytest.approx(7.0 * 1e5)


def test_the_events_of_a_job_without_target_or_scaling_are_unchanged() -> None:
    events: list[Event] = [Sample(10.0, 0.0), Sample(20.0, 5.0), Ended(30.0, Outcome.OK)]
    plain = replace(JOB, target=None, ask=None)
    assert with_tracker_data(events, order(job=plain), plain) == events


def test_noise_is_stable_after_a_while_and_the_same_throughout_a_launch() -> None:
    first, second = with_tracker_data([Sample(STABLE_AFTER_S / 2, 1.0), Sample(STABLE_AFTER_S, 2.0)], order())
    assert isinstance(first, Sample)
    assert isinstance(second, Sample)
    assert isinstance(first.evidence, Noise)
    assert isinstance(second.evidence, Noise)
    assert (first.evidence.stable, second.evidence.stable) == (False, True)
    assert first.evidence.scale == second.evidence.scale
