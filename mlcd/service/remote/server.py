"""An HTTP client of one MLCD service. Each error is one line, and none contains a token."""

from __future__ import annotations

import re
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from mlcd.core.errors import MlcdError, UserError, WrongState
from mlcd.core.exit_codes import ExitCode
from mlcd.core.version import VERSION
from mlcd.service.remote.tokens import API, address, checked

if TYPE_CHECKING:
    import httpx

CONNECT_S, ANSWER_S, UPLOAD_S = 10.0, 60.0, 600.0
SILENCE_S = 45.0  # timeout of an event stream, which sends something every 15 s
MOST_RETRIES, LONGEST_WAIT_S = 4, 60.0  # retries after a rate limit (429), and the longest wait before each
FROM_ENVIRONMENT = "MLCD_TOKEN"
NO_SUCH_PATH = ("there is no such thing", "this path has no such method", "not found", "method not allowed", "")
"""Messages of a server, MLCD's or another, about an unknown path, as opposed to an unknown run or member."""
Wait = Callable[[float], None]
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class ServerError(MlcdError):
    """A server cannot be used: it is unreachable, refuses access, or is not an MLCD server."""


class ServerLost(ServerError):
    """The connection broke, or the server could not answer: a retry may work."""

    exit_code = ExitCode.UNAVAILABLE


class NotAgreed(WrongState):
    """A run that would cost real dollars and was not agreed to; `asks`: what it may spend."""

    exit_code = ExitCode.YES_NEEDED

    def __init__(self, line: str, asks: str) -> None:
        super().__init__(line)
        self.asks = asks


