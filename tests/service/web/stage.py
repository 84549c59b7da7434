"""A service in this process, with an executor that drives nothing, and requests as a server hands them to the app."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from queue import SimpleQueue
from typing import Any
from urllib.parse import unquote

import uvicorn

from mlcd.core.ledger import Ledger
from mlcd.service.sign_in.provider import Provider
from mlcd.service.team.administration import Audit
from mlcd.service.team.members import SESSION_LASTS, Members, Role
from mlcd.service.web.app import create_app
from mlcd.service.web.feed import Feed
from mlcd.service.web.state import Limits, Settings, State
from mlcd.service.workers.roster import Roster, Waiting, Worker

API = "/api/v1"
PLENTY = Limits(per_minute=100_000, submissions_per_minute=100_000, sign_ins_per_minute=100_000)
JOB = """\
name: digits
run: python train.py
mlcd:
  work: 1M
  budget: $5
  search: {nodes: 1..4, instances: [g4dn.xlarge, c5.4xlarge]}
"""


class Idle:
    """An executor that only remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []
        self.workers = 1

    def send(self, run: str, launch: bool = False) -> None:
        self.asked.append(("send", run, str(launch)))

    def stop(self, run: str) -> None:
        self.asked.append(("stop", run))

    def down(self, run: str) -> None:
        self.asked.append(("down", run))

    def withdraw(self, run: str) -> bool:
        self.asked.append(("withdraw", run))
        return True

    def alive(self) -> int:
        return self.workers

    def roster(self) -> Roster:
        seen = self.clock() - timedelta(seconds=0 if self.workers else 60)
        me = Worker(1, seen, bool(self.workers), (), "here", 1, 4, "0", seen)
        waits = [run for what, run, *_ in self.asked if what == "send"]
        queue = (Waiting(run, "see through", None, i, seen, None) for i, run in enumerate(waits, 1))
        return Roster(self.clock(), (me,), tuple(queue))

    def adopt(self, older_than: timedelta) -> int:
        self.asked.append(("adopt", str(older_than)))
        return 0

    def clock(self) -> datetime:
        return datetime.now(UTC)

    def close(self) -> None:
        pass


