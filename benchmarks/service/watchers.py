"""Many watchers: each reads the event stream of its run from the first to the last event, in its own process."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
from dataclasses import dataclass, field

import httpx


@dataclass
class Received:
    """What one watcher received: the entries' numbers, and whether the end came."""

    run: str
    numbers: list[int] = field(default_factory=list)
    ended: bool = False
    returns: int = 0


def watch_all(address: str, places: list[tuple[str, str]], most_s: float) -> list[Received]:
    """Watch each of these runs, (run, token), to its end."""
    with multiprocessing.get_context("spawn").Pool(1) as beside:
        return beside.apply(_watch_all, (address, places, most_s))


def _watch_all(address: str, places: list[tuple[str, str]], most_s: float) -> list[Received]:
    os.nice(10)  # they would be on other machines: what they compute is no load of the service's
    return asyncio.run(_together(address, places, most_s))


async def _together(address: str, places: list[tuple[str, str]], most_s: float) -> list[Received]:
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    # A stream is silent for 15 s at the most: who hears nothing for longer has lost the connection.
    async with httpx.AsyncClient(base_url=f"{address}/api/v1", limits=limits, timeout=httpx.Timeout(60)) as client:
        seen = [Received(run) for run, _ in places]
        everybody = [_watch(client, each, token) for each, (_, token) in zip(seen, places, strict=True)]
        await asyncio.wait_for(asyncio.gather(*everybody), most_s)
    return seen


async def _watch(client: httpx.AsyncClient, seen: Received, token: str) -> None:
    while not seen.ended:
        headers = {"Authorization": f"Bearer {token}"}
        if seen.numbers:
            headers["Last-Event-ID"] = str(seen.numbers[-1])
        try:
            async with client.stream("GET", f"/runs/{seen.run}/events", headers=headers) as answer:
                if answer.status_code == 200:
                    await _read(answer, seen)
                elif answer.status_code not in (429, 503):
                    raise AssertionError(f"{seen.run}: {answer.status_code} {(await answer.aread()).decode()}")
        except httpx.TransportError:
            pass
        if not seen.ended:
            seen.returns += 1
            await asyncio.sleep(0.5)


async def _read(answer: httpx.Response, seen: Received) -> None:
    number, event = None, ""
    async for line in answer.aiter_lines():
        name, _, value = line.partition(":")
        if name == "id":
            number = int(value)
        elif name == "event":
            event = value.strip()
        elif not line:
            if event == "entry" and number is not None:
                seen.numbers.append(number)
            seen.ended = seen.ended or event == "end"
            number, event = None, ""
