"""Sends a load to a target and reports the results at intervals.

Open loop: requests are sent at times fixed in advance, which do not depend on the server, as with independent users;
the times are random, or those of a trace. Closed loop: a fixed number of clients, each of which sends its next request
when its last one is answered.

The load runs in its own thread and event loop; the caller iterates over the reports. Latencies count from the time a
request was due: in an open loop that is fixed in advance, so a server that stalls is charged for all requests that
should have been sent meanwhile ('coordinated omission': Tene 2013).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from queue import SimpleQueue
from typing import Protocol

import numpy as np

from mlcd.clouds.load.precise_loop import precise_loop
from mlcd.core.errors import BackendError
from mlcd.planners.serve.llm.nouns import Stream
from mlcd.planners.serve.nouns import Window


class RequestFailed(Exception):
    """A failed request; `str(error)` is the reason in one line."""


class Target(Protocol):
    """One connection to a server. It is created in the load's event loop, and sends one request at a time."""

    async def send(self) -> Stream | None:
        """Send one request and read its whole response; raise if it is not correct.

        Returns the times of a streamed answer, counted from this call; None for other answers. A timeout may cancel it:
        the next call must not read the rest of the old response.
        """
        ...

    async def close(self) -> None:
        """Close the connection."""
        ...


def reason(error: Exception) -> str:
    """The reason why a request failed, in one line."""
    match error:
        case RequestFailed():
            message = str(error)
        case ConnectionRefusedError():
            message = "connection refused: nothing listens there"
        case ConnectionError():
            message = "the connection was closed before the answer was complete"
        case _:
            message = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return " ".join(message.split())[:200]


BLOCK = 1_024
"""Random numbers drawn at once."""


@dataclass(frozen=True, slots=True)
class Open:
    """An open loop with Poisson arrivals, `rate` a second.

    `most_outstanding`: limit on connections. A request that is due while all are busy waits for one; its latency still
    counts from when it was due, and it is reported as late.
    """

    rate: float
    seed: int = 0
    most_outstanding: int = 512

    def due_s(self) -> Iterator[float]:
        """When each request is due, in seconds from the start."""
        rng, now_s = np.random.default_rng(self.seed), 0.0
        while True:
            for gap_s in rng.exponential(1 / self.rate, BLOCK).tolist():
                now_s += gap_s
                yield now_s


@dataclass(frozen=True, slots=True)
class Closed:
    """A closed loop with `concurrency` clients. A client whose request failed pauses before its next one."""

    concurrency: int
    pause_s: float = 0.1


@dataclass(frozen=True, slots=True)
class Replay:
    """An open loop with the arrivals of a trace, in seconds from the start, sorted. It ends when all are answered."""

    times_s: tuple[float, ...]
    most_outstanding: int = 4_096

    def due_s(self) -> Iterator[float]:
        """When each request is due, in seconds from the start."""
        return iter(self.times_s)


Arrivals = Open | Replay | Closed


MakeTarget = Callable[[], Target]


@dataclass(frozen=True, slots=True)
class Report:
    """The state of a load `elapsed_s` after its start: answers so far, and the window since the last report.

    `late`: requests so far that were due while every connection was busy. `tokens`: in all streamed answers so far.
    """

    elapsed_s: float
    answered: int
    window: Window
    late: int = 0
    tokens: int = 0


@dataclass
class _Tally:
    """Results since the last report."""

    timeout_s: float
    concurrency: int = 0
    answered: int = 0
    late: int = 0
    tokens: int = 0
    latencies_s: list[float] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)
    failures: int = 0
    error: str = ""

    async def send(self, target: Target, due_s: float) -> bool:
        """Send one request; return whether it succeeded."""
        now_s = asyncio.get_running_loop().time
        waited_s = now_s() - due_s
        try:
            async with asyncio.timeout(self.timeout_s):
                stream = await target.send()
        except TimeoutError:
            why = f"no answer within {self.timeout_s:g} s"
        except Exception as error:  # any error of the server or of a library is a failed request
            why = reason(error)
        else:
            if stream is None:
                self.latencies_s.append(now_s() - due_s)
            else:
                self.streams.append(_since_due(stream, waited_s))
                self.tokens += stream.tokens
            self.answered += 1
            return True
        self.failures += 1
        self.error = self.error or why
        return False

    def report(self, elapsed_s: float) -> Report:
        concurrency = self.concurrency if self.streams else 0
        window = Window(
            tuple(self.latencies_s),
            self.failures,
            error=self.error,
            streams=tuple(self.streams),
            concurrency=concurrency,
        )
        self.latencies_s, self.streams, self.failures, self.error = [], [], 0, ""
        return Report(elapsed_s, self.answered, window, self.late, self.tokens)


def _since_due(stream: Stream, waited_s: float) -> Stream:
    """The stream with times from when its request was due, instead of from when it was sent."""
    return replace(stream, ttft_s=stream.ttft_s + waited_s, latency_s=stream.latency_s + waited_s)


