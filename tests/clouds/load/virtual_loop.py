"""An event loop whose time is virtual: instead of waiting for the next timer, it is then."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from contextlib import suppress

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


def loaded(
    make_target: Callable[[], Target], arrivals: Arrivals, seconds: float, timeout_s: float = 10.0
) -> list[Report]:
    """What a load of so many virtual seconds reports."""
    reports: list[Report] = []

    async def main() -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds + 1e-9):
                await load(make_target, arrivals, reports.append, 0.5, timeout_s)

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())
    return reports


def latencies_s(reports: list[Report]) -> list[float]:
    return [each for report in reports for each in report.window.latencies_s]
