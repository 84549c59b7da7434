"""The backend contract on a real Ray cluster. `test_ray.py` runs this file in a network namespace of its own."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from mlcd_fixtures import scale_job

from mlcd.clouds.drill import Drill
from mlcd.clouds.local.teardown import processes_of
from mlcd.clouds.ray import cluster
from mlcd.clouds.ray.backend import Nodes, Ray, available
from mlcd.core.backend import Launch, Purpose
from mlcd.core.clock import WallClock
from mlcd.core.configuration import Configuration, Offer
from mlcd.core.job import Job
from mlcd.core.ledger import Ledger, Reserved, Settled
from mlcd.core.market import Market
from mlcd.core.measurement import Ended, Outcome, Sample
from mlcd.core.runs.run import start as start_run
from mlcd.planners.jobfile.read import load_job
from mlcd.testing.backends import LiveBackendContract

PATIENT_S = 300
"""Timeout of every wait; the machine may be busy."""
LIFETIMES_S = (10.0, 40.0, 160.0)
"""Lifetimes of launches; a longer one is used if the job has not begun by then: the machine may be busy."""
CLUSTER = """
import sys
from ray.cluster_utils import Cluster
node = dict(num_cpus=1, object_store_memory=80_000_000, node_ip_address="127.0.0.1")
cluster = Cluster(initialize_head=True, head_node_args=dict(node, include_dashboard=False, resources={"small": 1}))
cluster.add_node(wait=False, **node, resources={"small": 1})
cluster.add_node(wait=False, **node, resources={"large": 1})
cluster.wait_for_nodes()
print("ready", flush=True)
sys.stdin.read()
"""
TYPES = """
probe: 120s
startup: 300s
types:
  small: {cpus: 1, memory: 1GB, link: 1Gbit, usd_per_hour: 0.2}
  big: {cpus: 1, memory: 1GB, link: 1Gbit, usd_per_hour: 0.9, resource: large}
  huge: {cpus: 2, memory: 1GB, link: 1Gbit, usd_per_hour: 9, resource: large}
"""
TRAIN = """
import os, sys, time
import mlcd_tracker
from beside import SAMPLES_PER_S
print("config", os.environ["TF_CONFIG"])
for _ in range(int(sys.argv[1])):
    time.sleep(1 / SAMPLES_PER_S / int(os.environ["WORLD_SIZE"]))
    mlcd_tracker.step(1)
"""
JOB = """
name: tiny
run: python train.py 180
mlcd:
  work: 180
  goal: cheapest
  budget: $1
  search: {instances: [small]}
"""


@pytest.fixture(scope="session", autouse=True)
def three_nodes() -> Iterator[None]:
    """A cluster: two small nodes and a large one."""
    with subprocess.Popen(
        [sys.executable, "-c", CLUSTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        ready, _, _ = select.select([running.stdout], [], [], PATIENT_S)
        assert ready, "the cluster did not start in time"
        assert running.stdout.readline() == "ready\n"
        yield
        cluster.connect().shutdown()  # before the cluster: Ray ends a process that loses it
        running.kill()  # everything else ends with the namespace


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The job's folder, which is copied to the nodes, and next to it the file of node types."""
    folder = tmp_path_factory.mktemp("job")
    (folder / "train.py").write_text(TRAIN)
    (folder / "beside.py").write_text("SAMPLES_PER_S = 60\n")
    (folder / "job.yaml").write_text(JOB)
    (folder / "types.yaml").write_text(TYPES)
    return folder


@pytest.fixture(scope="session")
def job(folder: Path) -> Callable[[str], Job]:
    return lambda run: Job("tiny", 60, folder=str(folder), task={"run": run})


@pytest.fixture(scope="session")
def ray(folder: Path, job: Callable[[str], Job], tmp_path_factory: pytest.TempPathFactory) -> Ray:
    node_types, _ = available(job(""), folder / "types.yaml")
    return Ray(node_types, tmp_path_factory.mktemp("home"), WallClock(datetime.now(UTC)))


def offer(ray: Ray, name: str) -> Offer:
    return next(each for each in ray.node_types.offers if each.instance_type == name)


def order(ray: Ray, label: str, nodes: int = 1, lifetime_s: float | None = 60.0, of: str = "small") -> Launch:
    return Launch(label, Configuration(offer(ray, of), nodes), Purpose.PROBE, 60, lifetime_s, 0)


def soon(true: Callable[[], bool]) -> bool:
    until_s = time.monotonic() + PATIENT_S
    while not (found := true()) and time.monotonic() < until_s:
        time.sleep(0.05)
    return found


def test_the_space_is_what_the_cluster_has(folder, job):
    _, choices = available(job(""), folder / "types.yaml")
    assert {choice.offer.instance_type: choice.nodes for choice in choices} == {"small": (1, 2), "big": (1,)}


