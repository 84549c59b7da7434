"""Watch a run as it happens: a stream of events says that something came, and the ledger says what."""

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

PAUSES_S = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0, 15.0)
"""Between attempts to reach a server again that was lost: a minute in all."""
IDLE_S, MOST_IDLE = 2.0, 300
"""Between looks at a run that rests although it should go on, and how many of them."""


@dataclass(frozen=True)
class Event:
    """What a stream of server-sent events says at once."""

    kind: str = "message"
    data: str = ""
    id: str = ""


def events(lines: Iterable[str]) -> Iterator[Event]:
    """Server-sent events, as the HTML standard reads them; comments are passed over. One cut short is not told."""
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
    hear: Callable[[str], object] = lambda progress: None,
) -> Iterator[Line]:
    """The entries of a run that are not known here yet, as they come, until this is so. It is told if the run rests.

    `hear` is told between them where live launches stand, as JSON: a list, which is empty when nothing is under way.

    A connection that breaks is made again, from the entry that was seen last: none is told twice, none is missed. A run
    that rests, and is not yet what we wait for, waits for a worker: so do we, for a while.
    """
    lost = idle = 0
    while True:
        broken: MlcdError = ServerLost(f"{ledger.server.url}: its streams end at once")  # a proxy, or a restart
        try:
            for event in _stream(ledger, run):
                if event.kind == "progress":
                    hear(_progress(event))
                if event.kind == "end" and not ledger.seen(run):
                    ledger.check_accepted(run)
                if event.kind == "end" or (event.kind == "entry" and not _is_known(ledger, run, event)):
                    lost = 0
                    new = ledger.newer(run)
                    idle = idle if not new else 0
                    yield from new
                    if until(event.kind == "end"):
                        return
                if event.kind == "end":
                    break
            else:
                lost += 1
        except ServerLost as error:
            broken, lost = error, lost + 1
        if lost > len(PAUSES_S):
            raise ServerLost(f"{broken}. Run '{run}' goes on there; follow it again with: mlcd attach {run}")
        idle += 1 if not lost else 0
        if idle > MOST_IDLE:
            raise WrongState(f"run '{run}' waits, and nobody has taken it up; follow it later with: mlcd attach {run}")
        wait(PAUSES_S[lost - 1] if lost else IDLE_S)


def _stream(ledger: RemoteLedger, run: str) -> Iterator[Event]:
    with ledger.server.stream(run_path(run, "events"), ledger.seen(run)) as lines:
        yield from events(lines)


def _progress(event: Event) -> str:
    """What an event says of live launches; nothing where it makes no sense here: progress is no reason to give up."""
    with suppress(ValueError, KeyError, TypeError):
        return json.dumps(json.loads(event.data)["progress"])
    return "[]"


def _is_known(ledger: RemoteLedger, run: str, event: Event) -> bool:
    return event.id.isdecimal() and int(event.id) <= ledger.seen(run)
