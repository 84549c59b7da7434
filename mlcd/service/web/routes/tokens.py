"""A member's own tokens: named ones for programs, and the unnamed one that an admin gave them.

Making and ending tokens needs a session or the unnamed token: a named token that leaks cannot renew itself.
"""

from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Path, Response
from pydantic import BeforeValidator, Field

from mlcd.core.errors import WrongState
from mlcd.core.part import Part, part_fields
from mlcd.service.team.members import Member, Members, Role, Scope
from mlcd.service.team.tokens import LONGEST_DAYS, NamedToken, NamedTokens
from mlcd.service.web.errors import RequestBody, error_responses, unknown_is_404
from mlcd.service.web.identity import Viewer, audited, require
from mlcd.service.web.state import CurrentState, State

router = APIRouter(tags=["tokens"])
FullScopeMember = Annotated[Member | None, Depends(require(Role.VIEWER, full=True))]
TokenName = Annotated[str, Path(max_length=60, description="The token's name.")]
Moment = Annotated[
    str | None, BeforeValidator(lambda at: at.astimezone(UTC).isoformat() if isinstance(at, datetime) else at)
]
STATUSES = error_responses(404, 409, 413, 415, 422)


class NewToken(RequestBody):
    """A token for a program."""

    name: str = Field(min_length=1, max_length=60, description="Its name, such as ci.")
    scope: Literal["read", "run"] = Field(default="read", description="read: look; run: also start and end runs.")
    days: Annotated[int, Field(ge=1, le=LONGEST_DAYS)] | None = Field(
        default=90, description="How many days it lasts; null: until it is revoked."
    )


class TokenState(Part):
    """A token; its secret is not kept."""

    name: str = Field(description="Its name.")
    scope: Literal["read", "run"] = Field(description="What it allows.")
    created_at: Moment = Field(description="When it was made: a time of day, ISO 8601.")
    expires_at: Moment = Field(description="When it expires; null: not before it is revoked.")
    used_at: Moment = Field(description="Its last use, to the minute; null for never.")
    expired: bool = Field(description="Whether it has expired.")


class MyTokens(Part):
    """A member's named tokens."""

    tokens: list[TokenState] = Field(description="By name.")


class MadeToken(Part):
    """A new token, which is shown only once."""

    member: str = Field(description="Whose it is.")
    name: str = Field(description="Its name; empty for the unnamed one.")
    token: str = Field(description="The token.")
    expires_at: Moment = Field(description="When it ends; null: when it is revoked.")


@router.get("/tokens", responses=error_responses(409))
def list_tokens(state: CurrentState, who: Viewer) -> MyTokens:
    """Your named tokens, with their last use."""
    name, found = _whose(state, who)
    return MyTokens(tokens=[_token_state(each) for each in found.all(name)])


@router.post("/tokens", status_code=201, responses=STATUSES)
def make_token(body: NewToken, state: CurrentState, who: FullScopeMember) -> MadeToken:
    """Make a named token. It can never do more than you can, and cannot make or end tokens."""
    name, found = _whose(state, who)
    with audited(state, who, "make token", body.name) as note:
        made, secret = found.add(name, body.name, Scope(body.scope), body.days)
        note.detail = _words(made)
    return _made(name, made, secret)


@router.post("/tokens/{name}/rotate", status_code=201, responses=STATUSES)
def rotate_token(name: TokenName, state: CurrentState, who: FullScopeMember) -> MadeToken:
    """Replace the secret of a named token and restart its lifetime; the old secret is void at once."""
    member, found = _whose(state, who)
    with audited(state, who, "rotate token", name) as note, unknown_is_404():
        made, secret = found.rotate(member, name)
        note.detail = _words(made)
    return _made(member, made, secret)


@router.delete("/tokens/{name}", status_code=204, responses=STATUSES)
def revoke_token(name: TokenName, state: CurrentState, who: FullScopeMember) -> Response:
    """End a token of yours at once."""
    member, found = _whose(state, who)
    with audited(state, who, "revoke token", name), unknown_is_404():
        found.revoke(member, name)
    return Response(status_code=204)


@router.post("/me/token", status_code=201, responses=STATUSES)
def renew_own_token(state: CurrentState, who: FullScopeMember) -> MadeToken:
    """Replace the token that an admin gave you. The old one and all your sessions end; named tokens stay."""
    member, _ = _whose(state, who)
    with audited(state, who, "renew token", member):
        secret = _members(state).renew(member, keep_named=True)
    return MadeToken(member=member, name="", token=secret, expires_at=None)


def _whose(state: State, who: Member | None) -> tuple[str, NamedTokens]:
    members = _members(state)
    assert who is not None
    return who.name, NamedTokens(members.database, members.now)


def _members(state: State) -> Members:
    if state.members is None:
        raise WrongState("`mlcd ui` has one user and no tokens; use `mlcd service` for a team")
    return state.members


def _token_state(token: NamedToken) -> TokenState:
    return TokenState(**part_fields(TokenState, token, scope=token.scope.value))


def _made(member: str, made: NamedToken, secret: str) -> MadeToken:
    return MadeToken(**part_fields(MadeToken, made, member=member, token=secret))


def _words(made: NamedToken) -> str:
    return f"{made.scope}, {f'until {made.expires_at:%Y-%m-%d}' if made.expires_at else 'does not expire'}"
