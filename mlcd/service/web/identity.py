"""Who asks, and whether they may: a member with a role, or, in ui mode, the one person there is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from mlcd.core.errors import MlcdError
from mlcd.service.team import Member, Role
from mlcd.service.web.failures import Refusal, shown
from mlcd.service.web.safety.rates import Rates
from mlcd.service.web.safety.turns import Turns
from mlcd.service.web.state import Here, State

ONE_PERSON = "you"
"""Who did it, in the audit log of ui mode."""


def name_of(who: Member | None) -> str:
    """For the audit log and the rates."""
    return who.name if who is not None else ONE_PERSON


def rates_of(request: Request) -> Rates:
    """The counts of the app that a request has reached."""
    found: Rates = request.app.state.rates
    return found


def asker(request: Request) -> Member | None:
    """Who asks, as the gate has found out; None for the one person of ui mode. Behind no gate this fails."""
    found: Member | None = request.state.member
    return found


def require(role: Role) -> Callable[..., Member | None]:
    """A dependency: who asks has this role, or more."""

    def allowed(request: Request, here: Here, who: Annotated[Member | None, Depends(asker)]) -> Member | None:
        if who is not None and not who.role.may(role):
            line = f"{who.name} is a {who.role}; this takes {'an' if role is Role.ADMIN else 'a'} {role}: ask an admin"
            here.audit.write(who.name, request.method, request.url.path, "refused", line)
            raise Refusal(403, line)
        return who

    return allowed


async def submits(
    request: Request, who: Annotated[Member | None, Depends(require(Role.RUNNER))]
) -> AsyncIterator[Member | None]:
    """A dependency: a runner who sends what a process is started for to read it, when it is their turn."""
    rates_of(request).submission(name_of(who))
    turns: Turns = request.app.state.turns
    async with turns.of(f"{name_of(who)} {request.url.path}"):
        yield who


Viewer = Annotated[Member | None, Depends(require(Role.VIEWER))]
Runner = Annotated[Member | None, Depends(require(Role.RUNNER))]
Admin = Annotated[Member | None, Depends(require(Role.ADMIN))]
Submitter = Annotated[Member | None, Depends(submits)]


@dataclass
class Note:
    """What the audit log will say; a route may add what it has learned."""

    about: str = ""
    detail: str = ""


@contextmanager
def noted(here: State, who: Member | None, action: str, about: str = "") -> Iterator[Note]:
    """Whatever is done inside is written to the audit log, and so is why it was refused."""
    note = Note(about)
    try:
        yield note
    except MlcdError as error:
        here.audit.write(name_of(who), action, note.about, "refused", shown(error))
        raise
    here.audit.write(name_of(who), action, note.about, "ok", note.detail)
