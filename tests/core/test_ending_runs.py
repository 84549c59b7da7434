"""Ending a run while something else happens: its driver has just ended, or the run has just begun."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from mlcd_fixtures.ledgers import SPACE
from sqlalchemy import insert

from mlcd.clouds import control
from mlcd.clouds.launches import Launches
from mlcd.clouds.local import teardown
from mlcd.core.backend import Launch, Provenance, Purpose
from mlcd.core.clock import VirtualClock
from mlcd.core.database.schema import entries
from mlcd.core.decision import Decision
from mlcd.core.errors import WrongState
from mlcd.core.job import Job
from mlcd.core.ledger import Decided, Ended, Ledger, Reserved, Started, Status

pytestmark = pytest.mark.live


@pytest.fixture
def ledger(home: Path) -> Iterator[Ledger]:
    with closing(Ledger(home / "ledger.db")) as found:
        yield found


def left_open(ledger: Ledger, name: str) -> str:
    """A run on nodes of this machine whose process died in the middle of a launch."""
    book = ledger.begin(name, VirtualClock(), Started(Job(name, 1.0, on="local"), SPACE, "local", Provenance.LIVE, "0"))
    book.write(Reserved(order(f"{book.run}-1"), "a try", 1.0, 1.0))
    return book.run


def order(label: str) -> Launch:
    return Launch(label, SPACE.configurations[0], Purpose.PROBE, 1.0, None, 0)


class DrivenByTheDead(Ledger):
    """Says who drives a run a moment after that process has ended."""

    def driver(self, run: str) -> int | None:
        ended = subprocess.Popen(["true"])
        ended.wait(300)
        return ended.pid

    def is_driven(self, run: str) -> bool:
        return False


def test_a_driver_that_has_just_ended_is_none_to_stop_and_none_to_wait_for(ledger: Ledger, home: Path):
    run = left_open(ledger, "job")
    with closing(DrivenByTheDead(home / "ledger.db")) as seen:
        with pytest.raises(WrongState, match="is not driven by any process"):
            control.stop(run, seen)
        control.down(run, seen, VirtualClock())
    assert ledger.account(run).status is Status.STOPPED


@pytest.mark.parametrize("gone", [False, True])
def test_machines_that_were_already_gone_are_not_reported_as_torn_down(ledger: Ledger, home: Path, gone: bool):
    run = left_open(ledger, "job")
    folder = Launches(home / "launches").open(order(f"{run}-1"), driver=None)
    if gone:  # as its watchdog does
        teardown.record_end(folder, teardown.started_at(folder) + 7.0)
    with closing(DrivenByTheDead(home / "ledger.db")) as seen:
        control.down(run, seen, VirtualClock())
    (measured,) = ledger.account(run).history.measurements
    what = "were already gone" if gone else "were torn down afterwards"
    assert measured.detail == f"the process died; its machines {what}"
    assert not gone or measured.seconds == pytest.approx(7.0)


def test_one_damaged_run_does_not_keep_the_others_from_being_cleaned(ledger: Ledger):
    bad, good = left_open(ledger, "bad"), left_open(ledger, "good")
    with ledger.database.write() as connection:
        row = {"run": bad, "written_at": "2026-01-01T00:00:00+00:00", "elapsed_s": 1.0, "kind": "settled", "body": "{"}
        connection.execute(insert(entries).values(row))
    found = {each.what: each.outcome for each in control.clean(ledger)}
    assert found[bad].startswith("not cleaned: ")
    assert found[good] == "1 launch settled"


@dataclass
class _Begins:
    """A launch that begins while somebody cleans up."""

    home: Path
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def begin(self) -> None:
        folder = Launches(self.home / "launches").open(order("later-1-1"))
        environment = {**os.environ, "MLCD_LAUNCH": teardown.mark_of(folder)}
        self.started.append(subprocess.Popen(["sleep", "60"], env=environment))


@pytest.mark.parametrize("known", [True, False], ids=["same name", "unknown name"])
def test_runs_of_another_ledger_with_a_living_driver_are_left_alone_and_reported(
    ledger: Ledger, home: Path, known: bool
):
    """Of the same folder: one terminal has MLCD_DATABASE_URL set, the other has not."""
    label = f"{left_open(ledger, 'job')}-1" if known else "other-1-1"
    with other_driver(home, label) as (driver, job):
        found = [f"{each.what}: {each.outcome}" for each in control.clean(ledger)]
        told = f"not cleaned: process {driver.pid} still drives launch {label}, from another ledger"
        assert found == [f"{what}: {told}" for what in (("job-1", label) if known else (label,))]
        assert job.poll() is None
        driver.kill()
        driver.wait(300)
        found = [f"{each.what}: {each.outcome}" for each in control.clean(ledger)]
        assert found == ["job-1: 1 launch settled" if known else f"{label}: torn down"]
        job.wait(300)


@contextmanager
def other_driver(home: Path, label: str) -> Iterator[tuple[subprocess.Popen[bytes], subprocess.Popen[bytes]]]:
    """Another process, which has ordered a launch of this label, and what runs for it."""
    order_it = f"""
