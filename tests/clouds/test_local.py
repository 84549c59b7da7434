"""Real nodes on this machine: the contract of live backends, and what only local nodes promise."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest
from mlcd_fixtures.live_jobs import SAVES_WHEN_ENDED

from mlcd.clouds.local import teardown
from mlcd.clouds.local.backend import Local
from mlcd.clouds.local.control_groups import MAX_WEIGHTS, NodeGroups
from mlcd.clouds.local.isolation import why_not_isolated
from mlcd.clouds.node_types import load_local_types
from mlcd.core.backend import Launch, LiveBackend
from mlcd.core.clock import WallClock
from mlcd.core.configuration import Configuration, Offer
from mlcd.core.errors import UserError
from mlcd.core.measurement import Ended, Outcome, Sample
from mlcd.planners.profilers.training import TrainingProfiler
from mlcd.testing.backends import STEPS, LiveBackendContract, python_job

pytestmark = pytest.mark.live

isolated = pytest.mark.skipif(why_not_isolated() is not None, reason=f"nodes cannot be isolated: {why_not_isolated()}")
RUN = f"contract{uuid4().hex[:8]}"
"""Different in every test process, because nodes of one machine share their names."""
NODE = Offer("test", 0.36, 0.3, 2.0, network_gbps=0.1, cloud="local")
LIFETIMES_S = (6.0, 40.0, 160.0)
"""Lifetimes of a launch; a longer one is used if the job has not begun by then: the machine may be busy."""


class Nodes(LiveBackendContract):
    def configuration(self) -> Configuration:
        return Configuration(NODE, 2)

    def probe(self) -> Launch:
        return replace(super().probe(), label=f"{RUN}-1")

    def whole(self) -> Launch:
        return replace(super().whole(), label=f"{RUN}-2")

    def test_work_saved_at_the_end_of_the_lifetime_counts(self, backend: LiveBackend) -> None:
        for lifetime_s in LIFETIMES_S:
            label = f"{RUN}-s{lifetime_s:.0f}"
            events = self.play(backend, SAVES_WHEN_ENDED, replace(self.probe(), lifetime_s=lifetime_s, label=label))
            if any(isinstance(event, Sample) for event in events):
                break
        last = events[-1]
        assert isinstance(last, Sample)
        assert last.saved == last.samples > 0
        assert last.elapsed_s <= lifetime_s


def local(home: Path, **terms: object) -> Local:
    return Local(home, WallClock(datetime.now(UTC)), **terms)  # type: ignore[arg-type]


@isolated
class TestIsolatedNodes(Nodes):
    @pytest.fixture
    def backend(self, tmp_path):
        return local(tmp_path)


class TestPlainNodes(Nodes):
    @pytest.fixture
    def backend(self, tmp_path):
        return local(tmp_path, isolated=False)


SPIN = """
import time
import mlcd_tracker
while True:
    before = time.process_time()
    sum(range(20_000))
    mlcd_tracker.step(time.process_time() - before)
"""
"""Its rate is the CPU seconds that it gets per second: never more than its share, less beside other work."""


@isolated
@pytest.mark.parametrize("cpus", [0.1, 0.3])
def test_the_cpu_of_a_node_is_limited(tmp_path, cpus):
    node, backend = replace(NODE, vcpus=cpus), local(tmp_path)
    launch = replace(Nodes().probe(), configuration=Configuration(node, 1), label=f"{RUN}-c{int(10 * cpus)}")
    rate = TrainingProfiler(backend, tight=0.3).measure(python_job(SPIN), launch).rate
    assert 0.0 < rate < 1.3 * cpus


SEND = """
import os, socket, time
import mlcd_tracker
rank, first = int(os.environ["RANK"]), os.environ["MASTER_ADDR"]
piece = bytes(20_000)
if rank:
    link = socket.create_connection((first, 5_000), timeout=300)
    while True:
        link.sendall(piece)
else:
    server = socket.create_server((first, 5_000))
    link, _ = server.accept()
    while received := len(link.recv(65_536)):
        mlcd_tracker.step(received)
"""
WAITING = SEND.replace("link = socket.create", "time.sleep(1); link = socket.create")


@isolated
@pytest.mark.parametrize("mbit", [5.0, 40.0])
def test_the_network_link_of_a_node_is_limited(tmp_path, mbit):
    node, backend = replace(NODE, network_gbps=mbit / 1_000), local(tmp_path)
    launch = replace(Nodes().probe(), configuration=Configuration(node, 2), label=f"{RUN}-l{int(mbit)}")
    rate = TrainingProfiler(backend, tight=0.2).measure(python_job(WAITING), launch).rate
    assert 0.7 * mbit < 8e-6 * rate < 1.15 * mbit


@isolated
def test_the_memory_of_a_process_is_limited(tmp_path):
    ended = Nodes().play(local(tmp_path), "hog = bytearray(3_000_000_000)", Nodes().probe())[-1]
    assert isinstance(ended, Ended)
    assert ended.outcome is Outcome.OUT_OF_MEMORY


@isolated
def test_nodes_have_cpu_priority_over_other_processes(tmp_path):
    groups = NodeGroups(f"{RUN}-weight")
    groups.create(0.5, 1.0)
    weights = [each for group in groups.procs for each in group.parent.parent.glob("cpu.*") if each.name in MAX_WEIGHTS]
    assert weights
    assert all(each.read_text().strip() == MAX_WEIGHTS[each.name] for each in weights)
    for each in groups.procs:
        each.parent.rmdir()


def can_limit_memory() -> bool:
    if why_not_isolated() is not None:
        return False
    groups = NodeGroups(f"{RUN}-memory")
    groups.create(1.0, 1.0)
    limited = any(
        list(each.parent.glob("memory.max")) + list(each.parent.glob("memory.limit*")) for each in groups.procs
    )
    for each in groups.procs:
        each.parent.rmdir()
    return limited


SHARES_TOO_MUCH = """
import subprocess, sys, time
import mlcd_tracker
mlcd_tracker.step(1)
hog = "import time; hog = bytearray(700_000_000); print(len(hog), flush=True); time.sleep(60)"
workers = [subprocess.Popen([sys.executable, "-c", hog]) for _ in range(4)]
while all(worker.poll() is None for worker in workers):
    time.sleep(0.1)
