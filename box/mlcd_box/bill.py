"""Computes the cloud's bill from its events, by the rules of EC2, Lambda and S3.

- A machine: by the second while it is `running`, at least 60 s for each start; not while it boots (`pending`) or is
  stopped.
- A volume: by the second from its creation to its deletion, also while its machine is stopped.
- A public address: by the second while its machine is running.
- Traffic: bytes that leave a region for another one or for the Internet.
- A function: for each call, and for its memory by the millisecond, including the time to load its code.
- S3 requests: writing and listing cost most, reading less, deleting nothing.

Free tiers are not deducted. AWS waives the first hour of a spot machine that it takes back itself; the box does not, so
its bill is higher.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from mlcd_box.events import Event
from mlcd_box.offers import function_prices

MINIMUM_S = 60.0
VOLUME_USD_PER_GB_HOUR = 0.08 / 730
"""gp3 in us-east-1, AWS list price of 2024-06: 0.08 dollars a GB and month."""
ADDRESS_USD_PER_HOUR = 0.005
"""Public IPv4 address, AWS list price since 2024-02."""
S3 = "s3"
"""Id of the bill's items for S3 requests."""
EGRESS_USD_PER_GB = {"region": 0.02, "internet": 0.09}
"""Traffic to another region and out of the cloud, AWS list prices of 2024-06 in us-east-1."""


@dataclass(frozen=True)
class Item:
    """A line of the bill. `tags`: those of the machine, which show whose it is. `is_over`: no longer billed."""

    what: str
    id: str
    began_s: float
    seconds: float
    usd: float
    is_over: bool
    tags: dict[str, str]


def bill(events: Iterable[Event], now_s: float) -> list[Item]:
    """All items until `now_s`; what still runs is billed until then."""
    return list(_Bill(now_s).of(events))


class _Bill:
    def __init__(self, now_s: float) -> None:
        self._now_s = now_s
        self._machines: dict[str, Event] = {}
        self._running_since: dict[str, float] = {}
        self._volumes: dict[str, Event] = {}
        self._functions: dict[tuple[str, int], list[Event]] = defaultdict(list)
        self._sent: dict[tuple[str, str], list[Event]] = defaultdict(list)
        self._requests: dict[str, list[Event]] = defaultdict(list)
        self._items: list[Item] = []

    def of(self, events: Iterable[Event]) -> list[Item]:
        for event in events:
            self._add(event)
        for id, since_s in self._running_since.items():
            self._machine(id, since_s, self._now_s, is_over=False)
        for volume in self._volumes.values():
            self._volume(volume, self._now_s, is_over=False)
        for (name, memory_mb), calls in self._functions.items():
            self._function(name, memory_mb, calls)
        for (region, to), sent in self._sent.items():
            usd_per_gb = EGRESS_USD_PER_GB["internet" if to == "internet" else "region"]
            usd = sum(event["bytes"] for event in sent) / 1e9 * usd_per_gb
            self._items.append(Item(f"traffic to {to}", region, sent[0]["t"], 0.0, usd, True, {}))
        for kind, requests in self._requests.items():
            usd = len(requests) * function_prices()[f"s3 {kind}"]
            self._items.append(Item(f"{len(requests)} s3 requests: {kind}", S3, requests[0]["t"], 0.0, usd, True, {}))
        return sorted(self._items, key=lambda item: (item.began_s, item.what))

    def _add(self, event: Event) -> None:
        kind, id, at_s = event["kind"], event.get("id", ""), event["t"]
        if kind == "started":
            self._machines[id] = event
        elif kind == "running":
            self._running_since[id] = at_s
        elif kind in ("stopped", "terminated"):
            if (since_s := self._running_since.pop(id, None)) is not None:
                self._machine(id, since_s, at_s, is_over=True)
        elif kind == "volume":
            self._volumes[id] = event
        elif kind == "volume_gone":
            self._volume(self._volumes.pop(id), at_s, is_over=True)
        elif kind == "called":
            self._functions[event["function"], event["memory_mb"]].append(event)
        elif kind == "asked":
            self._requests[event["what"]].append(event)
        elif kind == "sent":
            self._sent[event["region"], event["to"]].append(event)

    def _machine(self, id: str, since_s: float, until_s: float, *, is_over: bool) -> None:
        machine, seconds = self._machines[id], max(MINIMUM_S, until_s - since_s)
        tags, hours = machine["tags"], seconds / 3_600
        what = f"{machine['type']} {machine['market']} {machine['zone']}"
        self._items.append(Item(what, id, since_s, seconds, machine["usd_per_hour"] * hours, is_over, tags))
        self._items.append(Item("address", id, since_s, seconds, ADDRESS_USD_PER_HOUR * hours, is_over, tags))

    def _function(self, name: str, memory_mb: int, calls: list[Event]) -> None:
        """All calls of a function with this memory, as one item."""
        seconds = sum(call["billed_ms"] for call in calls) / 1_000
        usd = seconds * memory_mb / 1_024 * function_prices()["gb-second"] + len(calls) * function_prices()["call"]
        what = f"{len(calls)} calls, {memory_mb} MB"
        self._items.append(Item(what, name, calls[0]["t"], seconds, usd, True, {}))

    def _volume(self, volume: Event, until_s: float, *, is_over: bool) -> None:
        seconds = max(MINIMUM_S, until_s - volume["t"])
        usd = volume["gb"] * VOLUME_USD_PER_GB_HOUR * seconds / 3_600
        tags = self._machines[volume["machine"]]["tags"]
        self._items.append(Item(f"volume {volume['gb']} GB", volume["id"], volume["t"], seconds, usd, is_over, tags))
