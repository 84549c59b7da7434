"""An elastic job on real nodes: switched at a step's end, killed at any moment, it is the same training."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import pytest
from mlcd_fixtures import scale_job
from mlcd_fixtures.live_jobs import last_account

from mlcd.clouds.local import teardown
from mlcd.core.configuration import Configuration, Space
from mlcd.core.drive import launch
from mlcd.core.history import History
from mlcd.core.home import open_ledger
from mlcd.core.job import Job
from mlcd.core.ledger import Ledger, Reserved, Started
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.planner import planner_of
from mlcd.core.strategy import Apply, Finish, Step
from mlcd.planners.jobfile.read import load_job
from mlcd.planners.scale.nouns import Batch, ScalingTask, scaling_task

pytestmark = pytest.mark.live

NODES = """
probe: 8s
probe_extra: 1s
startup: 20s
nodes: 1..4
types:
  a: {cpus: 0.4, memory: 2GB, link: 100Mbit, usd_per_hour: $1}
"""
JOB = """
name: NAME
run: python3 scale_job.py TOTAL
mlcd:
  work: {dataset: 96, epochs: EPOCHS}
  checkpoints: true
  batch: 12
  elastic: {workers: 1..4, batch: 'BATCHES'TARGET}
  on: local:nodes.yaml
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MLCD_HOME", str(tmp_path / "home"))
    (tmp_path / "nodes.yaml").write_text(NODES)
    shutil.copy(scale_job.__file__, tmp_path / "scale_job.py")
    return tmp_path


def job_in(folder: Path, epochs: int, batches: str, target: str = "") -> Path:
    name = f"elastic{os.getpid()}{folder.name}".replace("_", "")
    told = {"NAME": name, "TOTAL": str(96 * epochs), "EPOCHS": str(epochs), "BATCHES": batches, "TARGET": target}
    text = JOB
    for key, value in told.items():
        text = text.replace(key, value)
    (folder / "job.yaml").write_text(text)
    return folder / "job.yaml"


def batches_of(folder: Path) -> list[int]:
    """Of every step of what must have been one training."""
    (state,) = (folder / "home" / "checkpoints").glob("*/state.json")
    return scale_job.check_one_training(state)


def left_behind(folder: Path) -> set[str]:
    return teardown.marks() & {teardown.mark_of(path) for path in (folder / "home" / "launches").glob("*")}


@dataclass(frozen=True)
class Switching:
    """So many nodes until so many samples are done, then so many others."""

    plan: tuple[tuple[int, float], ...]
    batch: int

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        if history.runs and history.runs[-1].outcome is Outcome.OK:
            return Finish("the job ran to its end", history.runs[-1].configuration)
        nodes, until = self.plan[len(history.runs)]
        before = history.saved_samples

        def watch(so_far: Measurement) -> Outcome | None:
            return Outcome.SWITCHED if before + so_far.samples_done >= until else None

        return Apply(
            Configuration(space.offers[0], nodes, Batch(self.batch)), f"{nodes} nodes", job.work_samples, watch
        )


def test_switching_2_4_3_workers_in_the_middle_of_a_run_is_the_same_training(folder: Path) -> None:
    job = load_job(job_in(folder, epochs=40, batches="12"))
    assert scaling_task(job) == ScalingTask((1, 4), (12,))
    place = planner_of(job).place(job)
    ledger = Ledger(folder / "home" / "ledger.db")
    book = ledger.begin(job.name, place.clock, Started(job, place.space, job.on, place.provenance, "test"))
    plan = ((2, 1_200.0), (4, 2_400.0), (3, 1e9))
    last = launch(Switching(plan, batch=12), job, place.space, place.profiler, book)
    assert last is not None
    runs, ended = book.account.history.runs, book.account.ended
    ledger.close()
    assert [m.configuration.nodes for m in runs] == [2, 4, 3]
    assert [m.outcome for m in runs] == [Outcome.SWITCHED, Outcome.SWITCHED, Outcome.OK]
    assert ended is not None
    assert ended.finished
    assert sum(batches_of(folder)) == job.work_samples == runs[-1].saved_samples
    # what was done until each switch was saved, to the last step: nothing is done again
    assert all(m.samples_done == m.saved_samples - before for m, before in zip(runs, starts(runs), strict=True))
    assert not left_behind(folder)


def starts(runs: tuple[Measurement, ...]) -> list[float]:
    return [0.0, *(m.saved_samples for m in runs[:-1])]


@pytest.mark.night  # at each change: promises/test_crashes.py
def test_killed_again_and_again_it_is_still_one_training_and_ends(folder: Path) -> None:
    job_in(folder, epochs=250, batches="12..48", target=", target: loss <= 0.0001")
    chance = random.Random(folder.name)
    first = [sys.executable, "-m", "mlcd", "scale", "job.yaml", "-y", "--goal", "fastest", "--workers", "1..2"]
    go_on = [sys.executable, "-m", "mlcd", "resume", "last", "-y"]
    killed = 0
    while True:
        command = first if killed == 0 else go_on
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if killed < 2 and _reaches(process, folder, entries=4 + 3 * killed, more_s=chance.uniform(0.2, 3.0)):
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()
            killed += 1
            continue
        out, _ = process.communicate(timeout=300)
        break
    assert process.returncode == 1, out  # to its last epoch: so small a loss is never reached
    found = last_account(folder / "home")
    assert killed == 2
    assert found.ended is not None
    assert "was not reached in 250 epochs" in found.ended.because
    assert not found.open
    assert len(set(batches_of(folder))) > 1  # it was really trained with several batches
    assert found.history.spent_usd == pytest.approx(
        sum(m.usd for m in (*found.history.measurements, *found.history.runs))
    )
    assert not left_behind(folder)


def _reaches(process: subprocess.Popen[str], folder: Path, entries: int, more_s: float) -> bool:
    """Wait until a launch is the last of so many entries, and some time more; False if the run ended before."""
    since_s: float | None = None
    while process.poll() is None:
        with suppress(Exception):
            ledger = open_ledger(folder / "home")
            lines = ledger.lines(ledger.find("last"))
            ledger.close()
            if since_s is None and len(lines) >= entries and isinstance(lines[-1].entry, Reserved):
                since_s = monotonic()
        if since_s is not None and monotonic() - since_s > more_s:
            return True
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.02)  # whoever spins takes a core from what is waited for
    return False