import time
from pathlib import Path
from mlcd.core.backend import Launch, Purpose
from mlcd.clouds.launches import Launches
from mlcd_fixtures.ledgers import SPACE
Launches(Path({str(home / "launches")!r})).open(Launch({label!r}, SPACE.configurations[0], Purpose.PROBE, 1.0, None, 0))
print(flush=True)
time.sleep(60)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", order_it], stdout=subprocess.PIPE, env=environment) as driver:
        assert driver.stdout is not None
        driver.stdout.readline()
        environment = {**os.environ, "MLCD_LAUNCH": teardown.mark_of(home / "launches" / label)}
        with subprocess.Popen(["sleep", "60"], env=environment) as job:
            try:
                yield driver, job
            finally:
                job.kill()
                driver.kill()


def test_a_number_that_another_process_has_by_now_is_not_the_driver(home: Path):
    kept = Launches(home / "launches")
    folder = kept.open(order("job-1-1"))
    told = kept.order(folder)
    for driver in ([os.getppid(), "1"], [os.getppid(), None], [2**22 + 1, "1"], "damaged", [1]):
        (folder / "order.json").write_text(json.dumps({**told, "driver": driver}))
        assert kept.driver("job-1-1") is None
    (folder / "order.json").write_text(json.dumps({key: told[key] for key in told if key != "driver"}))
    assert kept.driver("job-1-1") is None, "of an MLCD that did not note it"


class LookedAtTooSoon(Ledger):
    """A run begins in the moment after it was asked which are driven."""

    begins: _Begins

    def driven(self) -> set[str]:
        found = super().driven()
        self.begins.begin()
        return found


def test_a_launch_that_starts_during_a_cleanup_is_not_torn_down(home: Path):
    with closing(LookedAtTooSoon(home / "ledger.db")) as ledger:
        ledger.begins = _Begins(home)
        assert list(control.clean(ledger)) == []
        (begun,) = ledger.begins.started
        assert begun.poll() is None
        begun.kill()
        begun.wait(300)


@dataclass
class UntilKilled(VirtualClock):
    """A clock in which the time that a driver has to answer is over at once; then the driver has been killed."""

    driver: subprocess.Popen[bytes] | None = None

    def wait(self, seconds: float) -> None:
        if self.driver is not None and self.elapsed_s() > control.DIES_WITHIN_S:
            self.driver.wait(300)
        super().wait(5.0)


def test_down_kills_a_driver_that_does_not_answer_and_tears_down_what_it_left(ledger: Ledger, home: Path):
    run = left_open(ledger, "job")
    driver = subprocess.Popen([sys.executable, "-c", HANGS, str(home), run], stdout=subprocess.PIPE)
    assert driver.stdout is not None
    assert driver.stdout.readline() == b"held\n"
    with driver:
        control.down(run, ledger, UntilKilled(driver=driver))
        assert driver.wait(300) == -signal.SIGKILL
    account = ledger.account(run)
    assert (account.status, account.open) == (Status.STOPPED, ())


HANGS = """
import re, signal, sys
from pathlib import Path
from mlcd.core.ledger import Ledger

signal.signal(signal.SIGQUIT, lambda *_: None)
with Ledger(Path(sys.argv[1]) / "ledger.db").hold(sys.argv[2]):
    print("held", flush=True)
    re.match("(a+)+$", "a" * 60 + "!")  # in C code, for years: no signal is heard
"""


def test_stop_and_down_report_that_a_run_is_over(ledger: Ledger):
    book = ledger.begin(
        "job", VirtualClock(), Started(Job("job", 1.0, on="local"), SPACE, "local", Provenance.LIVE, "0")
    )
    book.write(Decided(Decision(SPACE.configurations[0], "enough")))
    book.write(Ended(True, "the job ran to its end"))
    before = len(ledger.lines(book.run))
    with pytest.raises(WrongState, match=f"run '{book.run}' is finished; there is nothing to stop"):
        control.stop(book.run, ledger)
    with pytest.raises(WrongState, match=f"run '{book.run}' is finished; there is nothing to take down"):
        control.down(book.run, ledger, VirtualClock())
    assert len(ledger.lines(book.run)) == before
