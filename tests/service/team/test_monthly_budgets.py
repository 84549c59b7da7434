"""A budget by the month: what is settled counts in its month, what a run can still spend in every month until then."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from mlcd.core.job import Goal, Job
from mlcd.core.ledger import Ledger
from mlcd.service.team.allowance import OverBudget, RemainingBudget, Used, recheck, remaining_budget, submit, used
from mlcd.service.team.budget import Budget, Per
from mlcd.service.team.members import Member, Members, Role
from mlcd.service.workers.submissions import to_json

MONTHLY = Budget(50.0, Per.MONTH)


@pytest.fixture
def ada(members: Members) -> Member:
    members.add("ada", Role.RUNNER, "vision", 50.0, Per.MONTH)
    return members.get("ada")


class Spender:
    """Ada, who asks for runs, and whoever drives them."""

    def __init__(self, ledger: Ledger, ada: Member, driven: Any) -> None:
        self.ledger, self.ada, self.driven, self.day = ledger, ada, driven, driven.clock.day

    def ask(self, usd: float | None, free: bool = False) -> str:
        job = Job("resnet", 1.0, Goal(budget_usd=usd))
        run = submit(self.ledger, self.ada, job, to_json(job, False), free, self.day.now)
        self.driven.begin(run, job)
        return run

    def spend(self, run: str, usd: float) -> None:
        self.driven.reserve(run, usd)
        self.driven.settle(run, usd)

    @property
    def left_usd(self) -> float | None:
        return remaining_budget(self.ledger, self.ada, self.day.now).usd


@pytest.fixture
def spender(ledger: Ledger, ada: Member, driven: Any) -> Spender:
    return Spender(ledger, ada, driven)


def test_who_is_over_a_months_budget_is_told_what_is_left_and_when_it_is_renewed(spender: Spender):
    spender.ask(38.0)
    with pytest.raises(OverBudget) as refused:
        spender.ask(40.0)
    assert str(refused.value) == (
        "ada has $12.00 left of $50.00 a month, renewed on 2026-12-01; "
        "this job may spend $40.00: lower its budget, or ask an admin"
    )
    allowed = remaining_budget(spender.ledger, spender.ada, spender.day.now)
    assert allowed == RemainingBudget(12.0, "ada", MONTHLY, date(2026, 12, 1))


def test_what_was_spent_counts_in_its_month_alone(spender: Spender):
    run = spender.ask(40.0)
    spender.spend(run, 30.0)
    spender.driven.stop(run)
    assert spender.left_usd == 20.0
    spender.day.time = datetime(2026, 11, 30, 23, 59, 59, tzinfo=UTC)
    assert spender.left_usd == 20.0
    spender.day.pass_by(seconds=1)
    assert spender.left_usd == 50.0
    # It goes on in another month: there it may spend what it has left.
    recheck(spender.ledger, spender.ada, run, now=spender.day.now)
    assert spender.left_usd == 40.0
    assert used(spender.ledger, spender.ada, spender.day.now) == Used(0.0, 10.0)


def test_a_run_across_two_months_counts_in_each_with_what_it_spent_there_and_can_still_spend(spender: Spender):
    run = spender.ask(50.0)
    spender.spend(run, 20.0)
    assert spender.left_usd == 0.0
    spender.day.pass_by(days=20)
    assert spender.left_usd == 20.0  # it can still spend 30
    spender.spend(run, 25.0)
    assert spender.left_usd == 20.0
    assert used(spender.ledger, spender.ada, spender.day.now) == Used(25.0, 5.0)
    spender.driven.stop(run)
    assert spender.left_usd == 25.0
    spender.day.pass_by(days=40)
    assert spender.left_usd == 50.0


def test_what_a_clock_that_is_ahead_wrote_counts_already(spender: Spender):
    run = spender.ask(40.0)
    now = spender.day.time
    spender.day.pass_by(days=20)
    spender.spend(run, 30.0)
    spender.driven.stop(run)
    spender.day.time = now
    assert spender.left_usd == 20.0


def test_a_month_and_a_total_hold_side_by_side(spender: Spender, members: Members):
    members.set_team_budget("vision", 70.0)
    run = spender.ask(45.0)
    spender.spend(run, 45.0)
    spender.driven.decide(run)
    assert spender.left_usd == 5.0
    spender.day.pass_by(days=30)
    allowed = remaining_budget(spender.ledger, spender.ada, spender.day.now)
    assert str(allowed) == "team vision has $25.00 left of $70.00"
    members.set_team_budget("vision", 70.0, Per.MONTH)
    assert spender.left_usd == 50.0
    assert used(spender.ledger, "vision", spender.day.now) == Used(0.0, 0.0)


def test_a_free_run_counts_with_nothing_and_needs_no_budget(spender: Spender, members: Members):
    members.change("ada", budget_usd=0.0)
    for usd in (40.0, None):
        run = spender.ask(usd, free=True)
        spender.spend(run, 30.0)
        spender.driven.stop(run)
        recheck(spender.ledger, spender.ada, run, now=spender.day.now)
        assert spender.ledger.account(run).status == "searching"
    assert used(spender.ledger, spender.ada, spender.day.now) == Used(0.0, 0.0)
    with pytest.raises(OverBudget):
        spender.ask(0.01)


@pytest.mark.parametrize(
    ("now", "since", "renewed_on"),
    [
        (datetime(2026, 1, 1, tzinfo=UTC), "2026-01", date(2026, 2, 1)),
        (datetime(2026, 12, 31, 23, 59, tzinfo=UTC), "2026-12", date(2027, 1, 1)),
        (datetime(2026, 12, 1, 0, 30, tzinfo=timezone(timedelta(hours=1))), "2026-11", date(2026, 12, 1)),
    ],
)
def test_months_are_those_of_utc(now: datetime, since: str, renewed_on: date):
    assert (MONTHLY.since(now), MONTHLY.renewed_on(now)) == (since, renewed_on)
    assert Budget(50.0).since(now) == ""
    assert Budget(50.0).renewed_on(now) is None
    assert Budget(None, Per.MONTH).renewed_on(now) is None
