"""Sign-in with an OpenID Connect provider: begin it, and finish it with the provider's answer.

Our own page sends both requests, with the parameters that the provider put into the page's URL. So following a link
never changes anything (no login CSRF), and no authorization code appears in a URL that we log.
"""

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import Field

from mlcd.core.errors import MlcdError, WrongState
from mlcd.core.part import Part
from mlcd.service.sign_in.errors import ProviderFault, SignInRefused
from mlcd.service.sign_in.identities import Account, Identities, SignInResult
from mlcd.service.sign_in.pending import BEGIN_AGAIN, LASTS, PendingSignIns
from mlcd.service.sign_in.provider import Provider, is_error_word
from mlcd.service.team.members import Members
from mlcd.service.web.cookies import delete_cookie, set_cookie
from mlcd.service.web.errors import Refusal, RequestBody, error_responses, public_message
from mlcd.service.web.identity import LONGEST_SECRET, address_of, rates_of
from mlcd.service.web.safety.origin import COOKIE
from mlcd.service.web.state import CurrentState, State

router = APIRouter(tags=["session"])
PENDING = "mlcd_sign_in"
"""The cookie of a browser with a pending sign-in."""
LONGEST_CODE = 8_000


class Address(Part):
    """Where to sign in."""

    url: str = Field(description="The provider's URL, with its parameters.")


class Returned(RequestBody):
    """The parameters with which the provider redirected the browser to our page."""

    state: Annotated[str, Field(max_length=200)] = Field(description="The state of the sign-in.")
    code: Annotated[str, Field(max_length=LONGEST_CODE)] | None = Field(None, description="The authorization code.")
    iss: Annotated[str, Field(max_length=400)] | None = Field(None, description="The issuer.")
    error: Annotated[str, Field(max_length=200)] | None = Field(None, description="The error code if there is no code.")


@router.post("/sign-in", responses=error_responses(409, 413, 415, 502))
def begin_sign_in(request: Request, response: Response, state: CurrentState) -> Address:
    """Begin a sign-in with the provider. The answer's cookie is needed to finish it."""
    provider, members = _provider(state)
    rates_of(request).count("sign-in", address_of(request))
    try:
        secret, pending = PendingSignIns(members.database, members.now).begin()
        url = provider.address_for(pending)
    except SignInRefused as error:
        raise _refused(request, state, error) from None
    set_cookie(response, PENDING, secret, int(LASTS.total_seconds()), request, state)
    return Address(url=url)


@router.post("/sign-in/callback", status_code=204, responses=error_responses(409, 413, 415, 502))
def finish_sign_in(body: Returned, request: Request, state: CurrentState) -> Response:
    """Finish a sign-in with the provider's answer, and open a session. Each sign-in can be finished once."""
    provider, members = _provider(state)
    try:
        entered = _entered(provider, members, request, body)
    except SignInRefused as error:
        raise _refused(request, state, error) from None
    name, by = entered.member.name, f"by {provider.shown}"
    if entered.changed:
        state.audit.write(name, entered.changed, name, detail=f"{entered.member}, {by}")
    lasts = timedelta(hours=provider.settings.session_hours)
    secret = members.open_session(entered.member, lasts)
    state.audit.write(name, "sign in", detail=by)
    answer = Response(status_code=204)
    set_cookie(answer, COOKIE, secret, int(lasts.total_seconds()), request, state)
    delete_cookie(answer, PENDING, request, state)
    return answer


def _entered(provider: Provider, members: Members, request: Request, body: Returned) -> SignInResult:
    secret = request.cookies.get(PENDING, "")
    if not 0 < len(secret) <= LONGEST_SECRET or not secret.isascii():
        raise SignInRefused(BEGIN_AGAIN)
    pending = PendingSignIns(members.database, members.now).take(secret, body.state)
    if not body.code:
        word = body.error if body.error and is_error_word(body.error) else "it gives no reason"
        raise SignInRefused(f"{provider.shown} did not sign you in: {word}")
    claims = provider.claims(pending, body.code, body.iss)
    account = Account(provider.settings.issuer, claims["sub"])
    try:
        name, groups = provider.name_in(claims), provider.groups_in(claims)
        return Identities(members.database, members.now).enter(account, name, groups, provider.settings)
    except (SignInRefused, WrongState) as error:
        whose = "" if str(account) in str(error) else f" (your account: {account})"
        raise SignInRefused(f"{error}{whose}") from None


def _refused(request: Request, state: State, error: MlcdError) -> Refusal:
    """Write a refused sign-in to the audit log, and count it for the rate limit, which slows down guessing."""
    rates_of(request).count("sign-in", address_of(request))
    state.audit.write(address_of(request), "sign in", "", "refused", public_message(error))
    return Refusal(502 if isinstance(error, ProviderFault) else 403, str(error))


def _provider(state: State) -> tuple[Provider, Members]:
    if state.provider is None or state.members is None:
        raise WrongState("this service has no sign-in provider; use a token")
    return state.provider, state.members
