"""The measurement of a launch on functions: its epochs, and its cost, exact or as an upper bound."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from mlcd_fixtures.scripted import Scripted

from mlcd.core.backend import Launch, Purpose
from mlcd.core.configuration import Configuration, Offer
from mlcd.core.job import Job
from mlcd.core.measurement import Ended, Event, Measurement, Outcome, Sample
from mlcd.core.strategy import Watch
from mlcd.planners.functions.measure import FunctionsProfiler
from mlcd.planners.functions.nouns import (
    Allocation,
    ByUse,
    Calibrated,
    Epoch,
    FunctionsTask,
    TrainEpochs,
    Tuning,
    evidence_of,
)
from mlcd.planners.functions.workload import Workload

WHERE = Allocation(4, 1_024, "s3")
PLACE = Configuration(Offer("1,024 MB function", 900.0, 1, 1), 4, WHERE, ByUse(2.0))
"""A dollar a second, and two dollars for the calls."""

SAMPLES = 500
CALIBRATED = Calibrated(WHERE, 0.1, 40.0, 1.25, 0.02)


def epoch(trial: int, number: int, loss: float = 0.7, at_s: float | None = None) -> Sample:
    """The epochs of a script come every ten seconds and cost a quarter of a dollar."""
    told = Epoch(trial, number, 10.0, 0.25, loss, start_s=1.5)
    return Sample(10.0 * number if at_s is None else at_s, float(SAMPLES * number), evidence=told)


def job(tuning: Tuning | None = None) -> Job:
    workload = Workload("lr", "higgs", SAMPLES, 1.0, 0.01, 10)
    return Job("job", 20.0 * SAMPLES, ask=FunctionsTask(workload, tuning=tuning), dataset_samples=SAMPLES)


def measure(
    events: Sequence[Event], work: TrainEpochs | None, *, tuning: Tuning | None = None, watch: Watch | None = None,
    lifetime_s: float | None = 60.0, most_usd: float | None = None,
    purpose: Purpose = Purpose.RUN,
) -> tuple[Measurement, Scripted]:  # fmt: skip
    backend = Scripted(events)
    launch = Launch("run-1", PLACE, purpose, 0.0, lifetime_s, 0, work=work, most_usd=most_usd)
    measurement = FunctionsProfiler(backend).measure(job(tuning), launch, None, watch)
    assert backend.torn_down
    return measurement, backend


def test_a_complete_launch_costs_the_sum_of_its_epochs():
    events = [epoch(0, 1), epoch(1, 1), epoch(0, 2, 0.6), epoch(1, 2, 0.5), Ended(23.0, Outcome.OK)]
    seen, _ = measure(events, TrainEpochs(2, 0, (0, 1)), tuning=Tuning(2))
    assert seen.outcome is Outcome.OK
    assert (seen.usd, seen.metered, seen.seconds) == (1.0, True, 23.0)
    assert [(each.trial, each.number) for each in evidence_of(seen).epochs] == [(0, 1), (1, 1), (0, 2), (1, 2)]
    assert seen.metric == 0.5
    assert seen.startup_s == 1.5


@pytest.mark.parametrize("last", [Ended(31.0, Outcome.FAILED, "functions died"), Ended(31.0, Outcome.PREEMPTED)])
def test_an_incomplete_launch_costs_its_worst_case_and_keeps_its_epochs(last):
    seen, _ = measure([epoch(0, 1), last], TrainEpochs(2))
    assert (seen.outcome, seen.detail) == (last.outcome, last.detail)
    assert (seen.usd, seen.metered) == (PLACE.usd(31.0), False)
    assert len(evidence_of(seen).epochs) == 1


def test_a_launch_that_fails_before_its_first_epoch_is_billed_too():
    seen, _ = measure([Ended(3.0, Outcome.LAUNCH_FAILED, "throttled")], TrainEpochs(1))
    assert (seen.outcome, seen.usd, evidence_of(seen).epochs, seen.metric) == (
        Outcome.LAUNCH_FAILED,
        PLACE.usd(3.0),
        (),
        None,
    )


def test_nothing_costs_more_than_its_order_allows():
    seen, _ = measure([epoch(0, 1), Ended(31.0, Outcome.FAILED)], TrainEpochs(2), most_usd=7.0)
    assert (seen.usd, seen.metered) == (7.0, False)


def test_functions_without_an_end_ran_for_their_whole_lifetime():
    seen, _ = measure([epoch(0, 1)], TrainEpochs(3))
    assert (seen.outcome, seen.seconds, seen.usd) == (Outcome.AT_THE_LIMIT, 60.0, PLACE.usd(60.0))
    assert seen.detail == "1 of 3 epochs done when the limit was reached"


def test_a_launch_with_all_epochs_is_good_however_it_ends():
    assert measure([epoch(0, 1), Ended(12.0, Outcome.FAILED, "late")], TrainEpochs(1))[0].outcome is Outcome.OK
    assert measure([epoch(0, 1)], TrainEpochs(1))[0].metered


def test_an_epoch_that_was_not_requested_does_not_count():
    seen, _ = measure([epoch(0, 1), epoch(7, 2), Ended(30.0, Outcome.PREEMPTED)], TrainEpochs(1, 1))
    assert seen.outcome is Outcome.PREEMPTED
    assert seen.saved_samples == SAMPLES


def test_training_saves_its_epochs_and_tuning_saves_nothing():
    events = [epoch(0, 4), Ended(12.0, Outcome.OK)]
    assert measure(events, TrainEpochs(1, 3))[0].saved_samples == 4 * SAMPLES
    assert measure([Ended(1.0, Outcome.FAILED)], TrainEpochs(1, 3))[0].saved_samples == 3 * SAMPLES
    assert measure(events, TrainEpochs(1, 3), tuning=Tuning(1))[0].saved_samples == 0
    assert measure(events, TrainEpochs(1, 3), purpose=Purpose.PROBE)[0].saved_samples == 0


def test_a_loss_that_is_not_a_number_is_a_valid_result():
    diverged, _ = measure([epoch(0, 1, math.nan), Ended(10.0, Outcome.OK)], TrainEpochs(1))
    assert (diverged.outcome, diverged.metric) == (Outcome.OK, None)
    events = [epoch(0, 1, math.nan), epoch(1, 1, 0.6), epoch(2, 1, math.inf), Ended(10.0, Outcome.OK)]
    assert measure(events, TrainEpochs(1, 0, (0, 1, 2)), tuning=Tuning(3))[0].metric == 0.6


def test_the_watch_is_called_after_each_epoch_and_can_end_the_launch():
    asked = []

    def watch(so_far: Measurement) -> Outcome | None:
        asked.append((so_far.seconds, so_far.metric, len(evidence_of(so_far).epochs)))
        return Outcome.INTERRUPTED if len(asked) == 2 else None

    events = [Sample(1.0, 0.0), epoch(0, 1, 0.9), epoch(0, 2, 0.8), epoch(0, 3)]
    seen, backend = measure(events, TrainEpochs(3), watch=watch)
    assert asked == [(10.0, 0.9, 1), (20.0, 0.8, 2)]
    assert (seen.outcome, seen.seconds, seen.usd) == (Outcome.INTERRUPTED, 20.0, PLACE.usd(20.0))
    assert backend.emitted == 3


def test_a_calibration_costs_its_time():
    seen, _ = measure([Sample(9.0, 10.0, evidence=CALIBRATED), Ended(9.5, Outcome.OK)], None, purpose=Purpose.PROBE)
    assert (seen.outcome, evidence_of(seen).calibrated, seen.usd, seen.metered) == (
        Outcome.OK,
        CALIBRATED,
        PLACE.usd(9.5),
        False,
    )
    assert seen.startup_s == 1.25


def test_a_metered_calibration_costs_its_usage():
    told = Sample(9.0, 10.0, evidence=replace(CALIBRATED, usd=0.25))
    seen, _ = measure([told, Ended(9.5, Outcome.OK)], None, purpose=Purpose.PROBE)
    assert (seen.outcome, seen.usd, seen.metered) == (Outcome.OK, 0.25, True)


def test_a_calibration_without_a_result_says_why():
    late, _ = measure([Sample(9.0, 10.0)], None, purpose=Purpose.PROBE)
    assert (late.outcome, late.detail) == (Outcome.TIMED_OUT, "the calibration was not finished in 60 s")
    silent, _ = measure([Ended(4.0, Outcome.OK)], None, purpose=Purpose.PROBE)
    assert silent.outcome is Outcome.FAILED
    broken, _ = measure([Ended(4.0, Outcome.FAILED, "no such storage")], None, purpose=Purpose.PROBE)
    assert broken.detail == "no such storage"


def test_a_crashed_launch_is_reclaimed_by_the_backend():
    assert FunctionsProfiler(Scripted([])).reclaim("run-1") == 12.0