def generate(
    make_target: MakeTarget,
    arrivals: Arrivals,
    *,
    every_s: float = 0.5,
    timeout_s: float = 10.0,
    warm_up: int = 0,
) -> Generator[Report, None, None]:
    """Load a target until the generator is closed, or a trace is over. The first report is at the start.

    `timeout_s`: of a request. `warm_up`: requests that are sent first, in a closed loop at the concurrency of the load,
    and appear in no report. BackendError if one of them fails.
    """
    reports: SimpleQueue[Report | BaseException | None] = SimpleQueue()
    loop, stop = precise_loop(), asyncio.Event()

    async def main() -> None:
        loading = asyncio.create_task(load(make_target, arrivals, reports.put, every_s, timeout_s, warm_up))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({loading, stopping}, return_when=asyncio.FIRST_COMPLETED)
        for task in (loading, stopping):
            task.cancel()
        with suppress(asyncio.CancelledError):
            await loading

    def work() -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                runner.run(main())
            reports.put(None)
        except BaseException as error:  # passed to the caller
            while isinstance(error, BaseExceptionGroup):  # of the task groups
                error = error.exceptions[0]
            reports.put(error)

    thread = threading.Thread(target=work, name="load", daemon=True)
    thread.start()
    try:
        while isinstance(report := reports.get(), Report):
            yield report
        if report is not None:
            raise report
    finally:
        with suppress(RuntimeError):  # the loop has already ended
            loop.call_soon_threadsafe(stop.set)
        thread.join()


async def load(
    make_target: MakeTarget,
    arrivals: Arrivals,
    on_report: Callable[[Report], object],
    every_s: float,
    timeout_s: float,
    warm_up: int = 0,
) -> None:
    """Load a target until cancelled, or until a trace is over; `on_report` gets the reports."""
    concurrency = arrivals.concurrency if isinstance(arrivals, Closed) else 0
    await _warm_up(make_target, warm_up, max(1, concurrency), timeout_s)
    tally = _Tally(timeout_s, concurrency)
    start_s = asyncio.get_running_loop().time()
    on_report(tally.report(0.0))
    async with asyncio.TaskGroup() as tasks:
        reporting = tasks.create_task(_report(tally, start_s, on_report, every_s))
        if isinstance(arrivals, Closed):
            for _ in range(arrivals.concurrency):
                tasks.create_task(_send_in_turn(make_target, arrivals, tally))
        else:
            await _send_when_due(make_target, arrivals, tally, start_s)
            reporting.cancel()
    on_report(tally.report(asyncio.get_running_loop().time() - start_s))


async def _warm_up(make_target: MakeTarget, requests: int, at_once: int, timeout_s: float) -> None:
    """Send requests that are not counted; BackendError if one of them fails."""
    left = requests

    async def send() -> None:
        nonlocal left
        target = make_target()
        try:
            while left > 0:
                left -= 1
                tally = _Tally(timeout_s)
                if not await tally.send(target, 0.0):
                    raise BackendError(tally.error)
        finally:
            await target.close()

    async with asyncio.TaskGroup() as tasks:
        for _ in range(min(at_once, requests)):
            tasks.create_task(send())


async def _report(tally: _Tally, start_s: float, on_report: Callable[[Report], object], every_s: float) -> None:
    loop, reports = asyncio.get_running_loop(), 0
    while True:
        reports += 1
        await asyncio.sleep(start_s + reports * every_s - loop.time())
        on_report(tally.report(loop.time() - start_s))


async def _send_in_turn(make_target: MakeTarget, arrivals: Closed, tally: _Tally) -> None:
    """One client of a closed loop."""
    now_s, target = asyncio.get_running_loop().time, make_target()
    try:
        while True:
            if not await tally.send(target, now_s()):
                await asyncio.sleep(arrivals.pause_s)
    finally:
        await target.close()


async def _send_when_due(make_target: MakeTarget, arrivals: Open | Replay, tally: _Tally, start_s: float) -> None:
    """Run an open loop. Connections are opened as needed."""
    loop = asyncio.get_running_loop()
    idle: asyncio.LifoQueue[Target] = asyncio.LifoQueue()
    targets: list[Target] = []
    busy_until_s = start_s  # requests due before this time had to wait for a connection

    async def send(target: Target, due_s: float) -> None:
        await tally.send(target, due_s)
        idle.put_nowait(target)

    try:
        async with asyncio.TaskGroup() as sending:
            for due_s in arrivals.due_s():
                if (wait_s := start_s + due_s - loop.time()) > 0:
                    await asyncio.sleep(wait_s)
                if idle.empty() and len(targets) < arrivals.most_outstanding:
                    targets.append(make_target())
                    idle.put_nowait(targets[-1])
                all_busy = idle.empty()
                target = await idle.get()
                busy_until_s = loop.time() if all_busy else busy_until_s
                tally.late += start_s + due_s < busy_until_s
                sending.create_task(send(target, start_s + due_s))
    finally:
        for target in targets:
            await target.close()
