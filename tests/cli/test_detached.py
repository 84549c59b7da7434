"""Drivers that outlive their shell: one real job whose drivers are killed, told to end and hung up, past its limit."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from mlcd_fixtures.live_jobs import last_account

from mlcd.clouds.local import teardown
from mlcd.core.backend import Launch, Purpose
from mlcd.core.home import open_ledger
from mlcd.core.ledger import Account, Ended, Ledger, Line, Reserved, Settled, Stopped
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.runs.run import resume

pytestmark = pytest.mark.live

Mlcd = Callable[..., Any]
WriteJob = Callable[..., Path]

NODE = """
probe: 4s
probe_extra: 1s
startup: 12s
nodes: 1..1
types: {a: {cpus: 0.5, memory: 2GB, link: 100Mbit, usd_per_hour: $3600}}
"""
"""A dollar a second."""
TOTAL, SLOW_FROM, EVERY = 2_400, 1_400, 50
PROGRAM = f"""
import os, time
import mlcd_tracker
kept = os.path.join(mlcd_tracker.checkpoint_dir(), "done")
done = int(open(kept).read()) if os.path.exists(kept) else 0
open("begun", "a").write(f"{{done}}\\n")
while done < {TOTAL}:
    slow = done >= {SLOW_FROM} and not os.path.exists("room")
    time.sleep(0.5 if slow else 0.02)
    done += 10
    mlcd_tracker.step(10)
    if done % {EVERY} == 0:
        with open(kept + ".new", "w") as file:
            file.write(str(done))
        os.replace(kept + ".new", kept)
        mlcd_tracker.saved()
"""
"""Saves its work every so many samples, and becomes 25 times slower than its probes promised, until there is `room`."""


def until(happened: Callable[[], object], within_s: float = 300.0) -> None:
    until_s = monotonic() + within_s
    while monotonic() < until_s:
        with suppress(Exception):
            if happened():
                return
        select.select([], [], [], 0.1)
    raise TimeoutError("it never happened")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the job in it, and a state of its own; whoever still drives the run at the end is ended."""
    monkeypatch.setenv("MLCD_HOME", str(tmp_path / "home"))
    (tmp_path / "nodes.yaml").write_text(NODE)
    (tmp_path / "train.py").write_text(PROGRAM)
    limits = "goal: cheapest, budget: $50, checkpoints: true"
    job = f"name: out{os.getpid()}\nrun: python3 train.py\nmlcd: {{work: {TOTAL}, on: 'local:nodes.yaml', {limits}}}\n"
    (tmp_path / "job.yaml").write_text(job)
    yield tmp_path
    with suppress(Exception):
        if process := driver(tmp_path):  # 0 would be all of this process's own group
            os.kill(process, signal.SIGKILL)


def run(folder: Path, *arguments: str) -> tuple[int, str]:
    done = subprocess.run(command(*arguments), cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, done.stdout + done.stderr


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "mlcd", *arguments]


def kept(folder: Path) -> int:
    """What the job's own checkpoint holds."""
    (file,) = (folder / "home" / "checkpoints").glob("*/done")
    return int(file.read_text())


def begun(folder: Path) -> list[int]:
    """Where each launch of the job began."""
    return [int(line) for line in (folder / "begun").read_text().split()]


def under_way(folder: Path, beyond: int) -> bool:
    """Whether the job itself runs and has saved more than this."""
    account = last_account(folder / "home")
    return account.decision is not None and bool(account.open) and kept(folder) > beyond


def left_behind(folder: Path) -> set[str]:
    return teardown.marks() & {teardown.mark_of(path) for path in (folder / "home" / "launches").glob("*")}


def driver(folder: Path) -> int | None:
    ledger = open_ledger(folder / "home")
    try:
        return ledger.driver(ledger.find("last"))
    finally:
        ledger.close()


def lines_of(folder: Path) -> list[Line]:
    ledger = open_ledger(folder / "home")
    try:
        return ledger.lines("last")
    finally:
        ledger.close()


def check_books(lines: Sequence[Line]) -> None:
    """Each launch is booked once, began where the checkpoint was, and the total is their sum."""
    settled = [line.entry for line in lines if isinstance(line.entry, Settled)]
    labels = [entry.launch.label for entry in settled]
    assert len(labels) == len(set(labels))
    account = Account.replay((line.entry, line.elapsed_s) for line in lines)
    assert account.open == ()
    assert account.history.spent_usd == pytest.approx(sum(entry.measurement.usd for entry in settled))
    saved = 0.0
    for entry in settled:
        assert entry.launch.saved_samples == saved, "saved work was forgotten, or counted twice"
        saved = max(saved, entry.measurement.saved_samples)
    # A launch that is ended between a save and the report of it has saved more than the books know.
    assert TOTAL - saved in (0, EVERY)


