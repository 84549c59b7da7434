"""Errors of the API: every error response is {"error": one line}. Also the base class of request bodies."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from mlcd.core.errors import LedgerError, MlcdError, UnknownName, WrongState

if TYPE_CHECKING:
    from starlette.responses import JSONResponse

STATUS_MEANINGS = {
    304: "It has not changed since the `ETag` that was sent.",
    400: "The request is malformed: a parameter or the body is not as documented.",
    401: "No token or session, or a wrong one.",
    403: "The member's role does not allow this, or the request comes from another site.",
    404: "There is no such thing.",
    405: "This path has no such method.",
    409: "The state of the run, or a budget, does not allow this.",
    413: "The body is too large.",
    415: "The content type of the body is not supported.",
    416: "The range is not within the file.",
    422: "The request is well-formed but not valid: the message says why.",
    429: "Too many requests; `Retry-After` says when to try again.",
    502: "The sign-in provider cannot be reached, or its answer is not valid.",
    503: "The database cannot be reached.",
}
COMMON_STATUSES = (400, 401, 403, 429, 503)  # any route except /health may answer with these


class RequestBody(BaseModel):
    """The body of a request."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Problem(BaseModel):
    """The body of every error response."""

    error: str = Field(description="What is wrong, and what to do, in one line.")
    left_usd: float | None = Field(default=None, description="If a budget does not allow it: dollars left in it.")
    asks: str | None = Field(default=None, description="If the request needs agreement to a cost: that cost in words.")


def error_responses(*statuses: int, always: tuple[int, ...] = COMMON_STATUSES) -> dict[int | str, dict[str, Any]]:
    """For a route's `responses`: these statuses, and the common ones."""
    return {
        status: {"model": Problem, "description": STATUS_MEANINGS[status]} for status in sorted({*always, *statuses})
    }


class Refusal(MlcdError):
    """An error response with this status and these headers; `extra`: more keys beside `error`."""

    def __init__(
        self, status: int, line: str, headers: Mapping[str, str] | None = None, extra: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(line)
        self.status, self.headers, self.extra = status, dict(headers or {}), dict(extra or {})

    def response(self) -> "JSONResponse":
        """The response, in one line."""
        from starlette.responses import JSONResponse  # not at the top: child processes import this module, too

        return JSONResponse({"error": " ".join(str(self).split()), **self.extra}, self.status, self.headers)


def public_message(error: BaseException) -> str:
    """An error message that any member may see: without the database's address, which is only logged."""
    if isinstance(error, LedgerError):
        return f"the ledger: {error.reason}"
    return str(error) if isinstance(error, MlcdError) else "the ledger cannot be read; see the service's log"


def refusal(error: MlcdError) -> Refusal:
    """The error response for an error of MLCD: 422 by default."""
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
