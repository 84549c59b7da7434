"""Receivers of notifications: a member's own mail, and those that an admin adds for the service."""

from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Request, Response
from pydantic import BeforeValidator, Field

from mlcd.core.errors import WrongState
from mlcd.core.part import Part, part_fields
from mlcd.service.notifications.events import EVENTS, TEST, Notification
from mlcd.service.notifications.receivers import LONGEST_NAME, NewReceiver, Receivers
from mlcd.service.notifications.senders import senders_by_kind
from mlcd.service.team.members import Member, Role
from mlcd.service.web.errors import Refusal, RequestBody, error_responses, unknown_is_404
from mlcd.service.web.identity import Viewer, audited, rates_of
from mlcd.service.web.routes.tokens import FullScopeMember
from mlcd.service.web.state import CurrentState, State

router = APIRouter(tags=["news"])
Number = Annotated[int, Path(ge=1, le=2**62, description="The receiver's number.")]
STATUSES = error_responses(404, 409, 413, 415, 422)
KindName = Literal["mail", "json", "slack"]
EventName = Annotated[str, Field(max_length=40)]
Moment = Annotated[
    str | None, BeforeValidator(lambda at: at.astimezone(UTC).isoformat() if isinstance(at, datetime) else at)
]


class AskedReceiver(RequestBody):
    """A receiver to add: a member's own mail address, or one that an admin adds for the service."""

    address: str = Field(min_length=1, max_length=2_000, description="A mail address; or https://... of a webhook.")
    kind: KindName = Field(
        default="mail", description="json: signed JSON to a webhook; slack: a message in Slack's format."
    )
    name: str = Field(default="", max_length=LONGEST_NAME, description="A name of your choice.")
    events: Annotated[list[EventName], Field(max_length=len(EVENTS))] | None = Field(
        default=None, description="Only these events; null for all."
    )
    own: bool = Field(
        default=True, description="true: mail to yourself about your own runs. false: for the service; only admins."
    )
    member: str | None = Field(default=None, max_length=60, description="Only of this member's runs.")
    team: str | None = Field(default=None, max_length=60, description="Only of this team's runs.")


class AddedReceiver(Part):
    """A new receiver, and its secret, which is shown only once."""

    number: int = Field(description="Its number.")
    secret: str = Field(description="With it, a webhook verifies signatures; empty for mail.")


class ReceiverState(Part):
    """A receiver and the state of its delivery."""

    number: int = Field(description="Its number.")
    name: str = Field(description="What it is called; may be empty.")
    kind: KindName = Field(description="How notifications are sent.")
    shown: str = Field(description="Its address; for a webhook without the path, which may be secret.")
    events: list[str] | None = Field(description="Only these events; null for all.")
    owner: str | None = Field(description="The member who receives it; null: an admin added it for the service.")
    member: str | None = Field(description="Only of this member's runs; null for all.")
    team: str | None = Field(description="Only of this team's runs; null for all.")
    tries: int = Field(description="Failed attempts to deliver the next notification.")
    next_at: Moment = Field(description="The time of the next attempt; null: at once.")
    trouble: str = Field(description="Why the last attempt failed; else empty.")


class EventState(Part):
    """An event that can be chosen."""

    name: str = Field(description="Its name.")
    when: str = Field(description="When it occurs.")


class NewsAnswer(Part):
    """The receivers that the member may see."""

    mails: bool = Field(description="Whether this service can send mail.")
    receivers: list[ReceiverState] = Field(description="Your own; for an admin also those of the service.")
    events: list[EventState] = Field(description="All events.")


class Tried(Part):
    """The result of a test message."""

    trouble: str = Field(description="Why the message did not arrive; empty: it did.")


@router.get("/news", responses=error_responses(409))
def list_receivers(state: CurrentState, who: Viewer) -> NewsAnswer:
    """The receivers of notifications, and the state of their delivery."""
    member, found = _whose(state, who)
    told = [ReceiverState(**part_fields(ReceiverState, each, events=_listed(each.events))) for each in found.of(member)]
    events = [EventState(name=name, when=when) for name, when in EVENTS.items()]
    return NewsAnswer(mails=state.settings.mail is not None, receivers=told, events=events)


@router.post("/news", status_code=201, responses=STATUSES)
def add_receiver(body: AskedReceiver, state: CurrentState, who: FullScopeMember) -> AddedReceiver:
    """Add a receiver. From now on it gets notifications at least once and in order, with retries."""
    member, found = _whose(state, who)
    with audited(state, who, "add receiver", body.name or body.kind) as note:
        if body.own and (body.kind != "mail" or body.member is not None or body.team is not None):
            raise Refusal(
                422, "your own news is mailed and about your own runs; anything else needs an admin, with own: false"
            )
        if not body.own and member.role is not Role.ADMIN:
            raise Refusal(403, f"{member.name} is a {member.role}; this needs an admin: ask one")
        if body.kind == "mail":
            _check_mail(state, body.address)
        events = tuple(body.events) if body.events is not None else None
        asked = NewReceiver(body.kind, body.address, body.name, events, body.member, body.team)
        number, secret = found.add(asked, member.name if body.own else None)
        note.detail = f"receiver {number}, {body.kind}, {'their own' if body.own else 'for the service'}"
    return AddedReceiver(number=number, secret=secret)


@router.delete("/news/{number}", status_code=204, responses=STATUSES)
def remove_receiver(number: Number, state: CurrentState, who: FullScopeMember) -> Response:
    """Remove a receiver."""
    member, found = _whose(state, who)
    with audited(state, who, "remove receiver", str(number)), unknown_is_404():
        found.remove(found.get(number, member))
    return Response(status_code=204)


@router.post("/news/{number}/test", responses=STATUSES)
def try_receiver(number: Number, request: Request, state: CurrentState, who: FullScopeMember) -> Tried:
    """Send one test message, and report whether it arrived."""
    member, found = _whose(state, who)
    with unknown_is_404():
        receiver = found.get(number, member)
    rates_of(request).count("news-test", member.name)
    now = found.now()
    words = f"{member.name} sent this test message. It has arrived."
    news = Notification(int(now.timestamp() * 1_000), "", TEST, now, words, link=state.settings.public_url or "")
    with audited(state, who, "test receiver", str(number)) as note:
        trouble = senders_by_kind(found.now, state.settings.mail)[receiver.kind].send(receiver, news)
        note.detail = trouble
    return Tried(trouble=trouble)


def _whose(state: State, who: Member | None) -> tuple[Member, Receivers]:
    if state.members is None:
        raise WrongState("`mlcd ui` sends no news; use `mlcd service` for a team")
    assert who is not None
    return who, Receivers(state.database, state.members.now)


def _check_mail(state: State, address: str) -> None:
    if state.settings.mail is None:
        raise WrongState("this service sends no mail; its operator can set a mail server: mlcd service --mail-file")
    state.settings.mail.check(address)


def _listed(events: tuple[str, ...] | None) -> list[str] | None:
    return list(events) if events is not None else None
