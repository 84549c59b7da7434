"""The SkyPilot backend: tasks checked by SkyPilot's own code, launches on a fake cloud, the real shell scripts."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing, nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib import util
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from mlcd_fixtures.examples import SLOW
from mlcd_fixtures.skypilot import NOON, FakeSkyPilot, NoonClock, Scenario

from mlcd.catalog import CLOUDS, retired_types
from mlcd.cli.reconcile import bill_note, reconciled
from mlcd.clouds.control import clean
from mlcd.clouds.frameworks import processes
from mlcd.clouds.places.skypilot import skypilot_cloud
from mlcd.clouds.skypilot import stamp
from mlcd.clouds.skypilot.backend import SkyPilot
from mlcd.clouds.skypilot.credentials import find_credentials, usable_clouds
from mlcd.clouds.skypilot.launch_thread import CHECK, LaunchThread, NeverReached
from mlcd.clouds.skypilot.leave_request import LEAVE_COMMAND
from mlcd.clouds.skypilot.liveness import BackgroundAnswer, LossDetector, NodeLiveness, StaleStatus
from mlcd.clouds.skypilot.output_lines import Lines
from mlcd.clouds.skypilot.sdk import Sdk
from mlcd.clouds.skypilot.tagged_machines import TaggedMachines
from mlcd.clouds.skypilot.task import (
    ELSEWHERE,
    FIRST_PORT,
    SHIPPED,
    TEARDOWN_S,
    cluster_name,
    first_boot,
    owner_of,
    shipped,
    task_of,
)
from mlcd.core import drive
from mlcd.core.backend import Launch, Purpose
from mlcd.core.configuration import Configuration, Offer
from mlcd.core.errors import (
    BackendError,
    LedgerError,
    MissingExtra,
    NoAccess,
    NoCapacity,
    Outage,
    StillUp,
    UserError,
    WrongState,
)
from mlcd.core.job import Communication, Goal, Job, Search
from mlcd.core.ledger import Account, Book, Ledger, Reserved, Settled, Started, Status, Voided
from mlcd.core.measurement import Ended, Outcome, Sample
from mlcd.core.place import Cloud
from mlcd.core.place import cloud as cloud_of
from mlcd.core.runs.run import continue_run
from mlcd.core.units import format_usd
from mlcd.planners.train.completion import RunToCompletion
from mlcd.planners.train.planner import method
from mlcd.testing.backends import BackendContract, OutageContract

CPU = Offer("c5.xlarge", 0.17, 4, 8, cloud="aws", region="us-east-1", minimum_billed_s=60)
SPOT = replace(CPU, usd_per_hour=0.07, spot=True)
T4S = Offer("n1-standard-32+4xT4", 2.92, 32, 120, "T4", 4, 8.1, 16, 32, "gcp", "us-central1")
JOB = Job("digits", 1e6, task={"run": "python train.py", "setup": "pip install torch"})
BUCKET = {"file_mounts": {"/checkpoints": {"name": "my-bucket", "mode": "MOUNT"}}}
needs_sky = pytest.mark.skipif(util.find_spec("sky") is None, reason="SkyPilot is not installed")


def speed(task) -> float:
    """Samples per second of the fake job: four times as many on the larger type, a little sublinear in the nodes."""
    return (4_000.0 if "4xlarge" in task["resources"]["instance_type"] else 1_000.0) * task["num_nodes"] ** 0.9


def order(offer: Offer = CPU, nodes: int = 1, lifetime_s: float | None = 1_200.0, label: str = "digits-1-1") -> Launch:
    purpose = Purpose.PROBE if lifetime_s is not None else Purpose.RUN
    return Launch(label, Configuration(offer, nodes), purpose, 1e6, lifetime_s, 0)


def task(launch: Launch, job: Job = JOB, tmp_path: Path = Path("/tmp")) -> dict:
    return task_of(job, launch, "mlcd-ab12-digits-1-1", tmp_path, NOON.timestamp())


# The contract


class TestSkyPilot(BackendContract):
    @pytest.fixture(autouse=True)
    def _home(self, tmp_path_factory):
        self.folders = lambda: tmp_path_factory.mktemp("home")

    def backend(self, clock):
        clock.now = lambda: NOON + timedelta(seconds=clock.seconds)  # the nodes' clocks go with it
        return SkyPilot(FakeSkyPilot(clock, speed, [self.scenario]), self.folders(), clock)

    scenario = Scenario()

    def job(self):
        return JOB

    def configuration(self):
        return Configuration(CPU, 1)

    def failing(self):
        self.scenario = Scenario(fails_after_s=30.0, error_output="MemoryError")
        return self.configuration()


# The whole path on a fake cloud


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("MLCD_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def a_job(budget_usd: float = 20.0, *, spot: bool = False, checkpoints: bool = False) -> Job:
    resources = {"infra": "aws", "use_spot": spot}
    search = Search("heterbo", (1, 3), ("c5.xlarge", "c5.4xlarge"), parallel=1)
    return Job(
        "digits",
        3e7,
        Goal(budget_usd=budget_usd),
        search=search,
        checkpoints=checkpoints,
        task={"run": "python train.py", "resources": resources, **BUCKET},
    )


class RunOnFakeCloud:
    """A run on the fake cloud, as `mlcd train` would do it."""

    def __init__(self, home: Path, job: Job, *scenarios: Scenario, clock: NoonClock | None = None) -> None:
        self.home, self.job, self.clock = home, job, clock or NoonClock()
        self.sky = FakeSkyPilot(self.clock, speed, list(scenarios))
        self.place: Cloud = skypilot_cloud(job, "", self.sky, self.clock, TaggedMachines(self.sky.ec2))
        self.ledger = Ledger(home / "ledger.db")
        first = Started(job, self.place.space, job.on, self.place.provenance, "test")
        self.book: Book = self.ledger.begin(job.name, self.clock, first)

    def search(self):
        return drive.search(
            method(self.job.search), self.job, self.place.space, self.place.profiler, self.book
        ).configuration

    def launch(self):
        chosen = self.book.account.decision.configuration
        strategy = RunToCompletion(chosen)
        return drive.launch(strategy, self.job, self.place.space, self.place.profiler, self.book)

    def reopen(self) -> None:
        """Open the ledger as another process would."""
        self.ledger = Ledger(self.home / "ledger.db")
        self.book = self.ledger.book("digits-1", self.clock)

    @property
    def settled(self) -> list[Settled]:
        return [line.entry for line in self.ledger.lines("digits-1") if isinstance(line.entry, Settled)]

    def check(self, slack_s: float = 1.0) -> None:
        """Check that nothing is left, launches could end by themselves, and the ledger agrees with the bill."""
        account: Account = self.ledger.account("digits-1")
        assert account.open == ()
        assert self.sky.names() == set()
        assert self.place.backend.leftovers() == set()
        for cluster in self.sky.clusters.values():
            assert cluster.task["resources"]["autostop"] == {"idle_minutes": 1, "down": True, "wait_for": "jobs"}
        billed = {c.name: c.bill_s for c in self.sky.clusters.values() if not c.has_no_machines}
        for entry in self.settled:
            name, measured = self.place.backend.name(entry.launch.label), entry.measurement
            bill_s = billed.pop(name, 0.0)
            least, most = (entry.launch.configuration.usd(each_s) for each_s in (bill_s, max(60.0, bill_s) + 2.0))
            assert least - 1e-9 <= measured.usd <= (most + 1e-9 if bill_s else 0.0), "the cloud bills something else"
            assert measured.seconds >= bill_s - slack_s, "less time than the machines were up"
        assert all(seconds == 0.0 for seconds in billed.values()), "not in the ledger"
        assert account.history.spent_usd == pytest.approx(sum(entry.measurement.usd for entry in self.settled))
        assert account.history.spent_usd <= self.job.goal.budget_usd


def asking(**resources) -> Job:
    return replace(a_job(), search=Search("heterbo"), task={"run": "python train.py", "resources": resources})


@pytest.mark.parametrize("name", CLOUDS)
def test_retired_types_are_not_offered(home, name):
    job, gone = asking(infra=name), {each for cloud, each in retired_types() if cloud == name}
    rented = {
        offer.instance_type
        for offer in skypilot_cloud(job, "", FakeSkyPilot(NoonClock(), speed), NoonClock()).space.offers
    }
    modelled = {offer.instance_type for offer in cloud_of("simulated", job).space.offers}
    assert rented == modelled - gone
    assert gone <= modelled


@pytest.mark.parametrize("resources", [{"infra": "aws", "instance_type": "p3.2xlarge"}, {"accelerators": "V100:1"}])
def test_a_job_with_only_retired_types_is_refused_with_the_date(home, resources):
    with pytest.raises(UserError, match=r"p3\.2xlarge \(since 2025-12\): retired by its cloud"):
        skypilot_cloud(asking(**resources), "aws", FakeSkyPilot(NoonClock(), speed), NoonClock())


@pytest.mark.parametrize("reports_ends", [True, False])
def test_the_ledger_has_the_time_that_aws_bills(home, reports_ends):
    run = RunOnFakeCloud(home, a_job(spot=True), Scenario(preempted_after_s=25.0))
    run.sky.reports_ends = reports_ends
    run.search()
    first = run.settled[0]
    unnoticed_s = first.measurement.seconds - run.sky.clusters[run.place.backend.name(first.launch.label)].bill_s
    assert unnoticed_s > 10
    billed_s = 3_600 * first.measurement.usd / first.launch.configuration.usd(3_600)
    assert billed_s == pytest.approx(first.measurement.seconds - (unnoticed_s if reports_ends else 0.0), abs=2.0)


def test_a_job_is_searched_and_run_and_nothing_is_left(home):
    run = RunOnFakeCloud(home, a_job())
    assert run.search() is not None
    assert run.launch().outcome is Outcome.OK
    assert run.book.account.status is Status.FINISHED
    assert len(run.sky.clusters) >= 3
    run.check()
    for entry in run.settled:  # the cloud's own bill, to the second; a steady job is measured quickly
        assert entry.launch.purpose is Purpose.RUN or entry.measurement.seconds < 400
        cluster = run.sky.clusters[run.place.backend.name(entry.launch.label)]
        assert entry.measurement.seconds == pytest.approx(cluster.bill_s)


@pytest.mark.parametrize("scenarios", [(), (Scenario(fails_after_s=100.0),), (Scenario(never_reached=True),)])
def test_stated_egress_is_reserved_and_paid_with_every_launch(home, scenarios):
    run = RunOnFakeCloud(home, replace(a_job(), egress_gb=5.0), *scenarios)
    run.search()
    run.launch()
    sent_usd = 5 * 0.09
    reserved = [line.entry for line in run.ledger.lines("digits-1") if isinstance(line.entry, Reserved)]
    assert len(reserved) == len(run.settled) >= 3
    for before, after in zip(reserved, run.settled, strict=True):
        held_usd = after.measurement.seconds / 3_600 * before.launch.configuration.usd_per_hour
        assert after.measurement.usd == pytest.approx(held_usd + sent_usd, abs=1e-3), "as much as it may have sent"
        assert after.measurement.usd <= before.worst_usd
        assert (
            before.worst_usd
            >= before.launch.lifetime_s / 3_600 * before.launch.configuration.usd_per_hour + sent_usd - 1e-9
        )
    run.check()


def test_a_launch_without_machines_pays_no_egress(home):
    run = RunOnFakeCloud(home, replace(a_job(), egress_gb=5.0), Scenario(no_capacity=True))
    run.search()
    assert run.settled[0].measurement.usd == 0.0
    run.check()


def test_a_preempted_spot_run_continues_from_its_checkpoint(home):
    run = RunOnFakeCloud(home, a_job(spot=True, checkpoints=True))
    assert run.search().offer.spot
    run.sky.scenarios = [Scenario(preempted_after_s=500.0)]
    assert run.launch().outcome is Outcome.OK
    first, second = [entry for entry in run.settled if entry.launch.purpose is Purpose.RUN]
    assert first.measurement.outcome is Outcome.PREEMPTED
    assert "taken back by the cloud" in first.measurement.detail
    assert second.launch.samples < first.launch.samples
    assert second.launch.saved_samples > 0
    assert all(cluster.task["resources"]["use_spot"] for cluster in run.sky.clusters.values())
    folders = {cluster.task["envs"]["MLCD_CHECKPOINT_DIR"] for cluster in run.sky.clusters.values()}
    assert folders == {"/checkpoints/digits-1"}
    run.check()


def test_without_capacity_the_search_goes_on(home):
    run = RunOnFakeCloud(home, a_job(), Scenario(no_capacity=True))
    assert run.search() is not None
    assert run.settled[0].measurement.outcome is Outcome.LAUNCH_FAILED
    assert "nothing left of this type" in run.settled[0].measurement.detail
    assert run.settled[0].measurement.usd == 0.0
    run.check()


def test_machines_without_ssh_are_a_failed_launch_and_billed(home):
    run = RunOnFakeCloud(home, a_job(), *[Scenario(never_reached=True)] * 2)
    assert run.search() is not None
    for entry in run.settled[:2]:
        assert entry.measurement.outcome is Outcome.LAUNCH_FAILED
        assert "could not be reached" in entry.measurement.detail
        assert entry.measurement.usd > 0
    run.check()


def test_without_access_to_a_cloud_the_search_ends_at_once_and_says_so(home):
    run = RunOnFakeCloud(home, a_job(), Scenario(no_access=True))
    with pytest.raises(Outage, match=r"credentials have expired; .*: sky check\. .* nothing is billed"):
        run.search()
    assert len(run.sky.clusters) == 1
    assert run.settled == []
    run.check()


def test_machines_that_do_not_come_up_in_time_are_given_up(home):
    run = RunOnFakeCloud(home, a_job(), Scenario(startup_s=5_000.0))
    run.search()
    measured = run.settled[0].measurement
    assert measured.outcome is Outcome.LAUNCH_FAILED
    assert measured.seconds < 900 + 60
    run.check()


def test_a_job_without_reports_is_ended(home):
    run = RunOnFakeCloud(home, a_job(), Scenario(silent_after_s=12.0))
    run.search()
    assert run.settled[0].measurement.outcome is Outcome.TIMED_OUT
    run.check()


def test_an_error_in_the_job_comes_with_advice_and_the_end_of_its_log(home):
    scenario = Scenario(fails_after_s=10.0, error_output="ModuleNotFoundError: No module named 'einops'")
    run = RunOnFakeCloud(home, a_job(), scenario)
    run.search()
    measured = run.settled[0].measurement
    assert measured.outcome is Outcome.FAILED
    assert "pip install einops" in measured.detail
    assert measured.log.splitlines()[-1] == scenario.error_output
    run.check()


def test_a_teardown_is_verified(home):
    run = RunOnFakeCloud(home, a_job())
    run.sky.ineffective_downs = 2
    run.search()
    run.check()


def test_an_error_after_a_lost_machine_is_not_blamed_on_the_job(home):
    scenario = Scenario(
        fails_after_s=30.0, preempted_after_s=30.0, error_output="RuntimeError: connection closed by peer"
    )
    run = RunOnFakeCloud(home, a_job(spot=True), scenario)
    run.search()
    assert run.settled[0].measurement.outcome is Outcome.PREEMPTED
    run.check()


class StaleStatusSky(FakeSkyPilot):
    """Right after a loss SkyPilot answers with the old status, while its own request for a new one is running."""

    old_answers = 3

    def is_up(self, name):
        up, cluster = super().is_up(name), self.clusters.get(name)
        ended = cluster is not None and self.clock.elapsed_s() >= cluster.job_ends_s
        if cluster is not None and (ended or up is not True) and self.old_answers:
            self.old_answers -= 1
            raise StaleStatus("not updated")
        return up


def test_a_stale_status_does_not_count_as_up(home):
    run = RunOnFakeCloud(home, a_job(spot=True))
    scenario = Scenario(
        fails_after_s=30.0, preempted_after_s=30.0, error_output="RuntimeError: connection closed by peer"
    )
    run.sky = StaleStatusSky(run.clock, speed, [scenario])
    run.place = skypilot_cloud(run.job, "", run.sky, run.clock, TaggedMachines(run.sky.ec2))
    events = list(run.place.backend.run(run.job, order(SPOT)))
    assert isinstance(events[-1], Ended)
    assert events[-1].outcome is Outcome.PREEMPTED
    assert run.sky.old_answers == 0


@pytest.mark.parametrize("output", ["ValueError: no such file", "Job finished (status: FAILED_SETUP)."])
@pytest.mark.parametrize("offer", [CPU, SPOT])
def test_a_failed_job_whose_idle_cluster_is_gone_is_not_preempted(home, offer, output):
    run = RunOnFakeCloud(home, a_job(spot=offer.spot))
    run.sky = StaleStatusSky(run.clock, speed, [Scenario(fails_after_s=30.0, error_output=output)])
    run.sky.old_answers = 6  # one every 15 s; the cluster is gone after a minute
    run.place = skypilot_cloud(run.job, "", run.sky, run.clock, TaggedMachines(run.sky.ec2))
    events = list(run.place.backend.run(run.job, order(offer)))
    lost = offer.spot and "SETUP" not in output  # the best guess without the cloud
    assert events[-1].outcome is (Outcome.PREEMPTED if lost else Outcome.FAILED)


@pytest.mark.parametrize("fails", [1, 3])
def test_a_failed_teardown_is_retried_and_paid_for(home, fails):
    run = RunOnFakeCloud(home, a_job())
    run.sky.failing_downs = fails
    run.search()
    assert run.sky.failing_downs == 0
    run.check()


def test_a_teardown_that_never_works_is_reported_and_the_cluster_ends_itself(home):
    run = RunOnFakeCloud(home, a_job())
    run.sky.failing_downs = 10**6
    backend = run.place.backend
    with pytest.raises(StillUp, match=r"could not be torn down.*sky down mlcd-"):
        list(backend.run(run.job, replace(order(), samples=1e12)))
    (cluster,) = run.sky.clusters.values()
    assert cluster.gone_s - cluster.ordered_s <= 1_200.0
    assert backend.leftovers() == set()


# Lost nodes


def followed(tmp_path: Path, scenario: Scenario, job: Job = JOB, nodes: int = 2, lifetime_s: float | None = None):
    """The samples and the end of a launch, and the fake cloud."""
    clock = NoonClock()
    sky = FakeSkyPilot(clock, speed, [scenario])
    events = list(SkyPilot(sky, tmp_path, clock).run(job, order(nodes=nodes, lifetime_s=lifetime_s)))
    samples = [event for event in events if isinstance(event, Sample)]
    ended = events[-1]
    assert isinstance(ended, Ended)
    return samples, ended, sky


def rates(samples: list[Sample]) -> list[float]:
    return [(b.samples - a.samples) / (b.elapsed_s - a.elapsed_s) for a, b in pairwise(samples)]


def test_a_lost_worker_is_noticed_while_the_first_node_goes_on(tmp_path):
    samples, ended, _ = followed(tmp_path, Scenario(worker_lost_after_s=130.0))
    assert ended.outcome is Outcome.PREEMPTED
    assert ended.elapsed_s <= 200 + 130 + 60 + 15 + 5
    assert samples[-1].elapsed_s <= 200 + 130, "reports without the worker do not count"
    assert samples[-1].elapsed_s >= 200 + 130 - 15


def test_the_status_is_requested_at_once_for_a_silent_node(tmp_path):
    _, ended, _ = followed(tmp_path, Scenario(worker_silent_after_s=70.0, worker_lost_after_s=70.0))
    assert ended.elapsed_s <= 200 + 70 + 45 + 15 + 5
    assert ended.outcome is Outcome.PREEMPTED


@pytest.mark.parametrize("before_s", [1.0, 20.0, 44.0])
def test_a_run_that_lost_a_worker_just_before_its_end_is_preempted(tmp_path, before_s):
    whole_s = 1e6 / speed(task(order(nodes=2)))
    samples, ended, _ = followed(tmp_path, Scenario(worker_lost_after_s=whole_s - before_s))
    assert ended.outcome is Outcome.PREEMPTED
    assert samples[-1].elapsed_s <= 200 + whole_s - before_s


def test_the_status_is_requested_if_a_worker_is_lost_at_the_end(tmp_path):
    """It was not silent for long enough, but it has not reported the end of its part of the job."""
    _, ended, _ = followed(tmp_path, Scenario(workers_end=False))
    assert ended.outcome is Outcome.OK
    whole_s = 1e6 / speed(task(order(nodes=2)))
    _, ended, _ = followed(tmp_path / "lost", Scenario(workers_end=False, worker_lost_after_s=whole_s - 1))
    assert ended.outcome is Outcome.PREEMPTED


def test_a_silent_node_that_is_up_is_not_lost_and_all_samples_count(tmp_path):
    samples, ended, _ = followed(tmp_path, Scenario(worker_silent_after_s=0.0))
    assert ended.outcome is Outcome.OK
    assert samples[-1].samples == 1e6
    assert len(samples) > 100


def test_a_cluster_with_all_heartbeats_is_not_lost_whatever_its_status(tmp_path):
    _, ended, _ = followed(tmp_path, Scenario(reported_down=(50.0, 300.0)))
    assert ended.outcome is Outcome.OK


def test_the_status_is_requested_every_minute(tmp_path):
    _, _, sky = followed(tmp_path, Scenario(), nodes=1)
    intervals = [b - a for a, b in pairwise(sky.status_requests_s)]
    assert len(intervals) > 10
    assert max(intervals) <= 61


def test_the_output_is_read_during_a_slow_status_request():
    answered = threading.Event()
    answer = BackgroundAnswer(lambda: answered.wait(300) or None)
    assert not answer.is_ready()
    liveness = NodeLiveness(2, heard_s={0: 100.0, 1: 100.0})
    detector = LossDetector(lambda: answer, liveness, 0.0)
    assert not detector.is_lost(60.0)
    assert not detector.is_lost(61.0)
    answered.set()
    answer._thread.join(300)
    assert not detector.is_lost(62.0)
    assert liveness.heard_s == {0: 100.0, 1: 100.0}


def test_a_failed_status_request_loses_nothing():
    def fails() -> bool:
        raise RuntimeError("no answer")

    answer = BackgroundAnswer(fails)
    answer._thread.join(300)
    assert isinstance(answer.value, BackendError)
    detector = LossDetector(lambda: answer, NodeLiveness(2), 0.0)
    assert not any(detector.is_lost(now_s) for now_s in range(0, 600, 7))


# The time of a report


BY_PATTERN = replace(JOB, report=r"done (?P<samples>[\d.]+)")


@pytest.mark.parametrize("report", ["", "done {}"])
@pytest.mark.parametrize("node_clock_s", [-5_000.0, -2.0, 0.0, 2.0, 5_000.0])
def test_output_that_arrives_late_and_all_at_once_gives_the_job_s_own_rate(tmp_path, report, node_clock_s):
    scenario = Scenario(logs_after_s=120.0, report=report, node_clock_s=node_clock_s)
    job = BY_PATTERN if report else JOB
    samples, ended, sky = followed(tmp_path, scenario, job, nodes=1)
    rate = next(iter(sky.clusters.values())).samples_per_s
    assert ended.outcome is Outcome.OK
    assert rates(samples) == pytest.approx([rate] * (len(samples) - 1), rel=0.01)
    if abs(node_clock_s) < 10:
        assert samples[0].elapsed_s == pytest.approx(200.0, abs=3.0)


@pytest.mark.parametrize("report", ["", "done {}"])
@pytest.mark.parametrize("node_clock_s", [-5_000.0, 0.0])
def test_a_process_that_rejoins_a_launch_reads_the_same_times(tmp_path, report, node_clock_s):
    clock, launch, job = NoonClock(), order(lifetime_s=None), BY_PATTERN if report else JOB
    sky = FakeSkyPilot(clock, speed, [Scenario(report=report, node_clock_s=node_clock_s, logs_after_s=33.0)])
    left = SkyPilot(sky, tmp_path, clock).run(job, launch)  # never closed, as if its process had been killed
    before = [next(left) for _ in range(20)]
    clock.wait(150.0)
    again = list(SkyPilot(sky, tmp_path, clock).rejoin(job, launch))
    assert [event.samples for event in again[:20]] == [event.samples for event in before]
    assert [event.elapsed_s for event in again[:20]] == pytest.approx([event.elapsed_s for event in before])
    assert again[-1].outcome is Outcome.OK


def test_offsets_stored_by_an_older_version_are_read(tmp_path):
    clock, launch = NoonClock(), order(lifetime_s=None)
    sky = FakeSkyPilot(clock, speed)
    left = SkyPilot(sky, tmp_path, clock).run(JOB, launch)
    next(left)
    (tmp_path / "launches" / launch.label / "first_report").write_text("123.5")
    first, *_ = SkyPilot(sky, tmp_path, clock).rejoin(JOB, launch)
    assert first.elapsed_s == 123.5


def test_the_users_log_has_no_timestamps_and_heartbeats(tmp_path):
    followed(tmp_path, Scenario(report="done {}"), BY_PATTERN)
    log = (tmp_path / "launches" / "digits-1-1" / "0.log").read_text()
    assert "done 0.0\n" in log
    assert "[mlcd" not in log
    assert "alive" not in log


class Killed(BaseException):
    """Imitates SIGKILL within a process."""


def kill(run: RunOnFakeCloud):
    """A function that kills MLCD: afterwards it can neither write to the ledger nor call SkyPilot."""

    def killed(*_):
        raise Killed

    def now():
        run.ledger.close()
        run.sky.down = run.sky.state = run.sky.names = killed
        raise Killed

    return now


def revive(run: RunOnFakeCloud) -> None:
    for name in ("down", "state", "names"):
        del run.sky.__dict__[name]
    run.sky.before_launch = run.sky.after_launch = lambda: None
    run.reopen()


def test_a_crash_between_creating_and_recording_is_found_torn_down_and_paid_for(home):
    run = RunOnFakeCloud(home, a_job())
    run.sky.after_launch = kill(run)
    with pytest.raises((Killed, LedgerError)):
        run.search()
    run.clock.wait(400.0)
    revive(run)
    assert len(run.sky.names()) == 1
    assert run.place.backend.leftovers() == {"digits-1-1"}
    run.search()
    assert run.settled[0].measurement.outcome is Outcome.INTERRUPTED
    assert run.settled[0].measurement.seconds == pytest.approx(420.0)
    assert run.settled[0].measurement.detail == "the process died; its machines were torn down afterwards"
    run.check()


@pytest.mark.parametrize("late", [False, True])
def test_a_cluster_that_ended_unobserved_is_not_paid_for_until_now(home, late):
    run = RunOnFakeCloud(home, a_job())
    run.sky.notices_ends_late = late
    run.sky.after_launch = kill(run)
    with pytest.raises((Killed, LedgerError)):
        run.search()
    run.clock.wait(36_000.0)
    revive(run)
    assert run.sky.names() == set()
    run.search()
    (cluster, *_) = run.sky.clusters.values()
    paid_s, lifetime_s = run.settled[0].measurement.seconds, run.settled[0].launch.lifetime_s
    assert paid_s == pytest.approx(lifetime_s if late else cluster.bill_s)
    assert cluster.bill_s <= paid_s <= lifetime_s
    assert run.settled[0].measurement.detail == "the process died; its machines were already gone"
    run.check()


def test_a_stopped_cluster_is_cleaned_up(home, monkeypatch):
    """Its disks are billed, though its machines are not."""
    run = RunOnFakeCloud(home, replace(a_job(), on="skypilot:aws"), Scenario(only_shutdown_works=True))
    run.sky.after_launch = kill(run)
    with pytest.raises((Killed, LedgerError)):
        run.search()
    run.clock.wait(36_000.0)
    revive(run)
    monkeypatch.setattr("mlcd.clouds.places.skypilot.Sdk", lambda: run.sky)
    (name,) = run.sky.names()
    assert run.sky.is_up(name) is False
    assert run.place.backend.leftovers() == {"digits-1-1"}
    assert [(each.what, each.outcome) for each in clean(run.ledger)] == [("digits-1", "1 launch settled")]
    assert run.sky.names() == set()
    assert run.settled[0].measurement.detail == "the process died; its machines were torn down afterwards"


def test_machines_are_found_and_terminated_without_skypilots_database(home):
    run = RunOnFakeCloud(home, replace(a_job(), on="skypilot:aws"))
    run.sky.after_launch = kill(run)
    with pytest.raises((Killed, LedgerError)):
        run.search()
    run.clock.wait(600.0)
    run.sky.lost_database = True
    revive(run)
    assert run.place.backend.reclaim("digits-1-1") == pytest.approx(600.0, abs=60.0)
    (cluster,) = run.sky.clusters.values()
    assert cluster.gone_s <= run.clock.elapsed_s()


def test_clean_goes_on_after_a_place_that_does_not_answer(home, monkeypatch):
    run = RunOnFakeCloud(home, replace(a_job(), on="skypilot:aws"))
    run.search()
    monkeypatch.setattr("mlcd.clouds.places.skypilot.Sdk", lambda: run.sky)
    run.sky.names = fails
    outcomes = [(each.what, each.outcome) for each in clean(run.ledger)]
    assert outcomes == [("skypilot:aws", "not cleaned: no answer")]


def killed_in_the_run(run: RunOnFakeCloud, reports: int) -> None:
    """Search, launch, and be killed after so many reports of the job itself."""
    run.search()
    dies, heard = kill(run), []

    def hear(job, launch, sample):
        heard.append(sample)
        if launch.purpose is Purpose.RUN and len(heard) == reports:
            dies()

    run.place = replace(run.place, profiler=replace(run.place.profiler, progress=hear))
    with pytest.raises((Killed, LedgerError)):
        run.launch()
    run.place = replace(run.place, profiler=replace(run.place.profiler, progress=lambda *_: None))


@pytest.mark.parametrize("checkpoints", [False, True])
def test_a_job_that_still_runs_is_rejoined_and_paid_for_once(home, checkpoints):
    run = RunOnFakeCloud(home, a_job(checkpoints=checkpoints))
    killed_in_the_run(run, 40)
    run.clock.wait(300.0)
    revive(run)
    (name,) = run.sky.names()
    ordered = set(run.sky.clusters)
    last = run.launch()
    assert set(run.sky.clusters) == ordered, "nothing was ordered again"
    (final,) = run.book.account.history.runs
    assert last == final
    assert final.outcome is Outcome.OK
    assert final.samples_done == pytest.approx(run.settled[-1].launch.samples)
    assert final.rate == pytest.approx(run.sky.clusters[name].samples_per_s, rel=0.02), (
        "the time without MLCD does not count as slow"
    )
    assert final.seconds == pytest.approx(run.sky.clusters[name].bill_s, abs=1.0)
    assert run.book.account.status is Status.FINISHED
    assert "still runs the job; it is followed again" in str(run.ledger.lines("digits-1"))
    run.check()


@pytest.mark.parametrize("checkpoints", [False, True])
def test_new_limits_keep_the_work_of_a_job_that_still_runs(home, checkpoints, monkeypatch):
    """New limits mean a new decision and a teardown, which would lose all work without a checkpoint."""
    run = RunOnFakeCloud(home, replace(a_job(checkpoints=checkpoints), on="skypilot:aws"))
    killed_in_the_run(run, 40)
    revive(run)
    monkeypatch.setattr("mlcd.clouds.places.skypilot.Sdk", lambda: run.sky)
    before, (name,) = run.ledger.lines("digits-1"), run.sky.names()
    more = Goal(budget_usd=90.0)
    if checkpoints:
        assert continue_run("digits-1", run.ledger, goal=more).job.goal == more
    else:
        with pytest.raises(WrongState, match=r"still runs the job, which saves no checkpoints.*mlcd resume digits-1"):
            continue_run("digits-1", run.ledger, goal=more)
        assert run.ledger.lines("digits-1") == before
    assert run.sky.names() == {name}


@SLOW
@given(reports=st.integers(1, 200), away_s=st.floats(0.0, 20_000.0), checkpoints=st.booleans())
def test_killed_at_any_moment_for_any_time_the_ledger_equals_the_bill(tmp_path_factory, reports, away_s, checkpoints):
    with pytest.MonkeyPatch.context() as patch:
        home = tmp_path_factory.mktemp("home")
        patch.setenv("MLCD_HOME", str(home))
        run = RunOnFakeCloud(home, a_job(checkpoints=checkpoints))
        killed_in_the_run(run, reports)
        run.clock.wait(away_s)
        revive(run)
        run.launch()
        labels = [entry.launch.label for entry in run.settled]
        assert len(labels) == len(set(labels))
        run.check()


def test_every_launch_is_compared_with_the_bill(home, tmp_path):
    run = RunOnFakeCloud(home, a_job())
    run.search()
    run.launch()
    lines, backend = run.ledger.lines("digits-1"), run.place.backend
    rows = reconciled(lines, backend, None)
    assert [row.label for row in rows] == [entry.launch.label for entry in run.settled]
    assert [row.ledger_usd for row in rows] == [entry.measurement.usd for entry in run.settled]
    assert {backend.name(row.label): row.cloud_usd for row in rows} == run.sky.billed_usd()
    first, *others = rows
    bill = tmp_path / "bill.csv"
    bill.write_text(f"line_item_unblended_cost,resource_tags_user_mlcd\n3,{backend.name(first.label)}\n1,other\n")
    assert [row.cloud_usd for row in reconciled(lines, backend, bill)] == [3.0, *[None for _ in others]]


def test_a_line_after_a_run_compares_it_with_the_bill(home):
    run = RunOnFakeCloud(home, a_job())
    stored = SimpleNamespace(name="digits-1", cloud=run.place, ledger=run.ledger)
    assert bill_note(stored) == "", "nothing was ordered yet"
    run.search()
    run.launch()
    note, billed = bill_note(stored), sum(run.sky.billed_usd().values())
    assert f"cloud {format_usd(billed)}; the ledger has" in note
    assert note.endswith("By launch: mlcd ledger digits-1 --reconcile")
    run.sky.billed_usd = fails
    note = "The cloud's bill could not be read (no answer). Try later: mlcd ledger digits-1 --reconcile"
    assert bill_note(stored) == note


def fails():
    raise BackendError("no answer")


def test_a_crash_before_anything_was_ordered_costs_nothing(home):
    run = RunOnFakeCloud(home, a_job())
    run.sky.before_launch = kill(run)
    with pytest.raises((Killed, LedgerError)):
        run.search()
    revive(run)
    run.search()
    voided = [line.entry for line in run.ledger.lines("digits-1") if isinstance(line.entry, Voided)]
    assert [entry.launch.label for entry in voided] == ["digits-1-1"]
    assert voided[0].because == "the process died; no machine was ordered and nothing is billed"
    run.check()


def test_reclaiming_an_ended_launch_costs_nothing_more(home):
    run = RunOnFakeCloud(home, a_job())
    backend = run.place.backend
    with closing(backend.run(run.job, order())) as events:
        next(events)
    run.clock.wait(5_000.0)
    assert backend.reclaim("digits-1-1") == pytest.approx(220.0)


def test_a_cluster_of_the_same_name_is_left_alone(home):
    run = RunOnFakeCloud(home, a_job())
    backend = run.place.backend
    run.sky.launch(backend.name("digits-1-1"), task(order()))
    with pytest.raises(BackendError, match="sky down"):
        next(backend.run(run.job, order()))
    assert len(run.sky.names()) == 1


@given(st.integers(0, 1_500))
@example(1_021)  # while it is being torn down
def test_ctrl_c_at_any_moment_leaves_nothing(tmp_path_factory, moment):
    class Interrupting(NoonClock):
        def wait(self, seconds: float) -> None:
            super().wait(seconds)
            if self.seconds >= moment and not interrupted:
                interrupted.append(True)
                raise KeyboardInterrupt

    interrupted: list[bool] = []
    clock = Interrupting()
    sky = FakeSkyPilot(clock, speed)
    backend = SkyPilot(sky, tmp_path_factory.mktemp("home"), clock)
    try:
        list(backend.run(JOB, order()))
    except KeyboardInterrupt:
        assert interrupted
    assert sky.names() == set()
    assert backend.reclaim("digits-1-1") == pytest.approx(next(iter(sky.clusters.values())).bill_s)


def test_no_launch_outlives_its_lifetime_even_if_nobody_follows_it():
    sky = FakeSkyPilot(NoonClock(), speed)
    launch = replace(order(lifetime_s=1_500.0), samples=1e12)
    sky.launch("x", task(launch))
    assert sky.clusters["x"].gone_s <= 1_500.0


def test_checkpoints_without_a_bucket_are_refused_before_anything_is_rented(home):
    job = replace(a_job(checkpoints=True), task={"run": "python train.py", "resources": {"infra": "aws"}})
    with pytest.raises(UserError, match="mount a bucket"):
        skypilot_cloud(job, "aws", FakeSkyPilot(NoonClock(), speed), NoonClock())


def test_offers_are_those_of_the_clouds_that_are_named_or_have_credentials(home, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "GOOGLE_APPLICATION_CREDENTIALS", "AZURE_CLIENT_ID"):
        monkeypatch.delenv(name, raising=False)
    job, sky = Job("any", 1e6), FakeSkyPilot(NoonClock(), speed)
    with pytest.raises(UserError, match="mlcd check skypilot"):
        skypilot_cloud(job, "", sky, NoonClock())
    monkeypatch.setenv("AWS_PROFILE", "me")
    assert {offer.cloud for offer in skypilot_cloud(job, "", sky, NoonClock()).space.offers} == {"aws"}
    assert {offer.cloud for offer in skypilot_cloud(job, "gcp", sky, NoonClock()).space.offers} == {"gcp"}
    assert usable_clouds(CLOUDS, {"SKYPILOT_API_SERVER_ENDPOINT": "https://sky"}, tmp_path) == CLOUDS
    assert [each.location for each in find_credentials(CLOUDS, {}, tmp_path)] == ["", "", ""]


def test_secrets_come_from_the_environment_and_are_not_stored(home, monkeypatch):
    run = RunOnFakeCloud(home, a_job())
    job = replace(run.job, task={**run.job.task, "secrets": {"HF_TOKEN": None}})
    monkeypatch.delenv("HF_TOKEN", raising=False)
    with pytest.raises(NoAccess, match="HF_TOKEN is not set"):
        next(run.place.backend.run(job, order()))
    monkeypatch.setenv("HF_TOKEN", "hf_very_secret")
    list(run.place.backend.run(job, order()))
    (cluster,) = run.sky.clusters.values()
    assert cluster.task["secrets"] == {"HF_TOKEN": "hf_very_secret"}
    files = [file for file in home.rglob("*") if file.is_file()]
    assert not any(b"hf_very_secret" in file.read_bytes() for file in files)


# Names


LABELS = st.one_of(st.from_regex(r"[a-z0-9]+(-[a-z0-9]+)*-\d+", fullmatch=True), st.text(max_size=80))


@given(st.lists(LABELS, unique=True, max_size=10))
def test_names_made_from_labels_are_valid_and_distinct(labels):
    names = [cluster_name("ab12", label) for label in labels]
    assert len(set(names)) == len(labels)
    for name in names:
        assert re.fullmatch(r"[a-zA-Z]([-_.a-zA-Z0-9]*[a-zA-Z0-9])?", name)  # SkyPilot's own pattern
        assert len(name) <= 42  # Azure's limit, the lowest of those that MLCD has prices of


def test_two_state_folders_never_share_a_name(tmp_path):
    assert owner_of(tmp_path / "one") == owner_of(tmp_path / "one")
    assert re.fullmatch(r"[0-9a-f]{4}", owner_of(tmp_path / "two"))


# Output


def texts(lines: Lines, output: str) -> list[str]:
    return [line.text for line in lines.feed(output)]


def test_colours_and_prefixes_are_removed_and_pieces_joined():
    lines = Lines()
    assert lines.feed("\x1b[36m(head, rank=0, pid=23") == []
    assert texts(lines, "17)\x1b[0m step 1\n(digits, pid=9) step 2\nst") == ["step 1", "step 2"]
    assert texts(lines, "ep (3)\r\n") == ["step (3)"]


def test_timestamps_heartbeats_and_exits_are_parsed_and_not_shown():
    lines = Lines().feed(
        "(head, rank=0, pid=1) 10% [mlcd 1746100000.250]\r(head, rank=0, pid=1) 20% [mlcd 1746100001.000]\n"
        "(worker1, rank=1, pid=2) @mlcd alive node=1 at=1746100002\n"
        "(worker1, rank=1, pid=2) no end@mlcd exit=7 node=1 at=1746100003\n"
    )
    assert [(line.text, line.at) for line in lines[:2]] == [("10%", 1746100000.25), ("20%", 1746100001.0)]
    assert (lines[2].alive, lines[2].at, lines[2].text) == (1, 1746100002.0, "")
    assert (lines[3].exit, lines[3].at) == ((7, 1), 1746100003.0)
    shown = "".join(line.shown for line in lines)
    assert shown.startswith("(head, rank=0, pid=1) 10%\r(head, rank=0, pid=1) 20%\n(worker1, rank=1, pid=2) no end")


def test_nothing_of_a_long_line_is_lost_to_the_user():
    lines, output = Lines(), "x" * 25_000
    shown = "".join(line.shown for piece in (output, output, "\ny") for line in lines.feed(piece))
    assert shown + lines.end() == output + output + "\ny"


# What runs on the nodes, in a real shell

STAMP = re.compile(r" \[mlcd \d+\.\d{3}\]")
PRINTS = "python3 -c 'import json, os; print(json.dumps(dict(os.environ)))'"


def start(
    tmp_path: Path, job: Job, nodes: int, node: int, then: str = "", **more: str
) -> subprocess.CompletedProcess[str]:
    ship = tmp_path / "ship"
    for name, text in shipped(job, nodes, 2).items():
        (ship / name).parent.mkdir(parents=True, exist_ok=True)
        (ship / name).write_text(text)
    ips = "\n".join(f"10.0.0.{i + 1}" for i in range(nodes))
    env = {"PATH": os.environ["PATH"], "SKYPILOT_NODE_RANK": str(node), "SKYPILOT_NODE_IPS": ips, **more}
    command = ["bash", "-c", f"source {ship}/start.sh{then}"]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)


def command(folder: Path, name: str, text: str) -> str:
    """A PATH that begins with a folder with this command."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/bash\n{text}\n")
    (folder / name).chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def test_only_lines_of_the_first_node_have_timestamps(tmp_path):
    job = Job("x", 1.0, task={"run": "echo one; echo two >&2; printf 'bar 1\\rbar 2\\r\\nno end'"})
    before = int(time.time())
    lines = start(tmp_path, job, 2, 0).stdout.splitlines(keepends=True)
    *stamped, last = [line for line in lines if line.strip()]
    assert [STAMP.sub("", line).rstrip("\r\n") for line in stamped] == ["one", "two", "bar 1", "bar 2", "no end"]
    times = [float(STAMP.search(line)[0][7:-1]) for line in stamped]
    assert before <= times[0] <= times[-1] <= time.time()
    assert re.fullmatch(r"@mlcd exit=0 node=0 at=\d+\n", last)
    assert STAMP.search(start(tmp_path, job, 2, 1).stdout) is None


