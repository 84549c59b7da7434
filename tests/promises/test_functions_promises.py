"""The promises about jobs on functions, on random platforms: any price, speed, fault and limit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from mlcd_fixtures.examples import at_night_except
from mlcd_fixtures.functions import FunctionsWorld, functions_job, random_world, truth
from mlcd_fixtures.functions_promises import account_of, check_functions_promises, see_functions_through, story

from mlcd.clouds.functions.simulated import Losses
from mlcd.clouds.functions.simulated_epochs import Faults, Platform
from mlcd.core.job import Goal, Objective
from mlcd.core.ledger import Ledger, Line, Status
from mlcd.core.ledger.entries import to_json
from mlcd.core.measurement import Outcome
from mlcd.planners.functions.nouns import Tuning


def through(world: FunctionsWorld) -> list[Line]:
    """A run of the world's job from beginning to end, with every promise checked."""
    ledger = Ledger(None)
    lines = see_functions_through(world.job, world.cloud(), ledger)
    ledger.close()
    check_functions_promises(world, lines)
    return lines


@pytest.mark.parametrize("rough", [False, True])
@pytest.mark.parametrize("tuning", [False, True])
@pytest.mark.parametrize("seed", at_night_except(range(4), range(20)))
def test_every_promise_holds_on_any_platform(tuning, rough, seed):
    world = random_world(np.random.default_rng([seed, tuning, rough]), tuning=tuning, rough=rough)
    lines = through(world)
    account = account_of(lines)
    assert account.decision is not None
    if account.decision.configuration is None:
        assert account.decision.binding, "nothing can be done, and nobody says why"
        assert account.status is Status.INFEASIBLE
        return
    assert account.status in (Status.FINISHED, Status.FAILED)
    if tuning and account.decision.certified and world.platform == Platform(0.0):
        assert account.status is Status.FINISHED, f"certified, but: {account.ended.because}"


@pytest.mark.parametrize("method", ["exact", "greedy", "lambdaml", "siren", "cirrus", "fixed"])
@pytest.mark.parametrize("tuning", [Tuning(8), None])
def test_every_method_keeps_the_promises(method, tuning):
    job = functions_job(tuning=tuning, goal=Goal(Objective.FASTEST, budget_usd=0.4))
    job = replace(job, search=replace(job.search, method=method))
    through(FunctionsWorld(job, truth(), Platform(0.05, Faults(0.05, 0.1, 0.1))))


@pytest.mark.parametrize("goal", [Goal(), Goal(Objective.CHEAPEST, deadline_s=7_200.0), Goal(budget_usd=1.0)])
def test_a_calm_platform_sees_the_job_through(goal):
    for tuning in (Tuning(8), None):
        account = account_of(through(FunctionsWorld(functions_job(tuning=tuning, goal=goal), truth())))
        assert account.status is Status.FINISHED, account.ended
        assert account.decision.certified


def test_a_ledger_that_is_read_again_is_the_run_that_was(tmp_path):
    world, live = FunctionsWorld(functions_job(tuning=Tuning(6)), truth(), losses=Losses(2, diverging=0.5)), []
    ledger = Ledger(tmp_path / "ledger.db")
    see_functions_through(world.job, world.cloud(), ledger, live.append)
    ledger.close()
    read = Ledger(tmp_path / "ledger.db").lines("last")
    assert [to_json(line.entry) for line in read] == [to_json(line.entry) for line in live]
    assert repr(account_of(read)) == repr(account_of(live))


def test_a_platform_on_which_everything_dies_ends_with_a_reason():
    for tuning in (Tuning(4), None):
        goal = Goal(Objective.FASTEST, budget_usd=1.0)
        job = functions_job(tuning=tuning, goal=goal, epochs=None if tuning else 10.0)
        account = account_of(through(FunctionsWorld(job, truth(), Platform(0.0, Faults(death=1.0)))))
        assert account.status is Status.FAILED
        assert "functions died in 3 attempts" in account.ended.because
        assert all(run.outcome is not Outcome.OK for run in account.history.runs)


def test_a_target_that_is_never_reached_ends_within_the_limits_and_says_so():
    job = functions_job(goal=Goal(Objective.FASTEST, budget_usd=0.5), epochs=12.0)
    account = account_of(through(FunctionsWorld(job, truth(), losses=Losses(1, lowest=0.6))))
    assert account.status is Status.FAILED
    assert account.ended.because


class Died(BaseException):
    """The process is gone."""


def crashing(world: FunctionsWorld, entries: int, platform_stays: bool = True) -> list[Line]:
    """A run that dies once so many entries are written, and is then gone on with in another process."""
    written = 0

    def count(line: Line) -> None:
        nonlocal written
        written += 1
        if written == entries:
            raise Died

    cloud, ledger = world.cloud(), Ledger(None)
    with pytest.raises(Died):
        see_functions_through(world.job, cloud, ledger, count)
    later = world.cloud(ledger.account("last").history.elapsed_s)
    if platform_stays:  # functions that were asked for are still starting
        later.backend.prewarmed.update(cloud.backend.prewarmed)
    lines = see_functions_through(world.job, later, ledger)
    ledger.close()
    return lines


def undisturbed(lines: list[Line]) -> list[Line]:
    """Without launches that a crash has kept from being."""
    voided = {line.entry.launch.label for line in lines if line.entry.kind == "voided"}
    return [
        line
        for line in lines
        if line.entry.kind not in ("voided", "resumed")
        and not (line.entry.kind == "reserved" and line.entry.launch.label in voided)
    ]


@pytest.mark.parametrize("tuning", [Tuning(6), None])
def test_killed_after_any_entry_a_run_ends_as_if_it_had_not_been(tuning):
    goal = Goal(Objective.FASTEST, budget_usd=0.5)
    job = functions_job(tuning=tuning, goal=goal, epochs=None if tuning else 4.0, storages=("s3", "vm-ps"))
    world = FunctionsWorld(job, truth(), Platform(0.05, Faults(0.05)))
    whole = through(world)
    assert account_of(whole).history.runs, "the run itself is part of the story"
    for entries in range(1, len(whole)):
        lines = crashing(world, entries)
        assert story(lines) == story(whole)
        ordinals = [line.entry.launch.ordinal for line in lines if line.entry.kind == "settled"]
        assert ordinals == list(range(len(ordinals))), "a launch was paid for twice"


def test_functions_that_a_crash_has_lost_are_started_again_and_every_promise_holds():
    job = functions_job(goal=Goal(Objective.FASTEST, budget_usd=0.5), epochs=4.0, storages=("s3",))
    world = FunctionsWorld(job, truth())
    for entries in range(1, len(through(world)), 3):
        lines = crashing(world, entries, platform_stays=False)
        check_functions_promises(world, undisturbed(lines))
        assert account_of(lines).status is Status.FINISHED
