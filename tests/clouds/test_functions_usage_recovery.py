"""Recovering the usage of functions whose caller was killed, from its journal and from the bucket."""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from mlcd.clouds.functions.call import FINISH_S, Requests
from mlcd.clouds.functions.caller import ENDING_PUTS, GETS, PUTS
from mlcd.clouds.functions.function_launch import FunctionLaunch
from mlcd.clouds.functions.journal import CallRecord, Journal
from mlcd.clouds.functions.lithops_functions import LithopsFunctions
from mlcd.clouds.functions.lithops_internals import Deployed
from mlcd.clouds.functions.meter import Bill, Meter
from mlcd.clouds.functions.usage_recovery import MOST_WAIT_S, UsageRecovery
from mlcd.clouds.functions.worker import NOT_NEEDED
from mlcd.clouds.local import teardown
from mlcd.core.backend import Launch, Purpose, Usage
from mlcd.core.clock import VirtualClock, WallClock
from mlcd.core.configuration import Configuration, Offer
from mlcd.core.job import Job
from mlcd.planners.functions.nouns import Allocation, FunctionsTask
from mlcd.planners.functions.workload import StorageRate, Tariff, Workload

TARIFF = Tariff(1e-5, 1e-7, (StorageRate("s3", 1e-6),), usd_per_put=1e-3, usd_per_get=1e-4)
TWO = Allocation(2, 1_024, "s3")
CALLED = CallRecord("abc-1", "M000", 2, 100.0, 400.0, 1_024, "s3", requests_most=50, backend="aws_s3", bucket="b")
USED_S = 20.0 + FINISH_S


def status(ended_at: float = 120.0, *, report: bool = True, submitted_at: float = 100.0) -> bytes:
    """As Lithops' worker stores it once a call has ended."""
    told = {"host_submit_tstamp": submitted_at, "worker_start_tstamp": 102.0, "worker_end_tstamp": ended_at}
    if report:
        result = {"up_at": 103.0, "ended_at": ended_at, "requests": 7, "puts": 3, "process_at": 50.0}
        told["result"] = str(pickle.dumps(result))  # type: ignore[assignment]
    return json.dumps(told).encode()


def key(number: int, job: str = "M000", executor: str = "abc-1") -> str:
    return f"lithops.jobs/{executor}-{job}/{number:05d}/status.json"


@dataclass
class Bucket:
    """As much of Lithops' client as is used. `later`: what is stored once so much time has passed."""

    clock: VirtualClock = field(default_factory=lambda: VirtualClock(200.0))
    objects: dict[str, bytes] = field(default_factory=dict)
    later: dict[str, tuple[float, bytes]] = field(default_factory=dict)
    lists: int = 0

    def list_keys(self, bucket: str, prefix: str) -> list[str]:
        assert bucket == "b"
        self.lists += 1
        arrived = {name: data for name, (at, data) in self.later.items() if at <= self.clock.elapsed_s()}
        self.objects |= arrived
        return [name for name in self.objects if name.startswith(prefix)]

    def get_object(self, bucket: str, name: str) -> bytes:
        return self.objects[name]

    def put_object(self, bucket: str, name: str, data: bytes) -> None:
        self.objects[name] = data

    def delete_objects(self, bucket: str, names: list[str]) -> None:
        for name in names:
            del self.objects[name]

    def get_client(self) -> object:
        return SimpleNamespace()


@pytest.fixture
def bucket() -> Bucket:
    return Bucket()


@pytest.fixture
def backend(tmp_path: Path, bucket: Bucket) -> LithopsFunctions:
    """Its launch was begun, and its caller killed, when the clock stood at 200 s."""
    recall = UsageRecovery(lambda backend: bucket, bucket.clock.wait, bucket.clock.elapsed_s)
    return LithopsFunctions(tmp_path, WallClock(datetime.now(UTC)), {}, "aws_lambda", recovery=recall)


