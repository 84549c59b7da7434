"""Follows a run: an event stream signals that something is new, and the entries are fetched from the ledger."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from mlcd.core.errors import MlcdError, WrongState
from mlcd.core.ledger import Line
from mlcd.service.remote.failures import ServerLost
from mlcd.service.remote.ledger import RemoteLedger
from mlcd.service.remote.server import run_path

BACKOFF_S = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0, 15.0)
"""Backoff between attempts to reconnect: a minute in all."""
IDLE_POLL_S, MOST_IDLE_POLLS = 2.0, 300
"""Polling interval of a run that is idle although it should continue, and the most polls."""


@dataclass(frozen=True)
class Event:
    """One server-sent event."""

    kind: str = "message"
    data: str = ""
    id: str = ""


def events(lines: Iterable[str]) -> Iterator[Event]:
    """Parse server-sent events by the HTML standard, without comments and incomplete events."""
    kind, last_id = "", ""
    data: list[str] = []
    for line in lines:
        if not line:
            if data or kind:
                yield Event(kind or "message", "\n".join(data), last_id)
            kind, data = "", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match field:
            case "event":
                kind = value
            case "data":
                data.append(value)
            case "id":
                last_id = value


def watch(
    ledger: RemoteLedger,
    run: str,
    until: Callable[[bool], bool],
    wait: Callable[[float], None] = time.sleep,
    on_progress: Callable[[str], object] = lambda progress: None,
) -> Iterator[Line]:
    """The new entries of a run as they come, until `until` is true. It is called with whether the run is idle.

    `on_progress` gets the progress of live launches between them, as JSON: a list, empty if there are none.

    After a broken connection it reconnects from the last entry: none comes twice, none is missed. An idle run that is
    not yet where we wait for it needs a worker: this waits for a while.
    """
    failures = idle = 0
    while True:
        last_error: MlcdError = ServerLost(
            f"{ledger.server.url}: its event streams end at once"
        )  # a proxy, or a restart
        try:
            for event in _stream(ledger, run):
                if event.kind == "progress":
                    on_progress(_progress(event))
                if event.kind == "end" and not ledger.last_seq(run):
                    ledger.check_accepted(run)
                if event.kind == "end" or (event.kind == "entry" and not _is_known(ledger, run, event)):
                    failures = 0
                    new = ledger.newer(run)
                    idle = idle if not new else 0
                    yield from new
                    if until(event.kind == "end"):
                        return
                if event.kind == "end":
                    break
            else:
                failures += 1
        except ServerLost as error:
            last_error, failures = error, failures + 1
        if failures > len(BACKOFF_S):
            raise ServerLost(f"{last_error}. Run '{run}' continues there; follow it again with: mlcd attach {run}")
        idle += 1 if not failures else 0
        if idle > MOST_IDLE_POLLS:
            raise WrongState(f"run '{run}' waits, and no worker has taken it; follow it later with: mlcd attach {run}")
        wait(BACKOFF_S[failures - 1] if failures else IDLE_POLL_S)


def _stream(ledger: RemoteLedger, run: str) -> Iterator[Event]:
    with ledger.server.stream(run_path(run, "events"), ledger.last_seq(run)) as lines:
        yield from events(lines)


def _progress(event: Event) -> str:
    """The live launches in an event; an empty list if it is malformed: progress is not essential."""
    with suppress(ValueError, KeyError, TypeError):
        return json.dumps(json.loads(event.data)["progress"])
    return "[]"


def _is_known(ledger: RemoteLedger, run: str, event: Event) -> bool:
    return event.id.isdecimal() and int(event.id) <= ledger.last_seq(run)
