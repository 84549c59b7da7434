"""One person's runs, in processes of their own: they end as `mlcd train` would, and can be stopped, killed, resumed."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from in_the_middle import begun
from parent_of_a_run import hold_a_run
from threadpoolctl import threadpool_limits

from mlcd.core.errors import WrongState
from mlcd.core.home import open_ledger
from mlcd.core.job import Job
from mlcd.core.ledger import Ledger, Resumed, Settled, Status, Stopped
from mlcd.core.measurement import Outcome
from mlcd.core.runs.run import start
from mlcd.service.workers.local_executor import LocalExecutor
from mlcd.service.workers.process import LOWER_PRIORITY, only_computes
from mlcd.service.workers.submissions import to_json

pytestmark = pytest.mark.live


@pytest.fixture
def ledger(home: Path) -> Iterator[Ledger]:
    opened = open_ledger(home)
    yield opened
    opened.close()


@pytest.fixture
def here(ledger: Ledger) -> Iterator[LocalExecutor]:
    executor = LocalExecutor(ledger, at_once=1)
    yield executor
    executor.close()


def asked(ledger: Ledger, job: Job, launch: bool = True) -> str:
    return ledger.submit(job.name, to_json(job, launch))


def probes(ledger: Ledger, run: str) -> list[object]:
    """What was measured whole."""
    return [each.configuration for each in ledger.account(run).history.measurements if each.outcome is Outcome.OK]


def settled_once(ledger: Ledger, run: str) -> bool:
    """Whether every launch is in the books once."""
    labels = [entry.launch.label for entry in entries(ledger, run) if isinstance(entry, Settled)]
    return len(set(labels)) == len(labels) > 0


def entries(ledger: Ledger, run: str) -> list[object]:
    return [line.entry for line in ledger.lines(run)]


def test_a_run_that_was_submitted_ends_as_a_direct_one_entry_by_entry(ledger, here, simulated, until, tmp_path):
    direct = Ledger(tmp_path / "direct.db")
    with threadpool_limits(1):
        run = start(simulated, direct)
        run.search()
        run.launch()
    sent = asked(ledger, simulated)
    here.send(sent)
    until(lambda: here.alive() == 0)
    assert ledger.account(sent).status is Status.FINISHED
    assert entries(ledger, sent) == entries(direct, run.name)
    direct.close()


def test_a_run_is_launched_only_if_that_was_asked(ledger, here, recorded, until):
    run = asked(ledger, recorded, launch=False)
    here.send(run)
    until(lambda: here.alive() == 0)
    assert ledger.account(run).status is Status.DECIDED
    here.send(run, launch=True)
    until(lambda: here.alive() == 0)
    assert ledger.account(run).status is Status.FINISHED


def test_what_is_beyond_the_room_waits_and_what_is_stopped_while_it_waits_never_begins(
    ledger, here, simulated, gate, until
):
    first, second = begun(ledger, simulated), asked(ledger, simulated)
    gate.shut()
    here.send(first)
    here.send(second)
    until(gate.is_reached)
    assert here.alive() == 1
    with pytest.raises(WrongState, match="waiting"):
        here.send(second)
    here.stop(second)
    gate.open()
    until(lambda: here.alive() == 0)
    refused = ledger.submission(second)
    assert refused is not None
    assert refused.refused == "stopped before it began"
    assert ledger.account(first).status is Status.DECIDED


def test_a_job_that_cannot_start_is_refused_with_its_reason(ledger, here, recorded, until):
    run = asked(ledger, replace(recorded, on="recorded:/nowhere"))
    here.send(run)
    until(lambda: here.alive() == 0)
    refused = ledger.submission(run)
    assert refused is not None
    assert "/nowhere" in (refused.refused or "")
    assert "\n" not in (refused.refused or "")


def test_what_cannot_go_on_says_why_in_the_ledger(ledger, here, recorded, recording, until):
    run = begun(ledger, recorded)
    recording.rename(recording.with_name("moved"))
    here.send(run)
    until(lambda: here.alive() == 0)
    last = entries(ledger, run)[-1]
    assert isinstance(last, Stopped)
    assert str(recording) in last.because


def test_what_cannot_be_torn_down_says_so_in_the_ledger(ledger, here, recorded, recording, until):
    run = start(recorded, ledger).name
    recording.rename(recording.with_name("moved"))
    here.down(run)
    until(lambda: here.alive() == 0)
    last = entries(ledger, run)[-1]
    assert isinstance(last, Stopped)
    assert last.because.startswith("not torn down: ")


@pytest.mark.parametrize("how", ["stop", "down"])
def test_a_run_that_is_stopped_or_taken_down_is_stopped_and_resumes(how, ledger, here, simulated, gate, until):
    run = begun(ledger, simulated)
    before = probes(ledger, run)
    gate.shut()
    here.send(run)
    until(gate.is_reached)
    if how == "down":
        gate.vanish()  # to end now needs no gate to open; its teardown reads prices again, and must not wait for them
    getattr(here, how)(run)
    if how == "stop":
        gate.open()
    until(lambda: here.alive() == 0)
    assert ledger.account(run).status is Status.STOPPED
    assert probes(ledger, run) == before
    assert ledger.requested_action(run) is None
    here.send(run)
    until(lambda: here.alive() == 0)
    assert ledger.account(run).status is Status.DECIDED
    assert any(isinstance(entry, Resumed) for entry in entries(ledger, run))
    assert settled_once(ledger, run)


def test_a_killed_process_is_replaced_once_and_then_the_run_waits_for_its_user(ledger, here, simulated, gate, until):
    run = begun(ledger, simulated)
    gate.shut()
    here.send(run)
    until(gate.is_reached)
    first = ledger.driver(run)
    os.kill(first, signal.SIGKILL)
    until(lambda: ledger.driver(run) not in (None, 0, first))
    os.kill(ledger.driver(run), signal.SIGKILL)
    until(lambda: here.alive() == 0)
    assert not ledger.is_driven(run)
    gate.open()
    here.send(run)
    until(lambda: here.alive() == 0)
    assert ledger.account(run).status is Status.DECIDED
    assert settled_once(ledger, run)


def test_closing_tears_down_what_is_under_way_and_refuses_what_waits(ledger, simulated, gate, until):
    executor = LocalExecutor(ledger, at_once=1)
    run, waiting = begun(ledger, simulated), asked(ledger, simulated)
    gate.shut()
    executor.send(run)
    executor.send(waiting)
    until(gate.is_reached)
    gate.vanish()
    executor.close()
    assert not ledger.is_driven(run)
    assert ledger.account(run).status is Status.STOPPED
    refused = ledger.submission(waiting)
    assert refused is not None
    assert "mlcd ui ended" in (refused.refused or "")


@pytest.mark.skipif(not hasattr(os, "SCHED_IDLE"), reason="only Linux has a class for whoever can wait")
def test_a_run_that_only_computes_lets_everybody_else_go_first(ledger, here, simulated, gate, until, monkeypatch):
    monkeypatch.delenv(LOWER_PRIORITY)
    run = asked(ledger, simulated)
    gate.shut()
    here.send(run)
    until(gate.is_reached)
    assert os.sched_getscheduler(ledger.driver(run)) == os.SCHED_IDLE
    with suppress(PermissionError):  # a busy machine may never get to it
        os.sched_setscheduler(ledger.driver(run), os.SCHED_OTHER, os.sched_param(0))
    gate.open()
    until(lambda: here.alive() == 0)
    assert ledger.account(run).status is Status.FINISHED


@pytest.mark.parametrize("on", ["local", "skypilot:aws", "ray", "functions"])
def test_a_run_on_real_machines_is_driven_and_measured_like_anything_else(ledger, simulated, on):
    assert not only_computes(asked(ledger, replace(simulated, on=on)), ledger)


@pytest.mark.parametrize("on", ["simulated", "simulated:aws", "recorded:tiny", "functions:simulated"])
def test_a_run_of_which_all_is_simulated_has_the_caps_of_one_that_only_computes(ledger, simulated, on):
    assert only_computes(asked(ledger, replace(simulated, on=on)), ledger)


WARMS_UP = """
import multiprocessing.forkserver
from mlcd.service.workers.process import warm_up
warm_up()
print(open(f"/proc/{multiprocessing.forkserver._forkserver._forkserver_pid}/status").read())
"""

IMPORTED_LATE = """
import importlib, pickle, sys
from pathlib import Path
from mlcd.service.workers.process import PRELOADED
for name in PRELOADED:
    importlib.import_module(name)
