"""Members, what they may do and spend, and what was done: for admins."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from mlcd.core.errors import WrongState
from mlcd.service.team import AuditEntry, Budget, Member, Members, Per, Role, Used, left, used
from mlcd.service.web.answers import Answer, problems
from mlcd.service.web.failures import named
from mlcd.service.web.identity import Admin, noted
from mlcd.service.web.state import Here, State

router = APIRouter(tags=["team"])
RoleName = Literal["viewer", "runner", "admin"]
Time = Literal["total", "month"]
Name = Annotated[str, Field(min_length=1, max_length=60)]
Usd = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
STATUSES = problems(404, 409, 413, 415, 422)


class Sent(BaseModel):
    """What a request may say: nothing else."""

    model_config = ConfigDict(extra="forbid", strict=True)


class NewMember(Sent):
    """Somebody who is to use the service. No budget is no limit; it is over everything, or over each month anew."""

    name: Name
    role: RoleName
    team: Name | None = None
    budget_usd: Usd | None = None
    budget_per: Time = "total"


class Change(Sent):
    """What is to be another; what is not named stays. Null says: no team, no limit."""

    role: RoleName | None = None
    team: Name | None = None
    budget_usd: Usd | None = None
    budget_per: Time | None = None


class TeamBudget(Sent):
    """What a team's runs may spend together, null for no limit; without `budget_per` over the same time as before."""

    budget_usd: Usd | None
    budget_per: Time | None = None


class Spent(Answer):
    """A budget, what was spent in its time, and what runs can still spend: null, if one of them has no limit."""

    budget_usd: float | None
    budget_per: Time
    spent_usd: float
    claimed_usd: float | None


class MemberAnswer(Spent):
    """A member. `left_usd`: what they may still ask for; null for no limit."""

    name: str
    role: RoleName
    team: str | None
    left_usd: float | None


class MembersAnswer(Answer):
    """All members, by name."""

    members: list[MemberAnswer]


class TokenAnswer(Answer):
    """A member and their new token, which is told this once."""

    member: str
    token: str


class TeamAnswer(Spent):
    """A team and its budget."""

    name: str


class TeamsAnswer(Answer):
    """All teams, by name."""

    teams: list[TeamAnswer]


class AuditAnswer(Answer):
    """The newest first."""

    entries: list[AuditEntry]


@router.get("/members", responses=problems(409))
def list_members(here: Here, who: Admin) -> MembersAnswer:
    """Who may use this service."""
    return MembersAnswer(members=[_told(here, each) for each in _members(here).all()])


@router.post("/members", status_code=201, responses=STATUSES)
def add_member(asked: NewMember, here: Here, who: Admin) -> TokenAnswer:
    """A new member, and the token to give them."""
    with noted(here, who, "add member", asked.name) as note:
        member = Member(asked.name, Role(asked.role), asked.team, asked.budget_usd, Per(asked.budget_per))
        token = _members(here).add(member.name, member.role, member.team, member.budget_usd, member.budget_per)
        note.detail = str(member)
    return TokenAnswer(member=asked.name, token=token)


@router.patch("/members/{name}", responses=STATUSES)
def change_member(name: str, asked: Change, here: Here, who: Admin) -> MemberAnswer:
    """Another role, team or budget."""
    told: dict[str, Any] = asked.model_dump(exclude_unset=True)
    for name_of, kind in (("role", Role), ("budget_per", Per)):
        if (word := told.pop(name_of, None)) is not None:
            told[name_of] = kind(word)
    with noted(here, who, "change member", name) as note, named():
        member = _members(here).change(name, **told)
        note.detail = str(member)
    return _told(here, member)


@router.delete("/members/{name}", status_code=204, responses=STATUSES)
def remove_member(name: str, here: Here, who: Admin) -> Response:
    """No member any more: token and sessions are void."""
    with noted(here, who, "remove member", name), named():
        _members(here).remove(name)
    return Response(status_code=204)


@router.post("/members/{name}/token", status_code=201, responses=STATUSES)
def renew_token(name: str, here: Here, who: Admin) -> TokenAnswer:
    """A new token; the old one is void."""
    with noted(here, who, "renew token", name), named():
        token = _members(here).renew(name)
    return TokenAnswer(member=name, token=token)


@router.get("/teams", responses=problems(409))
def list_teams(here: Here, who: Admin) -> TeamsAnswer:
    """Teams and their budgets."""
    return TeamsAnswer(teams=[_told_team(here, name, budget) for name, budget in _members(here).teams().items()])


@router.put("/teams/{team}", responses=STATUSES)
def set_team_budget(team: str, asked: TeamBudget, here: Here, who: Admin) -> TeamAnswer:
    """What all runs of a team may spend together."""
    with noted(here, who, "team budget", team) as note:
        told = {"per": Per(asked.budget_per)} if asked.budget_per is not None else {}
        budget = _members(here).set_team_budget(team, asked.budget_usd, **told)
        note.detail = str(budget)
    return _told_team(here, team, budget)


@router.get("/audit", responses=problems())
def read_audit(
    here: Here,
    who: Admin,
    before: Annotated[int | None, Query(ge=1, le=2**62)] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 200,
) -> AuditAnswer:
    """What was done and what was refused, the newest first."""
    return AuditAnswer(entries=here.audit.entries(limit, before))


def _members(here: State) -> Members:
    if here.members is None:
        raise WrongState("there is one person here, and no team; `mlcd service` is for one")
    return here.members


def _told(here: State, member: Member) -> MemberAnswer:
    return MemberAnswer(
        name=member.name,
        role=member.role.value,
        team=member.team,
        left_usd=left(here.ledger, member).usd,
        **_spent(member.budget, used(here.ledger, member)),
    )


def _told_team(here: State, team: str, budget: Budget) -> TeamAnswer:
    return TeamAnswer(name=team, **_spent(budget, used(here.ledger, team)))


def _spent(budget: Budget, use: Used) -> dict[str, Any]:
    return {
        "budget_usd": budget.usd,
        "budget_per": budget.per.value,
        "spent_usd": use.spent_usd,
        "claimed_usd": use.claimed_usd if math.isfinite(use.claimed_usd) else None,
    }
