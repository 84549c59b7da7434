"""A receiver of webhooks on loopback, and what sends the news of a stage, at a time of the test's."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from stage import JOB, Stage

from mlcd.core.runs.run import start
from mlcd.service.notifications.delivery import NotificationDelivery
from mlcd.service.notifications.mail import MailServer
from mlcd.service.notifications.reader import NotificationReader
from mlcd.service.notifications.receivers import NewReceiver, Receiver, Receivers
from mlcd.service.notifications.senders import senders_by_kind
from mlcd.service.team.members import Member, Role
from mlcd.service.workers.submissions import from_json

PUBLIC = "https://mlcd.example.org"


@dataclass
class WebReceiver:
    """A real one, on loopback. `answers`: what it says to the next requests; then 204."""

    answers: list[int] = field(default_factory=list)
    heard: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    url: str = ""
    came: threading.Event = field(default_factory=threading.Event)

    @property
    def told(self) -> list[dict]:
        return [json.loads(body) for _, body in self.heard]


@contextmanager
def web_receiver() -> Iterator[WebReceiver]:
    found = WebReceiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.heard.append((dict(self.headers.items()), body))
            self.send_response(found.answers.pop(0) if found.answers else 204)
            self.end_headers()
            found.came.set()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.url = f"http://127.0.0.1:{server.server_address[1]}/news?key=of-the-receiver"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield found
    server.shutdown()
    thread.join()
    server.server_close()


@dataclass
class Post:
    """What sends the news of a stage, at a time of the test's."""

    stage: Stage
    time: datetime = datetime(2026, 11, 19, 12, tzinfo=UTC)
    mail: MailServer | None = None

    @property
    def receivers(self) -> Receivers:
        return Receivers(self.stage.state.database, lambda: self.time)

    def add(self, kind: str, address: str, owner: str | None = None, **only: Any) -> str:
        """Add a receiver; its secret."""
        return self.receivers.add(NewReceiver(kind, address, **only), owner)[1]

    def all(self) -> list[Receiver]:
        """Those of the service."""
        return self.receivers.of(Member("ada", Role.ADMIN))

    def delivery(self) -> NotificationDelivery:
        """One that knows nothing of the one before, as after a restart."""
        reader = NotificationReader(self.stage.state.ledger, PUBLIC)
        return NotificationDelivery(self.receivers, reader, senders_by_kind(lambda: self.time, self.mail))

    def deliver(self, after_s: float = 0.0) -> None:
        """Send what is due by then."""
        self.time += timedelta(seconds=after_s)
        delivery = self.delivery()
        delivery.deliver()
        delivery.close()


def searched(stage: Stage, who: str = "ron", job: str = JOB, launch: bool = False) -> str:
    run = stage.submit(who, job, launch=launch).json()["run"]
    read, _ = from_json(stage.state.ledger.submission(run).request)
    start(read, stage.state.ledger, run=run).search()
    return run