class TestRay(LiveBackendContract):
    @pytest.fixture
    def backend(self, ray, folder, tmp_path, monkeypatch):
        monkeypatch.chdir(folder)  # this folder is sent to the nodes
        self.offer = offer(ray, "small")
        return replace(ray, home=tmp_path)

    def configuration(self):
        return Configuration(self.offer, 2)


def test_a_run_completes_its_work_and_its_nodes_have_different_ports(ray, job):
    whole = replace(order(ray, "whole-1", 2, None), purpose=Purpose.RUN)
    events = list(ray.run(job("python train.py 60"), whole))
    assert isinstance(events[-1], Ended)
    assert events[-1].outcome is Outcome.OK, events[-1]
    assert [event.samples for event in events if isinstance(event, Sample)][-1] == 60
    logs = [(ray.launches.folder("whole-1") / f"{i}.log").read_text() for i in (0, 1)]
    configs = [json.loads(log.partition("config ")[2].splitlines()[0]) for log in logs]
    assert [config["task"]["index"] for config in configs] == [0, 1]
    assert len(set(configs[0]["cluster"]["worker"])) == 2
    assert ray.leftovers() == set()


def test_closing_at_any_moment_ends_even_processes_that_have_left_the_job(ray, job):
    probe = order(ray, "closed-1")
    with closing(ray.run(job("setsid sleep 1000 & python train.py 100000"), probe)) as events:
        next(events)
        assert ray.leftovers() == {"closed-1"}
        assert len(processes_of(probe.label)) >= 2
    assert next(events, None) is None
    assert not processes_of(probe.label)
    assert ray.leftovers() == set()
    assert ray.reclaim("closed-1") == ray.reclaim("closed-1") > 0


SAVES_WHEN_ENDED = """
trap 'echo @mlcd t=0.2 samples=80 saved=80; exit' TERM
echo @mlcd t=0.1 samples=60 saved=0
sleep 900 & wait
"""


@pytest.mark.night  # at each change: on nodes of this machine, test_drill.py
def test_a_drill_preempts_nodes(ray, job):
    market = Market("a", True, 0.1)
    for lasts_s in LIFETIMES_S:
        drill = Drill(("a",), up_s=lasts_s, seed=17)  # with this seed the zone has nodes for about the mean
        drilled = replace(ray, clock=WallClock(datetime.now(UTC)), node_types=replace(ray.node_types, drill=drill))
        on_spot = replace(order(ray, f"drill-{lasts_s:.0f}", 1, None), market=market)
        *reports, ended = drilled.run(job(SAVES_WHEN_ENDED), on_spot)
        if reports:
            break
    assert isinstance(ended, Ended)
    assert (ended.outcome, ended.detail) == (Outcome.PREEMPTED, "the spot machines were taken back (drill)")
    assert isinstance(reports[-1], Sample)
    assert reports[-1].saved == 80
    assert not processes_of(on_spot.label)


@pytest.mark.night  # at each change: on nodes of this machine, test_local.py
def test_work_saved_at_the_end_of_the_lifetime_counts(ray, job):
    for lifetime_s in LIFETIMES_S:
        events = list(ray.run(job(SAVES_WHEN_ENDED), order(ray, f"saved-{lifetime_s:.0f}", 1, lifetime_s)))
        if any(isinstance(event, Sample) for event in events):
            break
    assert isinstance(events[-1], Sample)
    assert (events[-1].samples, events[-1].saved) == (80, 80)


def test_a_process_may_start_while_a_poll_is_pending(ray, tmp_path):
    actors = cluster.bring_up("late-1", ray.node_types.bundle(offer(ray, "small")), 1, PATIENT_S)
    assert actors is not None
    with closing(Nodes(actors, tmp_path, poll_timeout_s=0.0)) as nodes:
        assert nodes.exchange_addresses("late-1", None, PATIENT_S)
        first = nodes.start(0, "echo first", {})
        nodes.poll()  # it does not wait for an answer
        second = nodes.start(0, "echo second", {})
        assert soon(lambda: (first.status(), second.status()) == (0, 0))
        assert (first.read(), second.read()) == ("first\n", "second\n")
        assert cluster.tear_down("late-1", 0.0)


def test_a_launch_without_free_nodes_fails(ray, job):
    hurried = replace(ray, node_types=replace(ray.node_types, startup_s=0.5))
    (ended,) = hurried.run(job("true"), order(ray, "full-1", 2, of="big"))
    assert isinstance(ended, Ended)
    assert (ended.outcome, ended.detail) == (Outcome.LAUNCH_FAILED, "the cluster has no 2 x big free")
    assert cluster.labels() == set()


