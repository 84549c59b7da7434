"""Errors as HTTP responses: every error response is {"error": one line}."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from mlcd.core.errors import LedgerError, MlcdError, UnknownName, WrongState


class Refusal(MlcdError):
    """A request that is refused with this status and headers; `extra`: more keys beside `error`."""

    def __init__(
        self, status: int, line: str, headers: Mapping[str, str] | None = None, extra: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(line)
        self.status, self.headers, self.extra = status, dict(headers or {}), dict(extra or {})


def public_message(error: BaseException) -> str:
    """An error message that any member may read: without the database's address, which is only logged."""
    if isinstance(error, LedgerError):
        return f"the ledger: {error.reason}"
    return str(error) if isinstance(error, MlcdError) else "the ledger cannot be read; see the service's log"


def refusal(error: MlcdError) -> Refusal:
    """An error of MLCD with its HTTP status: 422 by default."""
    if isinstance(error, Refusal):
        return error
    left_usd = getattr(error, "left_usd", None)  # set if a member or a team is over its budget
    if left_usd is not None:
        return Refusal(409, str(error), extra={"left_usd": left_usd})
    if isinstance(error, WrongState):
        return Refusal(409, str(error))
    return Refusal(503 if isinstance(error, LedgerError) else 422, public_message(error))


@contextmanager
def unknown_is_404() -> Iterator[None]:
    """An unknown name in the path is a 404; in a body it would be a 422."""
    try:
        yield
    except UnknownName as error:
        raise Refusal(404, str(error)) from error
