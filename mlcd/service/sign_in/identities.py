"""Which member an account at a sign-in provider belongs to: identified by issuer and subject, never by name.

A provider chooses names, and two people may have the same name there and here. So a name only names new members.
Existing or former members are never taken over by name: an admin has to link them.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, and_, delete, insert, select, update

from mlcd.core.database import Database
from mlcd.core.database.schema import identities, members
from mlcd.core.errors import UserError
from mlcd.service.sign_in.errors import SignInRefused
from mlcd.service.sign_in.settings import Grant, SignInSettings
from mlcd.service.team.members import (
    Member,
    check_name,
    check_not_last_admin,
    delete_receivers,
    end_sessions,
    ensure_team,
    find_member,
    hashed,
    new_secret,
    revoke_named_tokens,
    set_member,
)
from mlcd.service.team.tokens import limit_named_tokens

LONGEST = 400  # of an issuer, and of a subject


@dataclass(frozen=True, slots=True)
class Account:
    """Somebody's account at a provider."""

    issuer: str
    subject: str

    def __str__(self) -> str:
        return f"{self.issuer} {self.subject}"


@dataclass(frozen=True, slots=True)
class SignInResult:
    """The member who signed in, and the change to them as the audit log names it; '' for none."""

    member: Member
    changed: str


class Identities:
    """The accounts of members on a database. `now`: the clock."""

    def __init__(self, database: Database, now: Callable[[], datetime]) -> None:
        self._database, self._now = database, now

    def enter(self, account: Account, name: str, groups: set[str], settings: SignInSettings) -> SignInResult:
        """Sign somebody in as their member, or as a new one; `SignInRefused` if they may not use MLCD."""
        grant = settings.grant(groups)
        with self._database.write() as connection:
            known = self._member_of(connection, account)
            if grant is None and known is not None:
                self._revoke_access(connection, known)
            if grant is not None:
                return self._admit(connection, account, known or name, grant, settings, is_new=known is None)
        raise SignInRefused(f"{known or name} is in no group that may use MLCD; ask an admin of {settings.shown}")

    def link(self, name: str, account: Account) -> None:
        """Link an account to a member. It replaces the member's earlier account, whose sessions end.

        The expiry of the member's access stays as it was until the new account first signs in.
        """
        if not all(0 < len(text) <= LONGEST and text.isprintable() for text in (account.issuer, account.subject)):
            raise UserError("issuer and subject: as the provider writes them, in one line")
        with self._database.write() as connection:
            find_member(connection, name)
            if (other := self._member_of(connection, account)) not in (None, name):
                raise UserError(f"this account is linked to {other}; first: mlcd team unlink {other}")
            if other == name:
                return
            good_until = _good_until(connection, name)
            if connection.execute(delete(identities).where(identities.c.member == name)).rowcount:
                end_sessions(connection, name)
            self._bind(connection, account, name, good_until)

    def unlink(self, name: str) -> None:
        """Remove the link to the member's account.

        Their own token stays valid; named tokens expire when they would have without a new sign-in. What is void by now
        stays void.
        """
        now = _text(self._now())
        with self._database.write() as connection:
            good_until = _good_until(connection, name)
            if not connection.execute(delete(identities).where(identities.c.member == name)).rowcount:
                find_member(connection, name)
                raise UserError(f"{name} is linked to no account")
            end_sessions(connection, name)
            if good_until is not None and good_until <= now:
                set_member(connection, name, token_hash=hashed(new_secret()))
                revoke_named_tokens(connection, name, now)
            elif good_until is not None:
                limit_named_tokens(connection, name, good_until)

    def _admit(
        self, connection: Connection, account: Account, name: str, grant: Grant, settings: SignInSettings, is_new: bool
    ) -> SignInResult:
        if is_new:
            self._add(connection, account, name, grant)
            member, changed = find_member(connection, name), "add member"
        else:
            member, changed = self._update_from_groups(connection, name, grant, settings.names_teams)
        now = self._now()
        good_until = now + timedelta(days=settings.tokens_days)
        times = {"seen_at": _text(now), "good_until": _text(good_until)}
        connection.execute(update(identities).where(identities.c.member == name).values(**times))
        return SignInResult(member, changed)

    def _add(self, connection: Connection, account: Account, name: str, grant: Grant) -> None:
        try:
            check_name("member", name)
        except UserError as error:
            raise SignInRefused(f"{error}; an operator chooses the claim of the name: name_claim") from None
        if connection.execute(select(members.c.name).where(members.c.name == name)).first() is not None:
            link = shlex.join(["mlcd", "team", "link", name, account.issuer, account.subject])
            raise SignInRefused(f"'{name}' is, or was, a member without this account; an admin can link them: {link}")
        row = {"role": str(grant.role), "team": grant.team, "budget_usd": grant.budget_usd}
        secret = hashed(new_secret())  # nobody knows this token: they sign in, or make one
        more = {"budget_per": str(grant.budget_per), "token_hash": secret, "created_at": _text(self._now())}
        connection.execute(insert(members).values(name=name, **row, **more))
        ensure_team(connection, grant.team)
        self._bind(connection, account, name)

    def _update_from_groups(
        self, connection: Connection, name: str, grant: Grant, names_teams: bool
    ) -> tuple[Member, str]:
        """Update a member's role and team from their groups at the provider."""
        if connection.execute(select(members.c.removed_at).where(members.c.name == name)).scalar_one() is not None:
            raise SignInRefused(f"{name} was removed from MLCD; an admin can add them again: mlcd team add {name}")
        member = find_member(connection, name)
        team = grant.team if names_teams else member.team
        if (member.role, member.team) == (grant.role, team):
            return member, ""
        if grant.role is not member.role:
            check_not_last_admin(connection, member)
        set_member(connection, name, role=str(grant.role), team=team)
        ensure_team(connection, team)
        return find_member(connection, name), "change member"

    def _revoke_access(self, connection: Connection, name: str) -> None:
        """End a member's sessions and notifications, and suspend their tokens until they can sign in again."""
        set_until = update(identities).where(identities.c.member == name).values(good_until=_text(self._now()))
        connection.execute(set_until)
        end_sessions(connection, name)
        delete_receivers(connection, name)

    def _bind(self, connection: Connection, account: Account, name: str, good_until: str | None = None) -> None:
        row = {"issuer": account.issuer, "subject": account.subject, "created_at": _text(self._now())}
        connection.execute(insert(identities).values(member=name, good_until=good_until, **row))

    def _member_of(self, connection: Connection, account: Account) -> str | None:
        this: Any = and_(identities.c.issuer == account.issuer, identities.c.subject == account.subject)
        return connection.execute(select(identities.c.member).where(this)).scalar_one_or_none()


def _good_until(connection: Connection, name: str) -> str | None:
    """Until when a member's tokens are valid; None: no end, or they have never signed in."""
    return connection.execute(select(identities.c.good_until).where(identities.c.member == name)).scalar()


def _text(time: datetime) -> str:
    return time.astimezone(UTC).isoformat()
