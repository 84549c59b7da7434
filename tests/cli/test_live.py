"""`mlcd train --on local` for real: probes, the job to its end, what goes wrong, and nothing left behind."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic

import pytest
from mlcd_fixtures.examples import at_night_except
from mlcd_fixtures.live_jobs import SAVING, TWO_TYPES, last_account

from mlcd.clouds.local import teardown
from mlcd.clouds.local.isolation import why_not_isolated
from mlcd.core.exit_codes import ExitCode
from mlcd.core.ledger import Account

pytestmark = pytest.mark.live

isolated = pytest.mark.skipif(why_not_isolated() is not None, reason=f"nodes cannot be isolated: {why_not_isolated()}")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a job in it, and a state of its own whose runs no other test has a name for."""
    monkeypatch.setenv("MLCD_HOME", str(tmp_path / "home"))
    (tmp_path / "nodes.yaml").write_text(TWO_TYPES)
    return tmp_path


def write_job(folder: Path, mlcd: str, total: int, program: str = SAVING) -> Path:
    (folder / "train.py").write_text(program.replace("TOTAL", str(total)))
    job = folder / "job.yaml"
    name = f"live{folder.name}{os.getpid()}".replace("_", "")
    job.write_text(f"name: {name}\nrun: python3 train.py\nmlcd: {{work: {total}, on: 'local:nodes.yaml', {mlcd}}}\n")
    return job


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "mlcd", *arguments]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str], within_s: float = 300.0) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=within_s)
    return process.returncode, out, err


def pause() -> None:
    """Between two questions to a real process: whoever spins takes a core from those that are waited for."""
    select.select([], [], [], 0.1)


def wait_for(happened: Callable[[], object], within_s: float = 300.0) -> None:
    """Ask until it has happened: real processes take the time they take."""
    until_s = monotonic() + within_s
    while monotonic() < until_s:
        with suppress(Exception):
            if happened():
                return
        pause()
    raise TimeoutError("it never happened")


def left_behind(folder: Path) -> set[str]:
    """Launches of this test's runs of which anything is left."""
    return teardown.marks() & {teardown.mark_of(path) for path in (folder / "home" / "launches").glob("*")}


def adds_up(found: Account) -> None:
    history = found.history
    paid = sum(m.usd for m in (*history.measurements, *history.runs))
    assert history.spent_usd == pytest.approx(paid)
    assert not found.open


def test_a_job_is_probed_chosen_run_to_its_end_and_paid_for(folder):
    job = write_job(folder, "goal: cheapest, deadline: 3m, checkpoints: true", 4_000)
    code, out, err = finish(start(folder, "train", str(job), "-y", "-o", "json"))
    assert code == 0, err
    document = json.loads(out)
    assert document["provenance"] == "live"
    assert document["status"] == "finished"
    assert document["decision"]["certified"]
    assert int((folder / "result").read_text().splitlines()[-1]) >= 4_000
    assert document["saved_samples"] <= 4_000
    adds_up(last_account(folder / "home"))
    assert left_behind(folder) == set()
    logs = finish(start(folder, "logs", "last"))[1]
    assert "@mlcd" in logs


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("import no_such_thing", "add `pip install no_such_thing` to `setup:`"),
        pytest.param(
            "raise RuntimeError('shape mismatch')",
            "the job raised RuntimeError: shape mismatch",
            marks=pytest.mark.night,
        ),
        pytest.param("print('hello')", "without a report of progress", marks=pytest.mark.night),
    ],
)
def test_a_mistake_inside_the_job_is_told_with_its_last_lines_and_stops_the_search(folder, program, told):
    job = write_job(folder, "budget: $1", 4_000, program)
    code, out, err = finish(start(folder, "train", str(job), "-y"))
    assert code == 3
    assert told in err + out
    assert "the mistake is in the job, not in the machines" in err
    found = last_account(folder / "home")
    assert len(found.history.measurements) == 2
    adds_up(found)
    assert left_behind(folder) == set()


