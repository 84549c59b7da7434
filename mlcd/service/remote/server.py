"""An HTTP client of one MLCD service, with errors of one line."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from mlcd.core.errors import MlcdError, UserError
from mlcd.core.version import VERSION
from mlcd.service.remote.failures import FROM_ENVIRONMENT, ServerError, connection_errors, error_of
from mlcd.service.remote.tokens import API, address, checked

if TYPE_CHECKING:
    import httpx

CONNECT_S, ANSWER_S, UPLOAD_S = 10.0, 60.0, 600.0
SILENCE_S = 45.0
"""Timeout of an event stream, which sends something every 15 s."""
MOST_RETRIES, LONGEST_WAIT_S = 4, 60.0
"""Retries after a rate limit (429), and the longest wait before each."""
NO_SUCH_PATH = ("there is no such thing", "this path has no such method", "not found", "method not allowed", "")
"""Messages of a server, MLCD's or another, about an unknown path, as opposed to an unknown run or member."""
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Server:
    """A service at an address, used by one member."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        where: str = FROM_ENVIRONMENT,
        wait: Callable[[float], None] = time.sleep,
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
                return self._document(
                    "POST", "/uploads", params={"name": file.name}, content=content, headers=headers, timeout=UPLOAD_S
                )
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
                raise self._error(answer, path)
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
        if _parts(version) > _parts(VERSION):
            return ServerError(
                f"{self.url}: runs MLCD {version}, newer than this one ({VERSION}), which cannot read its answer; "
                "upgrade with pip install -U mlcd"
            )
        if _parts(version) < _parts(VERSION):
            return ServerError(
                f"{self.url}: runs MLCD {version}, older than this one ({VERSION}), and cannot do this; "
                "ask its operator to upgrade"
            )
        return ServerError(f"{self.url}: its answer is not MLCD's; is there a proxy in between?")

    def _document(self, method: str, path: str, **more: Any) -> Any:
        for _ in range(MOST_RETRIES):
            with connection_errors(self.url):
                answer = self._client.request(method, path, **more)
            if answer.status_code != 429 or method != "GET":
                break
            self._wait(_retry_after_s(answer))
        if not answer.is_success:
            raise self._error(answer, path)
        try:
            return answer.json() if answer.content else None
        except ValueError:
            raise self._not_mlcd() from None

    def _error(self, answer: httpx.Response, path: str) -> MlcdError:
        error = error_of(self.url, answer, self._token_from)
        if error is not None and not (answer.status_code in (404, 405) and _no_such_path(answer)):
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


def _no_such_path(answer: httpx.Response) -> bool:
    """Whether the server does not know the path, as opposed to the run."""
    from mlcd.service.remote.failures import error_message

    return (error_message(answer) or "").lower().rstrip(".") in NO_SUCH_PATH


def _new_address(answer: httpx.Response) -> str:
    where = urlsplit(answer.headers.get("location", ""))
    return f"{where.scheme}://{where.netloc}" if where.netloc else "without saying which"


def _retry_after_s(answer: httpx.Response) -> float:
    """The server's Retry-After."""
    header = answer.headers.get("retry-after", "")
    return min(float(header), LONGEST_WAIT_S) if header.isdecimal() else 1.0


def _parts(version: str) -> tuple[int, ...]:
    """'0.10.2' is newer than '0.9'."""
    numbers = []
    for part in version.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
    return tuple(numbers)
