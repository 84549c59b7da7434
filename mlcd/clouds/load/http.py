"""A keep-alive connection to an HTTP endpoint: the part of HTTP/1.1 that a load test needs.

It sends prepared bytes, since a full HTTP client spends more time on a request than a small model does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from urllib.parse import urlsplit

from mlcd.clouds.load.generate import RequestFailed
from mlcd.core.errors import BackendError

MOST_HEAD_BYTES = 65_536
MOST_BODY_BYTES = 256 << 20
"""A limit, since answers are held in memory and the server is not trusted."""
INCOMPLETE = "the connection was closed before the answer was complete"


class _ClosedEarly(RequestFailed):
    """The connection was closed before any answer."""


@dataclass(frozen=True)
class Request:
    """A request that is sent repeatedly. `url`: a valid address."""

    url: str
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def endpoint(self) -> tuple[str, int, bool]:
        """Host, port, and whether to use TLS."""
        parts = urlsplit(self.url)
        secure = parts.scheme == "https"
        return parts.hostname or "", parts.port or (443 if secure else 80), secure

    @cached_property
    def wire(self) -> bytes:
        """The bytes to send."""
        return self.with_body(self.body)

    def with_body(self, body: bytes) -> bytes:
        """The bytes to send, with another body."""
        return self._head + f"Content-Length: {len(body)}\r\n\r\n".encode() + body

    @cached_property
    def _head(self) -> bytes:
        parts = urlsplit(self.url)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        method = "POST" if self.body else "GET"
        headers = {"Host": parts.netloc.rpartition("@")[2], **self.headers}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"{method} {path} HTTP/1.1\r\n{lines}".encode("latin-1")


@dataclass(frozen=True, slots=True)
class Answer:
    """A response. `headers`: names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass
class Http:
    """A target that repeats one request over one connection. `check`: whether a response is correct."""

    request: Request
    check: Callable[[Answer], bool] | None = None
    _streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = field(default=None, init=False)

    async def send(self) -> None:
        """Send the request; raise unless the response is 2xx and passes the check."""
        answer = await self.ask()
        if not 200 <= answer.status < 300:
            text = answer.body[:300].decode(errors="replace").strip()
            raise RequestFailed(f"HTTP {answer.status}" + (f": {text}" if text else ""))
        if self.check is not None and not self.check(answer):
            raise RequestFailed("the answer is not what was expected")

    async def ask(self) -> Answer:
        """Send the request and return the response, whatever its status."""
        reused = self._streams is not None
        try:
            try:
                return await self._exchange()
            except _ClosedEarly:
                if not reused:
                    raise
                self._abort()  # a server may close an idle connection: retry once
                return await self._exchange()
        except BaseException:  # also if cancelled: the rest of the response must not be read as the next one's
            self._abort()
            raise

    async def close(self) -> None:
        """Close the connection, and wait until it is."""
        if self._streams is not None:
            writer = self._streams[1]
            self._abort()
            with suppress(OSError):
                await writer.wait_closed()

    def _abort(self) -> None:
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None

    async def _exchange(self) -> Answer:
        if self._streams is None:
            host, port, secure = self.request.endpoint
            try:
                self._streams = await asyncio.open_connection(host, port, ssl=secure or None, limit=MOST_HEAD_BYTES)
            except OSError as error:
                refused = isinstance(error, ConnectionRefusedError)
                why = "connection refused" if refused else error.strerror or str(error)
                raise RequestFailed(f"cannot connect to {host}:{port}: {why}") from error
        reader, writer = self._streams
        writer.write(self.request.wire)
        try:
            answer = await _read_answer(reader)
        except asyncio.IncompleteReadError as error:
            raise RequestFailed(INCOMPLETE) from error
        except (ValueError, asyncio.LimitOverrunError) as error:
            raise RequestFailed("the answer is not HTTP/1.1") from error
        if answer.headers.get("connection", "").lower() == "close":
            self._abort()
        return answer


def ask_once(server: str, request: Request, timeout_s: float) -> Answer:
    """The response to one request, whatever its status; BackendError, which names the server, if there is none."""

    async def ask() -> Answer:
        http = Http(request)
        try:
            async with asyncio.timeout(timeout_s):
                return await http.ask()
        except TimeoutError:
            raise BackendError(f"{server}: no answer within {timeout_s:g} s") from None
        except RequestFailed as error:
            raise BackendError(f"{server}: {error}") from None
        finally:
            await http.close()

    return asyncio.run(ask())


async def _read_answer(reader: asyncio.StreamReader) -> Answer:
    """Read a response; ValueError if it is not HTTP."""
    status = 100
    while status < 200:  # skip '100 Continue' and the like
        first, *lines = (await _read_head(reader)).decode("latin-1").split("\r\n")
        version, code, *_ = [*first.split(" ", 2), ""]
        if not version.startswith("HTTP/1."):
            raise ValueError(first)
        status = int(code)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    if status in (204, 304):
        body = b""
    elif "chunked" in headers.get("transfer-encoding", "").lower():
        body = await _read_chunks(reader)
    elif "content-length" in headers:
        body = await reader.readexactly(_checked(int(headers["content-length"])))
    else:  # the body ends with the connection
        body = await _read_to_the_end(reader)
        headers["connection"] = "close"
    return Answer(status, headers, body)


async def _read_head(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        raise (RequestFailed(INCOMPLETE) if error.partial else _ClosedEarly(INCOMPLETE)) from error
    except ConnectionError as error:
        raise _ClosedEarly(INCOMPLETE) from error


def _checked(size: int) -> int:
    if size > MOST_BODY_BYTES:
        raise RequestFailed(f"the answer has more than {MOST_BODY_BYTES >> 20} MB")
    return size


async def _read_to_the_end(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while part := await reader.read(MOST_HEAD_BYTES):
        body += part
        _checked(len(body))
    return bytes(body)


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    chunks, size_bytes = [], 0
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        size_bytes = _checked(size_bytes + size)
        chunks.append((await reader.readexactly(size + 2))[:-2])
    while await reader.readuntil(b"\r\n") != b"\r\n":  # trailers are ignored
        pass
    return b"".join(chunks)
