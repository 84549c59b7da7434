"""What can go wrong between here and a server, each in one line. A token is in none of them."""

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
    """A server cannot be used: it is not there, it does not let us in, or it is something else."""


class ServerLost(ServerError):
    """The connection broke, or the server could not answer: what may go well in a moment."""


class NotAgreed(WrongState):
    """A run that would be billed in real dollars; `asks` says what it may spend."""

    def __init__(self, line: str, asks: str) -> None:
        super().__init__(line)
        self.asks = asks


@contextmanager
def explained(url: str) -> Iterator[None]:
    """Errors of the connection as one line about this server."""
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
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ssl.SSLCertVerificationError):
            return ServerError(
                f"{url}: its certificate is not trusted ({seen.verify_message}); "
                "name the authority's file in SSL_CERT_FILE, or correct the address"
            )
        if isinstance(seen, ssl.SSLError):
            return ServerError(f"{url}: does not speak TLS as https:// says; try http://, or ask who runs it")
        seen = seen.__cause__ or seen.__context__
    why = (
        "its name is not known" if "Name or service" in str(error) or "getaddrinfo" in str(error) else "nobody answers"
    )
    return ServerLost(f"{url}: cannot be reached, {why}; is it running, and is the address right?")


def refused(url: str, answer: httpx.Response, token: str = "") -> MlcdError | None:
    """The error that an answer tells, in the server's own words; None where they are not those of an MLCD server.

    `token`: where the token came from that was sent, if one was.
    """
    said = told(answer)
    status = answer.status_code
    if said is None and status == 413:  # MLCD's own says how much is the most
        return UserError(
            f"{url}: a proxy before it takes no request so large; ask who runs it (nginx: client_max_body_size)"
        )
    if said is None:
        return (
            ServerLost(f"{url}: answers {status}; try again, or ask who runs it") if status in (502, 503, 504) else None
        )
    match status:
        case 401:
            return _not_let_in(url, token)
        case 403:
            return ServerError(f"{url}: not allowed: {said}")
        case 404 | 400 | 413 | 415 | 422:
            return UserError(said)
        case 409:
            asks = answer.json().get("asks")
            return NotAgreed(said, str(asks)) if asks else WrongState(said)
        case 503 | 429:
            return ServerLost(f"{url}: {said}")
        case _:
            return ServerError(f"{url}: answers {status}: {said}")


def _not_let_in(url: str, token: str) -> ServerError:
    """Without a token, or with one that is worth nothing: whose place is to be taken by another, and how."""
    if not token:
        return ServerError(f"{url}: you are not signed in there; get a token from an admin, then: mlcd login {url}")
    because = "is not known there: it was renewed, or was never one of theirs"
    if token == FROM_ENVIRONMENT:
        return ServerError(f"{url}: the token in {token} {because}; put a new one there, or unset {token}")
    return ServerError(f"{url}: {token} {because}; get a new one from an admin, then: mlcd login {url}")


def told(answer: httpx.Response) -> str | None:
    """The line of an answer that is no success; None if it has none."""
    try:
        document: Any = answer.json()
    except ValueError:
        return None
    said = document.get("error") if isinstance(document, dict) else None
    return " ".join(said.split()) if isinstance(said, str) and said else None