def test_where_nodes_cannot_be_isolated_one_line_says_what_is_lost(folder, monkeypatch):
    tools = folder / "tools"
    tools.mkdir()
    for name in ("bash", "python3"):  # neither ip nor tc
        (tools / name).symlink_to(shutil.which(name))
    monkeypatch.setenv("PATH", str(tools))
    job = write_job(folder, "goal: cheapest, budget: $1, search: {nodes: 1..1}", 2_000)
    code, _, err = finish(start(folder, "train", str(job), "-y"))
    assert code == 0, err
    lost = [line for line in err.splitlines() if "nodes are plain processes without limits" in line]
    assert len(lost) == 1
    assert "nodes are plain processes" in finish(start(folder, "check"))[1]


@isolated
def test_a_node_that_is_killed_in_the_final_run_costs_a_launch_and_not_the_job(folder):
    job = write_job(folder, "goal: cheapest, budget: $1, checkpoints: true, search: {nodes: 2..2}", 12_000)
    train = start(folder, "train", str(job), "-y", "-o", "json")
    wait_for(lambda: last_account(folder / "home").decision and last_account(folder / "home").open)
    label = last_account(folder / "home").open[0].launch.label
    log = folder / "home" / "launches" / label / "0.log"
    wait_for(lambda: "saved=2" in log.read_text())
    for process in (int(pid) for pid in node_processes(teardown.mark_of(log.parent), 1)):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    code, _, err = finish(train)
    assert code == 0, err
    found = last_account(folder / "home")
    assert [str(m.outcome) for m in found.history.runs] == ["preempted", "ok"]
    assert found.history.runs[1].samples_done < 12_000
    adds_up(found)
    assert left_behind(folder) == set()


def node_processes(mark: str, node: int) -> list[str]:
    for root in teardown.CGROUP_ROOTS:
        procs = root / f"{mark}.{node}" / "cgroup.procs"
        if procs.exists():
            return procs.read_text().split()
    return []


SENDING = """
import os, socket, time
import mlcd_tracker
rank, first = int(os.environ["RANK"]), os.environ["MASTER_ADDR"]
kept = os.path.join(mlcd_tracker.checkpoint_dir(), "done")
done = int(open(kept).read()) if os.path.exists(kept) else 0
if rank:
    for _ in range(300):
        try:
            link = socket.create_connection((first, 5_000), timeout=300)
            break
        except OSError:
            time.sleep(0.1)
    try:
        while link.send(bytes(20_000)):
            pass
    except OSError:
        pass  # the first node has all that it wanted
else:
    link, _ = socket.create_server((first, 5_000)).accept()
    while done < TOTAL:
        piece = len(link.recv(20_000))
        done += piece
        mlcd_tracker.step(piece)
        if done // 100_000 > (done - piece) // 100_000:
            with open(kept + ".new", "w") as file:
                file.write(str(done))
            os.replace(kept + ".new", kept)  # a probe may end in the middle of a write
            mlcd_tracker.saved()
"""


@isolated
@pytest.mark.night
def test_a_link_that_slows_down_in_the_final_run_moves_the_job_to_other_nodes(folder):
    # a link that needs little CPU to fill: on a busy machine nothing but the link may slow the job down
    (folder / "nodes.yaml").write_text(TWO_TYPES.replace("100Mbit", "10Mbit"))
    search = "search: {nodes: 2..2, method: exhaustive}"
    job = write_job(folder, f"goal: cheapest, budget: $1, checkpoints: true, {search}", 20_000_000, SENDING)
    train = start(folder, "train", str(job), "-y", "-o", "json")
    wait_for(lambda: last_account(folder / "home").decision and last_account(folder / "home").open)
    label = last_account(folder / "home").open[0].launch.label
    log = folder / "home" / "launches" / label / "0.log"
    wait_for(lambda: log.read_text().count("@mlcd") > 20)
    namespace = f"mlcd.{teardown.mark_of(log.parent)}.1"
    slow = ["root", "tbf", "rate", "200kbit", "burst", "64kb", "latency", "200ms"]
    subprocess.run(["tc", "-n", namespace, "qdisc", "change", "dev", "eth0", *slow], check=True)
    code, _, err = finish(train)
    assert code == 0, err
    found = last_account(folder / "home")
    slowed, rest = found.history.runs
    assert str(slowed.outcome) == "slowed_down"
    assert slowed.configuration.offer.instance_type == "a"
    assert rest.configuration.offer.instance_type == "b"
    assert str(rest.outcome) == "ok"
    assert found.history.spent_usd <= 1.0
    adds_up(found)
    assert left_behind(folder) == set()


