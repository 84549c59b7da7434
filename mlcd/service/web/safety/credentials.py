"""Whose token or session a request carries: asked before any route, so that one that forgets to ask is closed, too."""

from __future__ import annotations

from starlette.requests import Request

from mlcd.core.errors import LedgerError
from mlcd.service.team import Member, Members
from mlcd.service.web.failures import Refusal
from mlcd.service.web.safety.origin import COOKIE
from mlcd.service.web.safety.rates import Rates
from mlcd.service.web.state import State

API = "/api/"
OPEN = {("GET", "/api/v1/health"), ("GET", "/api/v1/openapi.json"), ("POST", "/api/v1/session")}
"""What needs no token: whether the service is there, what it can do, and getting a session."""
BEARER = "bearer "
LONGEST_SECRET = 200


def is_open(request: Request) -> bool:
    """Whether anybody may ask for this; the pages are for all, what they show is not."""
    path: str = request.scope["path"]
    return not path.startswith(API) or (request.method, path) in OPEN


def address_of(request: Request) -> str:
    """Where a request comes from, as far as the connection tells."""
    return request.client.host if request.client is not None else ""


def session_of(request: Request) -> str | None:
    """The session's secret that a browser sent, if any."""
    return request.cookies.get(COOKIE)


def authenticate(request: Request, state: State, rates: Rates) -> Member | None:
    """Who asks; None for the one person of ui mode. A wrong token or session is refused and noted."""
    if state.members is None:
        return None
    if "authorization" not in request.headers and session_of(request) is None:
        raise _unknown("a token is needed: `Authorization: Bearer mlcd_...`; an admin gives you one")
    found = _member(request, state.members)
    if found is None:
        rates.sign_in(address_of(request))
        state.audit.write(
            address_of(request), "authenticate", request.scope["path"], "refused", "wrong token or session"
        )
        raise _unknown("the token or session is wrong, was replaced, or has ended; sign in again")
    rates.member(found.name)
    return found


def is_known(request: Request, state: State) -> bool:
    """Whether whoever sent this request is a member still, as far as can be told now."""
    try:
        return state.members is None or _member(request, state.members) is not None
    except LedgerError:  # the database is away: that is nobody's fault
        return True


def _member(request: Request, members: Members) -> Member | None:
    """Whose token this is, or else whose session."""
    written = request.headers.get("authorization")
    if written is not None:
        token = written[len(BEARER) :].strip() if written.lower().startswith(BEARER) else ""
        return members.of_token(token) if _may_be_secret(token) else None
    secret = session_of(request) or ""
    return members.of_session(secret) if _may_be_secret(secret) else None


def _may_be_secret(text: str) -> bool:
    return 0 < len(text) <= LONGEST_SECRET and text.isascii()


def _unknown(line: str) -> Refusal:
    return Refusal(401, line, {"WWW-Authenticate": "Bearer"})
