"""Answers of an HTTP endpoint are read completely, and every error gives one line."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from mlcd_fixtures.openai_server import closed

from mlcd.clouds.load.generate import RequestFailed, reason
from mlcd.clouds.load.http import Answer, Http, Request

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Endpoint:
    """Answers each request with the next of the given bytes; None closes the connection instead."""

    def __init__(self, *answers: bytes | None) -> None:
        self.answers, self.requests, self.connections = list(answers), list[bytes](), 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while self.answers:
                head = await reader.readuntil(b"\r\n\r\n")
                size = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
                self.requests.append(head + await reader.readexactly(size))
                if (answer := self.answers.pop(0)) is None:
                    break
                writer.write(answer)
                if b"Connection: close" in answer or b"Content-Length: 9" in answer or b"\r\n\r\n" not in answer:
                    break
        except asyncio.IncompleteReadError:
            pass  # the client has left
        finally:
            writer.close()


def against(endpoint: Endpoint, use: Callable[[str], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(300.0), await asyncio.start_server(endpoint.serve, "127.0.0.1", 0) as server:
            await use(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v2/infer?x=1")
            await closed(server)

    asyncio.run(main())


def asked(endpoint: Endpoint, times: int = 1, body: bytes = b"") -> list[Answer]:
    answers: list[Answer] = []

    async def use(url: str) -> None:
        http = Http(Request(url, body, {"Content-Type": "text/plain"}))
        for _ in range(times):
            answers.append(await http.ask())
        await http.close()

    against(endpoint, use)
    return answers


def failure(endpoint: Endpoint, check: Callable[[Answer], bool] | None = None) -> str:
    said: list[str] = []

    async def use(url: str) -> None:
        http = Http(Request(url), check)
        with pytest.raises(RequestFailed) as raised:
            await http.send()
        await http.close()
        said.append(reason(raised.value))

    against(endpoint, use)
    return said[0]


def test_one_connection_is_kept_for_all_requests() -> None:
    endpoint = Endpoint(OK, OK, OK)
    assert [answer.body for answer in asked(endpoint, 3)] == [b"ok"] * 3
    assert endpoint.connections == 1


def test_a_request_is_sent_as_it_is_written() -> None:
    endpoint = Endpoint(OK)
    asked(endpoint, body=b"\x00\x01 tensor")
    head, _, body = endpoint.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /v2/infer?x=1 HTTP/1.1\r\nHost: 127.0.0.1:")
    assert b"Content-Type: text/plain" in head
    assert body == b"\x00\x01 tensor"


@pytest.mark.parametrize(
    ("wire", "body"),
    [
        (OK, b"ok"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n2\r\nde\r\n0\r\nT: 1\r\n\r\n",
            b"abcde",
        ),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nto the end", b"to the end"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, b"ok"),
        (b"HTTP/1.1 200\r\ncontent-length:0\r\n\r\n", b""),
    ],
    ids=["length", "chunks", "to the end", "nothing", "continued", "empty"],
)
def test_every_way_to_end_an_answer_is_understood_and_answers_do_not_mix(wire: bytes, body: bytes) -> None:
    assert [answer.body for answer in asked(Endpoint(wire, OK), 2)] == [body, b"ok"]


def test_a_connection_closed_while_idle_is_reopened() -> None:
    endpoint = Endpoint(OK, None, OK)
    assert [answer.body for answer in asked(endpoint, 2)] == [b"ok", b"ok"]
    assert endpoint.connections == 2


@pytest.mark.parametrize(
    ("wire", "said"),
    [
        (b"HTTP/1.1 503 Busy\r\nContent-Length: 11\r\n\r\ntry\nlater  ", "HTTP 503: try later"),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "HTTP 404"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
            "the connection was closed before the answer was complete",
        ),
        (b"HTTP/1.1 200", "the connection was closed before the answer was complete"),
        (None, "the connection was closed before the answer was complete"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "the answer is not HTTP/1.1"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", "the answer is not HTTP/1.1"),
        (b"x" * 100_000, "the answer is not HTTP/1.1"),
    ],
    ids=["busy", "unknown", "half a body", "half a head", "nothing", "not HTTP", "no length", "endless"],
)
def test_a_wrong_answer_gives_a_one_line_reason(wire: bytes | None, said: str) -> None:
    assert failure(Endpoint(wire)) == said


@pytest.mark.parametrize(
    "head",
    [b"Content-Length: 900000000000", b"Transfer-Encoding: chunked\r\n\r\nffffffffff", b"Connection: close"],
    ids=["length", "chunks", "until closed"],
)
def test_an_endless_answer_takes_limited_memory(head: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlcd.clouds.load.http.MOST_BODY_BYTES", 1 << 20)
    wire = b"HTTP/1.1 200 OK\r\n" + head + (b"\r\n" if b"chunked" in head else b"\r\n\r\n") + bytes(2 << 20)
    assert failure(Endpoint(wire)) == "the answer has more than 1 MB"


def test_an_answer_that_fails_its_check_is_a_failure() -> None:
    assert failure(Endpoint(OK), lambda answer: answer.body == b"fine") == "the answer is not what was expected"


def test_an_endpoint_that_is_down_is_named() -> None:
    async def use(url: str) -> None:
        pass

    async def main() -> None:
        server = await asyncio.start_server(Endpoint().serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        server.close()
        await server.wait_closed()
        with pytest.raises(RequestFailed, match=f"cannot connect to 127.0.0.1:{port}: connection refused"):
            await Http(Request(f"http://127.0.0.1:{port}")).send()

    asyncio.run(main())


def test_a_request_that_was_given_up_leaves_nothing_for_the_next_one_to_read() -> None:
    slow = Endpoint(OK)
    answered = slow.serve

    async def late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if slow.connections == 0:
            slow.connections += 1
            await reader.read()  # never answers, until the client has left
            writer.close()
        else:
            await answered(reader, writer)

    slow.serve = late  # type: ignore[method-assign]

    async def use(url: str) -> None:
        http = Http(Request(url))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await http.send()
        assert (await http.ask()).body == b"ok"
        await http.close()

    against(slow, use)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ConnectionRefusedError(111, "x"), "connection refused: nothing listens there"),
        (ConnectionResetError(), "the connection was closed before the answer was complete"),
        (ValueError("two\nlines"), "ValueError: two lines"),
        (ValueError(), "ValueError"),
        (RequestFailed("x" * 500), "x" * 200),
    ],
)
def test_any_error_has_a_reason_of_one_line(error: Exception, said: str) -> None:
    assert reason(error) == said