@dataclass(frozen=True)
class Told:
    """An answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    cookies: tuple[str, ...] = ()

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        return str(self.json()["error"])


@dataclass
class Stage:
    """A service and the tokens of its members: vera views, ron and rita run, ada is the admin."""

    state: State
    app: Any
    executor: Idle
    later: list[timedelta]
    loop: asyncio.AbstractEventLoop
    tokens: dict[str, str] = field(default_factory=dict)
    begun: SimpleQueue[int] = field(default_factory=SimpleQueue)  # each answer's status, when its headers are sent

    def ask(
        self,
        method: str,
        path: str,
        who: str | None = None,
        body: Any = None,
        *,
        raw: bytes | list[bytes] | None = None,
        headers: Mapping[str, str] | list[tuple[str, str]] = (),  # type: ignore[assignment]
        host: str | None = "localhost",
        client: tuple[str, int] | None = ("127.0.0.1", 40_000),
        cut: bool = False,
    ) -> Told:
        """Send a request. `path`: as it would stand on the wire. `cut`: the connection ends before the body does."""
        told = (
            [(name.lower(), value) for name, value in dict(headers).items()]
            if isinstance(headers, Mapping)
            else list(headers)
        )
        names = {name for name, _ in told}
        if host is not None:
            told.append(("host", host))
        if who is not None:
            told.append(("authorization", f"Bearer {self.tokens[who]}"))
        elif self.state.members is None and "x-mlcd" not in names:
            told.append(("x-mlcd", "1"))
        chunks = raw if isinstance(raw, list) else [raw if raw is not None else b""]
        if body is not None:
            chunks = [json.dumps(body).encode()]
        if body is not None and "content-type" not in names:
            told.append(("content-type", "application/json"))
        where, _, query = path.partition("?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(where),
            "raw_path": where.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in told if value],
            "client": client,
            "server": ("127.0.0.1", 8421),
            "state": {},
        }
        return asyncio.run_coroutine_threadsafe(self._sent(scope, chunks, cut), self.loop).result(300)

    async def _sent(self, scope: dict[str, Any], chunks: list[bytes], cut: bool) -> Told:
        coming = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
        if not cut:
            coming[-1]["more_body"] = False
        answered = asyncio.Event()
        seen: dict[str, Any] = {"body": b""}

        async def receive() -> dict[str, Any]:
            if coming:
                return coming.pop(0)
            if not cut:
                await answered.wait()
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                seen["status"], seen["headers"] = message["status"], message["headers"]
                self.begun.put(message["status"])
            elif message["type"] == "http.response.body":
                seen["body"] += message.get("body", b"")
                if not message.get("more_body"):
                    answered.set()

        await self.app(scope, receive, send)
        pairs = [(name.decode().lower(), value.decode("latin-1")) for name, value in seen["headers"]]
        cookies = tuple(value for name, value in pairs if name == "set-cookie")
        return Told(seen["status"], dict(pairs), seen["body"], cookies)

    def submit(self, who: str | None = None, job: str = JOB, **told: Any) -> Told:
        return self.ask("POST", f"{API}/runs", who, {"kind": "train", "job": job, **told})

    def sign_in(self, who: str) -> str:
        """The cookie of a new session."""
        told = self.ask("POST", f"{API}/session", body={"token": self.tokens[who]}, headers={"x-mlcd": "1"})
        assert told.status == 204, told.body
        return told.cookies[0].partition(";")[0]

    def age_sessions(self) -> None:
        """Let so much time pass that all of them are over."""
        self.later.append(SESSION_LASTS + timedelta(seconds=1))

    def look(self) -> None:
        """Let the feed read what is new in the ledger, now."""
        asyncio.run_coroutine_threadsafe(self.state.feed.catch_up(with_state=True), self.loop).result(300)

    @property
    def written(self) -> tuple[Any, ...]:
        """What must not change when something is refused."""
        ledger = self.state.ledger
        return ledger.last_seq(), [each.run for each in ledger.waiting()], list(self.executor.asked)


@contextmanager
def staged(
    home: Path,
    where: Any = None,
    *,
    mode: str = "service",
    limits: Limits = PLENTY,
    provider: Callable[[Callable[[], datetime]], Provider] | None = None,
    **settings: Any,
) -> Iterator[Stage]:
    """A service on this database; SQLite under its home unless told otherwise. `provider`: made with its clock."""
    home.mkdir(parents=True, exist_ok=True)
    ledger = Ledger(where if where is not None else home / "ledger.db")
    later: list[timedelta] = []

    def now() -> datetime:
        return datetime.now(UTC) + sum(later, timedelta())

    members = Members(ledger.database, now) if mode == "service" else None
    told = Settings(**({"mode": mode, "home": home, "limits": limits, "same_user": False} | settings))
    executor = Idle()
    signs_in = provider(now) if provider is not None else None
    state = State(ledger, ledger.database, executor, members, Audit(ledger.database, now), told, Feed(ledger), signs_in)
    app, loop = create_app(state), asyncio.new_event_loop()
    stage = Stage(state, app, executor, later, loop)
    if members is not None:
        for name, role in (("vera", Role.VIEWER), ("ron", Role.RUNNER), ("rita", Role.RUNNER), ("ada", Role.ADMIN)):
            stage.tokens[name] = members.add(name, role)
    with serving(app, loop):
        yield stage
    ledger.close()


@contextmanager
def serving(app: Any, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """The app between its start and its end, on a loop in a thread of its own, as a server has it."""
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    over = asyncio.Event()
    up = threading.Event()

    async def alive() -> None:
        async with app.router.lifespan_context(app):
            up.set()
            await over.wait()

    life = asyncio.run_coroutine_threadsafe(alive(), loop)
    assert up.wait(300)
    try:
        yield
    finally:
        loop.call_soon_threadsafe(over.set)
        life.result(300)
        asyncio.run_coroutine_threadsafe(loop.shutdown_default_executor(), loop).result(300)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextmanager
def answering(app: Any) -> Iterator[str]:
    """The app behind a real server on loopback, as `mlcd ui` runs it."""
    begun = threading.Event()

    class Server(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            begun.set()

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = Server(
            uvicorn.Config(app, log_config=None, loop="asyncio", proxy_headers=False, lifespan="off", ws="none")
        )
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        begun.wait()  # uvicorn that is told to end before it has begun leaves its sockets open
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(300)