def opened(backend: LithopsFunctions, label: str = "run-1", **facts: object) -> Journal:
    configuration = Configuration(Offer("function", 0.1, 1, 1.0), 2, TWO)
    folder = backend.launches.open(Launch(label, configuration, Purpose.RUN, 1.0, None, 1), **facts)
    order = json.loads((folder / "order.json").read_text())
    (folder / "order.json").write_text(json.dumps({**order, "started_at": 90.0}))
    journal = Journal(folder)
    journal.begin()
    return journal


def used(backend: LithopsFunctions, label: str = "run-1") -> Usage:
    backend.reclaim(label)
    found = backend.usage(job(), label)
    assert found is not None
    return found


def usd(bill: Bill, bucket: Requests, seconds: float = 20.0) -> float:
    return Meter(TARIFF, TWO, 0).usd(replace(bill, bucket=bucket), seconds)


THERE = Requests(2 * PUTS, 2 * GETS)
"""Requests of two functions to the bucket."""


def test_ended_functions_cost_what_their_records_say(backend, bucket):
    opened(backend).called(CALLED)
    bucket.objects |= {key(0): status(), key(1): status()}
    found = used(backend)
    assert found.known
    assert found.usd == pytest.approx(usd(Bill(2, 2 * USED_S, 14, puts=6), THERE))
    assert backend.reclaim("run-1") == pytest.approx(120.0 + FINISH_S - 90.0)  # and not until its deadline


def test_the_calls_objects_in_the_bucket_are_deleted_and_no_others(backend, bucket):
    opened(backend).called(CALLED)
    others = {key(0, executor="abc-10"), "lithops.jobs/abc-10/x.func.pickle"}
    bucket.objects |= dict.fromkeys({key(0), key(1), *others, "lithops.jobs/abc-1/x.func.pickle"}, status())
    used(backend)
    assert set(bucket.objects) == others


@pytest.mark.parametrize("until", [400.0, 229.0], ids=["before", "at"])
def test_functions_that_still_run_are_waited_for(backend, bucket, until):
    """They end before their deadline, or because of it."""
    opened(backend).called(replace(CALLED, until=until))
    bucket.objects[key(0)] = status()
    bucket.later[key(1)] = (230.0, status(229.0))
    found = used(backend)
    assert found.known
    assert found.usd == pytest.approx(usd(Bill(2, USED_S + 129.0 + FINISH_S, 14, puts=6), THERE))
    assert 230.0 <= bucket.clock.elapsed_s() < 240.0
    assert bucket.lists < 20, "each is billed"


@pytest.mark.parametrize("until", [250.0, 1_000.0], ids=["until its deadline", "not for ever"])
def test_a_function_that_never_answers_is_billed_until_its_deadline(backend, bucket, until):
    opened(backend).called(replace(CALLED, until=until))
    bucket.objects[key(0)] = status()
    found = used(backend)
    assert not found.known
    function_s = USED_S + max(until, bucket.clock.elapsed_s()) - 100.0
    seconds = max(until, bucket.clock.elapsed_s()) - 100.0
    assert found.usd == pytest.approx(usd(Bill(2, function_s, 7 + 25, puts=3 + 25), THERE, seconds))
    assert bucket.clock.elapsed_s() <= 200.0 + MOST_WAIT_S + 5.0
    assert backend.reclaim("run-1") >= until - 90.0


def test_a_function_that_died_is_billed_from_its_call_with_the_most_requests(backend, bucket):
    opened(backend).called(CALLED)
    bucket.objects |= {key(0): status(), key(1): status(report=False)}
    found = used(backend)
    assert not found.known
    assert found.usd == pytest.approx(usd(Bill(2, 2 * USED_S, 7 + 25, puts=3 + 25), THERE))


def test_attempts_with_a_recorded_end_are_not_looked_up(backend, bucket):
    journal = opened(backend)
    journal.called(CALLED)
    journal.ended("M000", Bill(2, 30.0, 9, puts=4), 131.0)
    found = used(backend)
    assert found == Usage(pytest.approx(usd(Bill(2, 30.0, 9, puts=4), THERE, 31.0)), known=True)
    assert bucket.lists == 0


