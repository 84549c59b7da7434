"""Ctrl-C, once and twice: what was measured is kept, what was rented is given back, and the run can go on."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from mlcd.cli.drive import RunDisplay, see_through
from mlcd.cli.messages import RunOptions
from mlcd.cli.signals import stop_on_ctrl_c
from mlcd.core.backend import Backend, Launch, Provenance
from mlcd.core.errors import Interrupted
from mlcd.core.exit_codes import ExitCode
from mlcd.core.home import open_ledger
from mlcd.core.job import Job
from mlcd.core.ledger import Ledger, Status
from mlcd.core.measurement import Event, Outcome
from mlcd.core.runs.run import Run, continue_run, start
from mlcd.planners.jobfile.read import load_job
from mlcd.planners.profilers.training import TrainingProfiler

pytestmark = pytest.mark.live

Mlcd = Callable[..., Any]
WriteJob = Callable[..., Path]
AT = 5


@dataclass
class PressesCtrlC:
    """A cloud during one of whose launches the user presses Ctrl-C, so many times."""

    cloud: Backend
    presses: int
    during: int
    torn_down: list[str] = field(default_factory=list)
    provenance: Provenance = Provenance.RECORDED

    def run(self, job: Job, launch: Launch) -> Generator[Event, None, None]:
        try:
            with closing(self.cloud.run(job, launch)) as events:
                for i, event in enumerate(events):
                    for _ in range(self.presses if launch.ordinal == self.during and i == AT else 0):
                        signal.raise_signal(signal.SIGINT)
                    yield event
        finally:
            self.torn_down.append(launch.label)

    def reclaim(self, label: str) -> float | None:
        return self.cloud.reclaim(label)


@pytest.fixture
def ledger(home: Path) -> Iterator[Ledger]:
    with closing(open_ledger()) as opened:
        yield opened


def begin(ledger: Ledger, job: Path, presses: int, during: int = 1) -> tuple[Run, PressesCtrlC]:
    run = start(load_job(job), ledger)
    backend = PressesCtrlC(run.cloud.backend, presses, during)
    profiler = TrainingProfiler(backend, tight=None, warm_up=False)
    run.cloud = replace(run.cloud, backend=backend, profiler=profiler)
    return run, backend


def interrupted(run: Run) -> str:
    with stop_on_ctrl_c(Console(stderr=True), "this probe") as stop, pytest.raises(Interrupted) as told:
        run.search(stop)
    return str(told.value)


def test_ctrl_c_once_finishes_the_probe_and_says_how_to_go_on(
    ledger: Ledger, recorded_job: WriteJob, capsys: pytest.CaptureFixture[str]
) -> None:
    job = recorded_job("budget: $40")
    undisturbed, _ = begin(ledger, job, presses=0)
    decision = undisturbed.search()
    run, cloud = begin(ledger, job, presses=1)
    assert interrupted(run) == "interrupted; everything measured is kept. Go on with: mlcd resume demo-2"
    assert "stopping after this probe; Ctrl-C again stops it now" in capsys.readouterr().err
    account = ledger.account(run.name)
    assert [m.outcome for m in account.history.measurements] == [Outcome.OK, Outcome.OK]
    assert account.open == ()
    assert account.status is Status.STOPPED
    assert cloud.torn_down == ["demo-2-1", "demo-2-2"]
    resumed = continue_run("last", ledger)
    assert resumed.search() == decision
    assert resumed.book.account.history.measurements == undisturbed.book.account.history.measurements


def test_ctrl_c_twice_stops_the_probe_and_pays_for_what_it_took(ledger: Ledger, recorded_job: WriteJob) -> None:
    job = recorded_job("budget: $40")
    undisturbed, _ = begin(ledger, job, presses=0)
    decision = undisturbed.search()
    run, cloud = begin(ledger, job, presses=2)
    assert "mlcd resume demo-2" in interrupted(run)
    account = ledger.account(run.name)
    first, cut = account.history.measurements
    assert (first.outcome, cut.outcome) == (Outcome.OK, Outcome.INTERRUPTED)
    whole_s = account.space.probe_time.seconds(cut.configuration.nodes)
    assert cut.seconds == pytest.approx(whole_s * AT / 30)
    assert cut.usd > 0
    assert cut.usd == pytest.approx(cut.configuration.usd(cut.seconds))
    assert account.history.spent_usd == pytest.approx(first.usd + cut.usd)
    assert account.open == ()
    assert cloud.torn_down == ["demo-2-1", "demo-2-2"]
    resumed = continue_run("last", ledger)
    assert resumed.search() == decision
    total = undisturbed.book.account.history.spent_usd + cut.usd
    assert resumed.book.account.history.spent_usd == pytest.approx(total)


def test_ctrl_c_during_the_last_probe_keeps_the_decision_and_runs_nothing(
    ledger: Ledger, recorded_job: WriteJob, mlcd: Mlcd
) -> None:
    undisturbed, _ = begin(ledger, recorded_job(), presses=0)
    decision = undisturbed.search()
    last = len(undisturbed.book.account.history.measurements) - 1
    run, cloud = begin(ledger, recorded_job(), presses=1, during=last)
    with pytest.raises(Interrupted, match=r"the decision is kept\. Go on with: mlcd resume demo-2"):
        see_through(
            run, RunDisplay(ledger, "json"), RunOptions(decide_only=False, yes=True, detach=False, output="json")
        )
    assert run.decision == decision
    assert ledger.account(run.name).status is Status.DECIDED
    assert len(cloud.torn_down) == last + 1
    assert mlcd("resume", "demo-2", "-o", "json").document["status"] == "finished"


def test_ctrl_c_twice_stops_the_job_itself_and_pays_for_what_it_took(
    ledger: Ledger, recorded_job: WriteJob, mlcd: Mlcd
) -> None:
    undisturbed, _ = begin(ledger, recorded_job(), presses=0)
    undisturbed.search()
    final = len(undisturbed.book.account.history.measurements)
    run, cloud = begin(ledger, recorded_job(), presses=2, during=final)
    with pytest.raises(Interrupted, match="Go on with: mlcd resume demo-2"):
        see_through(
            run, RunDisplay(ledger, "json"), RunOptions(decide_only=False, yes=True, detach=False, output="json")
        )
    (cut,) = ledger.account(run.name).history.runs
    assert cut.outcome is Outcome.INTERRUPTED
    assert 0 < cut.usd < run.book.account.decision.forecast.usd  # type: ignore[union-attr]
    assert len(cloud.torn_down) == final + 1
    resumed = mlcd("resume", "demo-2", "-o", "json").document
    assert resumed["status"] == "finished"
    assert resumed["spent_usd"] == pytest.approx(resumed["probing_usd"] + cut.usd + resumed["final_run"]["usd"])


def test_ctrl_c_is_python_s_own_again_afterwards() -> None:
    before = signal.getsignal(signal.SIGINT)
    with stop_on_ctrl_c(Console(stderr=True), "this probe") as stop:
        assert not stop()
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before


def test_a_real_search_stopped_by_ctrl_c_goes_on_to_the_same_decision(
    mlcd: Mlcd, mlcd_process: Mlcd, write_job: WriteJob
) -> None:
    job = write_job("budget: $500", search="{method: heterbo, nodes: 1..8, instances: [c5.*, g4dn.*, g5.*, p3.*]}")
    undisturbed = mlcd("train", job, "--decide-only", "-o", "json").document
    command = [sys.executable, "-m", "mlcd", "train", str(job), "-o", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as search:
        assert search.stderr is not None
        while "one node of each type" not in search.stderr.readline():
            assert search.poll() is None
        search.send_signal(signal.SIGINT)
        out, err = search.communicate(timeout=300)
    assert search.returncode == ExitCode.INTERRUPTED
    assert out == ""
    told = err.strip().splitlines()
    assert told[-1] == "mlcd: interrupted; everything measured is kept. Go on with: mlcd resume demo-2"
    assert "Traceback" not in err
    resumed = mlcd_process("resume", "demo-2", "--decide-only", "-o", "json").document
    assert resumed["decision"] == undisturbed["decision"]
    assert resumed["spent_usd"] == pytest.approx(undisturbed["spent_usd"])


def press_once_it_reads(train: subprocess.Popen[bytes]) -> None:
    """CPython loses a signal that comes just before it blocks in reading the answer: wait until it sleeps there."""
    status = Path(f"/proc/{train.pid}/status")
    while status.exists() and "\nState:\tS" not in status.read_text():
        os.sched_yield()
    for _ in range(6):  # where there is no /proc, as a person would: again
        train.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            train.wait(timeout=300 if status.exists() else 10)
            return
    train.kill()


def at_a_terminal(job: Path, answer: Callable[[subprocess.Popen[bytes], int], object]) -> tuple[int, str]:
    """Run `mlcd train` at a terminal, answer its question, and give its exit code and all that was shown."""
    master, slave = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "mlcd", "train", str(job)],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    ) as train:
        os.close(slave)
        shown = b""
        while b"Run it?" not in shown:
            shown += os.read(master, 4096)
        answer(train, master)
        while True:
            try:
                more = os.read(master, 4096)
            except OSError:  # the other end is closed
                break
            if not more:
                break
            shown += more
    os.close(master)
    return train.returncode, shown.decode()


@pytest.mark.night  # at each change: with Ctrl-C
def test_the_question_can_be_answered_with_no(mlcd: Mlcd, recorded_job: WriteJob) -> None:
    code, shown = at_a_terminal(recorded_job(), lambda train, master: os.write(master, b"n\n"))
    assert code == 0
    assert "The job was not run. Run it with: mlcd launch demo-1" in shown
    assert mlcd("show", "last", "-o", "json").document["status"] == "decided"


def test_the_question_can_be_answered_with_ctrl_c(mlcd: Mlcd, recorded_job: WriteJob) -> None:
    code, shown = at_a_terminal(recorded_job(), lambda train, master: press_once_it_reads(train))
    assert code == ExitCode.INTERRUPTED
    assert "mlcd: interrupted" in shown
    assert "Traceback" not in shown
    assert mlcd("show", "last", "-o", "json").document["status"] == "decided"
    assert mlcd("launch", "last").code == 0
