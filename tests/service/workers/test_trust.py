"""A worker runs no job of a member as its own user, unless its operator says so."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mlcd.clouds.local.job_user import TRUST
from mlcd.clouds.local.workspace import Workspace, workspace_of
from mlcd.core.backend import Launch, Purpose
from mlcd.core.configuration import Configuration, Offer
from mlcd.core.errors import UserError
from mlcd.core.job import SUBMITTED, Job
from mlcd.service.workers.trust import check_trusted

MEMBERS = Job("members", 1.0, folder=SUBMITTED)


@pytest.mark.parametrize("on", ["ray", "functions", "functions:aws_lambda"])
def test_a_members_job_is_refused_where_it_would_run_as_the_worker(on: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(TRUST, raising=False)
    with pytest.raises(UserError, match="--trust-runners"):
        check_trusted(replace(MEMBERS, on=on))
    check_trusted(replace(MEMBERS, on=on, folder="/home/ada"))  # one's own job, of `mlcd ui`
    monkeypatch.setenv(TRUST, "1")
    check_trusted(replace(MEMBERS, on=on))


@pytest.mark.parametrize("on", ["simulated", "recorded:tiny", "functions:simulated", "skypilot:aws"])
def test_what_runs_nothing_here_needs_no_trust(on: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(TRUST, raising=False)
    check_trusted(replace(MEMBERS, on=on))


def test_a_process_that_keeps_its_memory_private_is_no_ones_to_read():
    program = "from mlcd.service.workers.trust import keep_memory_private as keep; keep(); print(flush=True); input()"
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        owner = Path(f"/proc/{process.pid}/environ").stat()
        process.communicate("\n")
    assert (owner.st_uid, owner.st_mode & 0o777) == (0, 0o400)


def test_a_members_run_that_is_gone_on_with_by_hand_is_refused_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("mlcd.clouds.local.workspace.why_no_job_user", lambda: "it is not root")
    monkeypatch.delenv(TRUST, raising=False)
    launch = Launch("members-1-1", Configuration(Offer("small", 1.0, 1.0, 1.0), 1), Purpose.PROBE, 1.0, 1.0, 1)
    with pytest.raises(UserError, match="as your own user"):
        workspace_of(MEMBERS, launch, tmp_path, tmp_path)
    monkeypatch.setenv(TRUST, "1")
    assert workspace_of(MEMBERS, launch, tmp_path, tmp_path) == Workspace(tmp_path / "work")
