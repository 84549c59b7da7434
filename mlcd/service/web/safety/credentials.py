"""Authentication by token or session. It runs before any route, so that no route can forget it."""

from __future__ import annotations

from starlette.requests import Request

from mlcd.core.errors import LedgerError
from mlcd.service.team import Member, Members
from mlcd.service.web.failures import Refusal
from mlcd.service.web.safety.origin import COOKIE
from mlcd.service.web.safety.rate_limits import RateLimits
from mlcd.service.web.state import State

API = "/api/"
OPEN = {("GET", "/api/v1/health"), ("GET", "/api/v1/openapi.json"), ("POST", "/api/v1/session")}
"""Routes without a token: health, the OpenAPI document, and sign-in."""
BEARER = "bearer "
LONGEST_SECRET = 200


def is_open(request: Request) -> bool:
    """Whether a request needs no token; the pages themselves are public, their data are not."""
    path: str = request.scope["path"]
    return not path.startswith(API) or (request.method, path) in OPEN


def address_of(request: Request) -> str:
    """The client's address, according to the connection."""
    return request.client.host if request.client is not None else ""


def session_of(request: Request) -> str | None:
    """The session's secret in the browser's cookie, if any."""
    return request.cookies.get(COOKIE)


def authenticate(request: Request, state: State, rates: RateLimits) -> Member | None:
    """The member; None in ui mode. A wrong token or session is refused and written to the audit log."""
    if state.members is None:
        return None
    if "authorization" not in request.headers and session_of(request) is None:
        raise _unauthorized("a token is needed: `Authorization: Bearer mlcd_...`; ask an admin for one")
    member = _member(request, state.members)
    if member is None:
        rates.sign_in(address_of(request))
        state.audit.write(
            address_of(request), "authenticate", request.scope["path"], "refused", "wrong token or session"
        )
        raise _unauthorized("the token or session is wrong, was replaced, or has ended; sign in again")
    rates.member(member.name)
    return member


def is_still_member(request: Request, state: State) -> bool:
    """Whether the sender of this request is still a member, as far as is known."""
    try:
        return state.members is None or _member(request, state.members) is not None
    except LedgerError:  # the database is unreachable: do not punish the member
        return True


def _member(request: Request, members: Members) -> Member | None:
    """The member of the token, or else of the session."""
    written = request.headers.get("authorization")
    if written is not None:
        token = written[len(BEARER) :].strip() if written.lower().startswith(BEARER) else ""
        return members.of_token(token) if _may_be_secret(token) else None
    secret = session_of(request) or ""
    return members.of_session(secret) if _may_be_secret(secret) else None


def _may_be_secret(text: str) -> bool:
    return 0 < len(text) <= LONGEST_SECRET and text.isascii()


def _unauthorized(line: str) -> Refusal:
    return Refusal(401, line, {"WWW-Authenticate": "Bearer"})
