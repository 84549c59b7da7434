"""Real functions on this machine, through Lithops, which exchange by Redis and by our parameter server."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from mlcd.clouds.functions.bucket import bounds
from mlcd.clouds.functions.groups import READY, Durations
from mlcd.clouds.functions.lithops_functions import LithopsFunctions
from mlcd.clouds.functions.orders import Fault
from mlcd.core.backend import Launch, Purpose
from mlcd.core.clock import WallClock
from mlcd.core.configuration import Configuration, Offer
from mlcd.core.job import Job, Search
from mlcd.core.measurement import Ended, Event, Outcome, Sample
from mlcd.planners.functions.nouns import Allocation, Calibrated, Epoch, FunctionsTask, TrainEpochs, Tuning
from mlcd.planners.functions.storages.local import available, serve
from mlcd.planners.functions.workload import StorageRate, Tariff, Workload
from mlcd.planners.functions.workloads import dataset, sizes_mb, trainer

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(
        importlib.util.find_spec("lithops") is None, reason="lithops is missing: pip install 'mlcd[lithops]'"
    ),
]
SAMPLES, BATCH, RATE, SEED = 610, 50, 0.1, 3
"""The parts are uneven, and the last batch is smaller."""
THREE = Allocation(3, 1_769, "vm-ps")
ONE_DOLLAR_A_CALL = Tariff(0.0, 1.0, (StorageRate("vm-ps"), StorageRate("elasticache")))


def job(tuning: Tuning | None = None, **more: object) -> Job:
    data_mb, model_mb = sizes_mb("lr", "higgs", SAMPLES)
    workload = Workload("lr", "higgs", SAMPLES, data_mb, model_mb, BATCH, RATE)
    serverless = FunctionsTask(workload, tuning=tuning, tariff=ONE_DOLLAR_A_CALL, **more)  # type: ignore[arg-type]
    return Job("functions", 1.0, search=Search(seed=SEED), ask=serverless)


def launch(label: str, work: TrainEpochs | None = None, allocation: Allocation = THREE, **more: object) -> Launch:
    trials = 1 if work is None else len(work.trials)
    nodes = allocation.functions * min(2, trials)
    configuration = Configuration(Offer("function", 0.1, 1, 1.7), nodes, allocation)
    purpose = Purpose.PROBE if work is None or work.sample_of is not None else Purpose.RUN
    fields = {"lifetime_s": 60.0, "ordinal": 0, "work": work, **more}
    return Launch(label, configuration, purpose, float(SAMPLES), **fields)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """Of our parameter server."""
    with serve("vm-ps", tmp_path_factory.mktemp("vm-ps")) as server:
        yield server.url


@pytest.fixture
def backend(tmp_path, url):
    return LithopsFunctions(tmp_path, WallClock(datetime.now(UTC)), {"vm-ps": url})


def play(backend: LithopsFunctions, ordered: Launch, job: Job) -> tuple[list[Event], list[Epoch]]:
    with closing(backend.run(job, ordered)) as events:
        found = list(events)
    assert backend.leftovers() == set()
    return found, [event.evidence for event in found if isinstance(event, Sample) and isinstance(event.evidence, Epoch)]


def reference(*functions: int, rate: float = RATE, samples: int = SAMPLES, batch: int = BATCH) -> list[float]:
    """The losses of the same training in this process, each after its epoch, over all samples.

    So many functions in each epoch.
    """
    model = trainer("lr", "higgs")
    everything = dataset("higgs").rows(0, samples, 0)
    parameters, losses = model.initial(SEED), []
    for n in functions:
        parts = [dataset("higgs").rows(*bounds(samples, part, n), 0) for part in range(n)]
        for first in range(0, max(len(labels) for _, labels in parts), batch):
            total, count = np.zeros(model.size), 0
            for features, labels in parts:
                if rows := len(labels[first : first + batch]):
                    some = slice(first, first + batch)
                    _, gradient = model.gradient(parameters, features[some], labels[some])
                    total, count = total + rows * gradient.astype(float), count + rows
            parameters = parameters - np.float32(rate) * (total / count).astype(np.float32)
        losses.append(model.loss(parameters, *everything))
    return losses


def test_epochs_over_two_launches_train_as_one_process_would(backend):
    first, epochs = play(backend, launch("run-1", TrainEpochs(2)), job())
    assert isinstance(first[-1], Ended)
    assert first[-1].outcome is Outcome.OK, first[-1]
    _, more = play(backend, launch("run-2", TrainEpochs(1, done=2)), job())
    losses = [epoch.loss for epoch in (*epochs, *more)]
    assert losses == pytest.approx(reference(3, 3, 3), rel=1e-6)
    assert losses == sorted(losses, reverse=True)
    assert [(epoch.trial, epoch.number, epoch.retries, epoch.usd) for epoch in (*epochs, *more)] == [
        (0, 1, 0, 3.0),
        (0, 2, 0, 3.0),
        (0, 3, 0, 3.0),
    ]
    for epoch in (*epochs, *more):
        parts_s = epoch.start_s + epoch.load_s + epoch.compute_s + epoch.sync_s
        assert 0.7 * epoch.seconds < parts_s <= epoch.seconds
        assert epoch.function_s > 3 * epoch.compute_s
    samples = [event for event in first if isinstance(event, Sample)]
    assert [(each.samples, each.saved) for each in samples] == [(SAMPLES, SAMPLES), (2 * SAMPLES, 2 * SAMPLES)]
    assert samples[0].elapsed_s < samples[1].elapsed_s <= first[-1].elapsed_s


@pytest.mark.skipif(available("elasticache") is not None, reason=f"{available('elasticache')}")
@pytest.mark.night  # that it averages as the others do is in the contract of storages
def test_functions_that_exchange_through_redis_get_the_same_model(tmp_path, backend):
    with serve("elasticache", tmp_path) as server:
        both = replace(backend, endpoints={"elasticache": server.url})
        _, epochs = play(both, launch("run-1", TrainEpochs(1), Allocation(2, 1_769, "elasticache")), job())
    assert [epoch.loss for epoch in epochs] == pytest.approx(reference(2), rel=1e-6)
    assert epochs[0].requests >= 3 * 2 * 7 - 2 * 7  # 3n - 2 transfers in each of 7 steps, and more looks than that


def vanish() -> Fault:
    """Also kills Lithops' parent process, which would report it."""
    return lambda: os.killpg(os.getpgid(0), signal.SIGKILL)


