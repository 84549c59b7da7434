"""Members, their roles and budgets: for admins."""

from dataclasses import asdict
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Response
from pydantic import Field

from mlcd.core.errors import WrongState
from mlcd.core.part import Finite, Part, part_fields
from mlcd.service.sign_in.identities import Account, Identities
from mlcd.service.team.allowance import remaining_budget, used
from mlcd.service.team.budget import Budget, Per
from mlcd.service.team.members import Member, Members, Role
from mlcd.service.web.errors import RequestBody, error_responses, unknown_is_404
from mlcd.service.web.identity import Admin, audited
from mlcd.service.web.state import CurrentState, State

router = APIRouter(tags=["team"])
RoleName = Literal["viewer", "runner", "admin"]
Time = Literal["total", "month"]
Name = Annotated[str, Field(min_length=1, max_length=60)]
Usd = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
MemberName = Annotated[str, Path(description="The member's name.")]
TeamName = Annotated[str, Path(description="The team's name.")]
STATUSES = error_responses(404, 409, 413, 415, 422)


class NewMember(RequestBody):
    """A new member. Without a budget there is no limit; a budget is in total, or for each month."""

    name: Name = Field(description="Their name.")
    role: RoleName = Field(description="What they may do.")
    team: Name | None = Field(default=None, description="Their team.")
    budget_usd: Usd | None = Field(default=None, description="What they may spend; null for no limit.")
    budget_per: Time = Field(default="total", description="The budget's period: in total, or each month.")


class MemberChange(RequestBody):
    """What to change; what is not given stays. Null: no team, no limit."""

    role: RoleName | None = Field(default=None, description="What they may do.")
    team: Name | None = Field(default=None, description="Their team; null for none.")
    budget_usd: Usd | None = Field(default=None, description="What they may spend; null for no limit.")
    budget_per: Time | None = Field(default=None, description="The budget's period: in total, or each month.")


class NewAccount(RequestBody):
    """Somebody's account at the sign-in provider."""

    issuer: str = Field(min_length=1, max_length=400, description="The provider's issuer URL.")
    subject: str = Field(min_length=1, max_length=400, description="The account's subject: the claim `sub`.")


class TeamBudget(RequestBody):
    """The budget of a team's runs together, null for no limit; without `budget_per` its period stays."""

    budget_usd: Usd | None = Field(description="Dollars; null for no limit.")
    budget_per: Time | None = Field(None, description="The period: in total, or each month; null: as before.")


class Spent(Part):
    """A budget, what was spent in its period, and what active runs can still spend: null if one has no limit."""

    budget_usd: float | None = Field(description="What may be spent; null for no limit.")
    budget_per: Time = Field(description="The budget's period: in total, or each month.")
    spent_usd: float = Field(description="What was spent in the period.")
    claimed_usd: Finite = Field(description="What runs can still spend; null if one of them has no limit.")


class MemberAnswer(Spent):
    """A member. `left_usd`: the remaining budget; null for no limit."""

    name: str = Field(description="Their name.")
    role: RoleName = Field(description="What they may do.")
    team: str | None = Field(description="Their team.")
    left_usd: float | None = Field(description="What is left for new runs; null for no limit.")


class MembersAnswer(Part):
    """All members."""

    members: list[MemberAnswer] = Field(description="By name.")


class TokenAnswer(Part):
    """A member and their new token, which is shown only once."""

    member: str = Field(description="Their name.")
    token: str = Field(description="Their token.")


class TeamAnswer(Spent):
    """A team and its budget."""

    name: str = Field(description="Its name.")


class TeamsAnswer(Part):
    """All teams."""

    teams: list[TeamAnswer] = Field(description="By name.")


@router.get("/members", responses=error_responses(409))
def list_members(state: CurrentState, who: Admin) -> MembersAnswer:
    """All members."""
    return MembersAnswer(members=[_member_answer(state, each) for each in _members(state).all()])


