"""The protocol of what a load is sent to, and what is said of a request that failed."""

from __future__ import annotations

from typing import Protocol


class RequestFailed(Exception):
    """A request that was not answered well; `str(error)` is one line that says why."""


class Target(Protocol):
    """One connection to a server. It is made in the load's own event loop, and never sends two requests at once."""

    async def send(self) -> None:
        """Send one request and take its whole answer; raises if that is not what it should be.

        It may be cancelled, if it takes too long: the next one must not read what is left of its answer.
        """
        ...

    async def close(self) -> None:
        """Leave nothing behind."""
        ...


def reason(error: Exception) -> str:
    """Why a request failed, in one line."""
    match error:
        case RequestFailed():
            said = str(error)
        case ConnectionRefusedError():
            said = "connection refused: nothing listens there"
        case ConnectionError():
            said = "the connection was closed before the answer was whole"
        case _:
            said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return " ".join(said.split())[:200]