class Server:
    """A service at an address, used by one member."""

    def __init__(
        self, url: str, token: str | None = None, where: str = FROM_ENVIRONMENT, wait: Wait = time.sleep
    ) -> None:
        """`where`: where the token was read from, for messages."""
        import httpx

        self.url = address(url)
        self._token_from = where if token else ""
        self._wait = wait
        headers = {"X-MLCD": "1", "User-Agent": f"mlcd/{VERSION}", "Accept": "application/json"}
        if token:
            headers["Authorization"] = f"Bearer {checked(token, where)}"
        self._client = httpx.Client(
            base_url=f"{self.url}{API}",
            headers=headers,
            timeout=httpx.Timeout(ANSWER_S, connect=CONNECT_S),
            follow_redirects=False,  # a token is sent only to the given address
            trust_env=urlsplit(self.url).hostname not in LOOPBACK,  # no proxy for loopback
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def get(self, path: str, **query: Any) -> Any:
        """GET, as JSON."""
        given = {name: value for name, value in query.items() if value is not None}
        return self._document("GET", path, params=given)

    def post(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """POST, and the response as JSON."""
        return self.send("POST", path, body or {})

    def send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Send a request by any method, with an optional body."""
        return self._document(method, path, **({"json": dict(body)} if body is not None else {}))

    def upload(self, file: Path) -> Any:
        """Upload a file."""
        try:
            with file.open("rb") as content:
                headers = {"Content-Type": "application/octet-stream", "Content-Length": str(file.stat().st_size)}
                body = {"content": content, "headers": headers, "timeout": UPLOAD_S}
                return self._document("POST", "/uploads", params={"name": file.name}, **body)
        except OSError as error:
            raise UserError(f"{file}: cannot be read: {error.strerror}") from None

    @contextmanager
    def stream(self, path: str, after: int) -> Iterator[Iterator[str]]:
        """The lines of an event stream, after this entry."""
        import httpx

        timeout = httpx.Timeout(SILENCE_S, connect=CONNECT_S)
        headers = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
        with connection_errors(self.url), self._client.stream("GET", path, headers=headers, timeout=timeout) as answer:
            if answer.status_code != 200:
                answer.read()
                raise self._error(answer)
            if not answer.headers.get("content-type", "").startswith("text/event-stream"):
                raise self._not_mlcd()
            yield answer.iter_lines()

    def about(self) -> dict[str, Any]:
        """Its health: {"ok", "version", "mode"}; `ServerError` if it is not an MLCD server."""
        with connection_errors(self.url):
            answer = self._client.get("/health")
        try:
            document = answer.json()
        except ValueError:
            document = None
        if answer.is_redirect:
            raise ServerError(f"{self.url}: answers from another address ({_new_address(answer)}); use that one")
        if answer.status_code in (404, 405):  # MLCD's own message would be about a path that the user did not type
            raise self._not_mlcd()
        if answer.status_code != 200 or not isinstance(document, dict) or "version" not in document:
            raise error_of(self.url, answer, self._token_from) or self._not_mlcd()
        return document

    @contextmanager
    def reading(self) -> Iterator[None]:
        """While an answer is parsed: an unexpected format is raised as `unreadable`."""
        try:
            yield
        except (KeyError, TypeError, ValueError):
            raise self.unreadable() from None

    def unreadable(self) -> ServerError:
        """An error about an unexpected answer, with advice which side to upgrade."""
        version = str(self.about()["version"])
        why = "its answer is not MLCD's; is there a proxy in between?"
        if _numbers(version) > _numbers(VERSION):
            why = f"runs MLCD {version}, newer than this one ({VERSION}), which cannot read its answer; "
            why += "upgrade with pip install -U mlcd"
        elif _numbers(version) < _numbers(VERSION):
            why = f"runs MLCD {version}, older than this one ({VERSION}), and cannot do this; "
            why += "ask its operator to upgrade"
        return ServerError(f"{self.url}: {why}")

    def _document(self, method: str, path: str, **more: Any) -> Any:
        for _ in range(MOST_RETRIES):
            with connection_errors(self.url):
                answer = self._client.request(method, path, **more)
            if answer.status_code != 429 or method != "GET":
                break
            self._wait(_retry_after_s(answer))
        if not answer.is_success:
            raise self._error(answer)
        try:
            return answer.json() if answer.content else None
        except ValueError:
            raise self._not_mlcd() from None

    def _error(self, answer: httpx.Response) -> MlcdError:
        error = error_of(self.url, answer, self._token_from)
        path_unknown = (error_message(answer) or "").lower().rstrip(".") in NO_SUCH_PATH  # not: the run is unknown
        if error is not None and not (answer.status_code in (404, 405) and path_unknown):
            return error
        self.about()  # raises if it is not an MLCD server
        return self.unreadable()

    def _not_mlcd(self) -> ServerError:
        parts = urlsplit(self.url)
        hint = f"try {parts.scheme}://{parts.netloc}" if parts.path else "`mlcd service` prints the address to use"
        return ServerError(f"{self.url}: not an MLCD server; {hint}")


def run_path(run: str, what: str = "") -> str:
    """The path of a run, or of a part of it; `UserError` if the name is not possible."""
    if "/" in run or run in ("", ".", ".."):  # it would change the path
        raise UserError(f"unknown run '{run}'; those there are: mlcd runs")
    return path_of("runs", run, what) if what else path_of("runs", run)


def path_of(*names: str) -> str:
    """A path of names, quoted: a user may have typed anything."""
    return "".join(f"/{quote(name, safe='')}" for name in names)


def _new_address(answer: httpx.Response) -> str:
    where = urlsplit(answer.headers.get("location", ""))
    return f"{where.scheme}://{where.netloc}" if where.netloc else "without saying which"


def _retry_after_s(answer: httpx.Response) -> float:
    """The server's Retry-After."""
    header = answer.headers.get("retry-after", "")
    return min(float(header), LONGEST_WAIT_S) if header.isdecimal() else 1.0


def _numbers(version: str) -> list[int]:
    """Of '0.10.2': it is newer than '0.9'."""
    return [int(number) for number in re.findall(r"\d+", re.split(r"[^\d.]", version)[0])]


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
            why = f"its certificate is not trusted ({cause.verify_message})"
            return ServerError(f"{url}: {why}; name the authority's file in SSL_CERT_FILE, or correct the address")
        if isinstance(cause, ssl.SSLError):
            why = "does not speak TLS, though its address is https://"
            return ServerError(f"{url}: {why}; try http://, or ask its operator")
        cause = cause.__cause__ or cause.__context__
    unknown = "Name or service" in str(error) or "getaddrinfo" in str(error)
    why = "its name is not known" if unknown else "nobody answers"
    return ServerLost(f"{url}: cannot be reached, {why}; is it running, and is the address right?")


def error_of(url: str, answer: httpx.Response, token: str = "") -> MlcdError | None:
    """The error in a response, in the server's words; None: it is no MLCD server's. `token`: where it was read from."""
    message, status = error_message(answer), answer.status_code
    if message is None and status == 413:  # MLCD's own response states the limit
        why = "a proxy before it refuses such a large request"
        return UserError(f"{url}: {why}; ask its operator (nginx: client_max_body_size)")
    if message is None and status in (502, 503, 504):
        return ServerLost(f"{url}: answers {status}; try again, or ask its operator")
    if message is None:
        return None
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
