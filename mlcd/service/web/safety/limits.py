"""How much of a service one client may use: requests a minute, requests at once, open streams, idle connections.

All counts are in memory.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from ipaddress import ip_address, ip_network
from math import ceil
from typing import Any, Literal
from weakref import WeakValueDictionary

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter
from starlette.requests import Request
from starlette.types import Message, Send

from mlcd.service.web.errors import Refusal
from mlcd.service.web.safety.origin import COOKIE
from mlcd.service.web.state import Limits

What = Literal["address", "member", "submission", "typing", "sign-in", "news-test"]
PEOPLE_AT_AN_ADDRESS = 10  # an office may share one address
AT_ONCE = 2  # submissions of one member that are read in parallel: half of the children that there can be (reading.py)
SLOT_TIMEOUT_S = 20.0
CHECK_EVERY_S = 15  # checking interval of idle connections: a request's headers may take once to twice this time


class RateLimits:
    """The rate limits of one service: of members by name, and of all clients by address."""

    def __init__(self, limits: Limits) -> None:
        self._limiter = SlidingWindowCounterRateLimiter(MemoryStorage())
        self._items = {
            "address": RateLimitItemPerMinute(limits.per_minute * PEOPLE_AT_AN_ADDRESS),
            "member": RateLimitItemPerMinute(limits.per_minute),
            "submission": RateLimitItemPerMinute(limits.submissions_per_minute),
            "typing": RateLimitItemPerMinute(limits.submissions_per_minute),  # beside it: who types can still submit
            "sign-in": RateLimitItemPerMinute(limits.sign_ins_per_minute),
            "news-test": RateLimitItemPerMinute(limits.news_tests_per_minute),
        }

    def count(self, what: What, whose: str) -> None:
        """Count one request of this kind for a member or an address; `Refusal` (429) if it exceeds the limit."""
        item, whose = self._items[what], network(whose) if what in ("address", "sign-in") else whose
        if not self._limiter.hit(item, what, whose):
            free_at = self._limiter.get_window_stats(item, what, whose).reset_time
            wait_s = max(1, ceil(free_at - time.time()))
            raise Refusal(429, f"too many requests; try again in {wait_s} s", {"Retry-After": str(wait_s)})


def network(address: str) -> str:
    """The network that counts as one client: for IPv6 a /64, since one client can use all of its addresses."""
    try:
        ip = ip_address(address)
    except ValueError:
        return "unknown"
    return str(ip_network((ip, 64), strict=False)) if ip.version == 6 else str(ip)


class ConcurrencyLimits:
    """Slow requests run a few at a time for each member; more of the same member wait, which takes no thread.

    A job or a model is read in a child process while a thread of the service waits for it. There are some dozens of
    threads for all members: without a limit, one who sends fifty jobs at once would use them all.
    """

    def __init__(self, at_once: int = AT_ONCE, timeout_s: float = SLOT_TIMEOUT_S) -> None:
        self._at_once, self._timeout_s = at_once, timeout_s
        self._slots: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def slot(self, whose: str) -> AsyncIterator[None]:
        """Hold a slot inside the block; `Refusal` if waiting for it takes too long."""
        slots = self._slots.setdefault(whose, asyncio.Semaphore(self._at_once))
        try:
            async with asyncio.timeout(self._timeout_s):
                await slots.acquire()
        except TimeoutError:
            message = f"{self._at_once} of your requests are being read, and others wait; try again in 5 s"
            raise Refusal(429, message, {"Retry-After": "5"}) from None
        try:
            yield
        finally:
            slots.release()


def is_stream(request: Request) -> bool:
    """Whether this is an event stream."""
    return request.method == "GET" and request.url.path.endswith("/events")


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


class MembershipCache:
    """Caches whether a token or session is still valid: one query for all its streams. `lasts_s`: for how long."""

    def __init__(self, ask: Callable[[Request], Awaitable[bool]], lasts_s: float) -> None:
        self._ask, self._lasts_s = ask, lasts_s
        self._answers: dict[str, tuple[float, asyncio.Future[bool]]] = {}

    async def is_still_member(self, request: Request) -> bool:
        """Whether the sender of this request is still a member."""
        now_s = asyncio.get_running_loop().time()
        self._answers = {key: each for key, each in self._answers.items() if now_s - each[0] < self._lasts_s}
        secret = request.headers.get("authorization") or request.cookies.get(COOKIE, "")
        if secret not in self._answers:
            self._answers[secret] = now_s, asyncio.ensure_future(self._ask(request))
        return await asyncio.shield(self._answers[secret][1])


async def while_member(
    response: Awaitable[None], is_still_member: Callable[[], Awaitable[bool]], send: Send, recheck_s: float
) -> None:
    """Send a response to its end, or until its receiver is no longer a member, checked every `recheck_s`.

    A request is authenticated when it comes, but a stream may last for days: that of a member who was removed, or whose
    token was renewed, is closed.
    """
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


class IdleConnections:
    """Closes connections that were already waiting for the same request at the last check (slow loris).

    Each uses a slot, and costs its owner nothing. The server itself closes connections that are idle after a response;
    it would keep those that never send a request, or send one very slowly.
    """

    def __init__(self) -> None:
        self._waiting: dict[Any, Any] = {}

    def close_idle(self, connections: Iterable[Any]) -> None:
        """Check all connections. They are uvicorn's: `cycle` is the newest request and its response."""
        before = self._waiting
        self._waiting = {each: each.cycle for each in connections if each.cycle is None or each.cycle.response_complete}
        for each, newest in self._waiting.items():
            if each in before and before[each] is newest:
                each.transport.close()
