"""Streams stay open: how many of them somebody may have, and no longer than they are a member.

Who asks is found out when a request comes, and a stream may last for days. So it is asked again from time to time:
somebody who was removed, or whose token was renewed, is not told what happens after that.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress

from starlette.requests import Request
from starlette.types import Message, Send

from mlcd.service.web.failures import Refusal
from mlcd.service.web.safety.credentials import session_of

STREAMS = "/events"


def is_stream(request: Request) -> bool:
    """Whose answer has no end that can be waited for."""
    return request.method == "GET" and request.url.path.endswith(STREAMS)


class Watchers:
    """Who watches at this moment. `most`: of one member, for each holds a connection, and a service has so many."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: Counter[str] = Counter()

    @contextmanager
    def one_more(self, name: str) -> Iterator[None]:
        """While inside, this member has one more stream open; `Refusal` if that is too many."""
        if self._open[name] >= self._most:
            raise Refusal(429, f"{self._most} streams are open already; close some of them", {"Retry-After": "5"})
        self._open[name] += 1
        try:
            yield
        finally:
            self._open[name] -= 1
            if not self._open[name]:
                del self._open[name]


class Doubts:
    """Whether somebody is known still: asked once for all the streams of a token or session that ask about then."""

    def __init__(self, ask: Callable[[Request], Awaitable[bool]], lasts_s: float) -> None:
        """`lasts_s`: how long an answer does for the others."""
        self._ask, self._lasts_s = ask, lasts_s
        self._answers: dict[str, tuple[float, asyncio.Future[bool]]] = {}

    async def is_known(self, request: Request) -> bool:
        """Whether whoever sent this request is."""
        now_s = asyncio.get_running_loop().time()
        self._answers = {each: told for each, told in self._answers.items() if now_s - told[0] < self._lasts_s}
        secret = request.headers.get("authorization") or session_of(request) or ""
        if secret not in self._answers:
            self._answers[secret] = now_s, asyncio.ensure_future(self._ask(request))
        return await asyncio.shield(self._answers[secret][1])


async def while_known(
    answering: Awaitable[None], is_known: Callable[[], Awaitable[bool]], send: Send, again_s: float
) -> None:
    """Send an answer to its end, or as long as whoever asked for it is known; that is asked every so many seconds."""
    stream = asyncio.ensure_future(answering)
    try:
        while not (await asyncio.wait({stream}, timeout=again_s))[0]:
            if not await is_known():
                break
    finally:
        if not stream.done():
            stream.cancel()
            with suppress(asyncio.CancelledError):
                await stream
    if stream.cancelled():
        over: Message = {"type": "http.response.body", "body": b"", "more_body": False}
        await send(over)
    else:
        stream.result()