def test_requests_and_deployments_of_the_killed_process_are_billed(backend, bucket):
    journal = opened(backend)
    for kind in ("put", "get", "get"):
        journal.requested(kind)
    journal.deploying()
    journal.deployed([Deployed(512, 20.0)])
    journal.called(CALLED)
    journal.deploying()
    journal.deployed([Deployed(1_024, 1.0)])
    journal.requested("put")
    bucket.objects |= {key(0): status(), key(1): status()}
    bill = Bill(4, 2 * USED_S, 14, 11.0, puts=6)
    assert used(backend).usd == pytest.approx(usd(bill, THERE.plus(Requests(2, 2))))


def test_a_refused_call_is_free_and_its_deployment_is_billed(backend, bucket):
    journal = opened(backend)
    journal.deployed([Deployed(1_024, 1.0)])
    journal.called(CALLED)
    journal.refused("M000")
    found = used(backend)
    assert found == Usage(pytest.approx(1e-7 + 1e-5), known=True)


def test_waiting_prewarmed_functions_are_told_to_end(backend, bucket):
    opened(backend)
    opened(backend, "run-1.ahead").called(replace(CALLED, gate="gate"))
    bucket.later |= {key(0): (203.0, status(202.0)), key(1): (203.0, status(202.0))}
    found = used(backend)
    assert bucket.objects == {"gate": NOT_NEEDED}
    assert found == Usage(pytest.approx(usd(Bill(2, 2 * (102.0 + FINISH_S), 14, puts=6), THERE, 102.0)), known=True)


def test_a_gate_that_is_open_stays_open(backend, bucket):
    opened(backend, took_over="run-0.ahead")
    opened(backend, "run-0.ahead").called(replace(CALLED, gate="gate"))
    bucket.objects |= {"gate": b"model\n", key(0): status(), key(1): status()}
    used(backend)
    assert bucket.objects == {"gate": b"model\n"}


def test_usage_billed_to_the_earlier_launch_is_not_billed_again(backend, bucket):
    opened(backend, took_over="run-0.ahead")
    ahead = opened(backend, "run-0.ahead")
    ahead.called(CALLED)
    ahead.requested("put")
    before = Bill(2, 12.0, bucket=Requests(2 * PUTS + ENDING_PUTS + 1, 2 * GETS))
    ahead.paid(before)
    bucket.objects |= {key(0): status(), key(1): status()}
    found = used(backend)
    assert found == Usage(pytest.approx(usd(Bill(0, 2 * USED_S - 12.0, 14, puts=6), Requests())), known=True)


def test_an_unsettled_launch_is_billed_for_all_functions_that_it_called(backend, bucket):
    opened(backend)
    ahead = opened(backend, "run-1.ahead")
    ahead.called(CALLED)
    ahead.paid(Bill(2, 12.0, bucket=THERE))
    bucket.objects |= {key(0): status(), key(1): status()}
    assert used(backend).usd == pytest.approx(usd(Bill(2, 2 * USED_S, 14, puts=6), THERE))


def test_usage_is_recovered_only_once(backend, bucket):
    opened(backend).called(CALLED)
    bucket.objects |= {key(0): status(), key(1): status()}
    first, up_s, lists = used(backend), backend.reclaim("run-1"), bucket.lists
    assert (used(backend), backend.reclaim("run-1"), bucket.lists) == (first, up_s, lists)


def test_functions_prewarmed_by_an_earlier_launch_of_that_name_are_not_billed_again(backend, bucket):
    ahead = opened(backend, "run-1.ahead")
    ahead.called(CALLED)
    order = json.loads((ahead.folder / "order.json").read_text())
    (ahead.folder / "order.json").write_text(json.dumps({**order, "started_at": 80.0}))
    opened(backend)
    assert used(backend) == Usage(0.0, known=True)


def test_a_launch_without_calls_has_no_usage(backend):
    opened(backend).requested("put")
    assert used(backend) == Usage(pytest.approx(1e-3), known=True)


