"""A small HTTP endpoint in its own process: `python endpoint.py DELAY_MS [STALL_AT STALL_MS]`.

It answers every request after a fixed delay; from the request STALL_AT on, nothing is answered for STALL_MS. It prints
its port, and ends when its standard input does, so that it never outlives who started it.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@contextmanager
def endpoint(delay_ms: float, *stall: float) -> Iterator[str]:
    """Its address, for as long as it is needed."""
    command = [sys.executable, __file__, str(delay_ms), *map(str, stall)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/"
        process.stdin.close()


class Delayed(asyncio.Protocol):
    """One connection. Requests have no body, and come one by one."""

    requests = 0
    stalled_until_s = 0.0

    def __init__(self, delay_s: float, stall_at: float, stall_s: float) -> None:
        self.delay_s, self.stall_at, self.stall_s = delay_s, stall_at, stall_s

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        loop = asyncio.get_running_loop()
        Delayed.requests += 1
        if Delayed.requests == self.stall_at:
            Delayed.stalled_until_s = loop.time() + self.stall_s
        wait_s = max(0.0, Delayed.stalled_until_s - loop.time()) + self.delay_s
        if wait_s > 0:
            loop.call_later(wait_s, self.transport.write, ANSWER)
        else:
            self.transport.write(ANSWER)


async def main(delay_ms: float, stall_at: float = 0.0, stall_ms: float = 0.0) -> None:
    loop = asyncio.get_running_loop()
    make = lambda: Delayed(delay_ms / 1e3, stall_at, stall_ms / 1e3)  # noqa: E731
    server = await loop.create_server(make, "127.0.0.1", 0, backlog=1_024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(*map(float, sys.argv[1:])))
