"""Errors as HTTP says them: every answer that is no success is {"error": one line}."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from mlcd.core.errors import LedgerError, MlcdError, UnknownName, WrongState


class Refusal(MlcdError):
    """A request that is refused with this code, and these headers; `told` stands beside the error's line."""

    def __init__(
        self, status: int, line: str, headers: Mapping[str, str] | None = None, told: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(line)
        self.status, self.headers, self.told = status, dict(headers or {}), dict(told or {})


def shown(error: BaseException) -> str:
    """An error in words that any member may read: not where the database is, which the service's log tells."""
    if isinstance(error, LedgerError):
        return f"the ledger: {error.reason}"
    return str(error) if isinstance(error, MlcdError) else "the ledger cannot be read; the service's log says more"


def refusal(error: MlcdError) -> Refusal:
    """A deliberate error with its code: what a user wrote is 422 unless it says otherwise."""
    if isinstance(error, Refusal):
        return error
    left_usd = getattr(error, "left_usd", None)  # of a member or a team that is over its budget
    if left_usd is not None:
        return Refusal(409, str(error), told={"left_usd": left_usd})
    if isinstance(error, WrongState):
        return Refusal(409, str(error))
    return Refusal(503 if isinstance(error, LedgerError) else 422, shown(error))


@contextmanager
def named() -> Iterator[None]:
    """What the path names must be there: an unknown name is 404 here, where in a body it would be 422."""
    try:
        yield
    except UnknownName as error:
        raise Refusal(404, str(error)) from error