def test_a_node_sends_heartbeats_until_its_job_has_ended(tmp_path):
    waited = command(tmp_path / "bin", "sleep", '[ "$*" = 10 ] && read -t 0.01 < /dev/zero; true')
    job = Job("x", 1.0, task={"run": "python3 -c 'print(7)'"})
    *output, last = start(tmp_path, job, 2, 1, PATH=waited).stdout.splitlines()
    assert re.fullmatch(r"@mlcd alive node=1 at=\d+", output[0])
    assert sum("@mlcd alive" in line for line in output) > 1
    assert f"{ELSEWHERE}7" in output
    assert last.startswith("@mlcd exit=0 node=1")
    assert "alive" not in start(tmp_path, job, 1, 0).stdout


def test_a_job_runs_on_a_node_without_python(tmp_path):
    done = start(
        tmp_path, Job("x", 1.0, task={"run": "echo one; exit 4"}), 1, 0, PATH=command(tmp_path, "python3", "exit 1")
    )
    assert re.fullmatch(r"one\n@mlcd exit=4 node=0 at=\d+\n", done.stdout)
    assert done.returncode == 4


def stamped(script: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-I", "-S", stamp.__file__, "bash", "-c", script]
    return subprocess.run(command, capture_output=True, timeout=300, check=False)


def test_a_process_left_behind_does_not_keep_a_job_from_ending():
    done = stamped("sleep 1000 & echo $!; exit 3")
    os.kill(int(done.stdout.split()[0]), signal.SIGKILL)
    assert done.returncode == 3


def test_the_exit_status_of_a_killed_job_is_that_of_a_shell():
    assert stamped("kill -KILL $$").returncode == 137


def test_a_very_long_line_passes_through():
    done = stamped("head -c 3000000 /dev/zero | tr '\\0' x; echo")
    assert STAMP.sub("", done.stdout.decode()) == "x" * 3_000_000 + "\n"
    assert done.stdout.count(b"[mlcd ") == 1


@pytest.mark.parametrize("nodes", [1, 3])
@pytest.mark.parametrize("communication", list(Communication))
def test_every_process_has_the_same_variables_as_on_other_backends(tmp_path, nodes, communication):
    job = Job("x", 1.0, communication=communication, task={"run": PRINTS})
    expected = processes(communication, [f"10.0.0.{i + 1}" for i in range(nodes)], FIRST_PORT, 2)
    environments, reporting = [], []
    for node in range(nodes):
        done = start(tmp_path, job, nodes, node)
        # Two processes write at once: a line may begin before the other one has ended.
        output = done.stdout.replace("}{", "}\n{").replace(f"}}{ELSEWHERE}", f"}}\n{ELSEWHERE}")
        lines = [STAMP.sub("", line) for line in output.splitlines() if "{" in line]
        environments += [json.loads(line.removeprefix(ELSEWHERE)) for line in lines]
        reporting += [json.loads(line) for line in lines if not line.startswith(ELSEWHERE)]
        assert f"@mlcd exit=0 node={node}" in done.stdout
        # A job whose other processes never end is failed on purpose, so that SkyPilot ends them.
        released = communication is Communication.PARAMETER_SERVER and nodes > 1 and node == 0
        assert done.returncode == (1 if released else 0), done.stderr

    def own(environment):
        return {key: value for key, value in environment.items() if not key.startswith("SKYPILOT_")}

    def shown(environment, keys):
        return tuple(sorted((key, environment.get(key)) for key in keys))

    keys = own(expected[0].environment)
    assert sorted(shown(e, keys) for e in environments) == sorted(shown(own(p.environment), keys) for p in expected)
    assert [shown(e, keys) for e in reporting] == [shown(p.environment, keys) for p in expected if p.reports]


def test_the_tracker_can_be_imported_on_a_node_and_reports(tmp_path):
    job = Job("x", 1.0, task={"run": "python3 -c 'import mlcd_tracker; mlcd_tracker.step(64)'"})
    assert "@mlcd t=" in start(tmp_path, job, 1, 0, MLCD_LAUNCH="x-1").stdout


def test_a_job_on_a_node_finds_the_file_that_asks_it_to_exit(tmp_path):
    program = "import mlcd_tracker; print(mlcd_tracker.leaving(), flush=True)"
    job = Job("x", 1.0, task={"run": f'python3 -c "{program}"; touch $MLCD_LEAVE; python3 -c "{program}"'})
    output = start(tmp_path, job, 1, 0, MLCD_LAUNCH="x-1").stdout
    assert re.findall("True|False", output) == ["False", "True"]
    assert LEAVE_COMMAND.removeprefix("touch ").replace(SHIPPED, "") == "/leave"
    assert next(tmp_path.rglob("leave")).parent == next(tmp_path.rglob("start.sh")).parent


def test_commands_after_the_job_see_its_exit_code(tmp_path):
    """SkyPilot appends commands that wait for the upload of a cached bucket."""
    done = start(tmp_path, Job("x", 1.0, task={"run": "exit 3"}), 1, 0, then='\necho "then $?"')
    assert done.stdout.endswith("then 3\n")


def test_the_exit_code_of_the_job_is_written(tmp_path):
    done = start(tmp_path, Job("x", 1.0, task={"run": "exit 3"}), 1, 0)
    assert done.returncode == 3
    assert re.fullmatch(r"@mlcd exit=3 node=0 at=\d+\n", done.stdout)


def test_a_node_ends_the_job_at_the_end_of_its_time(tmp_path):
    job = Job("x", 1.0, task={"run": "echo ran"})
    late = start(tmp_path, job, 1, 0, MLCD_UNTIL="1000")
    assert re.fullmatch(r"@mlcd exit=124 node=0 at=\d+\n", late.stdout)
    assert late.returncode == 124
    until = int(datetime.now(UTC).timestamp()) + 5_000
    path = command(tmp_path / "bin", "timeout", 'echo "timeout $*"')
    output = start(tmp_path, job, 1, 0, MLCD_UNTIL=str(until), PATH=path).stdout
    assert 4_900 < int(re.match(r"timeout -k 30 (\d+) bash", output)[1]) <= 5_000


# The task


def test_a_task_says_when_its_nodes_stop_by_themselves():
    made = task(order(lifetime_s=1_200.0))
    assert int(made["envs"]["MLCD_UNTIL"]) == int(NOON.timestamp() + 1_200 - TEARDOWN_S)
    command, _ = first_boot(order(lifetime_s=1_200.0), NOON.timestamp())
    assert made["setup"].startswith(f"sudo {command} "), "the same time as at the first boot"
    assert "terminate.py" in made["setup"]
    assert "terminate.py" not in task(order(T4S))["setup"], "GCP has no such setting"
    endless = task(order(lifetime_s=None))
    assert "MLCD_UNTIL" not in endless["envs"]
    assert "shutdown" not in endless["setup"]
    assert endless["resources"]["autostop"]["down"]


def test_the_setup_goes_on_if_the_shutdown_cannot_be_scheduled(tmp_path):
    made = task(order())["setup"].replace("sudo shutdown", "true")
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    done = subprocess.run(
        ["bash", "-ec", made.replace("pip install torch", "echo installed")],
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "installed\n", "")


def test_a_machine_of_aws_schedules_its_shutdown_at_its_first_boot():
    command, _ = first_boot(order(CPU, lifetime_s=1_200.0), NOON.timestamp())
    assert yaml.safe_load(f"runcmd:\n- {command}") == {"runcmd": [command]}, "as SkyPilot pastes it"
    assert ordered_minutes(command, NOON.timestamp() + 50.0) == "19", "within the lifetime, which is reserved"
    assert ordered_minutes(command, NOON.timestamp() + 1_300.0) == "0", "a machine that comes up too late ends at once"
    assert first_boot(order(CPU, lifetime_s=None), NOON.timestamp()) == ()
    # SkyPilot does not support such commands on GCP.
    assert first_boot(order(T4S, lifetime_s=1_200.0), NOON.timestamp()) == ()


def ordered_minutes(command: str, now: float) -> str:
    """The minutes that a shell computes for a `shutdown` command at this time."""
    script = f'date() {{ echo {int(now)}; }}; shutdown() {{ echo "$2"; }}; {command}'
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    return done.stdout.strip().removeprefix("+")


def test_paths_are_relative_to_the_job_file(tmp_path):
    mounts = {"/data": "./data", "/s3": "s3://b/x", "/b": {"source": "more", "name": "b"}}
    job = replace(JOB, folder=str(tmp_path), task={**JOB.task, "workdir": ".", "file_mounts": mounts})
    made = task(order(), job, tmp_path / "ship")
    assert made["workdir"] == str(tmp_path)
    assert made["file_mounts"] == {
        "/data": str(tmp_path / "data"),
        "/s3": "s3://b/x",
        "/b": {"source": str(tmp_path / "more"), "name": "b"},
        "~/.mlcd_launch": str(tmp_path / "ship"),
    }


# SkyPilot's own checks, offline

COLUMNS = (
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,AvailabilityZone,Arch"
)
VMS = {
    "aws": "c5.xlarge,,,4.0,8.0,,0.17,0.07,us-east-1,us-east-1a,x86_64\n",
    "gcp": "n1-standard-32,,,32.0,120.0,,1.52,0.32,us-central1,us-central1-a,x86_64\n"
    ",T4,4.0,,,T4,1.4,0.6,us-central1,us-central1-a,\n",
}
VALIDATE = """
import inspect, json, sys, sky
from types import SimpleNamespace
from mlcd.clouds.skypilot.liveness import BackgroundAnswer, NodeLiveness, LossDetector
from mlcd.clouds.skypilot.sdk import Sdk

class Fits:  # the SDK; its functions only check that the arguments of a call fit
    seen = set()
    def __getattr__(self, name):
        real = getattr(sky, name)
        if not inspect.isfunction(real):
            return real
        def call(*arguments, **options):
            inspect.signature(real).bind(*arguments, **options)
            self.seen.add(name)
            if name == "launch":
                self.sent = sky.skypilot_config.to_dict()  # which the client sends along
            if name == "api_status":
                return [SimpleNamespace(request_id="r", name="sky.launch", cluster_name="x")]
            return {"get": [], "stream_and_get": (1, None), "tail_logs": 0}.get(name)
        return call

sdk = Sdk(Fits)
thread = sdk.launch("x", {"run": "true"}, ["shutdown -h +30"])
thread._thread.join()
assert thread.end() == 0, thread.end()
assert sdk._sky.sent["aws"]["post_provision_runcmd"] == ["echo mine", "shutdown -h +30"], sdk._sky.sent
assert sky.skypilot_config.to_dict()["aws"]["post_provision_runcmd"] == ["echo mine"]
sdk.follow("x"), sdk.request_leave("x", 2)._thread.join(), sdk.down("x"), sdk.is_up("x"), sdk.names(), sdk.billed_s("x")
out = [sorted(Fits.seen)]
for config in json.load(sys.stdin):
    task = sky.Task.from_yaml_config(config)
    for resources in task.resources:
        resources.validate()
    (resources,) = task.resources
    stop = resources.autostop_config
    out.append(dict(
        cloud=str(resources.cloud), region=resources.region, instance_type=resources.instance_type,
        spot=resources.use_spot, nodes=task.num_nodes, accelerators=resources.accelerators,
        stop=[stop.enabled, stop.idle_minutes, stop.down, stop.wait_for.value],
        usd=resources.get_cost(3600), run=task.run, envs=task.envs, again=task.to_yaml_config()["num_nodes"]))
print(json.dumps(out))
"""


@needs_sky
def test_skypilot_accepts_the_tasks_with_the_meaning_that_mlcd_intends(tmp_path):
    for cloud, text in VMS.items():
        folder = tmp_path / ".sky" / "catalogs" / "v8" / cloud
        folder.mkdir(parents=True)
        (folder / "vms.csv").write_text(f"{COLUMNS}\n{text}")
        for empty in ("images.csv", "instance_quota_mapping.csv", "accelerator_quota_mapping.csv"):
            (folder / empty).write_text("Tag,Region,OS,OSVersion,ImageId,CreationDate\n")
    (tmp_path / ".sky" / "config.yaml").write_text("aws: {post_provision_runcmd: [echo mine]}")
    common = tmp_path / ".sky" / "catalogs" / "v8" / "common"
    common.mkdir()
    (common / "accelerators.csv").write_text('AcceleratorName,Clouds\nT4,"GCP,AWS"\n')
    ship = tmp_path / "ship"
    ship.mkdir()
    orders = [order(CPU, 3), order(SPOT, 1), order(T4S, 2, lifetime_s=None)]
    job = replace(JOB, task={**JOB.task, "resources": {"cpus": "4+", "disk_size": 100}, "envs": {"LR": 0.1}})
    done = subprocess.run(
        [sys.executable, "-c", VALIDATE],
        input=json.dumps([task(launch, job, ship) for launch in orders]),
        # No proxy is there: if a file of the catalog is missing, it cannot be downloaded.
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "HTTPS_PROXY": "http://127.0.0.1:9"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    called, three, spot, gpus = json.loads(done.stdout.splitlines()[-1])
    used = {"launch", "stream_and_get", "tail_logs", "status", "down", "get", "api_status", "api_cancel", "cost_report"}
    used.add("exec")
    assert set(called) == used
    assert [three["cloud"], three["region"], three["instance_type"]] == ["AWS", "us-east-1", "c5.xlarge"]
    assert [three["nodes"], three["again"], three["spot"]] == [3, 3, False]
    assert spot["spot"] is True
    assert [three["usd"], spot["usd"]] == [pytest.approx(CPU.usd_per_hour), pytest.approx(SPOT.usd_per_hour)]
    assert [gpus["cloud"], gpus["instance_type"], gpus["accelerators"]] == ["GCP", "n1-standard-32", {"T4": 4}]
    assert all(each["stop"] == [True, 1, True, "jobs"] for each in (three, spot, gpus))
    assert three["envs"]["LR"] == "0.1"


# The SDK


class FakeSky:
    """A fake of SkyPilot's SDK, as far as `Sdk` uses it."""

    StatusRefreshMode = SimpleNamespace(FORCE="force")
    ClusterStatus = SimpleNamespace(UP="UP", INIT="INIT")
    exceptions = SimpleNamespace(
        ResourcesUnavailableError=type("ResourcesUnavailableError", (Exception,), {}),
        ClusterDoesNotExist=type("ClusterDoesNotExist", (ValueError,), {}),
        NoCloudAccessError=type("NoCloudAccessError", (Exception,), {}),
        CloudUserIdentityError=type("CloudUserIdentityError", (Exception,), {}),
        ApiServerAuthenticationError=type("ApiServerAuthenticationError", (Exception,), {}),
    )
    Task = SimpleNamespace(from_yaml_config=lambda config: config)
    skypilot_config = SimpleNamespace(
        get_nested=lambda key, default: default, override_skypilot_config=lambda _: nullcontext()
    )

    def __init__(self, **answers) -> None:
        self.answers, self.calls = answers, []

    def __getattr__(self, name):
        def call(*arguments, **options):
            self.calls.append((name, arguments))
            answer = self.answers.get(name)
            if isinstance(answer, list):
                answer = answer.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer(*arguments, **options) if callable(answer) else answer

        return call


def ended(thread: LaunchThread) -> int | BackendError:
    thread._thread.join(300)
    end = thread.end()
    assert end is not None
    return end


def test_a_launch_is_ordered_waited_for_and_followed(capsys):
    def follow(name, job, follow, output_stream):
        output_stream.write("(digits, pid=1) step 1\n")
        return 0

    def say(*_, **__):
        click.secho("Running on cluster: x")  # as SkyPilot does, on stdout
        return "request-1"

    sky = FakeSky(launch=say, stream_and_get=(7, None), tail_logs=follow)
    thread = Sdk(lambda: sky).launch("mlcd-x", {"run": "true"})
    assert ended(thread) == 0
    assert thread.submitted()
    assert thread.read() == "Running on cluster: x\n(digits, pid=1) step 1\n"
    assert capsys.readouterr().out == ""
    assert [name for name, _ in sky.calls] == ["launch", "stream_and_get", "tail_logs"]


def test_a_launch_error_is_one_line():
    full = FakeSky.exceptions.ResourcesUnavailableError("no c5.xlarge\nin any zone")
    end = ended(Sdk(lambda: FakeSky(launch="r", stream_and_get=full)).launch("x", {}))
    assert isinstance(end, NoCapacity)
    assert str(end) == "no machines available: no c5.xlarge"
    end = ended(Sdk(lambda: FakeSky(launch=PermissionError("\x1b[1mexpired\x1b[0m"))).launch("x", {}))
    assert type(end) is BackendError
    assert str(end) == f"SkyPilot: PermissionError: expired; {CHECK}"
    barred = FakeSky.exceptions.NoCloudAccessError("run sky check")
    end = ended(Sdk(lambda: FakeSky(launch="r", stream_and_get=barred)).launch("x", {}))
    assert isinstance(end, NoAccess)
    assert str(end) == f"SkyPilot may not rent anything: NoCloudAccessError: run sky check; {CHECK}"
    closed = RuntimeError("Failed to SSH to 10.0.0.1 after timeout 600s, with Error: refused")
    end = ended(Sdk(lambda: FakeSky(launch="r", stream_and_get=closed)).launch("x", {}))
    assert isinstance(end, NeverReached)
    assert ended(Sdk(lambda: FakeSky(launch="r", stream_and_get=(1, None), tail_logs=100)).launch("x", {})) == 100


NO_NAME = ConnectionError(
    "HTTPSConnectionPool(host='raw.githubusercontent.com', port=443): Max retries exceeded with url: /x/vms.csv "
    "(Caused by NameResolutionError(\"HTTPSConnection(host='raw.githubusercontent.com', port=443): Failed to resolve "
    "'raw.githubusercontent.com' ([Errno -2] Name or service not known)\"))"
)
NOT_ENABLED = FakeSky.exceptions.ResourcesUnavailableError("Task requires AWS which is not enabled. Run: sky check aws")


def test_the_error_of_a_failed_connection_names_its_cause():
    end = ended(Sdk(lambda: FakeSky(launch=NO_NAME)).launch("x", {}))
    cause = "Failed to resolve 'raw.githubusercontent.com' ([Errno -2] Name or service not known)"
    assert str(end) == f"SkyPilot: ConnectionError: {cause}; {CHECK}"


@pytest.mark.parametrize(
    "fails",
    [
        {"status": ConnectionError("refused")},
        {"launch": NO_NAME},
        {"launch": "r", "stream_and_get": NO_NAME},
        {"launch": "r", "stream_and_get": NOT_ENABLED},
        {"launch": "r", "stream_and_get": FakeSky.exceptions.NoCloudAccessError("no cloud is enabled")},
    ],
    ids=["no server", "before the order", "before a cloud is asked", "not enabled", "no access"],
)
class TestOutage(OutageContract):
    @pytest.fixture
    def cloud(self, fails, home):
        none = FakeSky.exceptions.ClusterDoesNotExist("none")
        sky = FakeSky(**{"api_status": lambda **_: [], "down": none, "get": lambda _: [], **fails})
        return skypilot_cloud(a_job(), "", Sdk(lambda: sky), NoonClock())

    def check_message(self, message, run):
        super().check_message(message, run)
        assert "sky check" in message


def test_a_launch_that_failed_after_its_order_is_billed(home):
    """SkyPilot records a cluster before it asks a cloud for machines: some may have come."""
    run = RunOnFakeCloud(home, a_job())

    def broken(*_, **__):
        run.clock.wait(30.0)
        raise NO_NAME

    none = FakeSky.exceptions.ClusterDoesNotExist("none")
    known = [{"name": run.place.backend.name(f"digits-1-{i}"), "duration": 30} for i in (1, 2)]
    answers = {"cost_report": "bill", "launch": "r", "stream_and_get": broken, "down": none}
    sky = FakeSky(api_status=lambda **_: [], get=lambda asked: known if asked == "bill" else [], **answers)
    run.place = skypilot_cloud(run.job, "", Sdk(lambda: sky), run.clock)
    with pytest.raises(Outage):
        run.search()
    assert [entry.measurement.outcome for entry in run.settled] == [Outcome.LAUNCH_FAILED] * 2
    assert run.book.account.history.spent_usd > 0


def test_a_broken_connection_to_a_job_is_restored():
    sky = FakeSky(launch="r", stream_and_get=(1, None), tail_logs=[ConnectionError("lost"), 101, 0])
    assert ended(Sdk(lambda: sky).launch("x", {})) == 0


def test_no_line_is_repeated_after_a_broken_connection():
    """SkyPilot sends all of a job's output again. Repeated reports would look like a restarted job."""
    reports = [f"(digits, pid=1) @mlcd t={i}.1 samples={100 * i} saved=0\n" for i in range(1, 9)]

    def breaks(name, job, follow, output_stream):
        output_stream.write("Streaming logs...\n" + "".join(reports[:6]) + reports[6][:20])
        raise ConnectionError("lost")

    def tells_all(name, job, follow, output_stream):
        for piece in ("Job started.\n\x1b[36m", *reports, "(digits, pid=1) the end"):
            output_stream.write(piece)
        return 0

    sky = FakeSky(launch="r", stream_and_get=(1, None), tail_logs=[breaks, tells_all])
    thread = Sdk(lambda: sky).launch("x", {})
    assert ended(thread) == 0
    output = texts(Lines(), thread.read() + "\n")
    assert [line for line in output if "@mlcd" in line] == [line.partition(") ")[2].strip() for line in reports]
    assert "the end" in output


def test_a_teardown_cancels_a_launch_in_progress_and_accepts_a_missing_cluster():
    requests = [
        SimpleNamespace(request_id="a", name="sky.launch", cluster_name="x"),
        SimpleNamespace(request_id="b", name="sky.launch", cluster_name="another"),
        SimpleNamespace(request_id="c", name="sky.down", cluster_name="x"),
    ]
    gone = FakeSky.exceptions.ClusterDoesNotExist("x")
    sky = FakeSky(api_status=lambda **_: requests, api_cancel="cancelled", down=gone)
    Sdk(lambda: sky).down("x")
    assert ("api_cancel", (["a"],)) in sky.calls
    with pytest.raises(BackendError, match="tearing down x: RuntimeError: no answer"):
        Sdk(lambda: FakeSky(api_status=lambda **_: [], down=RuntimeError("no answer"))).down("x")


def test_states_names_and_bills_are_read_from_the_records():
    def sdk(*records):
        return Sdk(lambda: FakeSky(get=lambda _: list(records)))

    assert sdk({"name": "x", "status": "UP"}).is_up("x") is True
    assert sdk({"name": "x", "status": "INIT"}).is_up("x") is False
    assert sdk({"name": "x", "status": "STOPPED"}).is_up("x") is False
    assert sdk().is_up("x") is None
    looked = sdk({"name": "x", "status": "UP", "status_updated_at": 7})
    assert looked.is_up("x") is True
    with pytest.raises(StaleStatus):
        looked.is_up("x")
    assert sdk({"name": "x"}, {"name": "y"}).names() == {"x", "y"}
    assert sdk({"name": "x", "duration": 61}, {"name": "y", "duration": 5}).billed_s("x") == 61
    assert sdk({"name": "y", "duration": 5}).billed_s("x") is None
    assert sdk({"name": "x", "total_cost": 1.5}, {"name": "x", "total_cost": 0.5}).billed_usd() == {"x": 2.0}


def test_stopping_waits_for_an_order_that_is_being_sent():
    going, out, stopped = threading.Event(), threading.Event(), []

    def work(thread: LaunchThread) -> int:
        going.set()
        out.wait(300)
        stopped.append(thread.stopped)
        thread.ordered()
        return 0

    thread = LaunchThread(work)
    going.wait(300)
    stopping = threading.Thread(target=thread.stop)
    stopping.start()
    assert thread.end() is None
    assert stopping.is_alive()
    out.set()
    stopping.join(300)
    assert not stopping.is_alive()
    assert ended(thread) == 0


def test_an_error_in_the_thread_is_the_end_of_the_launch():
    def work(thread: LaunchThread) -> int:
        raise SystemExit("click says no")

    assert str(ended(LaunchThread(work))) == f"SkyPilot: SystemExit: click says no; {CHECK}"


# Hints


def test_the_error_about_a_missing_package_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sky", None)
    with pytest.raises(MissingExtra, match=r"pip install 'mlcd\[skypilot\]'"):
        Sdk()


def test_what_a_job_may_cost_is_known_without_loading_skypilot(tmp_path):
    """A preview computes it in a process that may write no file, and the first import of SkyPilot writes some."""
    script = (
        "import sys; from pathlib import Path; from mlcd.core.place import cloud\n"
        "from mlcd.planners.jobfile.read import load_job\n"
        "assert len(cloud('skypilot:aws', load_job(Path(sys.argv[1]))).space) > 1\n"
        "assert 'sky' not in sys.modules"
    )
    job = tmp_path / "job.yaml"
    job.write_text("name: demo\nrun: python train.py\nmlcd: {work: 1M, on: 'skypilot:aws', budget: 5}\n")
    subprocess.run([sys.executable, "-c", script, str(job)], check=True, timeout=300)


def without_sky(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    script = "import sys; sys.modules['sky'] = None; import mlcd.cli; mlcd.cli.main(sys.argv[1:])"
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "MLCD_HOME": str(tmp_path / "state")}
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)


def test_a_run_without_the_package_is_refused_and_check_says_what_to_do(tmp_path):
    job = tmp_path / "job.yaml"
    job.write_text("name: demo\nrun: python train.py\nmlcd: {work: 1M}\n")
    done = without_sky(tmp_path, "train", str(job), "--on", "skypilot:aws", "-y")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith("pip install 'mlcd[skypilot]'")
    assert len(done.stderr.splitlines()) == 1
    checked = without_sky(tmp_path, "check", "skypilot", "-o", "json")
    assert checked.returncode == 1
    checks = {each["what"]: each for each in json.loads(checked.stdout)["checks"]}
    assert checks["extra skypilot"]["to_do"].endswith("pip install 'mlcd[skypilot]'")
    assert [checks[f"cloud {cloud}"]["ok"] for cloud in ("aws", "gcp", "azure")] == [False, False, False]
    assert "aws configure" in checks["cloud aws"]["to_do"]


def test_events_of_a_run_are_samples_and_one_end(tmp_path):
    clock = NoonClock()
    backend = SkyPilot(FakeSkyPilot(clock, speed), tmp_path, clock)
    *samples, end = backend.run(JOB, order(lifetime_s=None))
    assert all(isinstance(sample, Sample) for sample in samples)
    assert isinstance(end, Ended)