@router.post("/members", status_code=201, responses=STATUSES)
def add_member(body: NewMember, state: CurrentState, who: Admin) -> TokenAnswer:
    """Add a member; returns their token."""
    with audited(state, who, "add member", body.name) as note:
        role, per = Role(body.role), Per(body.budget_per)
        token = _members(state).add(body.name, role, body.team, body.budget_usd, per)
        note.detail = str(Member(body.name, role, body.team, body.budget_usd, per))
    return TokenAnswer(member=body.name, token=token)


@router.patch("/members/{name}", responses=STATUSES)
def change_member(name: MemberName, body: MemberChange, state: CurrentState, who: Admin) -> MemberAnswer:
    """Change role, team or budget."""
    changes = body.model_dump(exclude_unset=True)
    for key in {"role", "budget_per"} & changes.keys():
        if changes[key] is None:
            del changes[key]
    with audited(state, who, "change member", name) as note, unknown_is_404():
        member = _members(state).change(name, **changes)
        note.detail = str(member)
    return _member_answer(state, member)


@router.delete("/members/{name}", status_code=204, responses=STATUSES)
def remove_member(name: MemberName, state: CurrentState, who: Admin) -> Response:
    """Remove a member: token and sessions become invalid."""
    with audited(state, who, "remove member", name), unknown_is_404():
        _members(state).remove(name)
    return Response(status_code=204)


@router.post("/members/{name}/token", status_code=201, responses=STATUSES)
def renew_token(name: MemberName, state: CurrentState, who: Admin) -> TokenAnswer:
    """Make a new token; the old one becomes invalid."""
    with audited(state, who, "renew token", name), unknown_is_404():
        token = _members(state).renew(name)
    return TokenAnswer(member=name, token=token)


@router.put("/members/{name}/account", status_code=204, responses=STATUSES)
def link_member(name: MemberName, body: NewAccount, state: CurrentState, who: Admin) -> Response:
    """Link an account at the sign-in provider to a member."""
    account = Account(body.issuer, body.subject)
    with audited(state, who, "link member", name) as note, unknown_is_404():
        note.detail = str(account)
        _identities(state).link(name, account)
    return Response(status_code=204)


@router.delete("/members/{name}/account", status_code=204, responses=STATUSES)
def unlink_member(name: MemberName, state: CurrentState, who: Admin) -> Response:
    """Remove the link to the account at the sign-in provider. Sessions end; the member's own token stays."""
    with audited(state, who, "unlink member", name), unknown_is_404():
        _identities(state).unlink(name)
    return Response(status_code=204)


@router.get("/teams", responses=error_responses(409))
def list_teams(state: CurrentState, who: Admin) -> TeamsAnswer:
    """Teams and their budgets."""
    return TeamsAnswer(teams=[_team_answer(state, name, budget) for name, budget in _members(state).teams().items()])


@router.put("/teams/{team}", responses=STATUSES)
def set_team_budget(team: TeamName, body: TeamBudget, state: CurrentState, who: Admin) -> TeamAnswer:
    """Set the budget of all runs of a team together."""
    with audited(state, who, "team budget", team) as note:
        per = Per(body.budget_per) if body.budget_per is not None else None
        budget = _members(state).set_team_budget(team, body.budget_usd, per)
        note.detail = str(budget)
    return _team_answer(state, team, budget)


def _members(state: State) -> Members:
    if state.members is None:
        raise WrongState("`mlcd ui` has one user and no team; use `mlcd service` for a team")
    return state.members


def _identities(state: State) -> Identities:
    return Identities(_members(state).database, _members(state).now)


def _member_answer(state: State, member: Member) -> MemberAnswer:
    left_usd = remaining_budget(state.ledger, member).usd
    return MemberAnswer(**part_fields(MemberAnswer, member, left_usd=left_usd, **asdict(used(state.ledger, member))))


def _team_answer(state: State, team: str, budget: Budget) -> TeamAnswer:
    use = asdict(used(state.ledger, team))
    return TeamAnswer(name=team, budget_usd=budget.usd, budget_per=budget.per.value, **use)
