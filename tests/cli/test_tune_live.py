"""mlcd tune and mlcd train on real functions of this machine, meeting at each of the four storages."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from mlcd.planners.functions.storages.local import available
from mlcd.planners.functions.workload import STORAGES

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(find_spec("lithops") is None, reason="no Lithops: pip install 'mlcd[lithops]'"),
]
Mlcd = Callable[..., Any]

JOB = """
name: lr
mlcd:
  on: functions
  work: {dataset: 20k, epochs: 30}
  functions:
    model: lr
    data: higgs
    batch: 500
    learning_rate: 0.2
    target: loss <= 0.665
    functions: 1..2
    memory: 884
    tuning: {trials: 4, epochs_per_stage: 1, space: {learning_rate: [0.001, 1.0]}}
"""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    path = tmp_path / "job.yaml"
    path.write_text(JOB)
    return path


@pytest.mark.night  # at each change: test_storage_contract.py, and the training below
@pytest.mark.parametrize("storage", STORAGES)
def test_a_search_and_a_training_run_for_real_at_each_storage(mlcd: Mlcd, job: Path, storage: str) -> None:
    if (why := available(storage)) is not None:
        pytest.skip(why)
    tuned = mlcd("tune", job, "--storage", storage, "--budget", "1", "-y", "-o", "json").document
    assert tuned["status"] == "finished"
    assert tuned["provenance"] == "live"
    assert [stage["trials"] for stage in tuned["stages"]] == [4, 2]
    assert tuned["stages"][0]["storage"] == storage
    assert tuned["best"]["loss"] < 0.69
    trained = mlcd("train", job, "--storage", storage, "--deadline", "5m", "-y", "-o", "json").document
    assert trained["status"] == "finished"
    assert not any(probe.get("calibrated") for probe in trained["probes"]), "what the search calibrated was stored"
    assert trained["epochs"][-1]["loss"] <= 0.665
    for run in (tuned, trained):
        entries = mlcd("ledger", run["run"], "-o", "json").document["entries"]
        settled = [entry["measurement"]["usd"] for entry in entries if entry["kind"] == "settled"]
        assert run["spent_usd"] == pytest.approx(sum(settled))


@pytest.mark.night  # at each change: clouds/test_functions_live.py, promises/test_functions_promises.py
def test_a_training_that_is_killed_goes_on_from_its_last_epoch_and_leaves_nothing_behind(
    mlcd: Mlcd, mlcd_process: Mlcd, job: Path, home: Path
) -> None:
    command = [sys.executable, "-m", "mlcd", "train", str(job), "--storage", "vm-ps", "--target-loss", "0.66", "-y"]
    with subprocess.Popen(
        command, env={**os.environ, "MLCD_HOME": str(home)}, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "epoch 1: loss" in line:
                break
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    before = mlcd("show", "last", "-o", "json").document
    resumed = mlcd_process("resume", "last", "-y", "-o", "json").document
    assert resumed["status"] == "finished", resumed["ended"]
    assert resumed["epochs"][: len(before["epochs"])] == before["epochs"], "no epoch is done or paid for twice"
    # An epoch that had begun when it was killed is paid for, and has no number.
    numbers = [epoch["epoch"] for epoch in resumed["epochs"] if epoch["epoch"] is not None]
    assert numbers == list(range(1, len(numbers) + 1))
    assert not _left(home)


def _left(home: Path, within_s: float = 300.0) -> list[str]:
    """Processes that still work for this home."""
    until = time.monotonic() + within_s
    while True:
        found = [
            path.name
            for path in Path("/proc").iterdir()
            if path.name.isdigit() and int(path.name) != os.getpid() and str(home) in _command(path)
        ]
        if not found or time.monotonic() > until:
            return found
        time.sleep(0.1)


def _command(process: Path) -> str:
    try:
        return (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:  # it has ended meanwhile
        return ""
