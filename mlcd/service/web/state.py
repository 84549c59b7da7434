"""The state of a service that every route can use: settings, ledger, members, executor and feed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import Depends, Request

from mlcd.core.ledger import Ledger
from mlcd.service.web.feed import Feed
from mlcd.service.workers.limits import CAPS

if TYPE_CHECKING:
    from mlcd.core.database import Database
    from mlcd.service.notifications.mail import MailServer
    from mlcd.service.sign_in.provider import Provider
    from mlcd.service.team.administration import Audit
    from mlcd.service.team.members import Members
    from mlcd.service.workers.local_executor import RunExecutor

PLACES = ("simulated", "recorded", "local", "functions", "ray", "skypilot")  # the part of `on` before the colon
NO_WORKER = "no worker is running: submitted runs wait; start one with mlcd worker, or mlcd service --workers N"


@dataclass(frozen=True)
class Limits:
    """Limits of a member. `known_for_s`: how often an event stream checks that its receiver is still a member."""

    upload_mb: int = 200
    uploads_mb_each: int = 2_000
    body_kb: int = 256
    per_minute: int = 600
    submissions_per_minute: int = 60
    sign_ins_per_minute: int = 10
    news_tests_per_minute: int = 6
    streams_each: int = 100
    known_for_s: float = 20.0


@dataclass(frozen=True)
class Settings:
    """The settings. Mode 'ui': a single user on this machine. Mode 'service': members with tokens.

    `recordings`: clouds to replay, by the name in `recorded:NAME`; a request never names a path. `hosts`: accepted Host
    headers beside loopback. `same_user`: on loopback, answer only processes of this user, where the system knows that.
    `count_simulated`: runs on simulated and recorded clouds count against budgets. `member_queued`: most queued runs of
    one member. `news_every_s`: interval of notifications. `mail`: the mail server for them; None: no mail.
    """

    mode: Literal["ui", "service"]
    home: Path
    places: tuple[str, ...] = PLACES
    recordings: Mapping[str, Path] = field(default_factory=lambda: MappingProxyType({}))
    limits: Limits = field(default_factory=Limits)
    public_url: str | None = None
    hosts: tuple[str, ...] = ()
    same_user: bool = True
    count_simulated: bool = False
    member_queued: int = CAPS.queued
    news_every_s: float = 2.0
    mail: MailServer | None = None


@dataclass(frozen=True)
class State:
    """The state of one service. `members` is None in ui mode. `provider`: the sign-in provider, if any."""

    ledger: Ledger
    database: Database
    executor: RunExecutor
    members: Members | None
    audit: Audit
    settings: Settings
    feed: Feed
    provider: Provider | None = None

    def send(self, run: str, launch: bool) -> None:
        """Start or resume a run; tell the feed to expect a driver."""
        self.executor.send(run, launch)
        self.feed.expect(run)

    def missing_workers(self) -> str:
        """A message if no worker has a recent heartbeat, else ''; always '' in ui mode, which needs no workers."""
        return NO_WORKER if self.settings.mode == "service" and self.executor.alive() == 0 else ""


def state_of(request: Request) -> State:
    """The state of a request's app."""
    state: State = request.app.state.mlcd
    return state


CurrentState = Annotated[State, Depends(state_of)]  # a route's argument: `state: CurrentState`
