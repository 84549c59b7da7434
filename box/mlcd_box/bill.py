"""The cloud's bill, from its events, by EC2's rules.

- A machine is billed by the second while it is `running`, 60 s at the least each time it is started. It is not billed
  while it boots (`pending`) or is stopped.
- A volume is billed by the second from its creation to its deletion, also while its machine is stopped.
- A public address is billed by the second while its machine is running.
- Bytes are billed that leave a region for another one, or for the Internet.

AWS waives the first hour of a spot machine that it takes back itself; the box does not, so its bill is the higher one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mlcd_box.events import Event

MINIMUM_S = 60.0
VOLUME_USD_PER_GB_HOUR = 0.08 / 730
"""gp3 in us-east-1, AWS list price of 2024-06: 0.08 dollars a GB and month."""
ADDRESS_USD_PER_HOUR = 0.005
"""Public IPv4 address, AWS list price since 2024-02."""
EGRESS_USD_PER_GB = {"region": 0.02, "internet": 0.09}
"""To another region, and out of the cloud; AWS list prices of 2024-06 in us-east-1."""


@dataclass(frozen=True)
class Item:
    """A line of the bill. `tags`: of the machine, so that it can be told whose it is."""

    what: str
    id: str
    began_s: float
    seconds: float
    usd: float
    is_over: bool
    tags: dict[str, str]


def bill(events: Iterable[Event], now_s: float) -> list[Item]:
    """Every item until now; what still runs is billed until then."""
    return list(_Bill(now_s).of(events))


class _Bill:
    def __init__(self, now_s: float) -> None:
        self._now_s = now_s
        self._machines: dict[str, Event] = {}
        self._running_since: dict[str, float] = {}
        self._volumes: dict[str, Event] = {}
        self._items: list[Item] = []

    def of(self, events: Iterable[Event]) -> list[Item]:
        for event in events:
            self._add(event)
        for id, since_s in self._running_since.items():
            self._machine(id, since_s, self._now_s, is_over=False)
        for volume in self._volumes.values():
            self._volume(volume, self._now_s, is_over=False)
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
        elif kind == "sent":
            usd = event["bytes"] / 1e9 * EGRESS_USD_PER_GB["internet" if event["to"] == "internet" else "region"]
            self._items.append(Item(f"traffic to {event['to']}", event["region"], at_s, 0.0, usd, True, {}))

    def _machine(self, id: str, since_s: float, until_s: float, *, is_over: bool) -> None:
        machine, seconds = self._machines[id], max(MINIMUM_S, until_s - since_s)
        tags, hours = machine["tags"], seconds / 3_600
        what = f"{machine['type']} {machine['market']} {machine['zone']}"
        self._items.append(Item(what, id, since_s, seconds, machine["usd_per_hour"] * hours, is_over, tags))
        self._items.append(Item("address", id, since_s, seconds, ADDRESS_USD_PER_HOUR * hours, is_over, tags))

    def _volume(self, volume: Event, until_s: float, *, is_over: bool) -> None:
        seconds = max(MINIMUM_S, until_s - volume["t"])
        usd = volume["gb"] * VOLUME_USD_PER_GB_HOUR * seconds / 3_600
        tags = self._machines[volume["machine"]]["tags"]
        self._items.append(Item(f"volume {volume['gb']} GB", volume["id"], volume["t"], seconds, usd, is_over, tags))
