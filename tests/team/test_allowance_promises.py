"""Whatever the order of submissions, settlements and ends: what runs have spent and can spend keeps to the limits.

The allowance never replays a run. Here every run is replayed after every step, by the ledger's own account, and the two
have to agree to the cent.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mlcd.errors import WrongState
from mlcd.job import Goal, Job
from mlcd.ledger import Account, Ledger, Status
from mlcd.team import Member, Members, OverBudget, Role, left, recheck, release, submit
from mlcd.workers.asked import to_json

NUMBERS = itertools.count()
OVER = (Status.FINISHED, Status.FAILED, Status.INFEASIBLE, Status.STOPPED)


@dataclass
class One:
    """A run as the test knows it: what nobody but the test says of it."""

    run: str
    owner: str
    job: Job
    launch: bool
    refused: bool = False
    begun: bool = False

    @property
    def budget_usd(self) -> float:
        assert self.job.goal.budget_usd is not None
        return self.job.goal.budget_usd


@dataclass
class World:
    """Two members of a team, each with a limit, and the team with one; runs that take any step that is possible."""

    ledger: Ledger
    driven: Any
    members: dict[str, Member]
    limits: dict[str, float]
    runs: list[One] = field(default_factory=list)

    def account(self, one: One) -> Account | None:
        return self.ledger.account(one.run) if one.begun else None

    def can_come_to(self, one: One) -> float:
        """The most that a run has spent or will have, if everybody does what they may without asking again."""
        account = self.account(one)
        if account is None:
            return 0.0 if one.refused else one.budget_usd
        status, spent_usd = account.status, account.history.spent_usd
        over = status in OVER or (status is Status.DECIDED and not one.launch)
        return spent_usd if over and not account.open else one.budget_usd

    def claimed(self, of: str) -> float:
        return sum(self.can_come_to(one) for one in self.runs if of in (one.owner, "team"))

    def room(self, owner: str) -> float:
        return min(self.limits[of] - self.claimed(of) for of in (owner, "team"))

    def check(self) -> None:
        for of, limit_usd in self.limits.items():
            assert self.claimed(of) <= limit_usd + 1e-6
        for name, member in self.members.items():
            assert left(self.ledger, member).usd == pytest.approx(self.room(name), abs=1e-6)

    def submit(self, owner: str, cents: int, launch: bool) -> None:
        job = Job("job", 1.0, Goal(budget_usd=cents / 100))
        fits = job.goal.budget_usd <= self.room(owner) + 1e-6  # type: ignore[operator]
        try:
            run = submit(self.ledger, self.members[owner], job, to_json(job, launch))
        except OverBudget:
            assert not fits
        else:
            assert fits
            self.runs.append(One(run, owner, job, launch))

    def go_on(self, one: One, launch: bool | None) -> None:
        account = self.account(one)
        if account is None:
            with pytest.raises(WrongState):
                recheck(self.ledger, None, one.run, launch)
            return
        more_usd = self._more(one, account, one.launch if launch is None else launch)
        fits = more_usd <= self.room(one.owner) + 1e-6
        try:
            recheck(self.ledger, None, one.run, launch)
        except WrongState:
            assert account.ended is not None or account.status is Status.INFEASIBLE
        except OverBudget:
            assert not fits
        else:
            assert fits
            one.launch = one.launch if launch is None else launch

    def _more(self, one: One, account: Account, launch: bool) -> float:
        """What going on would claim beyond what the run counts with now."""
        rests = account.decision is not None and not account.history.runs and not account.open
        return 0.0 if rests and not launch else one.budget_usd - self.can_come_to(one)

    def possible(self, one: One) -> list[str]:
        """What can happen to a run now: the steps of its driver, and of people who ask for something."""
        account = self.account(one)
        if account is None:
            return ["go on"] if one.refused else ["begin", "begin", "refuse", "go on"]
        if account.open:
            return ["settle", "settle", "void", "stop", "go on"]
        asked = ["go on", "release"]
        if account.status is Status.SEARCHING:
            return ["reserve", "decide", "stop", *asked]
        if account.status is Status.RUNNING:
            return ["reserve", "end", "stop", *asked]
        if account.status is Status.DECIDED and one.launch:
            return ["reserve", "reserve", "stop", *asked]
        return asked

    def step(self, what: str, one: One, share: float, flag: bool | None) -> None:
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
                self.driven.settle(run, account.open[0].worst_usd)  # the worst comes true
            case "decide":
                self.driven.decide(run, feasible=flag is not False)
            case "go on":
                self.go_on(one, flag)
            case "release":
                release(self.ledger, run, "taken back")
            case _:
                getattr(self.driven, what)(run)


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    limits=st.tuples(*[st.integers(0, 100)] * 3),
    steps=st.lists(
        st.tuples(
            st.integers(0, 5),
            st.integers(0, 11),
            st.integers(1, 60),
            st.sampled_from([0.0, 0.1, 0.5, 1.0]),
            st.sampled_from([True, False, None]),
        ),
        max_size=40,
    ),
)
def test_no_order_of_steps_breaks_a_limit_and_no_replay_tells_otherwise(
    ledger: Ledger, members: Members, driven: Any, limits: tuple[int, int, int], steps: list[Any]
):
    number = next(NUMBERS)  # of each example its own members, on one database
    names = [f"ada-{number}", f"bob-{number}"]
    team = f"team-{number}"
    for name, cents in zip(names, limits, strict=False):
        members.add(name, Role.RUNNER, team, cents / 100)
    members.set_team_budget(team, limits[2] / 100)
    known = {name: members.get(name) for name in names}
    world = World(ledger, driven, known, dict(zip([*names, "team"], (cents / 100 for cents in limits), strict=True)))
    for which, what, cents, share, flag in steps:
        if which >= len(world.runs):
            world.submit(names[which % 2], cents, bool(flag))
        else:
            one = world.runs[which]
            possible = world.possible(one)
            world.step(possible[what % len(possible)], one, share, flag)
        world.check()