@pytest.mark.parametrize("when", at_night_except(["the final run"], ["probing", "the final run"]))
def test_a_killed_mlcd_leaves_nothing_and_goes_on_where_it_was(folder, when):
    job = write_job(folder, "goal: cheapest, budget: $1, checkpoints: true", 6_000)
    train = start(folder, "train", str(job), "-y")
    probing = when == "probing"
    wait_for(lambda: last_account(folder / "home").open and (probing or last_account(folder / "home").decision))
    train.kill()
    train.communicate()
    wait_for(lambda: left_behind(folder) == set())
    before = last_account(folder / "home")
    code, _, err = finish(start(folder, "resume", "last", "-y"))
    assert code == 0, err
    after = last_account(folder / "home")
    assert after.status == "finished"
    assert after.history.measurements[: len(before.history.measurements)] == before.history.measurements
    adds_up(after)
    assert left_behind(folder) == set()


def test_stop_ends_a_job_that_checkpoints_and_resume_goes_on(folder):
    job = write_job(folder, "goal: cheapest, budget: $1, checkpoints: true", 12_000)
    train = start(folder, "train", str(job), "-y")
    wait_for(lambda: last_account(folder / "home").decision and last_account(folder / "home").open)
    label = last_account(folder / "home").open[0].launch.label
    wait_for(lambda: "saved=2" in (folder / "home" / "launches" / label / "0.log").read_text())
    assert finish(start(folder, "stop", "last"))[0] == 0
    code, _, err = finish(train)
    assert code == ExitCode.INTERRUPTED
    assert "Go on with: mlcd resume" in err
    assert last_account(folder / "home").history.saved_samples > 0
    code, _, err = finish(start(folder, "resume", "last", "-y"))
    assert code == 0, err
    assert last_account(folder / "home").status == "finished"
    adds_up(last_account(folder / "home"))


def test_down_and_clean_tear_down_and_settle(folder):
    job = write_job(folder, "goal: cheapest, budget: $1", 1_000_000)
    train = start(folder, "train", str(job), "-y")
    wait_for(lambda: last_account(folder / "home").open and left_behind(folder))
    code, out, err = finish(start(folder, "down", "last"))
    assert code == 0, err
    run = f"{job.read_text().split()[1]}-1"
    assert f"run '{run}' has ended; none of its machines is running. What it cost: mlcd ledger {run}" in out
    train.communicate()
    found = last_account(folder / "home")
    assert found.status == "stopped"
    assert left_behind(folder) == set()
    adds_up(found)
    assert "Nothing was left behind." in finish(start(folder, "clean"))[1]


def test_a_recording_is_made_of_real_nodes_and_searched(folder):
    (folder / "nodes.yaml").write_text(TWO_TYPES.replace("startup: 20s", "startup: 240s"))  # the machine may be busy
    job = write_job(folder, "goal: cheapest", 4_000)
    code, out, err = finish(start(folder, "record", str(job), "--out", "made"))
    assert code == 0, err
    assert "4 configurations in made" in out
    rows = (folder / "made" / "points.csv").read_text().splitlines()
    assert len(rows) == 5
    code, out, err = finish(start(folder, "train", str(job), "--on", "recorded:made", "-y"))
    assert code == 0, err
    assert "Decision (recorded)" in out
