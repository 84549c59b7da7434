"""Storages that a run starts for itself: each run has its own, and they leave nothing."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from mlcd.planners.functions.storages import connect
from mlcd.planners.functions.storages.local import Endpoints, available


@pytest.mark.parametrize("name", ["s3", "vm-ps"])
def test_two_runs_at_once_have_their_own_storages_and_leave_nothing(tmp_path: Path, name: str) -> None:
    if (why := available(name)) is not None:
        pytest.skip(why)
    with ExitStack() as stack:
        runs = [Endpoints((name,), {}, tmp_path) for _ in range(2)]
        for run in runs:
            stack.callback(run.close)
        here, there = (stack.enter_context(closing(connect(name, run[name]))) for run in runs)
        here.put("model", b"mine")
        there.put("model", b"yours")
        assert (here.get("model"), there.get("model")) == (b"mine", b"yours")
    assert list(tmp_path.iterdir()) == []


def test_the_next_run_deletes_the_folders_of_a_killed_one(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as killed:
        killed.wait(timeout=300)
    left, others = tmp_path / f"vm-ps.{killed.pid}.x", tmp_path / "not.ours.at-all"
    left.mkdir()
    others.mkdir()
    with closing(Endpoints(("vm-ps",), {}, tmp_path)) as endpoints:
        assert endpoints["vm-ps"].startswith("tcp://")
        assert not left.exists()
    assert list(tmp_path.iterdir()) == [others]


def test_a_storage_that_the_job_names_is_not_started(tmp_path: Path) -> None:
    endpoints = Endpoints(("vm-ps", "elasticache"), {"elasticache": "redis://elsewhere:6379/0"}, tmp_path)
    assert endpoints["elasticache"] == "redis://elsewhere:6379/0"
    assert set(endpoints) == {"vm-ps", "elasticache"}
    with pytest.raises(KeyError):
        endpoints["s3"]
    assert list(tmp_path.iterdir()) == []
