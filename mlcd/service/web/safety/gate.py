"""The gate before all routes: general checks, then authentication, then the body."""

from contextlib import ExitStack
from functools import partial
from urllib.parse import unquote_plus

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mlcd.core.errors import MlcdError
from mlcd.reports.html import policy
from mlcd.service.web.errors import Refusal, refusal
from mlcd.service.web.identity import address_of, authenticate, is_open, is_still_member
from mlcd.service.web.monitoring.request_log import note_refusal
from mlcd.service.web.safety.bodies import check_text, is_upload, whole_body
from mlcd.service.web.safety.limits import MembershipCache, RateLimits, StreamLimit, is_stream, while_member
from mlcd.service.web.safety.origin import check_host, check_origin, check_peer
from mlcd.service.web.state import State

PAGES = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
DATA = "default-src 'none'; frame-ancestors 'none'"
SANDBOX = "frame-ancestors 'self'; sandbox allow-scripts"
"""Beside the report's own policy: its one script runs without an origin, and so without the member's session."""
YEAR_S = 31_536_000
ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
LONGEST_ADDRESS = 8 << 10
LONGEST_HEADERS = 32 << 10


class Gate:
    """ASGI middleware: checks each request, and adds security headers to each response."""

    def __init__(self, app: ASGIApp, state: State, rates: RateLimits) -> None:
        self.app, self.state, self.settings, self.rates = app, state, state.settings, rates
        self.streams = StreamLimit(state.settings.limits.streams_each)
        self.memberships = MembershipCache(
            lambda request: run_in_threadpool(is_still_member, state, request), state.settings.limits.known_for_s / 2
        )
        self.https = (state.settings.public_url or "").startswith("https://")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request, with_headers = Request(scope, receive), self._with_headers(scope, send)
        with ExitStack() as answered:
            try:
                receive = await self._admit(request, answered)
            except MlcdError as error:
                refused = refusal(error)
                note_refusal(scope, str(refused))
                await refused.response()(scope, receive, with_headers)
                return
            response = self.app(scope, receive, with_headers)
            if is_stream(request) and request.state.member is not None:
                is_member = partial(self.memberships.is_still_member, request)
                response = while_member(response, is_member, with_headers, self.settings.limits.known_for_s)
            await response

    async def _admit(self, request: Request, answered: ExitStack) -> Receive:
        """Check a request and return how to read its body; `answered`: closed when the response is complete."""
        self._check(request)
        if not is_open(request):
            request.state.member = member = await run_in_threadpool(authenticate, request, self.state, self.rates)
            if member is not None and is_stream(request):
                answered.enter_context(self.streams.open_stream(member.name))
        return request.receive if is_upload(request) else await whole_body(request, self.settings.limits.body_kb)

    def _check(self, request: Request) -> None:
        self.rates.count("address", address_of(request))
        check_form(request)
        check_host(request, self.settings)
        if self.settings.mode == "ui" and self.settings.same_user:
            check_peer(request.scope)
        check_origin(request, self.settings)

    def _with_headers(self, scope: Scope, send: Send) -> Send:
        added = headers_of(scope["path"], https=self.https)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in added.items():
                    headers.setdefault(name, value)
            await send(message)

        return send_with_headers


def check_form(request: Request) -> None:
    """Refuse addresses and headers that are too long or contain invalid text."""
    query = request.url.query
    if len(request.url.path) + len(query) > LONGEST_ADDRESS:
        raise Refusal(400, "the address is too long")
    if sum(len(name) + len(value) for name, value in request.headers.raw) > LONGEST_HEADERS:
        raise Refusal(400, "the headers are too long")
    for text in (request.url.path, request.scope["path"], unquote_plus(query)):
        check_text(text)


def headers_of(path: str, *, https: bool) -> dict[str, str]:
    """The security headers of a response to this path: no foreign scripts, no frames, no guessed content types."""
    headers = dict(ALWAYS)
    if not path.startswith("/api/"):
        headers["Content-Security-Policy"] = PAGES
    elif path.endswith("/report"):
        headers["Content-Security-Policy"] = f"{policy()}; {SANDBOX}"
    else:
        headers["Content-Security-Policy"] = DATA
        headers["Cache-Control"] = "private, no-cache"
    if https:
        headers["Strict-Transport-Security"] = f"max-age={YEAR_S}"
    return headers
