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

from mlcd.web.failures import Refusal

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
