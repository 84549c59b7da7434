"""A keep-alive HTTP/1.1 connection that reads an answer's server-sent events as they arrive.

Thousands of streams share one thread, so little work is done per chunk: it is read into a buffer shared by all
connections, gets the time at which it was read, and is passed on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from mlcd.clouds.load.generate import RequestFailed
from mlcd.clouds.load.http import INCOMPLETE, MOST_BODY_BYTES, MOST_HEAD_BYTES, Answer

OnEvent = Callable[[bytes, float], None]
"""Called with the data of an event and the time at which it was read. It may raise RequestFailed."""
FIELDS = (b"event:", b"id:", b"retry:", b":")
"""Lines of an event stream that are ignored; ':' begins a comment."""
_BUFFER = bytearray(MOST_HEAD_BYTES)


@dataclass
class EventConnection:
    """One connection to a server. `stall_s`: the longest silence of a server that owes an answer."""

    host: str
    port: int
    secure: bool = False
    stall_s: float = 60.0
    _wire: _Wire | None = field(default=None, init=False)

    async def ask(self, request: bytes, on_event: OnEvent) -> Answer:
        """Send a request, pass on the events of its answer, and return the answer; its body is empty if it had events.

        An answer that is not 2xx, or is not an event stream, is returned with its body.
        """
        try:
            reused = self._wire is not None and not self._wire.lost
            wire = await self._connected()
            try:
                return await wire.ask(request, on_event, self.stall_s)
            except ConnectionError:
                if not reused or wire.heard:
                    raise RequestFailed(INCOMPLETE) from None
                self.abort()  # a server may close an idle connection: retry once
                return await (await self._connected()).ask(request, on_event, self.stall_s)
        except ConnectionError as error:
            self.abort()
            raise RequestFailed(INCOMPLETE) from error
        except BaseException:  # also if cancelled: the rest of the answer must not be read as the next one's
            self.abort()
            raise

    def abort(self) -> None:
        """Close the connection at once."""
        if self._wire is not None:
            self._wire.transport.abort()
            self._wire = None

    async def close(self) -> None:
        """Close the connection, and wait until it is."""
        if (wire := self._wire) is not None:
            self.abort()
            await wire.closed.wait()

    async def _connected(self) -> _Wire:
        if self._wire is None or self._wire.lost:
            loop = asyncio.get_running_loop()
            try:
                _, self._wire = await loop.create_connection(_Wire, self.host, self.port, ssl=self.secure or None)
            except OSError as error:
                refused = isinstance(error, ConnectionRefusedError)
                why = "connection refused" if refused else error.strerror or str(error)
                raise RequestFailed(f"cannot connect to {self.host}:{self.port}: {why}") from None
        return self._wire


class _Wire(asyncio.BufferedProtocol):
    """Reads the answers of one connection, one after the other."""

    def __init__(self) -> None:
        self.closed, self.lost, self.heard = asyncio.Event(), False, False
        self._time = asyncio.get_running_loop().time
        self._done: asyncio.Future[Answer] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's are no subclass of it

    async def ask(self, request: bytes, on_event: OnEvent, stall_s: float) -> Answer:
        """Send a request and read its answer; ConnectionError if the connection is closed before its end."""
        loop = asyncio.get_running_loop()
        self.heard, self._heard_s, self._stall_s = False, loop.time(), stall_s
        self._read, self._rest, self._events = self._head, b"", _Events(on_event)
        self._body = bytearray()
        self._done = loop.create_future()
        self._watching = loop.call_later(stall_s, self._watch)
        try:
            self.transport.write(request)
            return await self._done
        finally:
            self._watching.cancel()
            self._done = None

    def _watch(self) -> None:
        """Give up if the server has been silent for too long; otherwise check again when that may be the case."""
        silent_s = self._time() - self._heard_s
        if silent_s < self._stall_s - 1e-3:
            self._watching = asyncio.get_running_loop().call_later(self._stall_s - silent_s, self._watch)
            return
        where = "in the middle of the answer" if self.heard else "before the answer began"
        self._fail(RequestFailed(f"the server stalled: nothing came for {self._stall_s:g} s, {where}"))

    def get_buffer(self, sizehint: int) -> bytearray:
        return _BUFFER

    def buffer_updated(self, nbytes: int) -> None:
        now_s = self._heard_s = self._time()
        self.heard = True
        data = bytes(memoryview(_BUFFER)[:nbytes])
        if self._done is None or self._done.done():  # unsolicited data: later answers could not be told apart
            self.transport.abort()
            return
        try:
            self._read(self._rest + data if self._rest else data, now_s)
        except RequestFailed as error:
            self._fail(error)
        except ValueError:
            self._fail(RequestFailed("the answer is not HTTP/1.1"))

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        self.closed.set()
        if self._done is not None and not self._done.done():
            if self._read == self._to_the_end:
                self._end()
            else:
                self._done.set_exception(exc if isinstance(exc, ConnectionError) else ConnectionResetError())

    def _fail(self, error: RequestFailed) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_exception(error)
        self.transport.abort()

    def _end(self) -> None:
        assert self._done is not None
        if self._headers.get("connection", "").lower() == "close":
            self.transport.abort()
        if not self._done.done():
            self._done.set_result(Answer(self._status, self._headers, bytes(self._body)))

    def _head(self, data: bytes, now_s: float) -> None:
        head, end, rest = data.partition(b"\r\n\r\n")
        if not end:
            if len(data) > MOST_HEAD_BYTES or not data.startswith(b"HTTP/1."[: len(data)]):
                raise ValueError(data)
            self._rest = data
            return
        first, *lines = head.decode("latin-1").split("\r\n")
        version, code, *_ = [*first.split(" ", 2), ""]
        if not version.startswith("HTTP/1."):
            raise ValueError(first)
        self._rest, self._status = b"", int(code)
        if self._status < 200:  # '100 Continue' and the like
            self._head(rest, now_s)
            return
        pairs = (line.partition(":") for line in lines if line)
        self._headers = {name.lower(): value.strip() for name, _, value in pairs}
        streams = self._headers.get("content-type", "").startswith("text/event-stream")
        self._keep = self._events.feed if streams and self._status < 300 else self._collect
        if "chunked" in self._headers.get("transfer-encoding", "").lower():
            self._read = self._chunks
        elif "content-length" in self._headers:
            self._left, self._read = int(self._headers["content-length"]), self._counted
        else:  # the body ends with the connection
            self._headers["connection"], self._read = "close", self._to_the_end
        self._read(rest, now_s)

    def _chunks(self, data: bytes, now_s: float) -> None:
        at = 0
        while (end := data.find(b"\r\n", at)) >= 0:
            size = int(data[at:end].split(b";")[0], 16)
            stop = end + 2 + size
            if size == 0:
                if data.startswith(b"\r\n", stop) or data.find(b"\r\n\r\n", stop) >= 0:  # trailers are ignored
                    self._end()
                    return
                break
            if size < 0:
                raise ValueError(size)
            if size > MOST_BODY_BYTES:
                raise RequestFailed(f"the answer has more than {MOST_BODY_BYTES >> 20} MB")
            if len(data) < stop + 2:
                break
            self._keep(data[end + 2 : stop], now_s)
            at = stop + 2
        self._rest = data[at:]

    def _counted(self, data: bytes, now_s: float) -> None:
        self._left -= len(data)
        self._keep(data, now_s)
        if self._left <= 0:
            self._end()

    def _to_the_end(self, data: bytes, now_s: float) -> None:
        self._keep(data, now_s)

    def _collect(self, data: bytes, now_s: float) -> None:
        self._body += data
        if len(self._body) > MOST_BODY_BYTES:
            raise RequestFailed(f"the answer has more than {MOST_BODY_BYTES >> 20} MB")


@dataclass
class _Events:
    """Splits a body into events and passes on the data of each."""

    on_event: OnEvent
    _rest: bytes = b""
    _data: list[bytes] = field(default_factory=list)

    def feed(self, part: bytes, now_s: float) -> None:
        *lines, self._rest = (self._rest + part).split(b"\n")
        if len(self._rest) > MOST_HEAD_BYTES:
            raise _not_events(self._rest)
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[5:].strip())
            elif line in (b"", b"\r"):
                if self._data:
                    data, self._data = b"\n".join(self._data), []
                    self.on_event(data, now_s)
            elif not line.startswith(FIELDS):
                raise _not_events(line)


def _not_events(line: bytes) -> RequestFailed:
    return RequestFailed(f"the stream does not consist of server-sent events: {line[:60].decode(errors='replace')!r}")
