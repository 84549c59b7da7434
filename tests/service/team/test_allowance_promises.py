"""Whatever the order of submissions, settlements and ends, and whatever time passes: what runs have spent and can spend
keeps to the limits, in all and in each month.

The allowance never replays a run. Here every run is replayed after every step, by the ledger's own account, and the two
have to agree to the cent.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mlcd_fixtures.examples import SLOW

from mlcd.core.errors import UserError, WrongState
from mlcd.core.job import Goal, Job
from mlcd.core.ledger import Account, Ledger, Status
from mlcd.service.team.allowance import OverBudget, recheck, release, remaining_budget, submit, used
from mlcd.service.team.budget import Budget, Per
from mlcd.service.team.members import Member, Members, Role
from mlcd.service.workers.submissions import to_json

NUMBERS = itertools.count()
OVER = (Status.FINISHED, Status.FAILED, Status.INFEASIBLE, Status.STOPPED)


@dataclass
class One:
    """A run as the test knows it: what nobody but the test says of it."""

    run: str
    owner: str
    job: Job
    launch: bool
    free: bool
    months: dict[str, float] = field(default_factory=dict)
    refused: bool = False
    begun: bool = False

    @property
    def budget_usd(self) -> float:
        assert self.job.goal.budget_usd is not None
        return self.job.goal.budget_usd


@dataclass
class World:
    """Two members of a team, each with a limit, and the team with one; runs that take any step that is possible.

    `most`: of each, the limit, or what is claimed already where the limit was lowered below that.
    """

    ledger: Ledger
    members: Members
    driven: Any
    names: list[str]
    team: str
    limits: dict[str, Budget] = field(default_factory=dict)
    most: dict[str, float] = field(default_factory=dict)
    runs: list[One] = field(default_factory=list)
    replayed: dict[str, Account] = field(default_factory=dict)

    @property
    def now(self) -> Callable[[], Any]:
        return self.driven.clock.day.now  # type: ignore[no-any-return]

    def limit(self, of: str, cents: int, per: Per) -> None:
        budget = self.limits[of] = Budget(cents / 100, per)
        if of == self.team:
            self.members.set_team_budget(of, budget.usd, per)
        else:
            self.members.change(of, budget_usd=budget.usd, budget_per=per)
        self.most[of] = max(cents / 100, self.claimed(of))

    def account(self, one: One) -> Account | None:
        """Replayed once after each step of the run."""
        if one.begun and one.run not in self.replayed:
            self.replayed[one.run] = self.ledger.account(one.run)
        return self.replayed.get(one.run)

    def can_come_to(self, one: One) -> float:
        """The most that a run has spent or will have, if everybody does what they may without asking again."""
        account = self.account(one)
        if account is None:
            return 0.0 if one.refused else one.budget_usd
        status, spent_usd = account.status, account.history.spent_usd
        over = status in OVER or (status is Status.DECIDED and not one.launch)
        return spent_usd if over and not account.open else one.budget_usd

    def spent(self, of: str, now: bool) -> float:
        """What was settled in the time that the limit is over now; or before."""
        this, by_month = f"{self.now():%Y-%m}", self.limits[of].per is Per.MONTH
        settled = (each for one in self.counted(of) for each in one.months.items())
        return sum(usd for month, usd in settled if (month == this or not by_month) is now)

    def counted(self, of: str) -> list[One]:
        return [one for one in self.runs if of in (one.owner, self.team) and not one.free]

    def claimed(self, of: str) -> float:
        return sum(self.can_come_to(one) for one in self.counted(of)) - self.spent(of, now=False)

    def room(self, owner: str) -> float:
        return min(max(0.0, (self.limits[of].usd or 0.0) - self.claimed(of)) for of in (owner, self.team))

    def check(self, name: str) -> None:
        for of, limit in self.limits.items():
            claimed_usd = self.claimed(of)
            assert self.spent(of, now=True) <= claimed_usd + 1e-6
            assert claimed_usd <= self.most[of] + 1e-6
            self.most[of] = max(limit.usd or 0.0, claimed_usd)
        allowed = remaining_budget(self.ledger, Member(name, Role.RUNNER, self.team), self.now)
        assert allowed.usd == pytest.approx(self.room(name), abs=1e-6)
        use = used(self.ledger, self.team, self.now)
        assert use.spent_usd == pytest.approx(self.spent(self.team, now=True), abs=1e-6)
        assert use.spent_usd + use.claimed_usd == pytest.approx(self.claimed(self.team), abs=1e-6)

    def submit(self, owner: str, cents: int, launch: bool, free: bool) -> None:
        job = Job("job", 1.0, Goal(budget_usd=cents / 100))
        fits = free or cents / 100 <= self.room(owner) + 1e-6
        try:
            run = submit(self.ledger, self.members.get(owner), job, to_json(job, launch), free, self.now)
        except OverBudget:
            assert not fits
        else:
            assert fits
            self.runs.append(One(run, owner, job, launch, free))

    def go_on(self, one: One, launch: bool | None) -> None:
        account = self.account(one)
        if account is None:
            with pytest.raises(WrongState):
                recheck(self.ledger, None, one.run, launch, self.now)
            return
        more_usd = self._more(one, account, one.launch if launch is None else launch)
        fits = one.free or more_usd <= self.room(one.owner) + 1e-6
        try:
            recheck(self.ledger, None, one.run, launch, self.now)
        except WrongState:
            assert account.ended is not None or account.status is Status.INFEASIBLE
        except OverBudget:
            assert not fits
        else:
            assert fits
            one.launch = one.launch if launch is None else launch

    def change_limits(self, one: One, cents: int) -> None:
        """The user gives the run another budget: what was spent before counts, too."""
        goal, account = Goal(budget_usd=cents / 100), self.account(one)
        if account is None or goal == one.job.goal:
            return
        fits = one.free or cents / 100 - self.can_come_to(one) <= self.room(one.owner) + 1e-6
        used_usd = account.history.spent_usd + sum(each.worst_usd for each in account.open)
        try:
            recheck(self.ledger, None, one.run, None, self.now, goal)
        except WrongState:
            assert account.status is Status.FINISHED
        except OverBudget:
            assert not fits
        except UserError:
            assert cents / 100 <= used_usd
        else:
            assert fits
            one.job = replace(one.job, goal=goal)

    def _more(self, one: One, account: Account, launch: bool) -> float:
        """What going on would claim beyond what the run counts with now."""
        rests = account.decision is not None and not account.final_runs and not account.open
        return 0.0 if rests and not launch else one.budget_usd - self.can_come_to(one)

    def possible(self, one: One) -> list[str]:
        """What can happen to a run now: the steps of its driver, and of people who ask for something."""
        account = self.account(one)
        if account is None:
            return ["go on"] if one.refused else ["begin", "begin", "refuse", "go on"]
        if account.open:
            return ["settle", "settle", "void", "stop", "go on", "change limits"]
        asked = ["go on", "release", "change limits"]
        if account.status is Status.SEARCHING:
            return ["reserve", "decide", "stop", *asked]
        if account.status is Status.RUNNING:
            return ["reserve", "end", "stop", *asked]
        if account.status is Status.DECIDED and one.launch:
            return ["reserve", "reserve", "stop", *asked]
        return asked

    def step(self, what: str, one: One, share: float, flag: bool | None, cents: int) -> None:
        account, run = self.account(one), one.run
        rest_usd = one.budget_usd - (account.history.spent_usd if account is not None else 0.0)
        match what:
            case "begin":
                self.driven.begin(run, one.job)
                one.begun = True
            case "refuse":
                self.ledger.refuse(run, "no such method")
                one.refused = True
            case "reserve":
                self.driven.reserve(run, rest_usd * share)
            case "settle":
                assert account is not None
                worst_usd, month = account.open[0].worst_usd, f"{self.now():%Y-%m}"
                self.driven.settle(run, worst_usd)  # the worst comes true
                one.months[month] = one.months.get(month, 0.0) + worst_usd
            case "decide":
                self.driven.decide(run, feasible=flag is not False)
            case "go on":
                self.go_on(one, flag)
            case "change limits":
                self.change_limits(one, cents)
            case "release":
                release(self.ledger, run, "taken back")
            case _:
                getattr(self.driven, what)(run)
        self.replayed.pop(run, None)


@settings(SLOW, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    limits=st.tuples(*[st.tuples(st.integers(0, 100), st.sampled_from(Per))] * 3),
    steps=st.lists(
        st.tuples(
            st.sampled_from(["run"] * 7 + ["submit"] * 2 + ["time", "limit"]),
            st.integers(0, 11),
            st.integers(1, 60),
            st.sampled_from([0.0, 0.1, 0.5, 1.0]),
            st.sampled_from([True, False, None]),
        ),
        min_size=15,
        max_size=40,
    ),
)
def test_no_order_of_steps_breaks_a_limit_and_no_replay_tells_otherwise(
    ledger: Ledger, members: Members, driven: Any, limits: tuple[tuple[int, Per], ...], steps: list[Any]
):
    number = next(NUMBERS)  # of each example its own members, on one database
    names, team = [f"ada-{number}", f"bob-{number}"], f"team-{number}"
    for name in names:
        members.add(name, Role.RUNNER, team)
    world = World(ledger, members, driven, names, team)
    for of, limit in zip([*names, team], limits, strict=True):
        world.limit(of, *limit)
    for moved, what, cents, share, flag in steps:
        match moved:
            case "run" if world.runs:
                one = world.runs[cents % 3 - 3 :][0]  # one of the newest
                possible = world.possible(one)
                world.step(possible[what % len(possible)], one, share, flag, cents)
            case "time":
                driven.clock.day.pass_by(days=cents)
            case "limit":
                world.limit([*names, team][what % 3], cents, list(Per)[what % 2])
            case _:
                world.submit(names[what % 2], cents, bool(flag), free=share == 0.1)
        world.check(names[cents % 2])