@pytest.mark.parametrize("how", ["torn", "no journal", "no bucket", "deploying"])
def test_without_records_the_deadline_counts(backend, tmp_path, how):
    journal = opened(backend)
    journal.called(CALLED)
    if how == "torn":
        with (journal.folder / "calls.jsonl").open("a") as file:
            file.write('{"what": "cal')
    elif how == "no journal":
        (journal.folder / "calls.jsonl").unlink()
    elif how == "no bucket":
        backend.recovery = replace(backend.recovery, open_bucket=lambda backend: 1 / 0)
    else:
        journal.deploying()
    (journal.folder / "functions-until").write_text("400.0")
    assert backend.reclaim("run-1") == pytest.approx(400.0 - 90.0)
    assert backend.usage(Job("job", 1.0), "run-1") is None


def test_on_this_machine_functions_ended_with_their_caller(backend, bucket):
    local = replace(backend, platform="localhost")
    journal = opened(local)
    journal.called(replace(CALLED, requests_most=0))
    bucket.objects[key(0)] = status()
    teardown.record_end(journal.folder, 130.0)  # as its watchdog does
    found = used(local)
    function_s = (120.0 - 103.0) + (130.0 - 100.0)
    assert found == Usage(pytest.approx(usd(Bill(2, function_s, 7, puts=3), Requests(), 30.0)), known=True)
    assert bucket.clock.elapsed_s() == 200.0


def test_the_journal_of_an_earlier_launch_of_that_name_does_not_count(backend):
    opened(backend).called(CALLED)
    opened(backend)
    assert used(backend) == Usage(0.0, known=True)


def test_answers_are_in_the_journal_before_they_are_deleted_from_the_bucket(backend, bucket):
    journal = opened(backend)
    journal.called(CALLED)
    bucket.objects |= {key(0): status(), key(1): status()}
    first = used(backend)
    (journal.folder / "used.json").unlink()  # killed again, in between
    assert used(backend) == first


def job() -> Job:
    return Job("job", 1.0, ask=FunctionsTask(Workload("lr", "higgs", 100, 1.0, 0.01, 10), tariff=TARIFF))


def test_orphaned_prewarmed_functions_are_billed_to_the_next_launch(backend, bucket):
    ahead = opened(backend, "run-1.ahead")
    ahead.called(replace(CALLED, gate="gate"))
    ahead.paid(Bill(2, 12.0, bucket=Requests(2 * PUTS + ENDING_PUTS, 2 * GETS)))
    bucket.later |= {key(0): (203.0, status(202.0)), key(1): (203.0, status(202.0))}
    assert backend.orphaned_prewarmed("run") == ahead.folder
    assert backend.orphaned_prewarmed("other") is None
    rest = Bill(0, 2 * (102.0 + FINISH_S) - 12.0, 14, puts=6)
    assert backend.orphan_usd(job(), ahead.folder) == pytest.approx(usd(rest, Requests()))
    assert bucket.objects == {"gate": NOT_NEEDED}
    assert backend.orphan_usd(job(), ahead.folder) == pytest.approx(usd(rest, Requests())), "by a launch that is voided"
    teardown.record_end(ahead.folder, 300.0)
    assert backend.orphaned_prewarmed("run") is None
    assert backend.orphan_usd(job(), None) == 0.0


def test_the_cost_of_orphans_is_in_the_first_epoch_and_counts_against_the_budget():
    meter = Meter(TARIFF, TWO, 0, most_usd=1.0)
    workers = SimpleNamespace(orders=None)
    begun = FunctionLaunch(None, workers, meter, VirtualClock(), 0.0, 1.0, orphan_usd=0.25)  # type: ignore[arg-type]
    assert meter.grant("work", 1e12, 0.0, 1.0).seconds == pytest.approx((0.75 - 2e-7) / 2e-5 - 1.0)
    assert (begun._other_costs(), begun._other_costs()) == ((0.25, 0.0), (0.0, 0.0))
