"""Real jobs on nodes of this machine, in a real browser: what they write, how they are stopped, how they fail."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from mlcd_fixtures.live_jobs import ONE_NODE, SAVING

from mlcd.clouds.local import teardown
from mlcd.core.home import open_ledger
from mlcd.core.runs.run import start
from mlcd.planners.jobfile.read import load_job

pytestmark = pytest.mark.live

TALKING = "print('good morning', flush=True)\n" + SAVING.replace(
    "TOTAL", "200000"
)  # minutes, in which it saves its work
JOBS = {"stopped": TALKING, "ended": TALKING, "wrong": "raise RuntimeError('shape mismatch')"}


@pytest.fixture(scope="module")
def live(serve: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One person's pages, with the runs of these jobs begun and driven by nobody."""
    folder = tmp_path_factory.mktemp("live")
    ledger = open_ledger(folder / "home")
    for name, program in JOBS.items():
        begin(ledger, folder / name, program)
    ledger.close()
    return serve(folder / "home", "ui", "--no-browser", "--port", "0")


def begin(ledger: Any, folder: Path, program: str) -> None:
    folder.mkdir()
    (folder / "nodes.yaml").write_text(ONE_NODE)
    (folder / "train.py").write_text(program)
    mlcd = f"{{work: 2e5, on: 'local:{folder / 'nodes.yaml'}', deadline: 10h, checkpoints: true}}"
    (folder / "job.yaml").write_text(f"name: {folder.name}{os.getpid()}\nrun: python3 train.py\nmlcd: {mlcd}\n")
    start(load_job(folder / "job.yaml"), ledger)


def resumed(page: Any, live: Any, name: str) -> str:
    """Go on with one of the runs by its page; its name."""
    run = f"{name}{os.getpid()}-1"
    page.goto(f"{live.url}/runs/{run}")
    acted(page, "Resume")
    return run


def acted(page: Any, action: str) -> None:
    page.get_by_role("button", name=f"{action} …").click()
    page.get_by_role("dialog").get_by_role("button", name=action).click()


def account_of(live: Any, run: str) -> Any:
    ledger = open_ledger(live.home)
    found = ledger.account(run)
    ledger.close()
    return found


def left_behind(live: Any) -> set[str]:
    return teardown.marks() & {teardown.mark_of(path) for path in (live.home / "launches").glob("*")}


def running(page: Any, live: Any, expect: Any, name: str) -> str:
    """Search, decide, launch; the run, whose job is under way."""
    run = resumed(page, live, name)
    acted(page, "Launch it")
    expect(page.get_by_role("list", name="Running now")).to_contain_text("Running 1 x a")
    return run


def test_what_a_job_writes_is_seen_while_it_runs_and_stop_keeps_its_work(page, live, expect):
    run = running(page, live, expect, "stopped")
    page.locator("summary", has_text="Output of the job").click()
    expect(page.get_by_role("log")).to_contain_text("good morning")
    page.get_by_label("Reports of progress").check()
    expect(page.get_by_role("log")).to_contain_text(re.compile("saved=[1-9]"))
    acted(page, "Stop")
    expect(page.get_by_role("button", name="Resume …")).to_be_visible()
    expect(page.locator(".run-about .status")).to_have_text("stopped")
    account = account_of(live, run)
    assert account.history.runs[-1].saved_samples > 0
    assert not account.open


@pytest.mark.night  # at each change: `mlcd down` in tests/cli/test_live.py, the route in test_control.py
def test_end_now_ends_a_job_at_once_and_leaves_nothing_behind(page, live, expect):
    run = running(page, live, expect, "ended")
    acted(page, "End now")
    expect(page.get_by_role("button", name="Resume …")).to_be_visible()
    expect(page.get_by_role("list", name="Running now")).to_have_count(0)
    account = account_of(live, run)
    assert account.status == "stopped"
    assert not account.open
    assert left_behind(live) == set()


@pytest.mark.night  # at each change: reports/ and the page of a run
def test_a_job_that_fails_is_shown_with_its_reason_and_its_last_words(page, live, expect):
    run = resumed(page, live, "wrong")
    expect(page.get_by_label("The answer")).to_contain_text("the job raised RuntimeError: shape mismatch")
    page.locator("summary", has_text="Output of the job").click()
    expect(page.get_by_role("log")).to_contain_text("RuntimeError: shape mismatch")
    assert account_of(live, run).decision.configuration is None
