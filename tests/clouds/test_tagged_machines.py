"""Machines are found and terminated by MLCD's tag, without SkyPilot."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from mlcd_fixtures.skypilot import FakeSkyPilot, Scenario

from mlcd.clouds.skypilot.sweep import sweep
from mlcd.clouds.skypilot.tagged_machines import TaggedMachines
from mlcd.clouds.skypilot.task import cluster_name, owner_of
from mlcd.core.clock import WallClock
from mlcd.core.errors import BackendError

LABEL = "digits-1-1"


def task(cluster: str, region: str = "us-east-1", nodes: int = 1) -> dict:
    resources = {"infra": f"aws/{region}", "labels": {"team": "vision", "mlcd": cluster}}
    return {"resources": resources, "num_nodes": nodes, "envs": {"MLCD_SAMPLES": "1e6"}}


@pytest.fixture
def sky():
    return FakeSkyPilot(WallClock(datetime.now(UTC)), lambda task: 1.0)


@pytest.fixture
def aws(sky):
    return TaggedMachines(sky.ec2)


def order(home, label: str = LABEL, driver: object = None) -> str:
    """Record a launch in this state folder; return its cluster's name."""
    cluster = cluster_name(owner_of(home), label)
    folder = home / "launches" / label
    folder.mkdir(parents=True)
    (folder / "order.json").write_text(json.dumps({"label": label, "cluster": cluster, "driver": driver}))
    return cluster


def test_every_node_in_every_region_is_found_by_the_name_of_its_cluster(sky, aws):
    sky.launch("one", task("mlcd-ab12-one", nodes=2))
    sky.launch("two", task("mlcd-ab12-two", "us-west-2"))
    sky.launch("not ours", task("somebody-else"))
    machines = aws.find()
    assert [(m.cluster, m.region) for m in machines] == [
        *[("mlcd-ab12-one", "us-east-1")] * 2,
        ("mlcd-ab12-two", "us-west-2"),
    ]
    assert [m.cluster for m in aws.find("mlcd-ab12-two")] == ["mlcd-ab12-two"]
    assert aws.find("mlcd-ab12-two", ["us-east-1"]) == []


def test_machines_that_never_came_are_not_found(sky, aws):
    sky.scenarios = [Scenario(no_capacity=True)]
    sky.launch("one", task("mlcd-ab12-one"))
    assert aws.find() == []


def test_a_machine_that_nobody_drives_is_terminated(sky, aws, tmp_path):
    cluster = order(tmp_path)
    sky.launch(cluster, task(cluster, nodes=2))
    assert [each.outcome for each in sweep(tmp_path, set(), aws)] == ["terminated", "terminated"]
    assert all(machine.is_gone for machine in aws.find())
    assert list(sweep(tmp_path, set(), aws)) == []


def test_a_machine_whose_launch_is_not_in_the_folder_is_terminated_too(sky, aws, tmp_path):
    cluster = cluster_name(owner_of(tmp_path), LABEL)
    sky.launch(cluster, task(cluster))
    assert [each.outcome for each in sweep(tmp_path, set(), aws)] == ["terminated"]


def test_a_run_in_progress_is_left_alone(sky, aws, tmp_path):
    cluster = order(tmp_path)
    sky.launch(cluster, task(cluster))
    assert [each.outcome for each in sweep(tmp_path, {"digits-1"}, aws)] == ["left alone: its run is in progress"]
    assert not any(machine.is_gone for machine in aws.find())


def test_a_machine_of_another_state_folder_is_left_alone_and_reported(sky, aws, tmp_path):
    sky.launch("other", task("mlcd-ffff-other-1-1"))
    [swept] = sweep(tmp_path, set(), aws)
    assert str(swept.machine) == "i-other-0 in us-east-1 (mlcd-ffff-other-1-1)"
    assert swept.outcome.startswith("left alone: it belongs to another state folder")
    assert "aws ec2 terminate-instances --region us-east-1 --instance-ids i-other-0" in swept.outcome
    assert not any(machine.is_gone for machine in aws.find())


def test_without_credentials_one_line_says_so(tmp_path):
    def connect(region):
        raise RuntimeError("Unable to locate credentials\nmore")

    with pytest.raises(BackendError, match=r"^asking AWS for machines: RuntimeError: Unable to locate credentials$"):
        list(sweep(tmp_path, set(), TaggedMachines(connect)))
