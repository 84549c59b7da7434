"""One MLCD service, over HTTP: ask it, tell it, and say in one line what went wrong."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from mlcd.core.errors import MlcdError, UserError
from mlcd.core.version import VERSION
from mlcd.service.remote.failures import FROM_ENVIRONMENT, ServerError, explained, refused
from mlcd.service.remote.tokens import API, address, checked

if TYPE_CHECKING:
    import httpx

CONNECT_S, ANSWER_S, UPLOAD_S = 10.0, 60.0, 600.0
SILENCE_S = 45.0
"""A stream says something every 15 s: after three of those it is taken for broken."""
MOST_WAITS, LONGEST_WAIT_S = 4, 60.0
"""How often, and how long at a time, a question waits that was asked too soon after others."""
NO_SUCH_PATH = ("there is no such thing", "this path has no such method", "not found", "method not allowed", "")
"""What a server says, MLCD's or any other, that has no such path: not that there is no such run or member."""
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Server:
    """A service at an address, as one member sees it."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        where: str = FROM_ENVIRONMENT,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        """`where`: what the token was read from, for messages."""
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
            follow_redirects=False,  # a token goes to the address that was given, and nowhere else
            trust_env=urlsplit(self.url).hostname not in LOOPBACK,  # no proxy stands between us and ourselves
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def get(self, path: str, **query: Any) -> Any:
        """What the server says."""
        asked = {name: value for name, value in query.items() if value is not None}
        return self._document("GET", path, params=asked)

    def post(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Tell the server something, and what it says to that."""
        return self.send("POST", path, body or {})

    def send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The same by any method; without a body where there is none."""
        return self._document(method, path, **({"json": dict(body)} if body is not None else {}))

    def upload(self, file: Path) -> Any:
        """Send a file, as it is."""
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
        """The lines of a stream of events, from the one after this."""
        import httpx

        timeout = httpx.Timeout(SILENCE_S, connect=CONNECT_S)
        headers = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
        with explained(self.url), self._client.stream("GET", path, headers=headers, timeout=timeout) as answer:
            if answer.status_code != 200:
                answer.read()
                raise self._refused(answer, path)
            if not answer.headers.get("content-type", "").startswith("text/event-stream"):
                raise self._stranger()
            yield answer.iter_lines()

    def about(self) -> dict[str, Any]:
        """What it is: {"ok", "version", "mode"}; `ServerError` if it is no MLCD server."""
        with explained(self.url):
            answer = self._client.get("/health")
        try:
            document = answer.json()
        except ValueError:
            document = None
        if answer.is_redirect:
            raise ServerError(f"{self.url}: answers from another address ({_place(answer)}); use that one")
        if answer.status_code in (404, 405):  # MLCD's own words for that are about a path that nobody has typed
            raise self._stranger()
        if answer.status_code != 200 or not isinstance(document, dict) or "version" not in document:
            raise refused(self.url, answer, self._token_from) or self._stranger()
        return document

    @contextmanager
    def reading(self) -> Iterator[None]:
        """While an answer is read: one that is not what was expected is told as `unreadable`."""
        try:
            yield
        except (KeyError, TypeError, ValueError):
            raise self.unreadable() from None

    def unreadable(self) -> ServerError:
        """What it said makes no sense here: which of the two is to be upgraded."""
        theirs = str(self.about()["version"])
        if _parts(theirs) > _parts(VERSION):
            return ServerError(
                f"{self.url}: runs MLCD {theirs}, newer than this one ({VERSION}), and says what it cannot read; "
                "upgrade with pip install -U mlcd"
            )
        if _parts(theirs) < _parts(VERSION):
            return ServerError(
                f"{self.url}: runs MLCD {theirs}, older than this one ({VERSION}), and cannot do this; "
                "ask who runs it to upgrade"
            )
        return ServerError(f"{self.url}: gives an answer that is not MLCD's; is something between here and there?")

    def _document(self, method: str, path: str, **more: Any) -> Any:
        for _ in range(MOST_WAITS):
            with explained(self.url):
                answer = self._client.request(method, path, **more)
            if answer.status_code != 429 or method != "GET":
                break
            self._wait(_pause_s(answer))
        if not answer.is_success:
            raise self._refused(answer, path)
        try:
            return answer.json() if answer.content else None
        except ValueError:
            raise self._stranger() from None

    def _refused(self, answer: httpx.Response, path: str) -> MlcdError:
        error = refused(self.url, answer, self._token_from)
        if error is not None and not (answer.status_code in (404, 405) and _no_such_path(answer)):
            return error
        self.about()  # tells of one that is no MLCD server
        return self.unreadable()

    def _stranger(self) -> ServerError:
        parts = urlsplit(self.url)
        hint = f"try {parts.scheme}://{parts.netloc}" if parts.path else "`mlcd service` prints the address to use"
        return ServerError(f"{self.url}: not an MLCD server; {hint}")


def run_path(run: str, what: str = "") -> str:
    """The path of a run, or of something of it; `UserError` if no run can have that name."""
    if "/" in run or run in ("", ".", ".."):  # such a path would be another one
        raise UserError(f"unknown run '{run}'; those there are: mlcd runs")
    return path_of("runs", run, what) if what else path_of("runs", run)


def path_of(*names: str) -> str:
    """A path of names, which may be anything that a user has typed."""
    return "".join(f"/{quote(name, safe='')}" for name in names)


def _no_such_path(answer: httpx.Response) -> bool:
    """Whether the server knows no such question, rather than no such run."""
    from mlcd.service.remote.failures import told

    return (told(answer) or "").lower().rstrip(".") in NO_SUCH_PATH


def _place(answer: httpx.Response) -> str:
    where = urlsplit(answer.headers.get("location", ""))
    return f"{where.scheme}://{where.netloc}" if where.netloc else "without saying which"


def _pause_s(answer: httpx.Response) -> float:
    """How long a server asks us to wait."""
    told = answer.headers.get("retry-after", "")
    return min(float(told), LONGEST_WAIT_S) if told.isdecimal() else 1.0


def _parts(version: str) -> tuple[int, ...]:
    """'0.10.2' is newer than '0.9'."""
    numbers = []
    for part in version.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
    return tuple(numbers)
