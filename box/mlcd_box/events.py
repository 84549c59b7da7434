"""What has happened in the cloud: one line of JSON for each, with its time.

kind                   and with it
started                id, type, zone, market, usd_per_hour, address, tags: RunInstances was accepted; it boots
running                id: billing begins
notice                 id, at: a spot machine will be taken back then
stopped, terminated    id, why: billing ends
volume, volume_gone    id, gb, machine; id
refused                type, zone, market, why: RunInstances was not accepted
sent                   region, to, bytes: from S3, to another region or out of the cloud
asked                  what: S3 was asked to put (or list) something, or to get it
cold_start             id, function, memory_mb, init_ms: an environment of a function was started
called                 function, memory_mb, request, init_ms, ran_ms, billed_ms, error: a call of a function is over
throttled              function, request: a call was refused, or waits in its queue
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
    """Written by the cloud, from several threads."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, threading.Lock()

    def write(self, kind: str, **about: Any) -> None:
        """Note that this has happened, now."""
        line = json.dumps({"t": round(time.time(), 3), "kind": kind, **about})
        with self._lock, self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def read_events(path: Path) -> Iterator[Event]:
    """The events so far; none where nothing has happened."""
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            yield json.loads(line)
