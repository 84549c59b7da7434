"""Authentication and roles: a member is identified by token or session; ui mode has a single user.

The gate authenticates before any route, so that no route can forget it; each route requires a role.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import Depends, Request

from mlcd.core.errors import LedgerError, MlcdError
from mlcd.service.team.members import Member, Members, Role, Scope
from mlcd.service.web.errors import Refusal, public_message
from mlcd.service.web.safety.limits import ConcurrencyLimits, RateLimits
from mlcd.service.web.safety.origin import COOKIE, SAFE_METHODS
from mlcd.service.web.state import CurrentState, State

OPEN = {
    ("GET", "/api/v1/health"),
    ("GET", "/api/v1/openapi.json"),
    *(("POST", f"/api/v1{path}") for path in ("/session", "/sign-in", "/sign-in/callback")),
}
"""Routes without a token: health, the OpenAPI document, and sign-in."""
CLOSED = ("/api/", "/metrics")
"""Paths with these prefixes need a token; the pages themselves are public, their data are not."""
BEARER = "bearer "
LONGEST_SECRET = 200
ONE_PERSON = "you"  # the user's name in the audit log of ui mode


def name_of(who: Member | None) -> str:
    """The name for the audit log and the rate limits."""
    return who.name if who is not None else ONE_PERSON


def rates_of(request: Request) -> RateLimits:
    """The rate limits of a request's app."""
    rates: RateLimits = request.app.state.rates
    return rates


def require(role: Role, full: bool = False) -> Callable[..., Member | None]:
    """A FastAPI dependency: require at least this role; `full`: and not a named token."""

    def allowed(request: Request, state: CurrentState) -> Member | None:
        who: Member | None = request.state.member  # None in ui mode; raises if the gate was bypassed
        if who is not None and not who.role.may(role):
            needed = f"this needs {'an' if role is Role.ADMIN else 'a'} {role}"
            line = f"{who.name} is a {who.role}; {needed}: ask an admin"
            raise _not_allowed(request, state, who, _token_words(who, needed) or line)
        if who is not None and full and who.scope is not Scope.FULL:
            raise _not_allowed(request, state, who, _token_words(who, "this needs the member's own sign-in or token"))
        return who

    return allowed


def _token_words(who: Member, needed: str) -> str:
    """Why a named token is not enough; '' if the request has none."""
    return f"token '{who.token}' of {who.name} may {who.scope}; {needed}" if who.scope is not Scope.FULL else ""


def _not_allowed(request: Request, state: State, who: Member, line: str) -> Refusal:
    state.audit.write(who.name, request.method, request.url.path, "refused", line)
    return Refusal(403, line)


def reading_slot(what: Literal["submission", "typing"]) -> Callable[..., AsyncIterator[Member | None]]:
    """A FastAPI dependency for input that a child process reads: require a runner, within their concurrency limit."""

    async def slot(
        request: Request, who: Annotated[Member | None, Depends(require(Role.RUNNER))]
    ) -> AsyncIterator[Member | None]:
        rates_of(request).count(what, name_of(who))
        limits: ConcurrencyLimits = request.app.state.concurrency
        async with limits.slot(f"{name_of(who)} {request.url.path}"):
            yield who

    return slot


Viewer = Annotated[Member | None, Depends(require(Role.VIEWER))]
Runner = Annotated[Member | None, Depends(require(Role.RUNNER))]
Admin = Annotated[Member | None, Depends(require(Role.ADMIN))]
Submitter = Annotated[Member | None, Depends(reading_slot("submission"))]
Typist = Annotated[Member | None, Depends(reading_slot("typing"))]


@dataclass
class AuditNote:
    """The entry for the audit log; a route may add details."""

    about: str = ""
    detail: str = ""


@contextmanager
def audited(state: State, who: Member | None, action: str, about: str = "") -> Iterator[AuditNote]:
    """Write what is done inside, or why it was refused, to the audit log."""
    note = AuditNote(about)
    try:
        yield note
    except MlcdError as error:
        state.audit.write(name_of(who), action, note.about, "refused", public_message(error))
        raise
    state.audit.write(name_of(who), action, note.about, "ok", note.detail)


def is_open(request: Request) -> bool:
    """Whether a request needs no token."""
    path: str = request.scope["path"]
    return not path.startswith(CLOSED) or (request.method, path) in OPEN


def address_of(request: Request) -> str:
    """The client's address, according to the connection."""
    return request.client.host if request.client is not None else ""


def authenticate(request: Request, state: State, rates: RateLimits) -> Member | None:
    """The member; None in ui mode. A wrong token or session is refused and written to the audit log."""
    if state.members is None:
        return None
    if "authorization" not in request.headers and COOKIE not in request.cookies:
        raise _unauthorized("a token is required: `Authorization: Bearer mlcd_...`; ask an admin for one")
    member = _member(request, state.members)
    if member is None:
        rates.count("sign-in", address_of(request))
        path = request.scope["path"]
        state.audit.write(address_of(request), "authenticate", path, "refused", "wrong token or session")
        raise _unauthorized("the token or session is wrong, was replaced, or has expired; sign in again")
    request.state.member = member
    rates.count("member", member.name)
    if member.scope is Scope.READ and request.method not in SAFE_METHODS:  # whatever the route would say
        raise _not_allowed(request, state, member, _token_words(member, "this changes something"))
    return member


def is_still_member(state: State, request: Request) -> bool:
    """Whether the sender of this request is still a member, as far as is known."""
    try:
        return state.members is None or _member(request, state.members) is not None
    except LedgerError:  # the database is unreachable: keep the stream open
        return True


def _member(request: Request, members: Members) -> Member | None:
    """The member of the token, or else of the session."""
    written = request.headers.get("authorization")
    if written is not None:
        token = written[len(BEARER) :].strip() if written.lower().startswith(BEARER) else ""
        return members.by_token(token) if _may_be_secret(token) else None
    secret = request.cookies.get(COOKIE, "")
    return members.by_session(secret) if _may_be_secret(secret) else None


def _may_be_secret(text: str) -> bool:
    return 0 < len(text) <= LONGEST_SECRET and text.isascii()


def _unauthorized(line: str) -> Refusal:
    return Refusal(401, line, {"WWW-Authenticate": "Bearer"})
