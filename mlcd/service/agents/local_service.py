"""A private service for one agent on this machine: the API of `mlcd service` on loopback, on the local ledger.

The agent is a team of one member, so the code that enforces a team's roles and budgets also enforces the agent's. Its
budget is in the ledger's database: after a restart, or in a second server of the same name, what it has spent still
counts.
"""

import hmac
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from mlcd.clouds.local.job_user import TRUST
from mlcd.core.database import Database
from mlcd.core.errors import WrongState
from mlcd.core.ledger import Ledger
from mlcd.service.remote.server import Server
from mlcd.service.team.administration import Audit
from mlcd.service.team.members import Member, Members, Role, new_secret
from mlcd.service.web.app import create_app
from mlcd.service.web.feed import Feed
from mlcd.service.web.state import Limits, Settings, State
from mlcd.service.workers.detached import detach
from mlcd.service.workers.local_executor import LocalExecutor
from mlcd.service.workers.process import only_computes
from mlcd.service.workers.trust import SAME_USER

RUNNING_AT_ONCE = 4
"""The most runs of an agent at once on real machines, this one included."""
LIMITS = Limits(per_minute=6_000, submissions_per_minute=600)
"""Higher than a team's: one agent has this service to itself."""


@dataclass(frozen=True)
class AgentLimits:
    """What the person who starts the server allows: the agent's name, its total budget, and where its jobs may run.

    Without a budget the agent keeps the one of an earlier start; if there was none, it may spend nothing.
    """

    name: str = "agent"
    budget_usd: float | None = None
    places: tuple[str, ...] = ("simulated", "recorded")
    recordings: Mapping[str, Path] = field(default_factory=dict)
    count_simulated: bool = False


class SingleAgentMembers(Members):
    """Members of whom only the agent can authenticate, with a token that exists only in this process."""

    def __init__(self, database: Database, limits: AgentLimits) -> None:
        super().__init__(database, lambda: datetime.now(UTC))
        self.token, self._name = new_secret(), limits.name
        kept = {each.name: each.budget_usd or 0.0 for each in self.all()}
        usd = kept.get(limits.name, 0.0) if limits.budget_usd is None else limits.budget_usd
        if limits.name in kept:
            self.change(limits.name, budget_usd=usd, role=Role.RUNNER)
        else:
            self.add(limits.name, Role.RUNNER, usd=usd)

    def by_token(self, token: str) -> Member | None:
        """The agent if the token is its own. Always a runner: its permissions decide which tools it is offered."""
        return self.get(self._name) if hmac.compare_digest(token.encode(), self.token.encode()) else None

    def by_session(self, secret: str) -> Member | None:
        """Always None: no browser uses this service."""
        return None


class AgentExecutor(LocalExecutor):
    """Drives runs that only compute in child processes, and others in detached ones that outlive this process.

    An assistant may end at any time; runs on real machines must not.
    """

    def send(self, run: str, launch: bool = False) -> None:
        """Start or resume a run."""
        if only_computes(run, self._ledger):
            super().send(run, launch)
            return
        with self._lock:
            mine = {name for name, (owner, _) in self._ledger.owners().items() if owner is not None}
            if len(mine & self._ledger.driven()) >= RUNNING_AT_ONCE:
                self._refuse(run, f"{RUNNING_AT_ONCE} runs are under way: wait, or stop one; then resume this one")
            self._ledger.request_action(run, None)
            try:
                detach(run, self._ledger, launch)
            except WrongState as error:
                self._refuse(run, str(error))

    def alive(self) -> int:
        """At least one: this executor starts processes whenever they are needed."""
        return max(1, super().alive())

    def _refuse(self, run: str, because: str) -> None:
        """Refuse a run that has not begun, so that it claims no budget; raise with the reason."""
        if self._ledger.submission(run) is not None and not self._ledger.has_begun(run):
            self._ledger.refuse(run, because)
        raise WrongState(because)


@contextmanager
def local_service(home: Path, limits: AgentLimits) -> Iterator[Server]:
    """Run the service while the block runs; yield a client that is authenticated as the agent."""
    if any(place in ("local", *SAME_USER) for place in limits.places):
        os.environ[TRUST] = "1"  # by naming such a place, the user lets the agent's jobs run as themselves
    with ExitStack() as ending:
        ledger = Ledger(home / "ledger.db")
        ending.callback(ledger.close)
        members = SingleAgentMembers(ledger.database, limits)
        executor = AgentExecutor(ledger)
        ending.callback(executor.close)
        audit = Audit(ledger.database, lambda: datetime.now(UTC))
        settings = Settings(
            "service", home, limits.places, limits.recordings, LIMITS, count_simulated=limits.count_simulated
        )
        state = State(ledger, ledger.database, executor, members, audit, settings, Feed(ledger))
        url = ending.enter_context(_serve_in_thread(create_app(state)))
        server = Server(url, members.token)
        ending.callback(server.close)
        yield server


@contextmanager
def _serve_in_thread(app: FastAPI) -> Iterator[str]:
    """Serve the app in a thread, on a free port of loopback; yield its URL."""
    started = threading.Event()

    class SignallingServer(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            started.set()

    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_config=None, loop="asyncio", ws="none", timeout_graceful_shutdown=1)
    service = SignallingServer(config)
    thread = threading.Thread(target=service.run, args=([listener],), daemon=True)
    thread.start()
    started.wait()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        service.should_exit = True
        thread.join()
        listener.close()
