"""The interface of a target of a load, and the reasons of failed requests."""

from __future__ import annotations

from typing import Protocol


class RequestFailed(Exception):
    """A failed request; `str(error)` is the reason in one line."""


class Target(Protocol):
    """One connection to a server. It is made in the load's event loop, and sends one request at a time."""

    async def send(self) -> None:
        """Send one request and read its whole response; raise if it is not correct.

        It may be cancelled by a timeout: the next call must not read the rest of the old response.
        """
        ...

    async def close(self) -> None:
        """Close the connection."""
        ...


def reason(error: Exception) -> str:
    """Why a request failed, in one line."""
    match error:
        case RequestFailed():
            message = str(error)
        case ConnectionRefusedError():
            message = "connection refused: nothing listens there"
        case ConnectionError():
            message = "the connection was closed before the answer was whole"
        case _:
            message = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return " ".join(message.split())[:200]
