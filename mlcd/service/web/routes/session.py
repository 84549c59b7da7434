"""Health of the service; sign-in with a token, sign-out, and the current user."""

from datetime import date
from typing import Annotated, Literal

from fastapi import APIRouter, Request, Response
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from mlcd.core.errors import WrongState
from mlcd.core.part import Part, part_fields
from mlcd.core.version import VERSION
from mlcd.service.team.allowance import remaining_budget
from mlcd.service.team.members import SESSION_LASTS, Member, Role, Scope
from mlcd.service.web.cookies import delete_cookie, set_cookie
from mlcd.service.web.errors import Refusal, RequestBody, error_responses
from mlcd.service.web.identity import LONGEST_SECRET, Viewer, address_of, rates_of
from mlcd.service.web.safety.origin import COOKIE
from mlcd.service.web.state import CurrentState

router = APIRouter()


class Token(RequestBody):
    """The token that an admin gave you."""

    token: Annotated[str, Field(min_length=1, max_length=LONGEST_SECRET, description="Your token, mlcd_...")]


class Health(Part):
    """The service is up, and its database can be read."""

    ok: bool = Field(description="Whether there are also workers to drive runs.")
    trouble: str = Field(description="Why not; else empty.")
    version: str = Field(description="The version of MLCD.")
    mode: Literal["ui", "service"] = Field(description="ui: for a single user; service: for a team.")
    provider: str | None = Field(description="The name of the sign-in provider; null: sign-in with tokens only.")


class MostOf(Part):
    """The size and rate limits of a member."""

    upload_mb: int = Field(description="Megabytes of a model.")
    uploads_mb_each: int = Field(description="Megabytes of all models of a member.")
    body_kb: int = Field(description="Kilobytes of any other body.")
    per_minute: int = Field(description="Requests a minute.")
    submissions_per_minute: int = Field(description="Submissions a minute.")


class Me(Part):
    """The current user: role, budget, and where their jobs may run."""

    name: str | None = Field(description="Their name; null in ui mode.")
    role: Literal["viewer", "runner", "admin"] = Field(description="Their role with the token of this request.")
    scope: Literal["read", "run", "full"] = Field(description="The token's scope; full: everything in their role.")
    team: str | None = Field(description="Their team.")
    budget_usd: float | None = Field(description="What they may spend; null for no limit.")
    budget_per: Literal["total", "month"] = Field(description="The budget's period: in total, or each month.")
    left_usd: float | None = Field(description="What is left of their or their team's budget, whichever is less.")
    renewed_on: date | None = Field(description="When the budget's next period starts; null: never.")
    mode: Literal["ui", "service"] = Field(description="ui: for a single user; service: for a team.")
    version: str = Field(description="The version of MLCD.")
    places: list[str] = Field(description="Where jobs may run.")
    recordings: list[str] = Field(description="Recordings that can be replayed.")
    limits: MostOf = Field(description="What they may send.")


@router.get(
    "/health",
    tags=["service"],
    summary="Whether the service is up and can read its database",
    responses=error_responses(always=(403, 429, 503)),
)
async def health(state: CurrentState) -> Health:
    """For monitoring; it needs no token."""
    if state.feed.read_error:
        raise Refusal(503, state.feed.read_error)
    trouble = await run_in_threadpool(state.missing_workers)
    provider = state.provider.shown if state.provider is not None else None
    return Health(ok=not trouble, trouble=trouble, version=VERSION, mode=state.settings.mode, provider=provider)


@router.get("/me", tags=["session"], responses=error_responses())
def who_am_i(state: CurrentState, who: Viewer) -> Me:
    """The current user."""
    member, remaining, settings = who or Member("", Role.ADMIN), remaining_budget(state.ledger, who), state.settings
    left = {"left_usd": remaining.usd, "renewed_on": remaining.renewed_on}
    return Me(
        **part_fields(Me, member, scope=member.scope.value, name=member.name or None, **left),
        mode=settings.mode,
        version=VERSION,
        places=list(settings.places),
        recordings=sorted(settings.recordings),
        limits=MostOf.model_validate(settings.limits),
    )


@router.post("/session", tags=["session"], status_code=204, responses=error_responses(409, 413, 415))
def sign_in(body: Token, request: Request, state: CurrentState) -> Response:
    """Exchange a token for a session cookie, which scripts cannot read. Each sign-in makes a new session."""
    if state.members is None:
        raise WrongState("`mlcd ui` has a single user and no sign-in")
    rates_of(request).count("sign-in", address_of(request))
    member = state.members.by_token(body.token) if body.token.isascii() else None
    if member is None:
        state.audit.write(address_of(request), "sign in", "", "refused", "wrong token")
        raise Refusal(401, "no member has this token; an admin can make a new one", {"WWW-Authenticate": "Bearer"})
    if member.scope is not Scope.FULL:
        line = f"token '{member.token}' of {member.name} is for programs; sign in with your own"
        state.audit.write(member.name, "sign in", "", "refused", line)
        raise Refusal(403, line)
    secret = state.members.open_session(member)
    state.audit.write(member.name, "sign in")
    answer = Response(status_code=204)
    set_cookie(answer, COOKIE, secret, int(SESSION_LASTS.total_seconds()), request, state)
    return answer


@router.delete("/session", tags=["session"], status_code=204, responses=error_responses())
def sign_out(request: Request, state: CurrentState, who: Viewer) -> Response:
    """End the session; its cookie is no longer valid."""
    if state.members is not None and who is not None:
        if (secret := request.cookies.get(COOKIE, "")).isascii():
            state.members.close_session(secret)
        state.audit.write(who.name, "sign out")
    answer = Response(status_code=204)
    delete_cookie(answer, COOKIE, request, state)
    return answer
