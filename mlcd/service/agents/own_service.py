"""The service of one agent on this machine: the API of `mlcd service` on loopback, on the ledger of `mlcd train`.

The agent is a member: its role, and its budget in the ledger's database, are kept by the code that keeps a team's. So
a restart, or a second server of the same name, finds the dollars spent that were spent.
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
from mlcd.service.workers.local_crew import LocalCrew
from mlcd.service.workers.process import only_computes
from mlcd.service.workers.trust import SAME_USER

RUNNING_AT_ONCE = 4
"""Runs of an agent on real machines, or on this one."""
LIMITS = Limits(per_minute=6_000, submissions_per_minute=600)
"""One agent has this service alone."""


@dataclass(frozen=True)
class Terms:
    """What who starts the server allows: the agent's name, its dollars in all, and where its jobs may run.

    Without a budget the agent keeps the one that an earlier start has given it; if none has, it has no dollars.
    """

    name: str = "agent"
    budget_usd: float | None = None
    places: tuple[str, ...] = ("simulated", "recorded")
    recordings: Mapping[str, Path] = field(default_factory=dict)
    count_simulated: bool = False


class OneMember(Members):
    """Members of whom one alone can sign in: the agent, by a token that is nowhere but in this process."""

    def __init__(self, database: Database, terms: Terms) -> None:
        super().__init__(database, lambda: datetime.now(UTC))
        self.token, self._name = new_secret(), terms.name
        kept = {each.name: each.budget_usd or 0.0 for each in self.all()}
        usd = kept.get(terms.name, 0.0) if terms.budget_usd is None else terms.budget_usd
        if terms.name in kept:
            self.change(terms.name, budget_usd=usd, role=Role.RUNNER)
        else:
            self.add(terms.name, Role.RUNNER, usd=usd)

    def of_token(self, token: str) -> Member | None:
        """The agent. It is a runner also where it may only look: what it may do is what tools there are."""
        return self.get(self._name) if hmac.compare_digest(token.encode(), self.token.encode()) else None

    def of_session(self, secret: str) -> Member | None:
        """Nobody: there are no pages."""
        return None


class AgentCrew(LocalCrew):
    """Runs that only compute are children of this process. Others outlive it: assistants come and go."""

    def send(self, run: str, launch: bool = False) -> None:
        """Start or resume a run."""
        if only_computes(run, self._ledger):
            super().send(run, launch)
            return
        with self._lock:
            mine = {name for name, (owner, _) in self._ledger.owners().items() if owner is not None}
            if len(mine & self._ledger.driven()) >= RUNNING_AT_ONCE:
                self._give_up(run, f"{RUNNING_AT_ONCE} runs are under way: wait, or stop one; then resume this one")
            self._ledger.request_action(run, None)
            try:
                detach(run, self._ledger, launch)
            except WrongState as error:
                self._give_up(run, str(error))

    def alive(self) -> int:
        """At least one: it starts processes as they are needed."""
        return max(1, super().alive())

    def _give_up(self, run: str, because: str) -> None:
        """What never begins claims no budget."""
        if self._ledger.submission(run) is not None and not self._ledger.has_begun(run):
            self._ledger.refuse(run, because)
        raise WrongState(because)


@contextmanager
def own_service(home: Path, terms: Terms) -> Iterator[Server]:
    """The service, as long as the block runs; and a client of it, who is the agent."""
    if any(place in ("local", *SAME_USER) for place in terms.places):
        os.environ[TRUST] = "1"  # who names such a place lets the agent's jobs run as this user
    with ExitStack() as ending:
        ledger = Ledger(home / "ledger.db")
        ending.callback(ledger.close)
        members = OneMember(ledger.database, terms)
        crew = AgentCrew(ledger)
        ending.callback(crew.close)
        audit = Audit(ledger.database, lambda: datetime.now(UTC))
        settings = Settings(
            "service", home, terms.places, terms.recordings, LIMITS, count_simulated=terms.count_simulated
        )
        state = State(ledger, ledger.database, crew, members, audit, settings, Feed(ledger))
        url = ending.enter_context(_listening(create_app(state)))
        server = Server(url, members.token)
        ending.callback(server.close)
        yield server


@contextmanager
def _listening(app: FastAPI) -> Iterator[str]:
    """The app in a thread, on a free port of loopback."""
    begun = threading.Event()

    class Begins(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            begun.set()

    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_config=None, loop="asyncio", ws="none", timeout_graceful_shutdown=1)
    service = Begins(config)
    thread = threading.Thread(target=service.run, args=([listener],), daemon=True)
    thread.start()
    begun.wait()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        service.should_exit = True
        thread.join()
        listener.close()
