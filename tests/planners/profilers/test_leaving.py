"""Elastic jobs: save and leave when asked, and end once the target is reached and saved."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from mlcd.core.backend import Events, Launch, Provenance, Purpose
from mlcd.core.configuration import Configuration, Offer
from mlcd.core.job import Job, Target
from mlcd.core.measurement import Ended, Event, Measurement, Outcome, Sample
from mlcd.planners.profilers.training import TrainingProfiler
from mlcd.planners.scale.nouns import Batch, MeasureNoise, Noise, ScalingTask

PLACE = Configuration(Offer("x", 3_600.0, 1, 1), 1, Batch(64))  # a dollar a second
JOB = Job("job", 1e6, checkpoints=True, target=Target("accuracy", 0.9), ask=ScalingTask((1, 4), (64, 128)))
STEADY = [Sample(10.0 * i, 1_000.0 * i) for i in range(1, 61)]


class Leaving:
    """A backend whose job sends the events in `farewell` when it is asked to leave."""

    provenance = Provenance.LIVE

    def __init__(self, events: Sequence[Event], farewell: Sequence[Event]) -> None:
        self.events, self.farewell = events, farewell
        self.asked_at: float | None = None

    def run(self, job: Job, launch: Launch) -> Events:
        for event in self.events:
            if (yield event):
                self.asked_at = event.elapsed_s
                yield from self.farewell
                return

    def reclaim(self, label: str) -> None:
        """Nothing to tear down."""


def measure(
    events: Sequence[Event], farewell: Sequence[Event] = (), *, purpose: Purpose = Purpose.PROBE, job: Job = JOB,
    saved: float = 0.0, noise: bool = False, leave: Outcome | None = None,
) -> tuple[Measurement, Leaving]:  # fmt: skip
    backend = Leaving(events, farewell)
    launch = Launch("run-1", PLACE, purpose, job.work_samples, 600.0, 0, 0, saved, MeasureNoise() if noise else None)
    watch = (lambda so_far: leave if so_far.seconds >= 300 else None) if leave is not None else None
    return TrainingProfiler(backend).measure(job, launch, None, watch), backend


def test_work_saved_on_leaving_counts_and_its_time_is_billed() -> None:
    seen, backend = measure(STEADY, [Sample(130.0, 9_500.0, saved=9_500.0), Ended(140.0, Outcome.OK)], saved=500.0)
    assert backend.asked_at is not None
    assert backend.asked_at < 130
    assert seen.saved_samples == 10_000.0
    assert (seen.seconds, seen.usd) == (140.0, 140.0)
    assert seen.samples_per_s == pytest.approx(100.0)


def test_a_job_that_breaks_on_leaving_has_failed() -> None:
    seen, _ = measure(STEADY, [Ended(130.0, Outcome.FAILED, "disk full", "disk full")])
    assert seen.outcome is Outcome.FAILED
    assert seen.detail == "disk full"


def test_a_job_that_exits_at_once_is_billed_until_it_was_asked() -> None:
    seen, backend = measure(STEADY)
    assert seen.outcome is Outcome.OK
    assert seen.seconds == backend.asked_at


def test_a_probe_of_a_job_that_is_not_elastic_is_not_asked() -> None:
    _, backend = measure(STEADY, job=replace(JOB, ask=None))
    assert backend.asked_at is None


@pytest.mark.parametrize(("checkpoints", "asked_at"), [(True, 300.0), (False, None)])
def test_a_job_that_saves_its_work_is_asked_to_before_it_is_moved(checkpoints: bool, asked_at: float | None) -> None:
    farewell, job = [Ended(306.0, Outcome.OK)], replace(JOB, ask=None, checkpoints=checkpoints)
    _, backend = measure(STEADY, farewell, purpose=Purpose.RUN, leave=Outcome.SWITCHED, job=job)
    assert backend.asked_at == asked_at


def test_the_watch_is_called_between_reports_with_the_rate_of_the_reports() -> None:
    silent: list[Event] = [replace(STEADY[9], elapsed_s=100.0 + i, stalled=True) for i in range(60, 300, 60)]
    seen, _ = measure([*STEADY[:10], *silent, *STEADY[40:]], purpose=Purpose.RUN, leave=Outcome.SWITCHED)
    assert seen.seconds == 340.0
    assert seen.samples_done == 10_000.0


@pytest.mark.parametrize("leave", [Outcome.SLOWED, Outcome.SWITCHED])
def test_a_run_that_is_to_switch_is_asked_and_says_why_it_ended(leave: Outcome) -> None:
    farewell = [Sample(305.0, 30_500.0, saved=30_500.0), Ended(306.0, Outcome.OK)]
    seen, backend = measure(STEADY, farewell, purpose=Purpose.RUN, leave=leave)
    assert backend.asked_at == 300.0
    assert seen.outcome is leave
    assert seen.saved_samples == 30_500.0


@pytest.mark.parametrize("purpose", list(Purpose))
def test_a_target_that_is_reached_and_saved_ends_the_launch(purpose: Purpose) -> None:
    events = [*STEADY[:3], Sample(40.0, 4e3, 3e3, 0.91), Sample(50.0, 5e3, 5e3, 0.91), *STEADY[5:]]
    seen, _ = measure(events, purpose=purpose)
    assert seen.seconds == 50.0  # not before what reached it is in a checkpoint
    assert seen.metric == 0.91
    assert seen.outcome is Outcome.OK


def test_a_metric_that_is_not_a_number_ends_the_launch_with_the_reason() -> None:
    seen, _ = measure([*STEADY[:3], Sample(40.0, 4e3, 4e3, math.nan), *STEADY[4:]])
    assert seen.outcome is Outcome.FAILED
    assert seen.seconds == 40.0
    assert "the training has diverged; try a lower learning rate" in seen.detail


def test_a_probe_that_needs_noise_waits_until_it_is_stable() -> None:
    noisy: list[Event] = [replace(s, evidence=Noise(300.0, 0.1, stable=s.elapsed_s >= 200)) for s in STEADY]
    _, backend = measure(noisy, noise=True)
    assert backend.asked_at == 200.0
    _, hasty = measure(noisy)
    assert hasty.asked_at is not None
    assert hasty.asked_at < 200


def test_a_probe_that_needs_noise_but_gets_none_fails_with_a_message_about_the_meter() -> None:
    seen, _ = measure(STEADY, noise=True)
    assert seen.outcome is Outcome.FAILED
    assert "it reports no gradient noise: use a NoiseMeter of mlcd_tracker" in seen.detail


@pytest.mark.parametrize("end", [[Ended(45.0, Outcome.PREEMPTED)], []], ids=["lost", "at the end of its lifetime"])
def test_a_target_reached_but_not_saved_before_a_preemption_is_not_reached(end: list[Event]) -> None:
    events = [*STEADY[:2], Sample(30.0, 3e3, 3e3, 0.8), Sample(40.0, 4e3, 3e3, 0.91), *end]
    seen, _ = measure(events, purpose=Purpose.RUN)
    assert seen.saved_samples == 3e3
    assert seen.metric == 0.8


def test_the_metric_of_a_job_that_ends_by_itself_counts() -> None:
    seen, _ = measure([*STEADY[:3], Sample(40.0, 4e3, 3e3, 0.91), Ended(45.0, Outcome.OK)], purpose=Purpose.RUN)
    assert seen.metric == 0.91


def test_a_repeated_metric_counts_as_one_evaluation() -> None:
    told = [None, None, 0.3, 0.3, 0.5, 0.5, 0.5, 0.91]
    events = [replace(STEADY[i], metric=metric, saved=STEADY[i].samples) for i, metric in enumerate(told)]
    seen, _ = measure(events, purpose=Purpose.RUN)
    assert seen.looks == 3
    assert measure(STEADY)[0].looks == 0
