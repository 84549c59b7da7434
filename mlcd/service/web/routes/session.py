"""Sign in with a token, sign out, and the current user."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from mlcd.core.errors import WrongState
from mlcd.core.version import VERSION
from mlcd.service.team import SESSION_LASTS, remaining_budget
from mlcd.service.web.answers import Answer, problems
from mlcd.service.web.failures import Refusal
from mlcd.service.web.identity import Viewer, rates_of
from mlcd.service.web.safety.credentials import LONGEST_SECRET, address_of, session_of
from mlcd.service.web.safety.origin import COOKIE
from mlcd.service.web.state import CurrentState, State

router = APIRouter(tags=["session"])


class Token(BaseModel):
    """The token that an admin gave you."""

    model_config = ConfigDict(extra="forbid", strict=True)

    token: Annotated[str, Field(min_length=1, max_length=LONGEST_SECRET, description="Your token, mlcd_...")]


class MostOf(Answer):
    """The size and rate limits of a member."""

    upload_mb: int = Field(description="Megabytes of a model.")
    uploads_mb_each: int = Field(description="Megabytes of all models of a member.")
    body_kb: int = Field(description="Kilobytes of any other body.")
    per_minute: int = Field(description="Requests a minute.")
    submissions_per_minute: int = Field(description="Submissions a minute.")


class Me(Answer):
    """Who asks, what they may do and still spend, and where jobs may run."""

    name: str | None = Field(description="Their name; null in ui mode.")
    role: Literal["viewer", "runner", "admin"] = Field(description="What they may do.")
    team: str | None = Field(description="Their team.")
    budget_usd: float | None = Field(description="What they may spend; null for no limit.")
    budget_per: Literal["total", "month"] = Field(description="Over everything, or over each month anew.")
    left_usd: float | None = Field(description="The smaller of what is left to them and to their team.")
    renewed_on: date | None = Field(description="When what was spent of that budget counts no more; null: never.")
    mode: Literal["ui", "service"] = Field(description="Whether the service is one person's, or a team's.")
    version: str = Field(description="The version of MLCD.")
    places: list[str] = Field(description="Where jobs may run.")
    recordings: list[str] = Field(description="Recordings that can be replayed.")
    limits: MostOf = Field(description="What they may send.")


@router.get("/me", responses=problems())
def who_am_i(state: CurrentState, who: Viewer) -> Me:
    """The current user."""
    limits, allowed = state.settings.limits, remaining_budget(state.ledger, who)
    return Me(
        name=who.name if who is not None else None,
        role=who.role.value if who is not None else "admin",
        team=who.team if who is not None else None,
        budget_usd=who.budget_usd if who is not None else None,
        budget_per=who.budget_per.value if who is not None else "total",
        left_usd=allowed.usd,
        renewed_on=allowed.renewed_on,
        mode=state.settings.mode,
        version=VERSION,
        places=list(state.settings.places),
        recordings=sorted(state.settings.recordings),
        limits=MostOf(**{name: getattr(limits, name) for name in MostOf.model_fields}),
    )


@router.post("/session", status_code=204, responses=problems(409, 413, 415))
def sign_in(body: Token, request: Request, state: CurrentState) -> Response:
    """Exchange a token for a session cookie, which scripts cannot read. Each sign-in makes a new session."""
    if state.members is None:
        raise WrongState("`mlcd ui` has one user, and no sign-in")
    rates_of(request).sign_in(address_of(request))
    member = state.members.of_token(body.token) if body.token.isascii() else None
    if member is None:
        state.audit.write(address_of(request), "sign in", "", "refused", "wrong token")
        raise Refusal(401, "no member has this token; an admin can make a new one", {"WWW-Authenticate": "Bearer"})
    secret = state.members.open_session(member)
    state.audit.write(member.name, "sign in")
    answer = Response(status_code=204)
    answer.set_cookie(
        COOKIE,
        secret,
        max_age=int(SESSION_LASTS.total_seconds()),
        path="/",
        secure=_is_https(request, state),
        httponly=True,
        samesite="strict",
    )
    return answer


@router.delete("/session", status_code=204, responses=problems())
def sign_out(request: Request, state: CurrentState, who: Viewer) -> Response:
    """End the session; its cookie is no longer valid."""
    secret = session_of(request)
    if state.members is not None and who is not None:
        if secret is not None and secret.isascii():
            state.members.close_session(secret)
        state.audit.write(who.name, "sign out")
    answer = Response(status_code=204)
    answer.delete_cookie(COOKIE, path="/", secure=_is_https(request, state), httponly=True, samesite="strict")
    return answer


def _is_https(request: Request, state: State) -> bool:
    return request.url.scheme == "https" or (state.settings.public_url or "").startswith("https://")