@pytest.mark.night  # at each change: killed in the final run in test_live.py, after any entry in test_crashes.py
def test_killed_told_to_end_at_its_limit_and_hung_up_a_job_loses_no_work_and_pays_nothing_twice(folder: Path) -> None:
    code, out = run(folder, "train", "job.yaml", "-y", "--detach", "-o", "json")
    assert code == 0, out
    first = driver(folder)
    assert first is not None
    assert f'"process": {first}' in out
    until(lambda: under_way(folder, 600))

    os.kill(first, signal.SIGKILL)  # the machine's driver is killed
    until(lambda: driver(folder) is None and left_behind(folder) == set())
    saved = kept(folder)
    foreground = subprocess.Popen(command("resume", "last", "-y"), cwd=folder, stderr=subprocess.PIPE, text=True)
    until(lambda: under_way(folder, SLOW_FROM))
    assert begun(folder)[-1] == saved

    foreground.send_signal(signal.SIGTERM)  # and the next one told to end
    _, err = foreground.communicate(timeout=300)
    assert foreground.returncode == 128 + signal.SIGTERM
    assert "this process has to end; process" in err
    until(lambda: driver(folder) is not None)
    code, out = run(folder, "attach", "last")
    assert code == 1, out
    assert "Continue from the saved work: mlcd resume" in out
    account = last_account(folder / "home")
    assert account.status == "failed"
    assert account.history.spent_usd <= 50.0
    assert begun(folder)[-1] > saved
    at_the_limit = kept(folder)
    # Ended between a save and the report of it, the books know of one save less.
    assert at_the_limit - account.history.saved_samples in (0, EVERY)
    assert at_the_limit < TOTAL

    (folder / "room").touch()
    ours, its = pty.openpty()
    resume = command("resume", "last", "-y", "--budget", "900")
    raised = subprocess.Popen(resume, cwd=folder, stdin=its, stdout=its, stderr=its, start_new_session=True)
    os.close(its)
    until(lambda: len(begun(folder)) and begun(folder)[-1] == at_the_limit and last_account(folder / "home").open)
    raised.send_signal(signal.SIGHUP)  # the shell is closed
    os.close(ours)
    code, out = run(folder, "attach", "last")
    assert code == 0, out
    assert raised.wait(300) == 0
    assert "the terminal is gone" in next((folder / "home" / "detached").glob("*.log")).read_text()
    assert last_account(folder / "home").status == "finished"
    assert kept(folder) == TOTAL
    check_books(lines_of(folder))
    assert left_behind(folder) == set()


def test_a_detached_run_is_followed_to_its_end_with_its_exit_code(mlcd: Mlcd, recorded_job: WriteJob) -> None:
    search = "{method: heterbo, earlier: false}"
    started = mlcd("train", recorded_job(search=search), "--detach")
    assert started.code == 0, started.err
    assert "Follow it: mlcd attach demo-1; stop it: mlcd stop demo-1" in started.out
    followed = mlcd("attach", "demo-1")
    assert followed.code == 0
    undisturbed = mlcd("train", recorded_job(search=search), "-y")
    assert followed.out.replace("demo-1", "demo-2") == undisturbed.out
    assert mlcd("train", recorded_job("budget: $6", search=search), "--detach", "--decide-only").code == 0
    assert mlcd("attach", "last").code == 3
    resumed = mlcd("resume", "last", "--budget", "none", "--detach", "-o", "json")
    assert resumed.document["run"] == "demo-3"
    assert mlcd("attach", "last").code == 0


def test_a_run_whose_driver_is_gone_says_so_to_who_attaches(mlcd: Mlcd, home: Path, recorded_job: WriteJob) -> None:
    assert mlcd("train", recorded_job(), "--decide-only").code == 0
    ledger = open_ledger(home)
    ledger.begin("left", ledger._clock, ledger.lines("demo-1")[0].entry)
    ledger.close()
    gone = mlcd("attach", "left-1")
    assert gone.last_words == "mlcd: run 'left-1' is searching, but its process is gone: mlcd resume left-1"


def test_a_run_under_new_limits_stops_at_its_decision_if_that_was_said(
    mlcd: Mlcd, home: Path, recorded_job: WriteJob
) -> None:
    """Though it was launched before: that was agreed to under other limits."""
    assert mlcd("train", recorded_job("budget: $40"), "--decide-only").code == 0
    ledger = open_ledger(home)
    at_its_limit(ledger, "demo-1")
    resumed = mlcd("resume", "demo-1", "--budget", "60", "--detach", "--decide-only", "-o", "json")
    assert resumed.code == 0, resumed.err
    until(lambda: ledger.account("demo-1").decision is not None and not ledger.is_driven("demo-1"))
    account = ledger.account("demo-1")
    assert (account.status, len(account.history.runs)) == ("decided", 1)
    assert mlcd("launch", "demo-1").code == 0
    ledger.close()


def test_what_was_stopped_at_its_decision_can_be_launched_detached(
    mlcd: Mlcd, home: Path, recorded_job: WriteJob
) -> None:
    assert mlcd("train", recorded_job(), "--decide-only").code == 0
    ledger = open_ledger(home)
    resume("demo-1", ledger).book.write(Stopped("interrupted by the user"))
    assert mlcd("launch", "demo-1", "--detach").code == 0
    until(lambda: not ledger.is_driven("demo-1"))
    assert ledger.account("demo-1").status == "finished"
    ledger.close()


def at_its_limit(ledger: Ledger, run: str) -> None:
    """The run was launched, and has ended at its limit."""
    book = resume(run, ledger).book
    decision = book.account.decision
    assert decision is not None
    assert decision.configuration is not None
    launch = Launch(f"{run}-99", decision.configuration, Purpose.RUN, 1e6, 600.0, book.account.launches)
    result = Measurement(decision.configuration, Outcome.AT_THE_LIMIT, 600.0, 1.0)
    book.write(Reserved(launch, "the decided configuration", 1.0, 600.0))
    book.write(Settled(launch, result))
    book.write(Ended(False, "the job ended: at the limit"))
