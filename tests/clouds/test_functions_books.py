"""The bookkeeping of functions: the meter, committed models, and data in a bucket; no function is called."""

from __future__ import annotations

import io
import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from mlcd_fixtures.partitions import partition

from mlcd.clouds.functions.bucket import Models, bounds, load, store
from mlcd.clouds.functions.call import Requests
from mlcd.clouds.functions.groups import MAX_TIMEOUT_S, STRAGGLER, Durations, Group, GroupFailed, Workers
from mlcd.clouds.functions.lithops_internals import Answer
from mlcd.clouds.functions.meter import Bill, Meter
from mlcd.clouds.functions.orders import Orders
from mlcd.clouds.functions.worker import calibrate
from mlcd.core.errors import BackendError
from mlcd.planners.functions.nouns import MOST_ATTEMPTS, Allocation
from mlcd.planners.functions.workload import StorageRate, Tariff

STEPS = 10


@dataclass
class Bucket:
    """As much of Lithops' client as is used."""

    bucket: str = "bucket"
    backend: str = "memory"
    objects: dict[str, bytes] = field(default_factory=dict)
    written: int = 0

    def put_object(self, bucket: str, key: str, data: object) -> None:
        self.written += 1
        self.objects[key] = data.read() if hasattr(data, "read") else data.encode()

    def get_object(self, bucket: str, key: str, extra_get_args: dict[str, str] | None = None) -> bytes:
        found = io.BytesIO(self.objects[key])
        if not extra_get_args:
            return found.read()
        first, last = map(int, extra_get_args["Range"].removeprefix("bytes=").split("-"))
        found.seek(first)
        return found.read(last - first + 1)

    def delete_object(self, bucket: str, key: str) -> None:
        self.objects.pop(key, None)

    def list_keys(self, bucket: str, prefix: str) -> list[str]:
        return [key for key in self.objects if key.startswith(prefix)]


def test_every_part_is_read_as_it_was_generated_and_data_are_written_once():
    bucket = Bucket()
    stored = store(bucket, "higgs", 1_001)
    assert store(bucket, "higgs", 1_001) == stored
    assert bucket.written == 3
    for parts in (1, 3, 7):
        for part in range(parts):
            expected = partition("higgs", 1_001, part, parts)
            for read, made in zip(load(bucket, stored, part, parts), expected, strict=True):
                assert np.array_equal(read, made)


def test_incomplete_data_are_written_again():
    bucket = Bucket()
    stored = store(bucket, "higgs", 100)
    del bucket.objects[f"{stored.key}/whole"]
    bucket.objects[f"{stored.key}/features"] = b"half"
    assert store(bucket, "higgs", 100) == stored
    assert len(load(bucket, stored, 0, 1)[0]) == 100


@given(some.integers(1, 10_000), some.integers(1, 50))
def test_parts_follow_each_other_and_differ_by_one_row(samples, parts):
    found = [bounds(samples, part, parts) for part in range(parts)]
    assert [begin for begin, _ in found] == [0, *(end for _, end in found[:-1])]
    assert found[-1][1] == samples
    sizes = {end - begin for begin, end in found}
    assert max(sizes) - min(sizes) <= 1


def test_a_model_counts_once_it_is_committed_and_older_ones_are_deleted(tmp_path: Path):
    bucket = Bucket(objects={f"m{epoch}": b"" for epoch in range(1, 5)} | {"again": b""})
    models = Models(tmp_path, bucket)
    assert models.find(0, 0) is None
    with pytest.raises(BackendError, match="trial 0 after epoch 1 cannot be found"):
        models.find(0, 1)
    for epoch in (1, 2, 3):
        models.commit(0, epoch, f"m{epoch}")
    assert set(bucket.objects) == {"m3", "m4", "again"}
    assert Models(tmp_path, bucket).find(0, 3) == "m3"
    models.commit(0, 3, "again")  # the same epoch, done again after a crash
    assert models.find(0, 3) == "again"
    assert set(bucket.objects) == {"m4", "again"}


