"""The cloud's event log: a line of JSON for each event, with its time.

kind                   other fields, and meaning
started                id, type, zone, market, usd_per_hour, address, tags: RunInstances was accepted; the machine boots
running                id: the machine runs, and is billed from now on
notice                 id, at: a spot machine will be preempted at that time
stopped, terminated    id, why: the machine is no longer billed
volume, volume_gone    id, gb, machine; id: a volume was created; deleted
refused                type, zone, market, why: RunInstances was refused
sent                   region, to, bytes: bytes went from S3 to another region or out of the cloud
asked                  what: a billed S3 request, `put` (also for listing) or `get`
cold_start             id, function, memory_mb, init_ms: an environment of a function was started
called                 function, memory_mb, request, init_ms, ran_ms, billed_ms, error: a function call has ended
throttled              function, request: a function call was refused, or waits in its queue
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Event = dict[str, Any]


class EventLog:
    """Writes the events; safe to use from several threads."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, threading.Lock()

    def write(self, kind: str, **about: Any) -> None:
        """Write an event that happens now."""
        line = json.dumps({"t": round(time.time(), 3), "kind": kind, **about})
        with self._lock, self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def read_events(path: Path) -> Iterator[Event]:
    """The events so far."""
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            yield json.loads(line)
