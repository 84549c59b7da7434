"""Errors of a connection to a server, each in one line. None of them contains a token."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mlcd.core.errors import MlcdError, UserError, WrongState

if TYPE_CHECKING:
    import httpx

FROM_ENVIRONMENT = "MLCD_TOKEN"


class ServerError(MlcdError):
    """A server cannot be used: it is unreachable, refuses access, or is not an MLCD server."""


class ServerLost(ServerError):
    """The connection broke, or the server could not answer: a retry may work."""


class NotAgreed(WrongState):
    """A run that would cost real dollars and was not agreed to; `asks`: what it may spend."""

    def __init__(self, line: str, asks: str) -> None:
        super().__init__(line)
        self.asks = asks


@contextmanager
def connection_errors(url: str) -> Iterator[None]:
    """Turn connection errors into one line about this server."""
    import httpx

    try:
        yield
    except httpx.TimeoutException:
        raise ServerLost(f"{url}: does not answer; is it running, and is the address right?") from None
    except httpx.ConnectError as error:
        raise _no_connection(url, error) from None
    except (httpx.RemoteProtocolError, httpx.DecodingError) as error:
        if "without sending" in str(error) or "incomplete" in str(error):
            raise ServerLost(f"{url}: the connection broke; try again") from None
        raise ServerError(f"{url}: not an MLCD server; `mlcd service` prints the address to use") from None
    except httpx.TransportError as error:
        raise ServerLost(f"{url}: the connection broke ({type(error).__name__}); try again") from None


def _no_connection(url: str, error: Exception) -> ServerError:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return ServerError(
                f"{url}: its certificate is not trusted ({cause.verify_message}); "
                "name the authority's file in SSL_CERT_FILE, or correct the address"
            )
        if isinstance(cause, ssl.SSLError):
            return ServerError(
                f"{url}: does not speak TLS, though its address is https://; try http://, or ask its operator"
            )
        cause = cause.__cause__ or cause.__context__
    why = (
        "its name is not known" if "Name or service" in str(error) or "getaddrinfo" in str(error) else "nobody answers"
    )
    return ServerLost(f"{url}: cannot be reached, {why}; is it running, and is the address right?")


def error_of(url: str, answer: httpx.Response, token: str = "") -> MlcdError | None:
    """The error in a response, in the server's own words; None if it is not from an MLCD server.

    `token`: where the token that was sent came from, if any.
    """
    message = error_message(answer)
    status = answer.status_code
    if message is None and status == 413:  # MLCD's own response states the limit
        return UserError(
            f"{url}: a proxy before it refuses such a large request; ask its operator (nginx: client_max_body_size)"
        )
    if message is None:
        return (
            ServerLost(f"{url}: answers {status}; try again, or ask its operator")
            if status in (502, 503, 504)
            else None
        )
    match status:
        case 401:
            return _unauthorized(url, token)
        case 403:
            return ServerError(f"{url}: not allowed: {message}")
        case 404 | 400 | 413 | 415 | 422:
            return UserError(message)
        case 409:
            asks = answer.json().get("asks")
            return NotAgreed(message, str(asks)) if asks else WrongState(message)
        case 503 | 429:
            return ServerLost(f"{url}: {message}")
        case _:
            return ServerError(f"{url}: answers {status}: {message}")


def _unauthorized(url: str, token: str) -> ServerError:
    """No token, or an invalid one: which token to replace, and how."""
    if not token:
        return ServerError(f"{url}: you are not signed in there; get a token from an admin, then: mlcd login {url}")
    because = "is not valid there: it was renewed, or belongs to another server"
    if token == FROM_ENVIRONMENT:
        return ServerError(f"{url}: the token in {token} {because}; put a new one there, or unset {token}")
    return ServerError(f"{url}: {token} {because}; get a new one from an admin, then: mlcd login {url}")


def error_message(answer: httpx.Response) -> str | None:
    """The message of an error response; None if it has none."""
    try:
        document: Any = answer.json()
    except ValueError:
        return None
    message = document.get("error") if isinstance(document, dict) else None
    return " ".join(message.split()) if isinstance(message, str) and message else None