def raising() -> Fault:
    return lambda: (_ for _ in ()).throw(RuntimeError("an injected fault"))


def holding(file: Path) -> Fault:
    """Creates the file, and waits until somebody deletes it."""

    def wait() -> None:
        file.touch()
        while file.exists():
            time.sleep(0.01)

    return wait


DIE, SLEEP = partial(os._exit, 13), partial(time.sleep, 30)


@pytest.mark.parametrize(
    "fault", [pytest.param(DIE, id="die"), pytest.param(vanish(), id="vanish", marks=pytest.mark.night)]
)
def test_a_function_that_fails_once_costs_an_attempt_and_changes_nothing(backend, fault):
    once = replace(backend, faults=lambda epoch, rank, attempt: fault if (rank, attempt) == (1, 0) else None)
    _, (epoch,) = play(once, launch("run-1", TrainEpochs(1)), job())
    assert epoch.loss == pytest.approx(reference(3)[0], rel=1e-6)
    assert epoch.retries == 1
    assert epoch.usd == 6.0  # both attempts were called and are billed


@pytest.mark.night  # at each change: with simulated functions
def test_a_function_that_always_dies_ends_the_launch_with_a_one_line_reason(backend):
    never = replace(backend, faults=lambda epoch, rank, attempt: DIE if rank == 1 else None)
    events, epochs = play(never, launch("run-1", TrainEpochs(1)), job())
    assert epochs == []
    (ended,) = events
    assert isinstance(ended, Ended)
    assert ended.outcome is Outcome.FAILED
    assert ended.detail.startswith("epoch 1 of trial 0 failed 3 times; function 1: ")
    assert "exited with code 13" in ended.detail
    assert "\n" not in ended.detail
    assert "RuntimeError" in ended.log


