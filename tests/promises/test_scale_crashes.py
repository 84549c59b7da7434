"""Killed after any entry and resumed, an elastic run ends as if nothing had happened, and pays for nothing twice."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from mlcd_fixtures.crashes import CHILDREN, die_after, see_through

from mlcd.core.home import open_ledger
from mlcd.core.job import Goal, Hints, Job, Objective, Search, Target
from mlcd.core.ledger import Settled, Status
from mlcd.planners.scale.nouns import ScalingTask

JOB = Job(
    "elastic",
    6e6,
    Goal(Objective.KNEE, budget_usd=50.0),
    hints=Hints(25e6, 12e9, 128),
    search=Search(instances=("g4dn.xlarge",)),
    checkpoints=True,
    dataset_samples=1e5,
    target=Target("accuracy", 0.9),
    ask=ScalingTask((1, 4), (64, 128, 256)),
)
Story = tuple[object, list[object], list[object], float, float]


def story(home: Path) -> Story:
    """What must not depend on crashes: the decision with its curve, what was measured, what was paid, what is saved."""
    account = open_ledger(home).account("elastic-1")
    history = account.history
    return account.decision, list(history.measurements), list(history.runs), history.spent_usd, history.saved_samples


@pytest.fixture
def undisturbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a run that nothing happened to."""
    monkeypatch.setenv("MLCD_HOME", str(tmp_path))  # put back in the end, whatever the test sets
    see_through(JOB, tmp_path / "whole")
    return tmp_path / "whole"


def test_killed_after_any_entry_an_elastic_run_ends_as_if_it_had_not_been(tmp_path: Path, undisturbed: Path) -> None:
    whole = open_ledger(undisturbed).lines("elastic-1")
    assert story(undisturbed)[2], "the run itself is part of the story"
    for entries in range(1, len(whole)):
        home = tmp_path / str(entries)
        child = CHILDREN.Process(target=die_after, args=(JOB, home, entries))
        child.start()
        child.join()
        assert child.exitcode == -signal.SIGKILL
        see_through(JOB, home)
        assert story(home) == story(undisturbed)
        account = open_ledger(home).account("elastic-1")
        assert account.status is Status.FINISHED
        lines = open_ledger(home).lines("elastic-1")
        ordinals = [line.entry.launch.ordinal for line in lines if isinstance(line.entry, Settled)]
        assert ordinals == list(range(len(ordinals))), "a launch was paid for twice"
