"""Where news of runs goes: webhooks, for admins."""

from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Response
from pydantic import BeforeValidator, Field

from mlcd.core.errors import WrongState
from mlcd.core.part import Part, taken
from mlcd.service.team.hooks import Hooks
from mlcd.service.web.failures import Sent, problems, unknown_is_404
from mlcd.service.web.identity import Admin, audited
from mlcd.service.web.state import CurrentState, State

router = APIRouter(tags=["team"])
HookName = Annotated[str, Path(max_length=60, description="The hook's name.")]
STATUSES = problems(404, 409, 413, 415, 422)
StyleName = Literal["json", "slack"]
Moment = Annotated[
    str | None, BeforeValidator(lambda at: at.astimezone(UTC).isoformat() if isinstance(at, datetime) else at)
]


class NewHook(Sent):
    """A receiver of news."""

    name: str = Field(min_length=1, max_length=60, description="What you call it.")
    url: str = Field(min_length=1, max_length=2_000, description="https, or http on the service's own machine.")
    style: StyleName = Field(default="json", description="json: all of it; slack: a text alone, as Slack takes it.")
    member: str | None = Field(default=None, max_length=60, description="Only of this member's runs.")
    team: str | None = Field(default=None, max_length=60, description="Only of this team's runs.")


class MadeHook(Part):
    """A new hook, and its secret, which is shown only once."""

    name: str = Field(description="Its name.")
    secret: str = Field(description="By which the receiver knows that news is ours.")


class HookState(Part):
    """A hook, and how far it has got."""

    name: str = Field(description="Its name.")
    shown: str = Field(description="Its address, without the path.")
    style: StyleName = Field(description="How news is written.")
    member: str | None = Field(description="Only of this member's runs; null for all.")
    team: str | None = Field(description="Only of this team's runs; null for all.")
    sent: int = Field(description="The number of the last entry whose news arrived.")
    tries: int = Field(description="How often the next one was tried in vain.")
    next_at: Moment = Field(description="When it is tried again; null: at once.")
    trouble: str = Field(description="Why it did not arrive; else empty.")


class HooksAnswer(Part):
    """All hooks."""

    hooks: list[HookState] = Field(description="By name.")


@router.get("/hooks", responses=problems(409))
def list_hooks(state: CurrentState, who: Admin) -> HooksAnswer:
    """Where news goes, and whether it arrives."""
    return HooksAnswer(hooks=[HookState(**taken(HookState, each)) for each in _hooks(state).all()])


@router.post("/hooks", status_code=201, responses=STATUSES)
def add_hook(body: NewHook, state: CurrentState, who: Admin) -> MadeHook:
    """Send news there from now on, until it arrives: at least once, in order."""
    with audited(state, who, "add hook", body.name):
        secret = _hooks(state).add(body.name, body.url, body.style, body.member, body.team)
    return MadeHook(name=body.name, secret=secret)


@router.delete("/hooks/{name}", status_code=204, responses=STATUSES)
def remove_hook(name: HookName, state: CurrentState, who: Admin) -> Response:
    """Send nothing there any more."""
    with audited(state, who, "remove hook", name), unknown_is_404():
        _hooks(state).remove(name)
    return Response(status_code=204)


def _hooks(state: State) -> Hooks:
    if state.members is None:
        raise WrongState("`mlcd ui` sends no news; use `mlcd service` for a team")
    return Hooks(state.database, state.members.now)
