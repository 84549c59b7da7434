"""The receivers of notifications: their addresses, their filters, and the last delivered entry of each.

The ledger itself is the queue: a receiver stores the number of the last entry whose notifications arrived. So nothing
is lost while the service or a receiver is unreachable; what was not confirmed is sent again.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from sqlalchemy import Connection, delete, func, insert, or_, select, update

from mlcd.core.database import Database
from mlcd.core.database.schema import entries, teams
from mlcd.core.database.schema import receivers as table
from mlcd.core.errors import UnknownName, UserError
from mlcd.service.notifications.events import EVENTS, Notification
from mlcd.service.notifications.mail import check_address
from mlcd.service.notifications.webhook import check_url, shown_url
from mlcd.service.team.members import Member, Role, find_member, lapsed_members

MOST, MOST_EACH = 50, 5
"""The most receivers of the service, and of each member."""
FIRST_BACKOFF_S, LONGEST_BACKOFF_S = 5.0, 600.0
LONGEST_TROUBLE = 200
LONGEST_NAME = 60
Kind = Literal["mail", "json", "slack"]


@dataclass(frozen=True, slots=True)
class NewReceiver:
    """A receiver to add. `events`: None for all. `member`, `team`: only notifications about their runs."""

    kind: Kind
    address: str
    name: str = ""
    events: tuple[str, ...] | None = None
    member: str | None = None
    team: str | None = None


@dataclass(frozen=True, slots=True)
class Receiver:
    """A receiver. `owner`: the member who receives it; None: an admin has added it for the whole service.

    `sent`: the last entry whose notifications arrived. `trouble`: why the last attempt failed; else empty.
    """

    number: int
    name: str
    kind: Kind
    address: str
    secret: str
    events: tuple[str, ...] | None
    owner: str | None
    member: str | None
    team: str | None
    sent: int
    tries: int
    next_at: datetime | None
    trouble: str

    @property
    def shown(self) -> str:
        """The address for people to read, without its secret part."""
        return self.address if self.kind == "mail" else shown_url(self.address)

    def wants(self, news: Notification) -> bool:
        """Whether this notification passes the receiver's filters."""
        return (
            (self.events is None or news.event in self.events)
            and (self.member is None or self.member == news.owner)
            and (self.team is None or self.team == news.team)
        )


class Receivers:
    """The receivers on a database. `now`: the clock."""

    def __init__(self, database: Database, now: Callable[[], datetime]) -> None:
        self._database, self.now = database, now

    def of(self, who: Member) -> list[Receiver]:
        """A member's own receivers; for an admin also those of the service."""
        own = table.c.owner == who.name
        return self._read(or_(own, table.c.owner.is_(None)) if who.role is Role.ADMIN else own)

    def due(self) -> list[Receiver]:
        """The receivers that are not waiting for a retry, nor owned by a member without access at the moment."""
        now = self.now()
        admitted = or_(table.c.owner.is_(None), table.c.owner.not_in(lapsed_members(now)))
        return [each for each in self._read(admitted) if each.next_at is None or each.next_at <= now]

    def add(self, asked: NewReceiver, owner: str | None) -> tuple[int, str]:
        """Add a receiver for what happens from now on; return its number and the secret that signs its notifications.

        Mail has no secret. `owner`: the member, for their own runs; None: for the service, which only admins may add.
        """
        _check(asked)
        secret = "" if asked.kind == "mail" else secrets.token_urlsafe(32)
        row = {
            "name": asked.name.strip(),
            "kind": asked.kind,
            "address": asked.address,
            "secret": secret,
            "events": None if asked.events is None else " ".join(asked.events),
            "owner": owner,
            "member": asked.member if owner is None else owner,
            "team": asked.team,
        }
        with self._database.write() as connection:
            self._check_count(connection, owner)
            _check_filter_names(connection, asked)
            sent = connection.execute(select(func.coalesce(func.max(entries.c.seq), 0))).scalar_one()
            at = self.now().astimezone(UTC).isoformat()
            added = insert(table).values(**row, sent=sent, tries=0, trouble="", created_at=at).returning(table.c.number)
            return int(connection.execute(added).scalar_one()), secret

    def get(self, number: int, who: Member) -> Receiver:
        """The receiver of this number, if this member may see it."""
        found = self.of(who)
        for each in found:
            if each.number == number:
                return each
        raise UnknownName("receiver", str(number), [str(each.number) for each in found])

    def remove(self, receiver: Receiver) -> None:
        """Remove a receiver."""
        with self._database.write() as connection:
            connection.execute(delete(table).where(table.c.number == receiver.number))

    def arrived(self, receiver: Receiver, seq: int) -> None:
        """Record that the notifications up to this entry have arrived."""
        values = {"sent": seq, "tries": 0, "next_at": None, "trouble": ""}
        with self._database.write() as connection:
            connection.execute(update(table).where(table.c.number == receiver.number).values(**values))

    def failed(self, receiver: Receiver, why: str) -> None:
        """Record a failed attempt; the next one follows after an exponential backoff."""
        this = table.c.number == receiver.number
        with self._database.write() as connection:
            tries = connection.execute(select(table.c.tries).where(this)).scalar()
            if tries is None:  # it was removed meanwhile
                return
            wait_s = min(LONGEST_BACKOFF_S, FIRST_BACKOFF_S * 2 ** min(tries, 10))
            next_at = (self.now() + timedelta(seconds=wait_s)).astimezone(UTC).isoformat()
            values = {"tries": tries + 1, "next_at": next_at, "trouble": why[:LONGEST_TROUBLE]}
            connection.execute(update(table).where(this).values(**values))

    def _read(self, which: Any) -> list[Receiver]:
        with self._database.read() as connection:
            rows = connection.execute(select(table).where(which).order_by(table.c.number)).all()
        return [_receiver(row) for row in rows]

    def _check_count(self, connection: Connection, owner: str | None) -> None:
        if owner is not None:
            find_member(connection, owner)  # they may have been removed meanwhile
        whose = table.c.owner.is_(None) if owner is None else table.c.owner == owner
        count = connection.execute(select(func.count()).select_from(table).where(whose)).scalar_one()
        if count >= (most := MOST if owner is None else MOST_EACH):
            raise UserError(f"there are {count} receivers already, and {most} are the most; remove one first")


def _check(asked: NewReceiver) -> None:
    """`UserError` unless notifications can be sent to this receiver."""
    if len(asked.name) > LONGEST_NAME or not asked.name.isprintable():
        raise UserError(f"name: up to {LONGEST_NAME} printable letters")
    if asked.kind == "mail":
        check_address(asked.address)
    else:
        check_url(asked.address)
    for event in asked.events or ():
        if event not in EVENTS:
            raise UnknownName("event", event, EVENTS)
    if asked.events is not None and not asked.events:
        raise UserError("events: choose at least one, or leave `events` out for all")


def _check_filter_names(connection: Connection, asked: NewReceiver) -> None:
    """`UserError` if there is no such member or team: the receiver would never get anything."""
    if asked.member is not None:
        find_member(connection, asked.member)
    known = connection.execute(select(teams.c.name)).scalars().all()
    if asked.team is not None and asked.team not in known:
        raise UnknownName("team", asked.team, known)


def _receiver(row: Any) -> Receiver:
    next_at = datetime.fromisoformat(row.next_at) if row.next_at is not None else None
    events = tuple(row.events.split()) if row.events is not None else None
    words = (row.number, row.name, row.kind, row.address, row.secret, events, row.owner, row.member, row.team)
    return Receiver(*words, row.sent, row.tries, next_at, row.trouble)
