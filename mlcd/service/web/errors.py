"""What all routes share: the base of request bodies, and errors: every error response is {"error": one line}."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from mlcd.core.errors import LedgerError, MlcdError, UnknownName, WrongState

if TYPE_CHECKING:
    from starlette.responses import JSONResponse

STATUS_MEANINGS = {
    304: "It has not changed since the `ETag` that was sent.",
    400: "The request is malformed: a parameter or the body is not what the document says.",
    401: "No token or session, or a wrong one.",
    403: "The member's role does not allow this, or the request comes from another site.",
    404: "There is no such thing.",
    405: "This path has no such method.",
    409: "The run is not in a state that allows this, or a budget does not.",
    413: "The body is too large.",
    415: "The body is of a type that is not read here.",
    416: "There are no such bytes.",
    422: "What was sent can be read, and cannot be used: the line says why.",
    429: "Too many requests; `Retry-After` says when to come again.",
    502: "The sign-in provider cannot be reached, or its answer cannot be believed.",
    503: "The database cannot be reached.",
}
ANY = (400, 401, 403, 429, 503)  # what every route but /health may answer with


class RequestBody(BaseModel):
    """The body of a request."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Problem(BaseModel):
    """Every answer that is no success."""

    error: str = Field(description="What is wrong, and what to do, in one line.")
    left_usd: float | None = Field(default=None, description="What is left of a budget that does not allow it.")
    asks: str | None = Field(default=None, description="What a run may cost that nobody has agreed to yet.")


def error_responses(*statuses: int, always: tuple[int, ...] = ANY) -> dict[int | str, dict[str, Any]]:
    """For a route's `responses`: these statuses, and those that any route may answer with."""
    return {
        status: {"model": Problem, "description": STATUS_MEANINGS[status]} for status in sorted({*always, *statuses})
    }


class Refusal(MlcdError):
    """A request that is refused with this status and headers; `extra`: more keys beside `error`."""

    def __init__(
        self, status: int, line: str, headers: Mapping[str, str] | None = None, extra: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(line)
        self.status, self.headers, self.extra = status, dict(headers or {}), dict(extra or {})

    def response(self) -> "JSONResponse":
        """The response, in one line."""
        from starlette.responses import JSONResponse  # not above: the children that read files import this module

        return JSONResponse({"error": " ".join(str(self).split()), **self.extra}, self.status, self.headers)


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
