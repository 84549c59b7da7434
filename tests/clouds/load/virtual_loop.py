"""An event loop whose time is virtual: instead of waiting for the next timer, it is then."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from mlcd.clouds.load.generate import Arrivals, Report, Target, load


class _Jump(selectors.SelectSelector):
    """Lets no time pass but what is asked for, and none of it really."""

    skipped_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.skipped_s += timeout or 0.0
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.jump = _Jump()
        super().__init__(self.jump)

    def time(self) -> float:
        return self.jump.skipped_s


class _Pipe(asyncio.Transport):
    """One end of a connection in memory. What is written arrives at once, after what is being done now."""

    other: _Pipe

    def __init__(self, protocol: asyncio.BaseProtocol) -> None:
        super().__init__()
        self.protocol, self.open = protocol, True

    def write(self, data: bytes | bytearray | memoryview) -> None:
        asyncio.get_running_loop().call_soon(self.other.receive, bytes(data))

    def receive(self, data: bytes) -> None:
        if self.open and isinstance(self.protocol, asyncio.BufferedProtocol):
            self.protocol.get_buffer(-1)[: len(data)] = data  # type: ignore[index]
            self.protocol.buffer_updated(len(data))
        elif self.open and isinstance(self.protocol, asyncio.Protocol):
            self.protocol.data_received(data)

    def close(self) -> None:
        asyncio.get_running_loop().call_soon(self.lose)
        asyncio.get_running_loop().call_soon(self.other.lose)

    abort = close

    def lose(self) -> None:
        if self.open:
            self.open = False
            self.protocol.connection_lost(None)


class MemoryLoop(VirtualLoop):
    """A virtual loop whose connections all lead to one server, in memory: nothing is left to chance."""

    def __init__(self, serve: Callable[[], asyncio.Protocol]) -> None:
        super().__init__()
        self.serve = serve

    async def create_connection(self, protocol_factory: Any, *args: Any, **kwargs: Any) -> Any:
        ends = _Pipe(protocol_factory()), _Pipe(self.serve())
        for end, other in (ends, ends[::-1]):
            end.other = other
            end.protocol.connection_made(end)
        return ends[0], ends[0].protocol


def loaded(
    make_target: Callable[[], Target],
    arrivals: Arrivals,
    seconds: float,
    timeout_s: float = 10.0,
    loop: Callable[[], VirtualLoop] = VirtualLoop,
) -> list[Report]:
    """What a load of so many virtual seconds reports."""
    reports: list[Report] = []

    async def main() -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds + 1e-9):
                await load(make_target, arrivals, reports.append, 0.5, timeout_s)

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(main())
    return reports


def latencies_s(reports: list[Report]) -> list[float]:
    return [each for report in reports for each in report.window.latencies_s]