LAUNCHES = some.lists(some.tuples(some.integers(0, 5), some.booleans()), max_size=8)
"""For each launch its epochs, and whether it was settled: the ledger has no epochs of a killed launch."""


@given(launches=LAUNCHES)
def test_the_first_model_of_a_killed_launch_is_kept_wherever_it_is_killed(launches, tmp_path_factory):
    bucket, folder, done = Bucket(), tmp_path_factory.mktemp("models"), 0
    for number, (epochs, settled) in enumerate(launches):
        models = Models(folder, bucket, done)
        began_with = models.find(0, done)
        for epoch in range(done + 1, done + epochs + 1):
            key = f"{number}-{epoch}"
            bucket.objects[key] = b"weights"
            models.commit(0, epoch, key)
        assert Models(folder, bucket, done).find(0, done) == began_with
        assert began_with is None or began_with in bucket.objects
        done += epochs if settled else 0
    assert len(bucket.objects) <= 3, "a run does not fill the bucket"


@pytest.mark.parametrize("damage", ["", "[1]", '{"1": '])
def test_a_damaged_record_of_models_is_an_error(tmp_path, damage):
    (tmp_path / "trial-0.json").write_text(damage)
    with pytest.raises(BackendError, match=r"trial-0.json: damaged; .* mlcd tune"):
        Models(tmp_path, Bucket()).find(0, 1)


TARIFFS = some.builds(
    lambda second, call, request, minute: Tariff(
        second, call, (StorageRate("s3", usd_per_request=request, usd_per_minute=minute),)
    ),
    some.floats(0, 1e-3),
    some.floats(0, 1e-2),
    some.floats(0, 1e-4),
    some.floats(0, 1e-2),
)
ATTEMPTS = some.lists(some.tuples(some.integers(0, 2), some.floats(0, 1), some.floats(0.1, 50)), max_size=30)


@given(TARIFFS, some.integers(1, 20), some.floats(0, 2), ATTEMPTS)
def test_granted_attempts_never_cost_more_than_the_launchs_limit(tariff, functions, most_usd, attempts):
    meter = Meter(tariff, Allocation(functions, 1_024, "s3"), STEPS, most_usd)
    running: dict[int, float] = {}
    bills: dict[int, tuple[Bill, float]] = {}
    for work, used, wanted_s in attempts:
        if work in running:
            bill, seconds = bills.get(work, (Bill(), 0.0))
            lasts_s, requests = running.pop(work)
            bill.calls += functions
            bill.function_s += used * lasts_s * functions
            bill.requests += requests or 0
            bills[work] = bill, seconds + used * lasts_s
            meter.settle(work, *bills[work])
        elif (grant := meter.grant(work, wanted_s, 0.1, 0.5)) is not None:
            assert grant.seconds <= wanted_s
            running[work] = grant.seconds, grant.requests
    assert sum(meter.usd(*each) for each in bills.values()) <= most_usd + 1e-9


@given(TARIFFS, some.integers(1, 20), some.integers(1, 20), some.floats(0, 2), some.floats(1, 100))
def test_prewarmed_functions_wait_only_as_long_as_the_budget_covers(tariff, functions, others, most_usd, wanted_s):
    meter = Meter(tariff, Allocation(functions, 1_024, "s3"), STEPS, most_usd)
    grant = meter.grant("work", 10.0, 0.1, 1.0)
    theirs = Meter(tariff, Allocation(others, 2_048, "s3"), STEPS)
    waits_s = meter.reserve_for("ahead", theirs, wanted_s, 0.5)
    if waits_s is None:
        return
    assert 0.5 <= waits_s <= wanted_s
    ours = meter.usd(Bill(functions, functions * grant.seconds, grant.requests or 0), grant.seconds) if grant else 0.0
    assert ours + theirs.functions_usd(Bill(others, others * waits_s)) <= most_usd + 1e-9