before = set(sys.modules)
from mlcd.core.home import open_ledger
from mlcd.core.runs.run import start
run = start(pickle.loads(Path(sys.argv[1]).read_bytes()), open_ledger())
run.search()
run.launch()
print(*sorted(name for name in set(sys.modules) - before if name.startswith(("mlcd.", "scipy."))))
"""


def test_what_a_simulated_run_needs_is_imported_once_for_all_of_them(home: Path, simulated: Job, tmp_path: Path):
    job = tmp_path / "job"
    job.write_bytes(pickle.dumps(simulated))
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED_LATE, str(job)], capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout.split() == []


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells which signals a process ignores")
def test_ctrl_c_in_the_first_second_does_not_tear_the_fork_server_out_of_its_imports(home):
    told = subprocess.run([sys.executable, "-c", WARMS_UP], capture_output=True, text=True, check=True, timeout=300)
    (ignored,) = re.findall(r"SigIgn:\s+(\w+)", told.stdout)
    assert int(ignored, 16) & 1 << signal.SIGINT - 1


def test_a_child_dies_with_its_parent_however_that_dies(ledger, home, simulated, gate, until):
    run = begun(ledger, simulated)
    gate.shut()
    parent = multiprocessing.get_context("spawn").Process(target=hold_a_run, args=(home, run))
    parent.start()
    until(gate.is_reached)
    gate.vanish()
    parent.kill()
    parent.join(300)
    until(lambda: not ledger.is_driven(run))
    assert ledger.account(run).status is Status.STOPPED