@pytest.mark.night  # at each change: test_storage_contract.py
def test_the_error_names_an_unreachable_storage(backend):
    nowhere = replace(backend, endpoints={"vm-ps": "tcp://127.0.0.1:9"}, retry_s=0.2)
    events, _ = play(nowhere, launch("run-1", TrainEpochs(1), Allocation(1, 1_769, "vm-ps")), job())
    alone = [event for event in events if isinstance(event, Ended)]
    assert alone[0].outcome is Outcome.OK  # a single function meets nobody there
    events, _ = play(nowhere, launch("run-2", TrainEpochs(1), Allocation(2, 1_769, "vm-ps")), job())
    (ended,) = events
    assert isinstance(ended, Ended)
    assert ended.outcome is Outcome.FAILED
    assert "vm-ps at tcp://127.0.0.1:9 has not answered" in ended.detail


@pytest.mark.night  # at each change: test_storage_restarts.py
@pytest.mark.parametrize("name", ["vm-ps", "elasticache"])
def test_a_storage_that_restarts_in_the_middle_costs_an_attempt_and_changes_nothing(tmp_path, backend, name):
    if (why := available(name)) is not None:
        pytest.skip(why)
    half_way = tmp_path / "half-way"
    with serve(name, tmp_path) as server:
        held = replace(
            backend,
            endpoints={name: server.url},
            faults=lambda epoch, rank, attempt: holding(half_way) if (rank, attempt) == (1, 0) else None,
        )

        def lose_all_it_knew() -> None:
            try:
                _until(half_way.exists)
                server.stop()
                server.start()
            finally:
                half_way.unlink(missing_ok=True)

        restart = threading.Thread(target=lose_all_it_knew)
        restart.start()
        _, (epoch,) = play(held, launch("run-1", TrainEpochs(1), Allocation(3, 1_769, name)), job())
        restart.join()
    assert epoch.loss == pytest.approx(reference(3)[0], rel=1e-6)
    assert epoch.retries == 1


def test_a_straggler_is_given_up_and_tried_again(backend):
    durations = Durations(min_timeout_s=5.0)  # an honest function may take some seconds to begin on a busy machine
    durations.record("train_epoch", THREE, 0.1)
    slow = replace(
        backend,
        durations=durations,
        faults=lambda epoch, rank, attempt: SLEEP if (rank, attempt) == (2, 0) else None,
    )
    _, (epoch,) = play(slow, launch("run-1", TrainEpochs(1)), job())
    assert epoch.retries == 1
    assert epoch.loss == pytest.approx(reference(3)[0], rel=1e-6)


@pytest.mark.night  # at each change: with simulated functions
def test_no_attempt_starts_whose_worst_case_exceeds_the_budget(backend):
    once = replace(
        backend, faults=lambda epoch, rank, attempt: raising() if (epoch, rank, attempt) == (2, 0, 0) else None
    )
    events, (first, second) = play(once, launch("run-1", TrainEpochs(3), most_usd=11.0), job())
    assert (first.usd, second.usd) == (3.0, 6.0)
    assert isinstance(events[-1], Ended)
    assert events[-1].outcome is Outcome.AT_THE_LIMIT


def test_functions_end_with_the_launchs_lifetime(backend):
    slow = replace(backend, faults=lambda epoch, rank, attempt: SLEEP if epoch == 2 else None)
    events, epochs = play(slow, launch("run-1", TrainEpochs(2), lifetime_s=8.0), job())
    assert len(epochs) == len(events) == 1  # it has not ended: its time was over
    up_s = slow.reclaim("run-1")
    assert up_s is not None
    assert up_s <= 8.0


def test_closing_ends_the_functions_that_run(backend):
    slow = replace(backend, faults=lambda epoch, rank, attempt: SLEEP if epoch == 2 else None)
    with closing(slow.run(job(), launch("run-1", TrainEpochs(2)))) as events:
        next(events)
    assert slow.leftovers() == set()
    assert slow.reclaim("never-1") is None


@pytest.mark.night  # at each change: with simulated functions
def test_trials_run_in_parallel_with_their_own_learning_rates_and_others_wait(backend):
    tuning = Tuning(3, space={"learning_rate": (0.01, 1.0)})
    ordered = launch("run-1", TrainEpochs(1, trials=(0, 1, 2)), Allocation(1, 1_769, "vm-ps"))
    _, epochs = play(backend, ordered, job(tuning))
    assert {epoch.trial for epoch in epochs} == {0, 1, 2}
    for epoch in epochs:
        rate = tuning.hyperparameters(epoch.trial, SEED)["learning_rate"]
        assert epoch.loss == pytest.approx(reference(1, rate=rate)[0], rel=1e-6)


