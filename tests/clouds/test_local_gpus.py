"""GPUs of local nodes: each node has its own, and launches never share one."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest
from mlcd_fixtures.gpus import pretend_gpus, pretend_nvidia_smi

from mlcd.clouds.launches import Launches
from mlcd.clouds.local.backend import Local
from mlcd.clouds.local.gpus import HeldGpus, is_kind, usable_gpus
from mlcd.clouds.local.isolation import why_not_isolated
from mlcd.clouds.local.teardown import Watchdog, record_end
from mlcd.clouds.node_types import load_local_types
from mlcd.core.backend import Launch, Purpose
from mlcd.core.clock import WallClock
from mlcd.core.configuration import Configuration, Offer
from mlcd.core.errors import NoAccess, NothingOrdered, UserError
from mlcd.core.job import Job
from mlcd.core.place import Cloud, cloud
from mlcd.testing.backends import python_job

A100 = "NVIDIA A100-SXM4-80GB"
CPU = Offer("cpu", 0.36, 0.5, 2.0, network_gbps=0.1, cloud="local")
GPU = replace(CPU, instance_type="gpu", accelerator="A100", accelerators=1)
TELLS = "import os, mlcd_tracker\nprint('sees', repr(os.environ['CUDA_VISIBLE_DEVICES']))\nmlcd_tracker.step(1_000)"


@pytest.mark.parametrize("kind", ["A100", "a100", "A100-80GB", "GPU"])
def test_a_kind_matches_the_full_name_of_nvidia_smi(kind):
    assert is_kind(A100, kind)


@pytest.mark.parametrize(
    ("full_name", "kind"), [(A100, "A10"), (A100, "A100-40GB"), ("NVIDIA H200", "H100"), ("Tesla T4", "RTX4090")]
)
def test_another_kind_does_not_match(full_name, kind):
    assert not is_kind(full_name, kind)


def test_a_kind_may_be_written_without_its_space():
    assert is_kind("NVIDIA GeForce RTX 4090", "RTX4090")


def test_the_gpus_are_those_that_nvidia_smi_lists(tmp_path, monkeypatch):
    uuids = pretend_gpus(tmp_path, monkeypatch, [A100, A100, "Tesla T4"])
    usable = usable_gpus()
    assert [gpu.uuid for gpu in usable.gpus] == uuids
    assert usable.kinds == f"2 x {A100}, 1 x Tesla T4"
    assert len(usable.fitting(GPU)) == 2


def test_only_gpus_in_mlcds_own_cuda_visible_devices_count(tmp_path, monkeypatch):
    uuids = pretend_gpus(tmp_path, monkeypatch, [A100] * 3)
    for visible, seen in (("1", [1]), (f"0,{uuids[2][:12]}", [0, 2]), ("", []), ("-1", [])):
        usable = usable_gpus({"CUDA_VISIBLE_DEVICES": visible})
        assert [gpu.uuid for gpu in usable.gpus] == [uuids[i] for i in seen]
    assert "CUDA_VISIBLE_DEVICES='-1' names none" in usable.why_none


def test_the_reason_for_having_no_gpus_is_reported(tmp_path, monkeypatch):
    pretend_nvidia_smi(tmp_path, monkeypatch, "#!/bin/sh\necho no driver; echo more; exit 9\n")
    assert usable_gpus().why_none == "nvidia-smi fails: no driver"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert usable_gpus().why_none == "nvidia-smi is not installed"


@pytest.mark.parametrize(("written", "offered"), [("A100:2", ("A100", 2)), ("A100", ("A100", 1)), ("2", ("GPU", 2))])
def test_a_type_names_its_gpus_as_skypilot_does(tmp_path, written, offered):
    (offer,) = load_local_types(_nodes(tmp_path, f"accelerators: {written}, tflops: 19.5")).offers
    assert (offer.accelerator, offer.accelerators) == offered
    assert offer.tflops_per_accelerator == 19.5


@pytest.mark.parametrize("written", ["A100:0", "A100:two", "0", "yes", "':1'"])
def test_invalid_accelerators_are_one_line(tmp_path, written):
    with pytest.raises(UserError, match=r"types.x.accelerators: .*expected a name and a count, such as V100:4"):
        load_local_types(_nodes(tmp_path, f"accelerators: {written}"))


def test_the_space_has_no_more_nodes_than_gpus_allow(tmp_path, monkeypatch):
    pretend_gpus(tmp_path, monkeypatch, [A100] * 5)
    place = _cloud(_nodes(tmp_path, "accelerators: A100:2"))
    assert [each.nodes for each in place.space.configurations] == [1, 2]
    assert place.space.offers[0].accelerator_memory_gb == 80
    place.check(_job())


@pytest.mark.parametrize(
    ("names", "accelerators", "message"),
    [
        ([A100], "A100:4", f"accelerators A100:4: a node needs 4, and this machine has 1 x {A100}; lower the number"),
        (["NVIDIA H200"], "A100:1", "this machine has other GPUs (1 x NVIDIA H200); use their name, such as H200:1"),
        ([], "A100:1", "this machine has no GPU (nvidia-smi lists none); remove the type"),
    ],
)
def test_a_type_without_enough_gpus_is_refused_in_one_line(tmp_path, monkeypatch, names, accelerators, message):
    pretend_gpus(tmp_path, monkeypatch, names)
    place = _cloud(_nodes(tmp_path, f"accelerators: {accelerators}"))
    with pytest.raises(UserError) as error:
        place.check(_job())
    assert f"{tmp_path}/nodes.yaml: types.x: " in str(error.value)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_more_nodes_than_gpus_are_refused_if_fewer_are_not_allowed(tmp_path, monkeypatch):
    pretend_gpus(tmp_path, monkeypatch, [A100])
    place = _cloud(_nodes(tmp_path, "accelerators: A100:1", nodes="2..4"))
    with pytest.raises(UserError, match="2 nodes need 2, and this machine has 1 x"):
        place.check(_job())


def test_the_command_line_refuses_before_a_run_starts(tmp_path, monkeypatch):
    pretend_gpus(tmp_path, monkeypatch, [])
    monkeypatch.setenv("MLCD_HOME", str(tmp_path / "home"))
    (tmp_path / "job.yaml").write_text("name: none\nrun: 'true'\nmlcd: {work: 10, budget: $1}\n")
    nodes = _nodes(tmp_path, "accelerators: A100:1")
    command = [sys.executable, "-m", "mlcd", "train", "job.yaml", "-y", "--on", f"local:{nodes}"]
    done = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert "this machine has no GPU" in done.stderr
    assert not (tmp_path / "home" / "launches").exists()


def test_a_gpu_belongs_to_one_launch_at_a_time(tmp_path, monkeypatch):
    pretend_gpus(tmp_path, monkeypatch, [A100] * 3)
    with HeldGpus(Configuration(GPU, 2)) as first:
        with pytest.raises(NothingOrdered, match="other launches on this machine hold the GPUs"):
            HeldGpus(Configuration(GPU, 2))
        with HeldGpus(Configuration(GPU, 1)) as second:  # the one that the failed attempt has released
            assert not set(second.gpus) & set(first.gpus)
    with HeldGpus(Configuration(GPU, 3)) as third:
        assert len({third.variables(node)["CUDA_VISIBLE_DEVICES"] for node in range(3)}) == 3


def test_no_other_process_gets_a_reserved_gpu(tmp_path, monkeypatch):
    (uuid,) = pretend_gpus(tmp_path, monkeypatch, [A100])
    program = f"import socket\nsocket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).bind('\\0mlcd-{uuid}')"
    with HeldGpus(Configuration(GPU, 1)):
        done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert "Address already in use" in done.stderr


def test_a_gpu_stays_reserved_until_the_watchdog_has_torn_down(tmp_path, monkeypatch):
    pretend_gpus(tmp_path, monkeypatch, [A100])
    held = HeldGpus(Configuration(GPU, 1))
    folder = Launches(tmp_path).open(_launch(GPU, 1))
    with Watchdog(folder, None, held.descriptors):
        with held:
            pass  # MLCD has ended
        with pytest.raises(NothingOrdered):
            HeldGpus(Configuration(GPU, 1))
        record_end(folder, 0.0)
    with HeldGpus(Configuration(GPU, 1)):
        pass


@pytest.mark.live
@pytest.mark.parametrize(
    "isolated", [False, pytest.param(True, marks=pytest.mark.skipif(bool(why_not_isolated()), reason="not root"))]
)
def test_each_node_sees_only_its_own_gpus(tmp_path, monkeypatch, isolated):
    uuids = pretend_gpus(tmp_path, monkeypatch, [A100] * 4)
    assert _seen(tmp_path, replace(GPU, accelerators=2), 2, isolated) == [",".join(uuids[:2]), ",".join(uuids[2:])]


@pytest.mark.live
def test_a_node_of_a_cpu_type_sees_none_whatever_its_job_says(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert _seen(tmp_path, CPU, 1, False, envs={"CUDA_VISIBLE_DEVICES": "0"}) == [""]


def test_a_launch_on_a_machine_without_gpus_orders_nothing(tmp_path, monkeypatch):
    pretend_gpus(tmp_path, monkeypatch, [])
    backend = Local(tmp_path / "home", WallClock(datetime.now(UTC)), isolated=False)
    with pytest.raises(NoAccess, match="this machine has no GPU"):
        list(backend.run(python_job(TELLS), _launch(GPU, 1)))
    assert not (tmp_path / "home").exists()


def _nodes(folder: Path, more: str, nodes: str = "1..8") -> Path:
    path = folder / "nodes.yaml"
    path.write_text(f"nodes: {nodes}\ntypes: {{x: {{cpus: 1, memory: 2GB, link: 1Gbit, usd_per_hour: $3, {more}}}}}\n")
    return path


def _job() -> Job:
    return Job("gpus", 1_000.0, task={"run": "true"})


def _cloud(nodes: Path) -> Cloud:
    return cloud(f"local:{nodes}", _job())


def _launch(offer: Offer, nodes: int) -> Launch:
    return Launch(f"gpus{uuid4().hex[:8]}-1", Configuration(offer, nodes), Purpose.PROBE, 1_000.0, 60.0, 0)


def _seen(folder: Path, offer: Offer, nodes: int, isolated: bool, **task: object) -> list[str]:
    """The value of CUDA_VISIBLE_DEVICES on each node."""
    backend, job = Local(folder / "home", WallClock(datetime.now(UTC)), isolated=isolated), python_job(TELLS)
    launch = _launch(offer, nodes)
    list(backend.run(replace(job, task={**job.task, **task}), launch))
    kept = backend.launches.folder(launch.label)
    logs = [(kept / f"{node}.log").read_text() for node in range(nodes)]
    return [log.partition("sees '")[2].partition("'")[0] for log in logs]
