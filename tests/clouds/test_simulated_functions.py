"""Simulated functions keep the contract of a backend, follow the equations, and bill every attempt."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlcd_fixtures.functions import TARIFF, functions_job, random_world, truth
from mlcd_fixtures.functions_promises import billed_usd

from mlcd.clouds.functions.simulated import OFFLINE_ERROR, Losses, SimulatedFunctions
from mlcd.clouds.functions.simulated_epochs import Faults, Platform
from mlcd.core.backend import Launch, Purpose
from mlcd.core.clock import VirtualClock
from mlcd.core.errors import BackendError
from mlcd.core.job import Job
from mlcd.core.measurement import Ended, Outcome, Sample
from mlcd.planners.functions.epoch_model.calibration import calibrate
from mlcd.planners.functions.epoch_model.epoch import EpochModel
from mlcd.planners.functions.measure import FunctionsProfiler
from mlcd.planners.functions.nouns import MOST_ATTEMPTS, Allocation, Epoch, TrainEpochs, Tuning, functions_task
from mlcd.planners.functions.space import configuration
from mlcd.planners.functions.workload import Workload
from mlcd.testing.backends import BackendContract

WHERE = Allocation(4, 1_024, "s3")
STILL = Platform(0.0)
TUNING = functions_job(tuning=Tuning(6))
TRAINING = functions_job()


class TestSimulatedFunctions(BackendContract):
    def backend(self, clock):
        return SimulatedFunctions(clock, truth(), seed=1)

    def job(self):
        return TRAINING

    def configuration(self):
        return configuration(functions_task(TRAINING), WHERE, TrainEpochs(3))

    def failing(self):
        return None

    def _whole(self):
        return order(TRAINING, WHERE, TrainEpochs(3), samples=3.0 * TRAINING.dataset_samples)


def order(job: Job, where: Allocation, work: TrainEpochs | None, samples: float = 0.0, **more: object) -> Launch:
    """A launch; without work, a calibration."""
    purpose = Purpose.PROBE if work is None or work.sample_of is not None else Purpose.RUN
    place = configuration(functions_task(job), where, work or TrainEpochs(1))
    return replace(Launch("x-1", place, purpose, samples, None, 0, work=work), **more)


def functions(platform: Platform = STILL, **more: object) -> SimulatedFunctions:
    return replace(SimulatedFunctions(VirtualClock(), truth(), 3, platform), **more)


def epochs(backend: SimulatedFunctions, job: Job, launch: Launch) -> list[Epoch]:
    return [
        event.evidence
        for event in backend.run(job, launch)
        if isinstance(event, Sample) and isinstance(event.evidence, Epoch)
    ]


@pytest.mark.parametrize("storage", ["s3", "dynamodb", "elasticache", "vm-ps"])
def test_without_noise_an_epoch_takes_and_costs_what_the_equations_say(storage):
    where = replace(WHERE, storage=storage)
    model = EpochModel(TRAINING.ask.workload, TARIFF, truth())
    (epoch,) = epochs(functions(), TRAINING, order(TRAINING, where, TrainEpochs(1)))
    assert epoch.seconds == pytest.approx(model.epoch_s(where))
    assert epoch.usd == pytest.approx(model.epoch_usd(where))
    assert epoch.start_s + epoch.load_s + epoch.compute_s + epoch.sync_s == pytest.approx(epoch.seconds)
    assert (epoch.number, epoch.requests, epoch.retries) == (1, model.requests(where), 0)


def test_a_model_too_large_for_its_storage_fails():
    large = functions_job(Workload("resnet50", "images", 1_000, 80.0, 89.0, 10))
    place = replace(order(TRAINING, replace(WHERE, storage="dynamodb"), TrainEpochs(1)).configuration)
    (ended,) = functions().run(large, replace(order(large, WHERE, TrainEpochs(1)), configuration=place))
    assert (ended.outcome, ended.elapsed_s > 0) == (Outcome.FAILED, True)
    assert ended.detail == "a model of 89 MB cannot be exchanged through dynamodb"


def test_a_job_that_is_not_on_functions_is_an_error():
    with pytest.raises(BackendError, match="is not a job on functions"):
        list(functions().run(Job("other", 1.0), order(TRAINING, WHERE, TrainEpochs(1))))


def test_a_calibration_without_noise_recovers_the_truth():
    backend, probes = functions(), []
    for storage in ("s3", "vm-ps"):
        for n, memory in ((2, 128), (8, 512), (2, 1_769), (8, 4_096)):
            (found,) = [
                event.evidence
                for event in backend.run(TRAINING, order(TRAINING, Allocation(n, memory, storage), None))
                if isinstance(event, Sample) and event.evidence
            ]
            probes.append(found)
    learned = EpochModel(TRAINING.ask.workload, TARIFF, calibrate(probes, TRAINING.ask.workload))
    true = EpochModel(TRAINING.ask.workload, TARIFF, truth())
    for where in (Allocation(3, 700, "s3"), Allocation(16, 3_000, "vm-ps"), Allocation(8, 1_769, "s3")):
        assert learned.epoch_s(where) == pytest.approx(true.epoch_s(where), rel=0.01)
        assert learned.epoch_usd(where) == pytest.approx(true.epoch_usd(where), rel=0.01)


def test_as_many_trials_run_at_once_as_there_are_slots():
    two_at_once = replace(TUNING, ask=replace(functions_task(TUNING), concurrency=2 * WHERE.functions + 1))
    launch = order(two_at_once, WHERE, TrainEpochs(2, 0, tuple(range(5))))
    events = list(functions().run(two_at_once, launch))
    one_s = EpochModel(TUNING.ask.workload, TARIFF, truth()).epoch_s(WHERE)
    assert [event.elapsed_s / one_s for event in events] == pytest.approx([1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 6])
    assert events[-1].outcome is Outcome.OK
    assert [event.samples for event in events[:-1]] == [1e5 * i for i in range(1, 11)]


def test_prewarmed_functions_have_been_starting_meanwhile():
    slow = truth(start=(30.0, 0.0))
    backend, then = functions(calibration=slow), Allocation(8, 512, "vm-ps")
    (first,) = epochs(backend, TRAINING, order(TRAINING, WHERE, TrainEpochs(1, 0, then=then)))
    (second,) = epochs(backend, TRAINING, order(TRAINING, then, TrainEpochs(1, 1)))
    (third,) = epochs(backend, TRAINING, order(TRAINING, then, TrainEpochs(1, 2)))
    assert first.start_s == third.start_s == 30.0
    assert second.start_s == pytest.approx(max(0.0, 30.0 - first.seconds))
    assert second.usd < third.usd  # minutes of the parameter server


def test_prewarmed_functions_that_are_not_used_are_dropped():
    backend, then = functions(), Allocation(8, 512, "vm-ps")
    epochs(backend, TRAINING, order(TRAINING, WHERE, TrainEpochs(1, 0, then=then)))
    epochs(backend, TRAINING, order(TRAINING, WHERE, TrainEpochs(1, 1)))
    assert epochs(backend, TRAINING, order(TRAINING, then, TrainEpochs(1, 2)))[0].start_s > 0


def test_a_failed_attempt_is_billed_and_repeated():
    rough, work = Platform(0.0, Faults(death=0.2)), TrainEpochs(1, 0, tuple(range(60)))
    seen = epochs(functions(rough), TUNING, order(TUNING, WHERE, work))
    (still, *_) = epochs(functions(), TUNING, order(TUNING, WHERE, work))
    assert any(epoch.retries for epoch in seen)
    for epoch in seen:
        assert (epoch.retries > 0) is (epoch.usd > still.usd * 1.000001)
        assert (epoch.retries > 0) is (epoch.seconds > still.seconds * 1.000001)
        assert epoch.retries < MOST_ATTEMPTS
        assert epoch.function_s >= still.function_s * (1 - 1e-9)


def test_an_epoch_that_dies_each_time_ends_the_launch_with_a_reason():
    events = list(functions(Platform(0.0, Faults(death=1.0))).run(TRAINING, order(TRAINING, WHERE, TrainEpochs(2))))
    assert len(events) == 1
    assert events[0].outcome is Outcome.FAILED
    assert events[0].detail == "functions died in 3 attempts at epoch 1 of trial 0"


def test_stragglers_and_throttling_take_longer_and_waiting_is_not_billed():
    (still,) = epochs(functions(), TRAINING, order(TRAINING, WHERE, TrainEpochs(1)))
    (slow,) = epochs(functions(Platform(0.0, Faults(straggler=1.0))), TRAINING, order(TRAINING, WHERE, TrainEpochs(1)))
    (late,) = epochs(functions(Platform(0.0, Faults(throttle=1.0))), TRAINING, order(TRAINING, WHERE, TrainEpochs(1)))
    assert slow.compute_s == pytest.approx(3 * still.compute_s)
    assert slow.usd > still.usd
    assert late.start_s > still.start_s
    assert late.usd == pytest.approx(still.usd)


@given(st.integers(0, 10_000), st.booleans(), st.floats(0.05, 1.2), st.one_of(st.none(), st.floats(0.0, 1.5)))
def test_bills_never_exceed_the_settled_cost_nor_that_the_limit(seed, tuning, share, allowed):
    rng = np.random.default_rng(seed)
    world = random_world(rng, tuning=tuning, rough=True)
    job, serverless = world.job, world.serverless
    trials = tuple(range(int(rng.integers(1, 9)))) if tuning else (0,)
    storage = str(rng.choice([name for name in serverless.storages if world.model.exists(name)]))
    where = Allocation(int(rng.integers(1, serverless.functions[1] + 1)), serverless.memory_mb[1], storage)
    launch = order(job, where, TrainEpochs(int(rng.integers(1, 4)), 0, trials))
    whole = FunctionsProfiler(world.cloud().backend).measure(job, launch)
    worst_usd = launch.configuration.usd(share * whole.seconds) + 2 * launch.configuration.billing.once_usd
    most_usd = worst_usd if allowed is None else min(worst_usd, allowed * whole.usd)
    launch = replace(launch, lifetime_s=share * whole.seconds, most_usd=most_usd)
    cloud = world.cloud()
    settled = FunctionsProfiler(cloud.backend).measure(job, launch)
    assert cloud.clock.elapsed_s() == pytest.approx(settled.seconds)
    assert settled.seconds <= launch.lifetime_s * (1 + 1e-12)
    billed = billed_usd(cloud.backend, job, launch, settled.seconds)
    assert billed <= settled.usd * (1 + 1e-9)
    assert settled.usd <= most_usd * (1 + 1e-9)
    assert settled.metered is (settled.outcome is Outcome.OK)
    if settled.metered:
        assert billed == pytest.approx(settled.usd)


def test_the_budget_is_shared_and_no_attempt_starts_beyond_it():
    launch = order(TUNING, WHERE, TrainEpochs(1, 0, tuple(range(6))))
    (one, *_) = epochs(functions(), TUNING, launch)
    events = list(functions().run(TUNING, replace(launch, most_usd=4.5 * one.usd)))
    assert [type(event) for event in events] == [Sample] * 4 + [Ended]
    assert events[-1].outcome is Outcome.AT_THE_LIMIT
    assert events[-1].detail == "the rest of the budget does not pay for 2 more epochs"
    assert events[0].elapsed_s < events[-1].elapsed_s, "six at once would have been too dear"


def test_an_attempt_is_stopped_before_it_exceeds_its_allotment():
    launch, slow = order(TRAINING, WHERE, TrainEpochs(1)), Platform(0.0, Faults(straggler=1.0, slower=50.0))
    (one,) = epochs(functions(), TRAINING, launch)
    backend = functions(slow)
    launch = replace(launch, most_usd=6 * one.usd)
    (ended,) = backend.run(TRAINING, launch)
    assert ended.outcome is Outcome.AT_THE_LIMIT
    assert 4 * one.usd <= billed_usd(backend, TRAINING, launch) <= 6 * one.usd * (1 + 1e-9)


def test_a_loss_depends_on_its_trial_and_epoch_alone():
    backend = functions(Platform(0.1))
    whole = epochs(backend, TUNING, order(TUNING, WHERE, TrainEpochs(4, 0, (0, 1, 2)), ordinal=0))
    rest = epochs(backend, TUNING, order(TUNING, replace(WHERE, functions=2), TrainEpochs(2, 2, (2,)), ordinal=5))
    losses = {(epoch.trial, epoch.number): epoch.loss for epoch in whole}
    assert [losses[2, 3], losses[2, 4]] == pytest.approx([epoch.loss for epoch in rest], nan_ok=True)


def test_about_as_many_trials_diverge_as_stated_and_the_others_fall_to_different_floors():
    losses = Losses(5, noise=0.0)
    lasting = [losses.loss(TUNING, trial, 6) for trial in range(400)]
    numbers = [loss for loss in lasting if not math.isnan(loss)]
    assert 20 <= 400 - len(numbers) <= 62
    assert max(numbers) - min(numbers) > 0.3
    assert all(losses.loss(TUNING, 0, e) > losses.loss(TUNING, 0, e + 1) for e in range(1, 30)) or math.isnan(
        lasting[0]
    )


@pytest.mark.parametrize("epochs_told", [None, 5.0, 40.0])
def test_training_reaches_its_target_as_stated_and_a_samples_error_is_bounded(epochs_told):
    job = replace(TRAINING, ask=replace(functions_task(TRAINING), epochs=epochs_told))
    wrong = []
    for seed in range(60):
        losses = Losses(seed, noise=0.0)
        true, sampled = losses.epochs_to_target(job), losses.epochs_to_target(job, sampled=True)
        assert epochs_told is None or sampled == epochs_told
        assert losses.loss(job, 0, math.ceil(true + 1e-6)) <= job.target.value * (1 + 1e-9)
        assert math.ceil(true) == 1 or losses.loss(job, 0, math.ceil(true) - 1) > job.target.value
        wrong.append(abs(sampled / true - 1))
    assert max(wrong) <= OFFLINE_ERROR
    assert max(wrong) > OFFLINE_ERROR / 2


def test_a_target_below_the_lowest_loss_is_never_reached():
    losses = Losses(1, noise=0.05, lowest=0.55)
    assert min(losses.loss(TRAINING, 0, e) for e in range(1, 400)) > 0.55


def test_a_sample_of_the_data_takes_a_share_of_the_time_and_has_its_own_losses():
    alone = Allocation(1, 1_769, "s3")
    (sample, *_) = epochs(functions(), TRAINING, order(TRAINING, alone, TrainEpochs(8, sample_of=10)))
    (whole,) = epochs(functions(), TRAINING, order(TRAINING, alone, TrainEpochs(1)))
    assert sample.compute_s == pytest.approx(whole.compute_s / 10)
    assert sample.loss != whole.loss


def test_a_launch_stops_when_told_to():
    events = functions().run(TRAINING, order(TRAINING, WHERE, TrainEpochs(5)))
    next(events)
    assert isinstance(events.send(True), Ended)
