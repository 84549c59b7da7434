"""80 % of a member's or a team's budget are news: of the launch that passes it, once in each period."""

from __future__ import annotations

from typing import Any

import pytest

from mlcd.core.errors import LedgerUnreachable
from mlcd.core.job import Goal, Job
from mlcd.core.ledger import Ledger
from mlcd.service.notifications.events import Notification
from mlcd.service.notifications.reader import NotificationReader
from mlcd.service.team.allowance import submit
from mlcd.service.team.budget import Per
from mlcd.service.team.members import Members, Role
from mlcd.service.workers.submissions import to_json

OF_BUDGETS = ("member_budget", "team_budget")


class Spender:
    """Members who ask for runs, and whoever drives them."""

    def __init__(self, ledger: Ledger, members: Members, driven: Any) -> None:
        self.ledger, self.members, self.driven, self.day = ledger, members, driven, driven.clock.day

    def ask(self, who: str, free: bool = False) -> str:
        job = Job("resnet", 1.0, Goal(budget_usd=10.0))
        run = submit(self.ledger, self.members.get(who), job, to_json(job, False), free, self.day.now)
        self.driven.begin(run, job)
        return run

    def spend(self, run: str, usd: float) -> list[Notification]:
        """The news of budgets that this makes."""
        before = self.ledger.last_seq()
        self.driven.reserve(run, usd)
        self.driven.settle(run, usd)
        return [
            news for news in NotificationReader(self.ledger).after(before).notifications if news.event in OF_BUDGETS
        ]


@pytest.fixture
def spender(ledger: Ledger, members: Members, driven: Any) -> Spender:
    members.add("ada", Role.RUNNER, "vision", 50.0, Per.MONTH)
    members.add("bob", Role.RUNNER, "vision")
    return Spender(ledger, members, driven)


def test_the_launch_that_passes_a_members_budget_is_news_once_a_month(spender: Spender):
    run = spender.ask("ada")
    assert spender.spend(run, 39.0) == []
    (news,) = spender.spend(run, 2.0)
    assert (news.event, news.owner, news.money) == ("member_budget", "ada", "$41.00 of $50.00 a month spent")
    assert (
        news.text == f"{run} of ada: member budget. ada has used 80 % of their budget; $41.00 of $50.00 a month spent"
    )
    assert spender.spend(run, 3.0) == []
    spender.day.pass_by(days=20)
    assert spender.spend(run, 39.0) == []
    assert [each.event for each in spender.spend(run, 1.0)] == ["member_budget"]


def test_a_teams_budget_is_of_all_its_members_runs_and_told_as_nobodys_own(spender: Spender):
    spender.members.set_team_budget("vision", 40.0)
    assert spender.spend(spender.ask("bob"), 16.0) == []
    (news,) = spender.spend(spender.ask("bob"), 16.0)
    assert (news.event, news.owner, news.team) == ("team_budget", None, "vision")
    assert news.words == "team vision has used 80 % of its budget"


def test_runs_that_cost_nothing_are_no_news_of_a_budget(spender: Spender):
    assert spender.spend(spender.ask("ada", free=True), 49.0) == []
    assert spender.spend(spender.ask("ada"), 30.0) == []


def test_what_is_read_again_says_the_same(spender: Spender):
    run = spender.ask("ada")
    first = spender.spend(run, 45.0)
    spender.spend(run, 1.0)
    again = [news for news in NotificationReader(spender.ledger).after(0).notifications if news.event in OF_BUDGETS]
    assert again == first


def test_what_could_not_be_read_for_a_moment_is_read_in_full_the_next_time(spender: Spender):
    run = spender.ask("ada")

    class Flaky:
        """The ledger, whose database goes away while whose runs are whose is looked up."""

        away = True

        def __getattr__(self, name: str) -> Any:
            return getattr(spender.ledger, name)

        def owners(self) -> Any:
            if self.away:
                raise LedgerUnreachable("away", "database")
            return spender.ledger.owners()

    ledger: Any = Flaky()
    reader = NotificationReader(ledger)
    read = reader.after(0).end
    spender.spend(run, 30.0)
    spender.spend(run, 12.0)
    with pytest.raises(LedgerUnreachable):
        reader.after(read)
    ledger.away = False
    events = [news.event for news in reader.after(read).notifications]
    assert events == ["budget", "member_budget"]


def test_a_sum_of_many_small_amounts_passes_once(spender: Spender):
    spender.members.change("ada", budget_usd=1.0)
    job = Job("small", 1.0, Goal(budget_usd=1.0))
    run = submit(spender.ledger, spender.members.get("ada"), job, to_json(job, False), False, spender.day.now)
    spender.driven.begin(run, job)
    passed = [spender.spend(run, 0.1) for _ in range(10)]
    assert [len(each) for each in passed] == [0] * 7 + [1, 0, 0]