def test_a_lost_node_ends_the_launch(ray, job):
    with closing(ray.run(job("python train.py 100000"), order(ray, "lost-1", 2))) as events:
        next(events)
        connected = cluster.connect()
        connected.kill(connected.get_actor("lost-1.1"))
        ended = [event for event in events if isinstance(event, Ended)]
    assert [end.outcome for end in ended] == [Outcome.PREEMPTED]
    assert not processes_of("lost-1")


def test_a_node_ends_the_job_at_its_lifetime_without_mlcd(ray, job):
    for lifetime_s in LIFETIMES_S:
        probe = order(ray, f"unasked-{lifetime_s:.0f}", 1, lifetime_s)
        with closing(ray.run(job("python train.py 100000"), probe)) as events:
            first = next(events, None)
            if processes_of(probe.label):
                assert isinstance(first, Sample)
                assert soon(lambda probe=probe: not processes_of(probe.label))
                assert first.elapsed_s < lifetime_s
                return
    pytest.fail("the job never reported")


class Mlcd:
    """The command line, in its own processes."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder, self.environment = folder, {**os.environ, "MLCD_HOME": str(home)}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "mlcd", *arguments]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(command, cwd=self.folder, env=self.environment, text=True, **pipes)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        with self.start(*arguments) as running:
            out, err = running.communicate(timeout=PATIENT_S)
        return subprocess.CompletedProcess(running.args, running.returncode, out, err)


@pytest.mark.night  # at each change: the contract above here, and killed commands in tests/cli/test_live.py
def test_a_job_is_searched_and_run_and_a_killed_mlcd_leaves_nothing_and_resumes(ray, folder, tmp_path):
    mlcd = Mlcd(folder, tmp_path)
    with mlcd.start("train", "job.yaml", "--on", "ray:types.yaml", "-y") as running:
        assert soon(lambda: bool(processes_of("tiny-1-1")) or running.poll() is not None)
        assert running.poll() is None, running.communicate()
        running.send_signal(signal.SIGKILL)
        running.communicate()
    assert soon(lambda: not processes_of("tiny-1-1"))
    assert soon(lambda: cluster.labels() == set())
    done = mlcd.run("resume", "tiny-1", "-y", "-o", "json")
    assert done.returncode == 0, done.stderr
    assert cluster.labels() == set()
    document = json.loads(done.stdout)
    assert (document["status"], document["final_run"]["outcome"]) == ("finished", "ok"), done.stderr
    assert document["final_run"]["samples_done"] == 180
    with closing(Ledger(tmp_path / "ledger.db")) as ledger:
        entries = [line.entry for line in ledger.lines("tiny-1")]
    ordered = [entry.launch.label for entry in entries if isinstance(entry, Reserved)]
    paid = {entry.launch.label: entry.measurement.usd for entry in entries if isinstance(entry, Settled)}
    assert len(paid) == len(ordered) == len(set(ordered)), "each launch is paid for exactly once"
    assert sum(paid.values()) == pytest.approx(document["spent_usd"])


ELASTIC = """
name: elastic
run: python scale_job.py 34560
mlcd:
  work: {dataset: 96, epochs: 360}
  checkpoints: true
  batch: 12
  elastic: {workers: 1..2, batch: 12..24, target: loss <= 0.0001}
  search: {instances: [small]}
  on: ray:types.yaml
"""


@pytest.mark.night  # at each change it is tested on nodes of this machine, tests/cli/test_switching.py
def test_an_elastic_job_moves_between_nodes_and_stays_one_training(tmp_path):
    shutil.copy(scale_job.__file__, tmp_path / "scale_job.py")
    # a probe takes at least half of its time, to measure the noise; the rest is for a busy machine
    types = TYPES.replace("probe: 120s", f"probe: 12s\nprobe_extra: 1s\ncheckpoints: {tmp_path}/kept")
    (tmp_path / "types.yaml").write_text(types)
    (tmp_path / "job.yaml").write_text(ELASTIC)
    run = start_run(load_job(tmp_path / "job.yaml"), Ledger(None))
    decision = run.search()
    run.launch()
    account = run.book.account
    assert decision.configuration is not None
    assert {m.configuration.nodes for m in account.history.measurements} == {1, 2}
    assert account.ended is not None
    assert "loss <= 0.0001 was not reached in 360 epochs" in account.ended.because
    (state,) = tmp_path.glob("kept/*/state.json")
    batches = scale_job.check_one_training(state)
    assert set(batches) <= {12, 24}  # how busy the machine is decides which of them is tried or chosen
    # everything done was saved: every launch exited at the end of a step
    assert account.history.saved_samples == sum(batches)
    assert not cluster.labels()
