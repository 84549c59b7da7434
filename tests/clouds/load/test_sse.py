"""However an answer is split into packets, the same events come out; and connections are reused."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlcd_fixtures.openai_server import closed

from mlcd.clouds.load.generate import RequestFailed
from mlcd.clouds.load.http import Answer
from mlcd.clouds.load.sse import EventConnection, _Wire

EVENTS = [b'{"a": 1}', b"two\nlines", b"[DONE]"]
BODY = b': hello\n\nevent: x\nid: 1\ndata: {"a": 1}\n\ndata:two\r\ndata: lines\r\n\r\n\ndata: [DONE]\n\n'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"


CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


def chunked(*parts: bytes) -> bytes:
    chunks = b"".join(b"%X;x=y\r\n%b\r\n" % (len(part), part) for part in parts)
    return CHUNKED + chunks + b"0\r\nTrailer: x\r\n\r\n"


class Wired(asyncio.Transport):
    """Goes nowhere."""

    closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        pass

    def abort(self) -> None:
        self.closed = True


def read(parts: list[bytes], closes: bool = False) -> tuple[Answer, list[bytes]]:
    """What comes out of an answer that comes in these parts."""
    events: list[bytes] = []

    async def main() -> Answer:
        wire = _Wire()
        wire.connection_made(Wired())
        asking = asyncio.create_task(wire.ask(b"", lambda data, now_s: events.append(data), 60.0))
        await asyncio.sleep(0)
        for part in parts:
            wire.get_buffer(-1)[: len(part)] = part
            wire.buffer_updated(len(part))
        if closes:
            wire.connection_lost(None)
        return await asking

    return asyncio.run(main()), events


@given(st.lists(st.integers(0, len(BODY)), max_size=4), st.lists(st.integers(0, 400), max_size=8))
def test_an_answer_is_read_the_same_however_it_is_cut(chunks: list[int], cuts: list[int]) -> None:
    at = sorted({0, *chunks, len(BODY)})
    whole = chunked(*(BODY[a:b] for a, b in pairwise(at)))
    places = sorted({0, *(cut for cut in cuts if cut < len(whole)), len(whole)})
    answer, events = read([whole[a:b] for a, b in pairwise(places)])
    assert (answer.status, answer.body, events) == (200, b"", EVENTS)


def test_a_body_with_a_length_or_up_to_the_end_of_the_connection_is_read_too() -> None:
    assert read([HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY), BODY])[1] == EVENTS
    assert read([b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD + b"\r\n", BODY], closes=True)[1] == EVENTS


def test_an_answer_that_is_refused_is_returned_with_its_body() -> None:
    answer, events = read([b"HTTP/1.1 429 Too Many\r\nContent-Type: text/event-stream\r\nContent-Length: 2\r\n\r\nno"])
    assert (answer.status, answer.body, events) == (429, b"no", [])


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 OK\r\n\r\n",
        CHUNKED + b"zz\r\n",
        CHUNKED + b"-5\r\n",
    ],
)
def test_an_answer_that_is_not_http_is_one_line(answer: bytes) -> None:
    with pytest.raises(RequestFailed, match=r"the answer is not HTTP/1\.1"):
        read([answer])


def test_an_endless_line_is_given_up() -> None:
    part = chunked(b"x" * 30_000).partition(b"\r\n\r\n")[2].removesuffix(b"0\r\nTrailer: x\r\n\r\n")
    with pytest.raises(RequestFailed, match="the stream does not consist of server-sent events"):
        read([CHUNKED, part, part, part])


@pytest.mark.parametrize("loops", ["asyncio", "uvloop"])
def test_a_connection_is_used_again_and_made_anew_if_the_server_closed_it(loops: str) -> None:
    """Also on the loop of a process in which somebody, such as SkyPilot, chose another for all."""
    new_loop = pytest.importorskip(loops).new_event_loop
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        try:
            for _ in range(2):
                await reader.readuntil(b"\r\n\r\n")
                writer.write(chunked(BODY))
        except asyncio.IncompleteReadError:
            pass  # the client has left
        finally:
            writer.close()

    async def main() -> None:
        async with asyncio.timeout(60.0), await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            connection = EventConnection("127.0.0.1", server.sockets[0].getsockname()[1])
            for _ in range(5):
                events: list[bytes] = []
                await connection.ask(b"GET / HTTP/1.1\r\n\r\n", lambda data, now_s: events.append(data))  # noqa: B023
                assert events == EVENTS
            await connection.close()
            await closed(server)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(main())
    assert connections == 3
