"""`mlcd scale --on skypilot`: every change of nodes is another launch, which continues from the bucket."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import pytest
from mlcd_fixtures.skypilot import FakeSkyPilot, NoonClock, Scenario

from mlcd.clouds.places.skypilot import skypilot_cloud
from mlcd.clouds.skypilot.backend import SkyPilot
from mlcd.clouds.skypilot.leave_request import LEAVE_COMMAND, LEAVE_WITHIN_S
from mlcd.clouds.skypilot.sdk import Sdk
from mlcd.clouds.skypilot.task import TEARDOWN_S
from mlcd.core import drive
from mlcd.core.backend import Launch, Purpose
from mlcd.core.configuration import Configuration, Offer
from mlcd.core.job import Goal, Job, Objective, Search, Target
from mlcd.core.ledger import Ledger, Settled, Started
from mlcd.core.measurement import Ended, Outcome, Sample
from mlcd.planners.scale.nouns import Batch, ScalingTask, scaling_space
from mlcd.planners.scale.search import ScaleSearch
from mlcd.planners.scale.steer import RunScaled

CPU = Offer("c5.xlarge", 0.17, 4, 8, cloud="aws", region="us-east-1", minimum_billed_s=60)
BUCKET = {"/checkpoints": {"name": "my-bucket", "mode": "MOUNT"}}
JOB = Job(
    "elastic",
    3e6,
    Goal(Objective.KNEE, budget_usd=20.0),
    search=Search(instances=("c5.xlarge",), parallel=1),
    checkpoints=True,
    task={"run": "python train.py", "resources": {"infra": "aws"}, "file_mounts": BUCKET},
    ask=ScalingTask((1, 4), (64,)),
)


def speed(task) -> float:
    return 1_000.0 * task["num_nodes"] ** 0.9


def order(lifetime_s: float | None = 1_200.0, nodes: int = 2, samples: float = 1e7) -> Launch:
    return Launch("elastic-1-1", Configuration(CPU, nodes, Batch(64)), Purpose.PROBE, samples, lifetime_s, 0)


def run(tmp_path, launch: Launch, scenario: Scenario, job: Job = JOB, ask_after: int | None = None):
    """The events of a launch whose job is asked to exit at one of its samples, the fake cloud, and the backend."""
    clock = NoonClock()
    sky = FakeSkyPilot(clock, speed, [scenario])
    backend, events, wish = SkyPilot(sky, tmp_path, clock), [], None
    with closing(backend.run(job, launch)) as happening:
        while True:
            try:
                events.append(happening.send(wish))
            except StopIteration:
                break
            wish = len(events) == ask_after
    return events, sky, backend


def test_search_and_run_continue_from_each_others_work_within_the_budget(tmp_path, monkeypatch):
    monkeypatch.setenv("MLCD_HOME", str(tmp_path / "home"))
    clock = NoonClock()
    sky = FakeSkyPilot(clock, speed, [Scenario(saves_only_on_leave=True)] * 20)
    place = skypilot_cloud(replace(JOB, search=replace(JOB.search, nodes=(1, 4))), "aws", sky, clock)
    space, ledger = scaling_space(place.space, JOB), Ledger(None)
    book = ledger.begin(JOB.name, clock, Started(JOB, space, "skypilot:aws", place.provenance, "test"))
    decision = drive.search(ScaleSearch(), JOB, space, place.profiler, book)
    assert decision.configuration is not None
    last = drive.launch(RunScaled(decision.configuration), JOB, space, place.profiler, book)
    assert last is not None
    assert last.outcome is Outcome.OK
    settled = [line.entry for line in ledger.lines(book.run) if isinstance(line.entry, Settled)]
    saved = [0.0, *(entry.measurement.saved_samples for entry in settled)]
    assert [entry.launch.saved_samples for entry in settled] == saved[:-1]
    assert len(settled) >= 3
    assert all(after > before for before, after in pairwise(saved)), "a probe made no progress"
    assert saved[-1] == pytest.approx(JOB.work_samples)
    folders = {cluster.task["envs"]["MLCD_CHECKPOINT_DIR"] for cluster in sky.clusters.values()}
    assert folders == {"/checkpoints/elastic-1"}
    assert {cluster.task["envs"]["MLCD_BATCH"] for cluster in sky.clusters.values()} == {"64"}
    assert sky.names() == set()
    assert all(e.measurement.seconds >= c.bill_s - 1 for e, c in zip(settled, sky.clusters.values(), strict=True))
    assert book.account.history.spent_usd <= JOB.goal.most_usd


def test_a_job_that_is_asked_to_exit_saves_and_exits_on_all_nodes(tmp_path):
    events, sky, _ = run(tmp_path, order(), Scenario(saves_only_on_leave=True), ask_after=10)
    *_, last, ended = events
    assert isinstance(last, Sample)
    assert last.saved == last.samples > 0
    assert ended.outcome is Outcome.OK
    assert sky.names() == set()


def test_a_job_that_does_not_exit_is_ended_and_its_last_checkpoint_counts(tmp_path):
    events, sky, _ = run(tmp_path, order(), Scenario(ignores_leave=True), ask_after=10)
    assert all(isinstance(event, Sample) for event in events)
    assert events[-1].elapsed_s <= events[9].elapsed_s + LEAVE_WITHIN_S + 10
    assert sky.names() == set()


def test_an_elastic_job_is_asked_to_save_before_its_lifetime_ends(tmp_path):
    events, _, _ = run(tmp_path, order(lifetime_s=1_200.0), Scenario(saves_only_on_leave=True))
    assert events[-1].saved == events[-1].samples > 0
    assert not any(isinstance(event, Ended) for event in events), "it has not finished: its lifetime was over"
    rigid = replace(JOB, ask=None)
    plain, _, _ = run(tmp_path / "plain", order(lifetime_s=1_200.0), Scenario(saves_only_on_leave=True), rigid)
    assert {event.saved for event in plain if isinstance(event, Sample)} == {0.0}


@pytest.mark.parametrize("target", [None, Target("accuracy", 0.9)])
def test_a_job_that_completes_its_work_at_the_end_of_its_time_has_finished(tmp_path, target):
    lifetime_s, job = 1_200.0, replace(JOB, target=target)
    asked_s = lifetime_s - TEARDOWN_S - LEAVE_WITHIN_S
    most = float(round((asked_s + 8.0 - Scenario().startup_s) * speed({"num_nodes": 2})))
    events, _, _ = run(tmp_path, order(lifetime_s, samples=most), Scenario(), job)
    assert isinstance(events[-1], Ended)
    assert events[-1].outcome is Outcome.OK


def test_a_launch_that_was_asked_to_exit_is_not_rejoined(tmp_path):
    clock = NoonClock()
    backend = SkyPilot(FakeSkyPilot(clock, speed, [Scenario(ignores_leave=True)]), tmp_path, clock)
    with closing(backend.run(JOB, order())) as events:
        next(events)
        assert backend.still_runs("elastic-1-1")
        events.send(True)
        assert not backend.still_runs("elastic-1-1")


def test_every_node_of_a_cluster_gets_the_request_to_exit():
    called = []

    def tell(task, cluster_name):
        called.append((task, cluster_name))
        return "request"

    exceptions = SimpleNamespace(ClusterDoesNotExist=type("ClusterDoesNotExist", (Exception,), {}))
    sky = SimpleNamespace(
        exec=tell,
        get=lambda request: None,
        Task=SimpleNamespace(from_yaml_config=lambda config: config),
        exceptions=exceptions,
    )
    answer = Sdk(lambda: sky).request_leave("mlcd-x", 3)
    answer._thread.join(60)
    assert answer.value is True
    assert called == [({"name": "leave", "num_nodes": 3, "run": LEAVE_COMMAND}, "mlcd-x")]


@pytest.mark.parametrize("mode, waits", [("MOUNT", False), ("MOUNT_CACHED", True)])
def test_machines_stay_until_a_cached_bucket_is_uploaded(tmp_path, mode, waits):
    job = replace(JOB, task={**JOB.task, "file_mounts": {"/checkpoints": {"name": "my-bucket", "mode": mode}}})
    events, sky, _ = run(tmp_path, order(), Scenario(uploads_s=40.0), job, ask_after=10)
    assert events[-1].outcome is Outcome.OK
    (cluster,) = sky.clusters.values()
    assert (cluster.torn_down_s >= cluster.job_ends_s + 40.0) == waits
