"""A run that is unknown, or not in the state that a command needs: one line, exit code 2, nothing changed."""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mlcd.core.home import open_ledger
from mlcd.core.ledger import Stopped
from mlcd.core.runs.run import start
from mlcd.planners.jobfile.read import load_job

Mlcd = Callable[..., Any]
WriteJob = Callable[..., Path]

TAKE_A_RUN = [
    ["show"], ["ledger"], ["report"], ["resume"], ["launch"], ["what-if"], ["export", "--to", "skypilot"],
]  # fmt: skip
EXPORTS = "'skypilot', 'kserve', 'triton', 'mlserver', 'compose', 'vllm', 'sglang', 'skyserve', 'dynamo', 'lambda'"


def entries(mlcd: Mlcd) -> list[Any]:
    found: list[Any] = mlcd("ledger", "last", "-o", "json").document["entries"]
    return found


@pytest.mark.parametrize("command", TAKE_A_RUN, ids=lambda command: command[0])
def test_an_unknown_run_is_told_with_the_nearest(mlcd: Mlcd, recorded_job: WriteJob, command: list[str]) -> None:
    assert "unknown run 'last': there is none yet" in mlcd(*command, "last").complaint
    mlcd("train", recorded_job(), "--decide-only")
    before = entries(mlcd)
    assert "unknown run 'demo-7': did you mean 'demo-1'?" in mlcd(*command, "demo-7").complaint
    assert entries(mlcd) == before


def test_a_finished_run_is_neither_resumed_nor_launched(mlcd: Mlcd, recorded_job: WriteJob) -> None:
    assert mlcd("train", recorded_job(), "-y").code == 0
    before = entries(mlcd)
    told = mlcd("resume", "demo-1").complaint
    assert told == "mlcd: run 'demo-1' is finished; there is nothing to resume. See: mlcd show demo-1"
    assert "run 'demo-1' has ended: the job ran to its end" in mlcd("launch", "last").complaint
    assert entries(mlcd) == before


def test_an_infeasible_run_is_neither_resumed_launched_nor_exported(mlcd: Mlcd, recorded_job: WriteJob) -> None:
    assert mlcd("train", recorded_job("budget: $1")).code == 3
    before = entries(mlcd)
    refused = mlcd("resume", "last").complaint
    assert "'demo-1' cannot be certified within its limits; raise them: mlcd resume demo-1 --budget" in refused
    assert "cannot be certified, so there is nothing to launch" in mlcd("launch", "last").complaint
    assert "run 'demo-1' has chosen no configuration" in mlcd("export", "last", "--to", "skypilot").complaint
    assert entries(mlcd) == before


def test_an_undecided_run_is_not_launched(mlcd: Mlcd, recorded_job: WriteJob) -> None:
    ledger = open_ledger()
    start(load_job(recorded_job()), ledger)
    ledger.close()
    before = entries(mlcd)
    told = mlcd("launch", "last").complaint
    assert told == "mlcd: run 'demo-1' has no decision yet; go on with: mlcd resume demo-1"
    assert "has chosen no configuration" in mlcd("export", "last", "--to", "skypilot").complaint
    assert entries(mlcd) == before
    assert mlcd("resume", "last", "-o", "json").document["status"] == "finished"


@pytest.mark.parametrize("command", ["resume", "launch"])
def test_a_run_that_another_process_drives_is_left_alone(
    mlcd: Mlcd, recorded_job: WriteJob, home: Path, command: str
) -> None:
    ledger = open_ledger()
    run = start(load_job(recorded_job()), ledger)
    run.book.write(Stopped("interrupted by the user"))  # the case in which resuming writes something at once
    ledger.close()
    before = entries(mlcd)
    (home / "locks").mkdir()
    with (home / "locks" / "demo-1.lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        told = mlcd(command, "last").complaint
    assert told == "mlcd: run 'demo-1' is being driven by another process; wait for it, or: mlcd stop demo-1"
    assert entries(mlcd) == before
    assert mlcd("resume", "last", "-o", "json").document["status"] == "finished"


def test_a_recording_that_went_away_is_told_and_the_run_goes_on_when_it_is_back(
    mlcd: Mlcd, recorded_job: WriteJob, recording: Path
) -> None:
    mlcd("train", recorded_job(), "--decide-only")
    away = recording.rename(recording.with_name("away"))
    assert "recording.yaml: no such file" in mlcd("launch", "last").complaint
    away.rename(recording)
    assert mlcd("launch", "last").code == 0


@pytest.mark.parametrize(
    "command, told",
    [
        (["report", "last", "--to", "nope/x.html"], "nope/x.html: cannot be written: No such file or directory"),
        (["report", "last", "--to", "/dev/full"], "/dev/full: cannot be written: No space left on device"),
        (["report", "last", "--to", "."], "File '.' is a directory"),
        (["export", "last", "--to", "nomad"], f"'nomad' is not one of {EXPORTS}; see mlcd export --help"),
        (["export", "last"], "Missing option '--to'"),
        (["export", "last", "--to", "skypilot", "--file", "nope/x"], "nope/x: cannot be written"),
        (["what-if", "last", "--budget", "0"], "must be more than zero"),
        (["what-if", "last", "--deadline", "soon"], "'soon': expected a duration, such as 6h"),
    ],
)
def test_what_cannot_be_written_or_meant_is_one_line(
    mlcd: Mlcd, recorded_job: WriteJob, command: list[str], told: str
) -> None:
    mlcd("train", recorded_job(), "--decide-only")
    before = entries(mlcd)
    assert told in mlcd(*command).complaint
    assert entries(mlcd) == before


def test_runs_that_nobody_drives_any_more_are_listed_as_interrupted(mlcd: Mlcd, recorded_job: WriteJob, home: Path):
    assert mlcd("train", recorded_job(), "--decide-only", "-y").code == 0
    with closing(open_ledger(home)) as ledger:
        gone = start(ledger.account("last").job, ledger).name  # and its process ended
    listed = {
        status: [each["run"] for each in mlcd("runs", "--status", status, "-o", "json").document["runs"]]
        for status in ("interrupted", "decided", "finished")
    }
    assert listed == {"interrupted": [gone], "decided": ["demo-1"], "finished": []}
    assert "demo-1" not in mlcd("runs", "--status", "interrupted").out
