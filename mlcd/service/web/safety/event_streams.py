"""Limits of event streams: how many a member may have open, and only for as long as they are a member.

A request is authenticated when it comes, but a stream may last for days. So its membership is checked again from time
to time: the stream of a member who was removed, or whose token was renewed, is closed.
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
    """Whether this is an event stream."""
    return request.method == "GET" and request.url.path.endswith(STREAMS)


class StreamLimit:
    """Counts open streams. `most`: of one member, since each holds one of the service's connections."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: Counter[str] = Counter()

    @contextmanager
    def open_stream(self, name: str) -> Iterator[None]:
        """Count one more stream of this member while the block runs; `Refusal` if that is too many."""
        if self._open[name] >= self._most:
            raise Refusal(429, f"{self._most} streams are open already; close some of them", {"Retry-After": "5"})
        self._open[name] += 1
        try:
            yield
        finally:
            self._open[name] -= 1
            if not self._open[name]:
                del self._open[name]


class MembershipCache:
    """Caches whether a token or session is still valid: one query for all its streams."""

    def __init__(self, ask: Callable[[Request], Awaitable[bool]], lasts_s: float) -> None:
        """`lasts_s`: how long a result is valid."""
        self._ask, self._lasts_s = ask, lasts_s
        self._answers: dict[str, tuple[float, asyncio.Future[bool]]] = {}

    async def is_still_member(self, request: Request) -> bool:
        """Whether the sender of this request is still a member."""
        now_s = asyncio.get_running_loop().time()
        self._answers = {
            secret: (at, known) for secret, (at, known) in self._answers.items() if now_s - at < self._lasts_s
        }
        secret = request.headers.get("authorization") or session_of(request) or ""
        if secret not in self._answers:
            self._answers[secret] = now_s, asyncio.ensure_future(self._ask(request))
        return await asyncio.shield(self._answers[secret][1])


async def while_member(
    response: Awaitable[None], is_still_member: Callable[[], Awaitable[bool]], send: Send, recheck_s: float
) -> None:
    """Send a response to its end, or until its receiver is no longer a member, checked every `recheck_s`."""
    stream = asyncio.ensure_future(response)
    try:
        while not (await asyncio.wait({stream}, timeout=recheck_s))[0]:
            if not await is_still_member():
                break
    finally:
        if not stream.done():
            stream.cancel()
            with suppress(asyncio.CancelledError):
                await stream
    if stream.cancelled():
        last_message: Message = {"type": "http.response.body", "body": b"", "more_body": False}
        await send(last_message)
    else:
        stream.result()