def test_a_short_wait_is_granted_where_a_long_one_exceeds_the_budget():
    meter = Meter(Tariff(1.0, 0.0, (StorageRate("s3"),)), Allocation(1, 1_024, "s3"), STEPS, most_usd=30.0)
    theirs = Meter(meter.tariff, Allocation(2, 1_024, "s3"), STEPS)
    assert meter.grant("work", 9.0, 1.0, 1.0) is not None
    assert meter.reserve_for("ahead", theirs, 60.0, 5.0) == pytest.approx((30 - 10) / 2 - 1)
    assert meter.reserve_for("more", theirs, 60.0, 5.0) is None


def test_without_a_limit_everything_is_granted():
    meter = Meter(Tariff(1.0, 1.0, (StorageRate("s3"),)), Allocation(2, 1_024, "s3"), STEPS)
    grant = meter.grant("work", 100.0, 1.0, 0.5)
    assert grant is not None
    assert grant.seconds == 100.0
    assert grant.requests is None


def test_a_straggler_is_detected_by_the_median_of_its_allocation():
    durations, few, many = Durations(min_timeout_s=5.0), Allocation(2, 1_024, "s3"), Allocation(9, 1_024, "s3")
    assert durations.timeout_s("train_epoch", few) == MAX_TIMEOUT_S
    for seconds in (10.0, 20.0, 1_000.0):
        durations.record("train_epoch", few, seconds)
    durations.record("train_epoch", many, 0.1)
    assert durations.timeout_s("train_epoch", few) == STRAGGLER * 20.0
    assert durations.timeout_s("train_epoch", many) == 5.0
    assert durations.timeout_s("calibrate", few) == MAX_TIMEOUT_S


@dataclass
class Failing:
    """A platform on which every function reports one of these errors, attempt by attempt."""

    errors: list[Answer]
    calls: int = 0

    def call(self, function: object, orders: list[dict[str, object]], timeout_s: float) -> Failing:
        self.calls += 1
        return self

    def answers(self) -> list[Answer]:
        return [self.errors[min(self.calls, len(self.errors)) - 1]]

    deployed = ()

    def deploy(self) -> None:
        return None

    def bucket_requests(self) -> Requests:
        return Requests()

    def billed_s(self, number: int, answer: Answer | None, now: float, *, abandoned: bool = True) -> float:
        return 0.0

    def end(self, call: Failing, used: Bill) -> None:
        return None


def error(words: str, *, of_job: bool) -> Answer:
    report = {"error": words, "of_job": of_job, "final": False, "log": f"Traceback\n{words}", "requests": 0}
    return Answer({**report, "ended_at": 0.0}, "", 0.0, 1.0)


@pytest.mark.parametrize(
    ("errors", "attempts", "blames_job"),
    [
        ([error("ValueError: no such layer", of_job=True)], 2, True),
        ([error("ValueError: a", of_job=True), error("ValueError: b", of_job=True)], 3, True),
        ([error("s3 has not answered", of_job=False)], MOST_ATTEMPTS, False),
    ],
    ids=["the same twice", "one, then another twice", "a storage"],
)
def test_the_same_error_of_the_job_is_not_retried_twice(errors, attempts, blames_job):
    allocation = Allocation(1, 1_769, "s3")
    caller = Failing(errors)
    meter = Meter(Tariff(1e-5, 1e-7, (StorageRate("s3"),)), allocation, STEPS)
    orders = Orders(None, allocation, None, "", "", True, 1.0)  # type: ignore[arg-type]
    workers = Workers(caller, orders, None, Durations())  # type: ignore[arg-type]
    group = Group(workers, calibrate, lambda *_: [{}], "the calibration", meter)

    def try_on() -> None:
        while True:
            group.start(math.inf, 1.0)
            group.poll()

    with pytest.raises(GroupFailed) as failure:
        try_on()
    assert caller.calls == attempts
    assert bool(failure.value.log) is blames_job
    assert str(failure.value).startswith(f"the calibration failed {attempts} times; function 0: ")