@pytest.mark.night  # at each change: with simulated functions
def test_a_calibration_measures_all_parts_of_an_epoch(backend):
    events, _ = play(backend, launch("run-1", allocation=replace(THREE, memory_mb=884)), job())
    told, ended = events
    assert isinstance(told, Sample)
    assert isinstance(ended, Ended)
    assert ended.outcome is Outcome.OK
    found = told.evidence
    assert isinstance(found, Calibrated)
    assert found.allocation == Allocation(3, 884, "vm-ps")
    assert min(found.s_per_mb, found.load_mb_per_s, found.start_s, found.sync_s) > 0
    assert len(found.transfers) == 3
    assert all(seconds > 0 for _, seconds in found.transfers)


@pytest.mark.night  # at each change: with simulated functions
def test_a_sample_is_trained_by_one_function_as_many_would_train_the_whole(backend):
    ordered = launch("run-1", TrainEpochs(2, sample_of=4))
    _, epochs = play(backend, ordered, job())
    sampled = job().ask.workload.sampled(0.1, 4)
    assert [epoch.number for epoch in epochs] == [1, 2]
    expected = reference(1, 1, samples=sampled.samples, batch=sampled.batch)
    assert [epoch.loss for epoch in epochs] == pytest.approx(expected, rel=1e-6)
    assert sum(epoch.usd for epoch in epochs) == 1.0  # one call


TWO = Allocation(2, 1_769, "vm-ps")


@pytest.fixture
def foreseeing(backend):
    """It has seen epochs, and that functions take longer than those to start: others are called at once."""
    backend.durations.record("train_epoch", THREE, 0.1)
    backend.durations.record(READY, THREE, 0.5)
    with closing(backend):
        yield backend


@pytest.mark.night  # at each change: with simulated functions
def test_functions_of_another_allocation_are_started_before_the_running_epoch_ends(foreseeing):
    with closing(foreseeing.run(job(), launch("run-1", TrainEpochs(1, then=TWO)))) as events:
        first = next(events).evidence
    assert foreseeing.leftovers() == {"run-1.ahead"}
    _, (second,) = play(foreseeing, launch("run-2", TrainEpochs(1, done=1), TWO), job())
    assert [first.loss, second.loss] == pytest.approx(reference(3, 2), rel=1e-6)
    assert second.start_s < first.start_s
    assert (first.usd, second.usd) == (5.0, 0.0)  # they were called by the launch before


def test_prewarmed_functions_that_are_not_taken_over_are_ended(foreseeing):
    with closing(foreseeing.run(job(), launch("run-1", TrainEpochs(1, then=TWO)))) as events:
        next(events)
    foreseeing.close()
    assert foreseeing.leftovers() == set()


CRASHES = """
import os, sys
sys.path.insert(0, {tests!r})
from test_functions_live import *
backend = LithopsFunctions(Path({home!r}), WallClock(datetime.now(UTC)), {{"vm-ps": {url!r}}},
                           faults=lambda epoch, rank, attempt: SLEEP)
print("up", flush=True)
next(backend.run(job(), launch("run-1", TrainEpochs(1))))
"""


def test_a_crash_leaves_nothing_behind(tmp_path, backend, url):
    program = CRASHES.format(tests=str(Path(__file__).parent), home=str(tmp_path), url=url)
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline()
        _until(lambda: backend.leftovers() == {"run-1"})
        driver.kill()
    _until(lambda: backend.leftovers() == set())
    up_s = backend.reclaim("run-1")
    assert up_s is not None
    assert up_s < 20
    used = backend.usage(job(), "run-1")
    assert used is not None
    assert used.known
    assert used.usd == 3.0  # each of the three was called once


def _until(true: object) -> None:
    until_s = time.monotonic() + 15.0
    while not true():  # type: ignore[operator]
        assert time.monotonic() < until_s
        time.sleep(0.05)
