"""What takes long is done a few at a time for each member: nobody waits for another's, and nobody for ever."""

from __future__ import annotations

import asyncio

import pytest

from mlcd.service.web.errors import Refusal
from mlcd.service.web.safety.limits import ConcurrencyLimits


async def hold(turns: ConcurrencyLimits, whose: str, begun: asyncio.Queue[str], leave: asyncio.Event) -> None:
    async with turns.slot(whose):
        begun.put_nowait(whose)
        await leave.wait()


def test_the_third_of_somebodys_waits_and_another_members_first_does_not():
    async def story() -> None:
        turns, begun, leave = ConcurrencyLimits(at_once=2, timeout_s=60), asyncio.Queue(), asyncio.Event()
        tasks = [asyncio.ensure_future(hold(turns, "ron", begun, leave)) for _ in range(5)]
        assert [await begun.get() for _ in range(2)] == ["ron", "ron"]
        tasks.append(asyncio.ensure_future(hold(turns, "rita", begun, leave)))
        assert await begun.get() == "rita"
        assert begun.empty()
        leave.set()
        await asyncio.gather(*tasks)
        assert [begun.get_nowait() for _ in range(3)] == ["ron"] * 3
        assert not turns._slots  # nothing is kept of who has gone

    asyncio.run(story())


def test_who_waits_too_long_is_told_when_to_come_again_and_takes_no_place():
    async def story() -> None:
        turns, begun, leave = ConcurrencyLimits(at_once=1, timeout_s=0.01), asyncio.Queue(), asyncio.Event()
        first = asyncio.ensure_future(hold(turns, "ron", begun, leave))
        await begun.get()
        with pytest.raises(Refusal) as refused:
            await hold(turns, "ron", begun, leave)
        assert (refused.value.status, refused.value.headers["Retry-After"]) == (429, "5")
        leave.set()
        await first
        await hold(turns, "ron", begun, leave)

    asyncio.run(story())


def test_a_failure_inside_gives_the_place_back():
    async def story() -> None:
        turns = ConcurrencyLimits(at_once=1, timeout_s=60)
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                async with turns.slot("ron"):
                    raise ZeroDivisionError

    asyncio.run(story())
