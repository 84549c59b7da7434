"""Authorization: the member who sends a request and their role; in ui mode, the only user."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from mlcd.core.errors import MlcdError
from mlcd.service.team import Member, Role
from mlcd.service.web.failures import Refusal, public_message
from mlcd.service.web.safety.concurrency import ConcurrencyLimits
from mlcd.service.web.safety.rate_limits import RateLimits
from mlcd.service.web.state import CurrentState, State

ONE_PERSON = "you"
"""The user's name in the audit log of ui mode."""


def name_of(who: Member | None) -> str:
    """The name for the audit log and the rate limits."""
    return who.name if who is not None else ONE_PERSON


def rates_of(request: Request) -> RateLimits:
    """The rate limits of a request's app."""
    rates: RateLimits = request.app.state.rates
    return rates


def authenticated_member(request: Request) -> Member | None:
    """The member whom the gate has authenticated; None in ui mode. Fails without a gate."""
    member: Member | None = request.state.member
    return member


def require(role: Role) -> Callable[..., Member | None]:
    """A dependency: the member has at least this role."""

    def allowed(
        request: Request, state: CurrentState, who: Annotated[Member | None, Depends(authenticated_member)]
    ) -> Member | None:
        if who is not None and not who.role.may(role):
            line = f"{who.name} is a {who.role}; this takes {'an' if role is Role.ADMIN else 'a'} {role}: ask an admin"
            state.audit.write(who.name, request.method, request.url.path, "refused", line)
            raise Refusal(403, line)
        return who

    return allowed


async def submission_slot(
    request: Request, who: Annotated[Member | None, Depends(require(Role.RUNNER))]
) -> AsyncIterator[Member | None]:
    """A dependency: a runner who sends something that a child process reads, within their concurrency limit."""
    rates_of(request).submission(name_of(who))
    limits: ConcurrencyLimits = request.app.state.concurrency
    async with limits.slot(f"{name_of(who)} {request.url.path}"):
        yield who


Viewer = Annotated[Member | None, Depends(require(Role.VIEWER))]
Runner = Annotated[Member | None, Depends(require(Role.RUNNER))]
Admin = Annotated[Member | None, Depends(require(Role.ADMIN))]
Submitter = Annotated[Member | None, Depends(submission_slot)]


@dataclass
class AuditNote:
    """The entry for the audit log; a route may add details."""

    about: str = ""
    detail: str = ""


@contextmanager
def audited(state: State, who: Member | None, action: str, about: str = "") -> Iterator[AuditNote]:
    """Write what is done inside, or why it was refused, to the audit log."""
    note = AuditNote(about)
    try:
        yield note
    except MlcdError as error:
        state.audit.write(name_of(who), action, note.about, "refused", public_message(error))
        raise
    state.audit.write(name_of(who), action, note.about, "ok", note.detail)
