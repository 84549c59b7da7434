"""A service for one test module: the app on a port of loopback, with workers of its own."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from mlcd_fixtures.recorded_services import write_device

from mlcd.core.ledger import Ledger
from mlcd.service.team.administration import Audit
from mlcd.service.team.members import Members, Role

CHAR_RNN = Path(__file__).parents[2] / "examples" / "recordings" / "char-rnn-local"

ALONE = "{nodes: 1..2, instances: [c5.xlarge, g4dn.xlarge], earlier: false}"
"""A search that what others have run before does not change."""


@dataclass
class Service:
    """A service under way: where it is, its ledger, its members' tokens, and the recording that is `device` there."""

    url: str
    ledger: Ledger
    tokens: dict[str, str] = field(default_factory=dict)
    device: Path = Path()


@contextmanager
def listening(app: Any) -> Iterator[str]:
    """The app, on a free port of loopback."""
    import uvicorn

    begun = threading.Event()

    class Server(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            begun.set()

    listener = socket.create_server(("127.0.0.1", 0))
    server = Server(uvicorn.Config(app, log_config=None, loop="asyncio", ws="none", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    begun.wait()  # uvicorn that is told to end before it has begun leaves its sockets open
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


@contextmanager
def a_team(home: Path) -> Iterator[Service]:
    """`mlcd service` without its processes: ada runs, vic views, poor has a dollar, root is the admin."""
    device = write_device(home / "device")
    with closing(Ledger(home / "ledger.db")) as ledger:
        members = Members(ledger.database, _now)
        tokens = {
            "ada": members.add("ada", Role.RUNNER),
            "vic": members.add("vic", Role.VIEWER),
            "poor": members.add("poor", Role.RUNNER, usd=1.0),
            "root": members.add("root", Role.ADMIN),
        }
        recordings = {"device": device, "char-rnn": CHAR_RNN}
        with _served(ledger, home, "service", members, recordings=recordings, count_simulated=True) as url:
            yield Service(url, ledger, tokens, device)


@contextmanager
def one_person(home: Path) -> Iterator[Service]:
    """`mlcd ui` without its process."""
    home.mkdir(parents=True, exist_ok=True)
    with closing(Ledger(home / "ledger.db")) as ledger, _served(ledger, home, "ui", None) as url:
        yield Service(url, ledger)


@contextmanager
def _served(ledger: Ledger, home: Path, mode: Any, members: Members | None, **settings: Any) -> Iterator[str]:
    from mlcd.service.web.app import create_app
    from mlcd.service.web.feed import Feed
    from mlcd.service.web.state import Settings, State
    from mlcd.service.workers.local_executor import LocalExecutor

    audit, told = Audit(ledger.database, _now), Settings(mode, home, **settings)
    with pytest.MonkeyPatch.context() as patch, closing(LocalExecutor(ledger)) as executor:
        patch.setenv("MLCD_HOME", str(home))  # of the workers, which are children of this process
        state = State(ledger, ledger.database, executor, members, audit, told, Feed(ledger))
        with listening(create_app(state)) as url:
            yield url


def _now() -> datetime:
    return datetime.now(UTC)