sys.exit(1)
"""
"""No single process uses more than the 2 GB of a node; together they do."""


@isolated
@pytest.mark.skipif(not can_limit_memory(), reason="no control group for memory can be written here")
def test_the_memory_of_a_nodes_processes_together_is_limited(tmp_path):
    ended = Nodes().play(local(tmp_path), SHARES_TOO_MUCH, Nodes().probe())[-1]
    assert isinstance(ended, Ended)
    assert ended.outcome is Outcome.OUT_OF_MEMORY, ended
    assert "memory was full" in ended.log


def test_a_job_that_hangs_is_given_up(tmp_path):
    program = "import mlcd_tracker, time\nmlcd_tracker.step(1)\ntime.sleep(600)"
    ended = Nodes().play(local(tmp_path, isolated=False, hangs_after_s=1.0), program, Nodes().probe())[-1]
    assert isinstance(ended, Ended)
    assert ended.outcome is Outcome.TIMED_OUT
    assert "no further report of progress" in ended.detail


def test_a_process_that_leaves_its_group_is_still_found(tmp_path):
    backend = local(tmp_path, isolated=False)
    program = "import subprocess\nsubprocess.Popen(['sleep', '600'], start_new_session=True)\n"
    with closing(backend.run(python_job(program + STEPS.format(steps=10_000)), Nodes().probe())) as events:
        next(events)
    assert teardown.processes_of(teardown.mark_of(backend.launches.folder(Nodes().probe().label))) == set()


def test_samples_contain_the_saved_work(tmp_path):
    program = "import mlcd_tracker, time\nfor i in range(4):\n    time.sleep(0.3)\n    mlcd_tracker.step(10)\n"
    program += "    mlcd_tracker.saved()\n"
    events = Nodes().play(local(tmp_path, isolated=False), program, Nodes().whole())
    samples = [event for event in events if isinstance(event, Sample)]
    assert samples[-1].saved == samples[-1].samples == 40


def test_only_a_job_with_checkpoints_gets_a_checkpoint_folder(tmp_path):
    program = "import mlcd_tracker, os\nprint('kept in', mlcd_tracker.checkpoint_dir())\nmlcd_tracker.step(1)"
    backend = local(tmp_path, isolated=False)
    for checkpoints, expected in ((True, str(tmp_path / "checkpoints" / RUN)), (False, "None")):
        job = replace(python_job(program), checkpoints=checkpoints)
        list(backend.run(job, Nodes().whole()))
        assert f"kept in {expected}" in (backend.launches.folder(f"{RUN}-2") / "0.log").read_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("types: {}", "types:"),
        ("types: {a: {cpus: 0, memory: 1GB, link: 1Mbit, usd_per_hour: 1}}", "types.a.cpus"),
        ("types: {a: {cpus: 1, memory: 1GB, link: fast, usd_per_hour: 1}}", "'fast': expected a rate, such as 100Mbit"),
        ("types: {a: {cpus: 1, memory: 1GB, usd_per_hour: 1}}", "types.a.link"),
        ("types: [", "not YAML"),
        ("[" * 100_000, "not YAML"),
    ],
)
def test_a_wrong_file_of_node_types_is_one_line(tmp_path, text, message):
    path = tmp_path / "nodes.yaml"
    path.write_text(text)
    with pytest.raises(UserError) as error:
        load_local_types(path)
    assert message in str(error.value)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_the_tests_above_leave_nothing_behind():
    assert not [mark for mark in teardown.marks() if mark.startswith(RUN)]


TAKES_MEMORY = """
import tempfile, time
import mlcd_tracker
mlcd_tracker.step(1)
cached = tempfile.TemporaryFile()
for _ in range(10):
    cached.write(bytes(100_000_000))
cached.flush()
hog = bytearray(600_000_000)
time.sleep(0.5)
mlcd_tracker.step(1)
del hog
time.sleep(0.5)
mlcd_tracker.step(1)
"""
"""A gigabyte of cached files, which the kernel can reclaim, and 0.6 GB of its own memory."""


@isolated
@pytest.mark.skipif(not can_limit_memory(), reason="no control group for memory can be written here")
def test_samples_contain_the_nodes_maximum_memory_share(tmp_path):
    events = Nodes().play(local(tmp_path), TAKES_MEMORY, Nodes().whole())
    shares = [event.memory for event in events if isinstance(event, Sample)]
    assert shares[0] < 0.1
    assert 0.3 <= shares[-1] < 0.4


def test_memory_shares_are_unknown_without_limits(tmp_path):
    events = Nodes().play(local(tmp_path, isolated=False), STEPS.format(steps=2), Nodes().whole())
    assert {event.memory for event in events if isinstance(event, Sample)} == {None}
