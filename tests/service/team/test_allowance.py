"""Who is over budget is refused before anything is reserved, with the sum that is left."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from threading import Barrier
from typing import Any

import pytest

from mlcd.core.backend import Provenance
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Choice, Offer, Space
from mlcd.core.database import Database, open_database
from mlcd.core.errors import LedgerCorrupt, UnknownName, UserError, WrongState
from mlcd.core.job import Goal, Job
from mlcd.core.ledger import Ledger, Started
from mlcd.planners.serve.model_facts import ModelFacts
from mlcd.planners.serve.nouns import ServingTask
from mlcd.service.team import budget
from mlcd.service.team.allowance import OverBudget, RemainingBudget, recheck, release, remaining_budget, submit
from mlcd.service.team.budget import Budget
from mlcd.service.team.members import Member, Members, Role
from mlcd.service.workers.submissions import from_json, to_json

SPACE = Space((Choice(Offer("small", 1.0, 4, 16), (1,)),))


@pytest.fixture
def ada(members: Members) -> Member:
    members.add("ada", Role.RUNNER, "vision", 50.0)
    return members.get("ada")


def job_of(budget_usd: float | None, **more: Any) -> Job:
    return Job("resnet", 1.0, Goal(budget_usd=budget_usd), **more)


def ask(ledger: Ledger, member: Member | None, usd: float | None, launch: bool = False, **more: Any) -> str:
    job = job_of(usd, **more)
    return submit(ledger, member, job, to_json(job, launch))


def test_a_submission_over_the_budget_is_refused_with_what_is_left_and_nothing_is_written(ledger: Ledger, ada: Member):
    ask(ledger, ada, 38.0)
    with pytest.raises(OverBudget) as refused:
        ask(ledger, ada, 40.0)
    words = "ada has $12.00 left of $50.00; this job may spend $40.00: lower its budget, or ask an admin"
    assert str(refused.value) == words
    assert refused.value.left_usd == 12.0
    assert [each.run for each in ledger.waiting()] == ["resnet-1"]
    assert ask(ledger, ada, 12.0) == "resnet-2"
    assert remaining_budget(ledger, ada) == RemainingBudget(0.0, "ada", Budget(50.0))
    assert ledger.owners() == {"resnet-1": ("ada", "vision"), "resnet-2": ("ada", "vision")}


def test_a_job_without_a_budget_needs_one_where_there_is_a_limit(ledger: Ledger, members: Members, ada: Member):
    with pytest.raises(UserError, match=r"ada has \$50.00 left of \$50.00: state a budget for this job") as refused:
        ask(ledger, ada, None)
    assert not isinstance(refused.value, OverBudget)
    free = members.change("ada", budget_usd=None)
    assert remaining_budget(ledger, free) == RemainingBudget(None, "ada")
    assert ask(ledger, free, None) == "resnet-1"
    # A limit that comes later: what can spend without end leaves nothing, until it is over.
    assert remaining_budget(ledger, members.change("ada", budget_usd=50.0)).usd == 0.0
    with pytest.raises(OverBudget, match=r"ada has \$0.00 left of \$50.00"):
        ask(ledger, ada, 0.01)
    ledger.refuse("resnet-1", "no such method")
    assert remaining_budget(ledger, ada).usd == 50.0


def test_the_smaller_of_the_members_and_the_teams_budget_counts(ledger: Ledger, members: Members, ada: Member):
    members.set_team_budget("vision", 60.0)
    members.add("bob", Role.RUNNER, "vision")
    bob = members.get("bob")
    assert remaining_budget(ledger, ada) == RemainingBudget(50.0, "ada", Budget(50.0))
    ask(ledger, bob, 45.0)
    assert (
        remaining_budget(ledger, ada)
        == remaining_budget(ledger, bob)
        == RemainingBudget(15.0, "team vision", Budget(60.0))
    )
    with pytest.raises(OverBudget, match=r"^team vision has \$15.00 left of \$60.00; this job may spend \$15.01"):
        ask(ledger, ada, 15.01)
    # Who leaves a team leaves what they have spent with it.
    members.change("bob", team="speech")
    assert remaining_budget(ledger, members.get("bob")) == RemainingBudget(None, "bob")
    assert remaining_budget(ledger, ada).usd == 15.0


def test_a_budget_is_read_when_it_counts_and_not_from_an_old_request(ledger: Ledger, members: Members, ada: Member):
    stale = replace(ada, budget_usd=None, team=None)
    with pytest.raises(OverBudget):
        ask(ledger, stale, 51.0)
    members.add("root", Role.ADMIN)
    members.remove("ada")
    with pytest.raises(UnknownName, match="unknown member 'ada'"):
        ask(ledger, ada, 1.0)


def test_one_person_alone_has_no_limit(ledger: Ledger):
    assert remaining_budget(ledger, None).usd is None
    assert str(remaining_budget(ledger, None)) == "no limit"
    assert ask(ledger, None, None) == "resnet-1"
    assert ledger.owners() == {"resnet-1": (None, None)}


def test_cents_are_never_rounded_up_and_floats_that_fit_do(ledger: Ledger, members: Members, ada: Member):
    members.change("ada", budget_usd=0.3)
    for _ in range(3):
        ask(ledger, ada, 0.1)
    members.change("ada", budget_usd=12.2999)
    assert str(remaining_budget(ledger, ada)) == "ada has $11.99 left of $12.30"


def test_a_run_counts_with_its_budget_until_it_is_over_and_then_with_what_it_spent(
    ledger: Ledger, ada: Member, driven: Any
):
    run = ask(ledger, ada, 40.0, launch=True)
    driven.begin(run, job_of(40.0))
    driven.reserve(run, 1.0)
    driven.settle(run, 0.5)
    driven.decide(run)
    assert remaining_budget(ledger, ada).usd == 10.0  # it is about to be launched
    driven.reserve(run, 30.0)
    driven.settle(run, 20.0)
    assert remaining_budget(ledger, ada).usd == 10.0
    driven.end(run)
    assert remaining_budget(ledger, ada).usd == 29.5
    with pytest.raises(WrongState, match="run 'resnet-1' is finished"):
        recheck(ledger, ada, run)
    assert ledger.account(run).status == "finished"


def test_a_stopped_run_goes_on_only_while_its_budget_is_left(
    ledger: Ledger, members: Members, ada: Member, driven: Any
):
    run = ask(ledger, ada, 40.0)
    driven.begin(run, job_of(40.0))
    driven.reserve(run, 5.0)
    driven.settle(run, 5.0)
    driven.stop(run)
    assert remaining_budget(ledger, ada).usd == 45.0
    other = ask(ledger, ada, 45.0)
    members.add("root", Role.ADMIN)
    with pytest.raises(
        OverBudget, match=r"^ada has \$0.00 left of \$50.00; run 'resnet-1' may spend another \$35.00: ask"
    ):
        recheck(ledger, members.get("root"), run)  # the owner pays, whoever presses
    assert ledger.account(run).status == "stopped"
    ledger.refuse(other, "no such method")
    recheck(ledger, members.get("root"), run)
    last = ledger.lines(run)[-1]
    assert (last.entry.kind, last.entry.because) == ("resumed", "root went on")
    assert remaining_budget(ledger, ada).usd == 10.0
    recheck(ledger, ada, run)  # it counts already
    assert ledger.lines(run)[-1] == last


def test_a_raised_budget_must_be_left_to_the_owner(ledger: Ledger, members: Members, ada: Member, driven: Any):
    run = ask(ledger, ada, 10.0)
    driven.begin(run, job_of(10.0))
    driven.reserve(run, 8.0)
    driven.settle(run, 8.0)
    driven.decide(run, feasible=False)
    assert remaining_budget(ledger, ada).usd == 42.0
    with pytest.raises(WrongState, match="cannot be certified within its limits"):
        recheck(ledger, ada, run)
    with pytest.raises(OverBudget, match=r"^ada has \$42.00 left of \$50.00; run 'resnet-1' may spend another \$43.00"):
        recheck(ledger, ada, run, goal=Goal(budget_usd=51.0))
    with pytest.raises(OverBudget, match="without limit"):
        recheck(ledger, ada, run, goal=Goal())
    assert ledger.account(run).status == "infeasible"
    recheck(ledger, ada, run, goal=Goal(budget_usd=30.0))
    assert ledger.account(run).job.goal.budget_usd == 30.0
    assert ledger.lines(run)[-1].entry.because.startswith("ada changed the budget from $10.00 to $30.00, $8.00 spent")
    assert remaining_budget(ledger, ada).usd == 20.0
    submitted = ledger.submission(run)
    assert submitted is not None
    assert from_json(submitted.request)[0].goal.budget_usd == 30.0


def test_a_decision_counts_while_its_launch_is_asked_for(ledger: Ledger, members: Members, ada: Member, driven: Any):
    run = ask(ledger, ada, 40.0)
    driven.begin(run, job_of(40.0))
    driven.decide(run)
    assert remaining_budget(ledger, ada).usd == 50.0
    recheck(ledger, ada, run)  # looked at again, not launched
    assert remaining_budget(ledger, ada).usd == 50.0
    members.change("ada", budget_usd=39.0)
    with pytest.raises(OverBudget):
        recheck(ledger, ada, run, launch=True)
    members.change("ada", budget_usd=50.0)
    assert remaining_budget(ledger, ada).usd == 50.0  # what was refused has left no trace
    recheck(ledger, ada, run, launch=True)
    assert remaining_budget(ledger, ada).usd == 10.0
    submitted = ledger.submission(run)
    assert submitted is not None
    assert from_json(submitted.request) == (job_of(40.0), True)
    release(ledger, run, "taken back")
    assert remaining_budget(ledger, ada).usd == 50.0
    recheck(ledger, ada, run, launch=False)
    assert remaining_budget(ledger, ada).usd == 50.0


def test_what_cannot_be_launched_is_over(ledger: Ledger, ada: Member, driven: Any):
    service = ServingTask(ModelFacts("resnet"))
    infeasible, served = ask(ledger, ada, 10.0, launch=True), ask(ledger, ada, 10.0, launch=True, ask=service)
    for run, feasible in ((infeasible, False), (served, True)):
        driven.begin(run, job_of(10.0))
        driven.decide(run, feasible)
        with pytest.raises(WrongState, match=r"is over|raise them"):
            recheck(ledger, ada, run, launch=True)
    assert remaining_budget(ledger, ada).usd == 50.0


def test_what_nobody_drives_can_be_released_but_not_while_machines_may_be_up(ledger: Ledger, ada: Member, driven: Any):
    run = ask(ledger, ada, 40.0)
    with pytest.raises(WrongState, match="waiting"):
        release(ledger, run, "taken back")
    driven.begin(run, job_of(40.0))
    driven.reserve(run, 1.0)
    with pytest.raises(WrongState, match=f"mlcd down {run}"):
        release(ledger, run, "taken back")
    driven.settle(run, 1.0)
    with ledger.hold(run), pytest.raises(WrongState, match="being driven"):
        release(ledger, run, "taken back")
    release(ledger, run, "taken back")
    release(ledger, run, "taken back")
    assert ledger.account(run).status == "stopped"
    assert [line.entry.kind for line in ledger.lines(run)].count("stopped") == 1
    assert remaining_budget(ledger, ada).usd == 49.0


def test_whether_it_is_launched_is_asked_anew_of_a_run_without_an_owner_too(ledger: Ledger, driven: Any):
    run = ask(ledger, None, 40.0, launch=True)
    driven.begin(run, job_of(40.0))
    driven.stop(run)
    for launch, expected in ((False, False), (None, False), (True, True), (None, True)):
        recheck(ledger, None, run, launch)
        submitted = ledger.submission(run)
        assert submitted is not None
        assert from_json(submitted.request) == (job_of(40.0), expected)
    assert ledger.account(run).status == "stopped"


def test_a_run_of_the_command_line_is_nobodys(ledger: Ledger, ada: Member):
    first = Started(job_of(None), SPACE, "simulated", Provenance.SIMULATED, "0")
    run = ledger.begin("resnet", VirtualClock(), first).run
    release(ledger, run, "its process is gone")
    assert ledger.account(run).status == "stopped"
    recheck(ledger, ada, run, launch=True)
    assert ledger.submission(run) is None
    assert ledger.account(run).status == "stopped"  # whoever drives it will say that it goes on
    assert remaining_budget(ledger, ada).usd == 50.0


@pytest.mark.parametrize(
    "asked", ["", "[]", "{}", '{"job": {"goal": {}}, "launch": true}', '{"job": 1, "launch": true}']
)
def test_a_submission_that_cannot_be_read_is_told_as_damage(ledger: Ledger, ada: Member, asked: str):
    ledger.submit("resnet", asked, "ada")
    with pytest.raises(LedgerCorrupt, match="run 'resnet-1'"):
        remaining_budget(ledger, ada)


def test_what_others_write_counts_and_what_was_undone_does_not(ledger: Ledger, ada: Member, driven: Any):
    run = ask(ledger, ada, 40.0)
    driven.begin(run, job_of(40.0))
    assert remaining_budget(ledger, ada).usd == 10.0
    with suppress(ZeroDivisionError), ledger.database.write():
        driven.stop(run)
        raise ZeroDivisionError
    with closing(open_database(ledger.database.path or ledger.database.url)) as elsewhere:
        assert remaining_budget(Ledger(elsewhere), ada).usd == remaining_budget(ledger, ada).usd == 10.0
        other = type(driven)(Ledger(elsewhere), driven.clock.day)
        other.reserve(run, 5.0)
        other.settle(run, 5.0)
        assert remaining_budget(Ledger(elsewhere), ada).usd == remaining_budget(ledger, ada).usd == 10.0
        other.stop(run)
        assert remaining_budget(Ledger(elsewhere), ada).usd == remaining_budget(ledger, ada).usd == 45.0


@pytest.mark.parametrize("page", [1, 2, 3])
def test_a_long_ledger_is_read_page_by_page(
    ledger: Ledger, ada: Member, driven: Any, monkeypatch: pytest.MonkeyPatch, page: int
):
    monkeypatch.setattr(budget, "PAGE", page)
    run = ask(ledger, ada, 40.0)
    driven.begin(run, job_of(40.0))
    for usd in (1.0, 2.0, 3.0):
        driven.reserve(run, usd)
        driven.settle(run, usd)
    driven.stop(run)
    assert remaining_budget(ledger, ada).usd == 44.0


@pytest.mark.parametrize("shared", ["member", "team"])
def test_of_two_at_the_same_moment_only_one_gets_the_last_dollars(
    database: Database, members: Members, ledger: Ledger, shared: str
):
    limit = {"member": 10.0, "team": None}[shared]
    members.set_team_budget("vision", 10.0 if shared == "team" else None)
    for name in ("ada", "bob"):
        members.add(name, Role.RUNNER, "vision", limit)
    names = ["ada"] * 4 if shared == "member" else ["ada", "bob"] * 2
    start = Barrier(len(names), timeout=300)

    def try_it(name: str) -> str | float:
        member = members.get(name)
        start.wait()
        try:
            return ask(ledger, member, 6.0)
        except OverBudget as refused:
            return refused.left_usd

    with ThreadPoolExecutor(len(names)) as pool:
        for round_ in range(1, 6):
            assert sorted(map(str, pool.map(try_it, names))) == ["4.0", "4.0", "4.0", f"resnet-{round_}"]
            ledger.refuse(f"resnet-{round_}", "for the next round")


def test_of_two_that_go_on_at_the_same_moment_only_one_does(ledger: Ledger, members: Members, ada: Member, driven: Any):
    runs = []
    for _ in range(4):
        runs.append(ask(ledger, ada, 30.0))
        driven.begin(runs[-1], job_of(30.0))
        driven.stop(runs[-1])
    start = Barrier(len(runs), timeout=300)

    def go_on(run: str) -> bool:
        start.wait()
        try:
            recheck(ledger, ada, run)
        except OverBudget:
            return False
        return True

    with ThreadPoolExecutor(len(runs)) as pool:
        assert sorted(pool.map(go_on, runs)) == [False, False, False, True]
    assert remaining_budget(ledger, ada).usd == 20.0


def test_one_member_has_only_so_many_runs_waiting_and_others_are_not_held_up(ledger: Ledger, members: Members):
    for name in ("ron", "rita"):
        members.add(name, Role.RUNNER)
    ron, rita = members.get("ron"), members.get("rita")

    def send(who: Member) -> str:
        job = job_of(1.0)
        return submit(ledger, who, job, to_json(job, False), most_queued=2)

    first, second = send(ron), send(ron)
    with pytest.raises(WrongState, match="ron has 2 runs waiting, and 2 are the most: wait, or stop some of them"):
        send(ron)
    assert send(rita)
    ledger.refuse(first, "stopped before it began")
    assert send(ron)
    ledger.begin("resnet", VirtualClock(), Started(job_of(1.0), SPACE, "local", Provenance.LIVE, "0"), run=second)
    assert send(ron), "what has begun waits no more"
