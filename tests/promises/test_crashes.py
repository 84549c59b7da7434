"""Killed at any moment and resumed, a run ends as if nothing had happened, and pays for nothing twice."""

from __future__ import annotations

import random
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from mlcd_fixtures.crashes import CHILDREN, die_after, see_through
from mlcd_fixtures.examples import at_night_except

from mlcd.core.errors import WrongState
from mlcd.core.home import open_ledger
from mlcd.core.job import Goal, Hints, Job, Objective, Search
from mlcd.core.ledger import Ledger, Settled, Status
from mlcd.core.runs.run import continue_run, start

JOB = Job(
    "crashing",
    5e7,
    Goal(Objective.FASTEST, budget_usd=100.0),
    hints=Hints(parameters=25e6, flops_per_sample=12e9, global_batch=256),
    search=Search(nodes=(1, 8), instances=("c5.4xlarge", "g4dn.xlarge", "g4dn.12xlarge", "g5.xlarge")),
)


def story(home: Path) -> tuple[object, list[object], float]:
    """What must not depend on crashes: the decision, what was measured, what was paid."""
    account = open_ledger(home).account("crashing-1")
    return account.decision, list(account.history.measurements), account.history.spent_usd


def finished(home: Path) -> bool:
    ledger = open_ledger(home)
    return bool(ledger.runs()) and ledger.account("crashing-1").status is Status.FINISHED


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> tuple[object, list[object], float]:
    home = tmp_path_factory.mktemp("undisturbed")
    see_through(JOB, home)
    return story(home)


def spawn_and_kill(home: Path, after_s: float) -> bool:
    """Start or resume in a child; whether it had to be killed."""
    child = CHILDREN.Process(target=see_through, args=(JOB, home))
    child.start()
    child.join(timeout=after_s)
    child.kill()  # SIGKILL, unless it has ended by itself
    child.join()
    return child.exitcode == -signal.SIGKILL


@pytest.mark.parametrize("seed", at_night_except((0,), range(5)))
def test_killed_at_random_moments_a_run_ends_as_if_it_had_not_been(seed, tmp_path, undisturbed):
    rng = random.Random(seed)
    kills = rounds = 0
    while kills < 12:
        home = tmp_path / str(rounds)
        rounds += 1
        for attempt in range(200):
            # Ever more patient: on a busy machine a child may need long to get anywhere.
            kills += spawn_and_kill(home, rng.uniform(0.0, 0.3) * (1 + attempt / 10))
            if finished(home):
                break
        assert finished(home)
        assert story(home) == undisturbed
        ordinals = [
            line.entry.launch.ordinal
            for line in open_ledger(home).lines("crashing-1")
            if isinstance(line.entry, Settled)
        ]
        assert ordinals == list(range(len(ordinals))), "a launch was paid for twice"


def test_killed_after_any_entry_a_run_ends_as_if_it_had_not_been(tmp_path, undisturbed):
    see_through(JOB, tmp_path / "whole")
    for entries in range(1, len(open_ledger(tmp_path / "whole").lines("crashing-1"))):
        home = tmp_path / str(entries)
        child = CHILDREN.Process(target=die_after, args=(JOB, home, entries))
        child.start()
        child.join()
        assert child.exitcode == -signal.SIGKILL
        assert len(open_ledger(home).lines("crashing-1")) >= entries  # a round is written whole
        see_through(JOB, home)
        assert story(home) == undisturbed


def test_two_processes_cannot_drive_the_same_run(tmp_path):
    ledger = open_ledger(tmp_path)
    run = start(replace(JOB, goal=Goal()), ledger)
    other = continue_run(run.name, Ledger(ledger.path))
    with run.hold(), pytest.raises(WrongState, match="driven by another process"), other.hold():
        pass
    with other.hold():
        assert other.search().certified
