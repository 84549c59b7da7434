"""Rate limits: of members by name, and of all clients by address. In memory, per minute."""

from __future__ import annotations

import time
from ipaddress import ip_address, ip_network
from math import ceil

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter

from mlcd.service.web.failures import Refusal
from mlcd.service.web.settings import Limits

PEOPLE_AT_AN_ADDRESS = 10
"""An office may share one address."""


class RateLimits:
    """The rate limits of one service."""

    def __init__(self, limits: Limits) -> None:
        self._limiter = SlidingWindowCounterRateLimiter(MemoryStorage())
        self._members = RateLimitItemPerMinute(limits.per_minute)
        self._submissions = RateLimitItemPerMinute(limits.submissions_per_minute)
        self._addresses = RateLimitItemPerMinute(limits.per_minute * PEOPLE_AT_AN_ADDRESS)
        self._sign_ins = RateLimitItemPerMinute(limits.sign_ins_per_minute)

    def address(self, address: str) -> None:
        """Count a request from this address."""
        self._count(self._addresses, "address", network(address))

    def member(self, name: str) -> None:
        """Count a request of this member."""
        self._count(self._members, "member", name)

    def submission(self, name: str) -> None:
        """Count a job or a model, which is read in a child process."""
        self._count(self._submissions, "submission", name)

    def sign_in(self, address: str) -> None:
        """Count a sign-in, or a wrong token, from this address."""
        self._count(self._sign_ins, "sign-in", network(address))

    def _count(self, item: RateLimitItemPerMinute, what: str, whose: str) -> None:
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
