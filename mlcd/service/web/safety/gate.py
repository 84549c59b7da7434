"""Before any route: what is refused whoever asks, who that is, and then what they send."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from functools import partial
from urllib.parse import unquote_plus

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mlcd.core.errors import MlcdError
from mlcd.service.web.failures import Refusal, refusal
from mlcd.service.web.safety.bodies import check_text, is_upload, whole_body
from mlcd.service.web.safety.credentials import address_of, authenticate, is_known, is_open
from mlcd.service.web.safety.headers import headers_of
from mlcd.service.web.safety.origin import check_host, check_origin
from mlcd.service.web.safety.peer import check_peer
from mlcd.service.web.safety.rates import Rates
from mlcd.service.web.safety.watchers import Doubts, Watchers, is_stream, while_known
from mlcd.service.web.state import State

LONGEST_ADDRESS = 8 << 10
LONGEST_HEADERS = 32 << 10
_LOG = logging.getLogger("mlcd.service.web")


class Gate:
    """ASGI: checks each request, and adds the headers of each answer."""

    def __init__(self, app: ASGIApp, state: State, rates: Rates) -> None:
        self.app, self.state, self.settings, self.rates = app, state, state.settings, rates
        self.watchers = Watchers(state.settings.limits.streams_each)
        again_s = state.settings.limits.known_for_s
        self.doubts = Doubts(lambda request: run_in_threadpool(is_known, request, state), again_s / 2)
        self.https = (state.settings.public_url or "").startswith("https://")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection, as ASGI has it."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request, with_headers = Request(scope, receive), self._with_headers(scope, send)
        with ExitStack() as answered:
            try:
                receive = await self._let_in(request, answered)
            except MlcdError as error:
                refused = refusal(error)
                _LOG.info("%s %r refused: %s", request.method, request.url.path, refused)
                told = JSONResponse({"error": str(refused), **refused.told}, refused.status, refused.headers)
                await told(scope, receive, with_headers)
                return
            answering = self.app(scope, receive, with_headers)
            if is_stream(request) and request.state.member is not None:
                known = partial(self.doubts.is_known, request)
                answering = while_known(answering, known, with_headers, self.settings.limits.known_for_s)
            await answering

    async def _let_in(self, request: Request, answered: ExitStack) -> Receive:
        """Where to read the body, of a request that may come in; `answered`: what holds until it is answered."""
        self._check(request)
        if not is_open(request):
            request.state.member = member = await run_in_threadpool(authenticate, request, self.state, self.rates)
            if member is not None and is_stream(request):
                answered.enter_context(self.watchers.one_more(member.name))
        return request.receive if is_upload(request) else await whole_body(request, self.settings.limits.body_kb)

    def _check(self, request: Request) -> None:
        self.rates.address(address_of(request))
        check_form(request)
        check_host(request, self.settings)
        if self.settings.mode == "ui" and self.settings.same_user:
            check_peer(request.scope)
        check_origin(request, self.settings)

    def _with_headers(self, scope: Scope, send: Send) -> Send:
        told = headers_of(scope["path"], https=self.https)

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in told.items():
                    headers.setdefault(name, value)
            await send(message)

        return sent


def check_form(request: Request) -> None:
    """Refuse an address or headers that nobody writes."""
    query = request.url.query
    if len(request.url.path) + len(query) > LONGEST_ADDRESS:
        raise Refusal(400, "the address is too long")
    if sum(len(name) + len(value) for name, value in request.headers.raw) > LONGEST_HEADERS:
        raise Refusal(400, "the headers are too long")
    for text in (request.url.path, request.scope["path"], unquote_plus(query)):
        check_text(text)
