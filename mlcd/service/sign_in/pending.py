"""Pending sign-ins: what a browser that was sent to the provider has to come back with.

They are in the database, so that any process of a service can finish what another began. The first answer, right or
wrong, deletes a pending sign-in: no answer can be used twice.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import delete, func, insert, select

from mlcd.core.database import Database
from mlcd.core.database.schema import sign_ins
from mlcd.service.sign_in.errors import SignInRefused
from mlcd.service.team.members import hashed, new_secret

LASTS = timedelta(minutes=10)
MOST = 10_000
"""The most pending sign-ins: anybody can begin one without authentication."""
BEGIN_AGAIN = "this sign-in was begun in another browser, is over, or took longer than 10 minutes; sign in again"


@dataclass(frozen=True, slots=True)
class Pending:
    """Secrets that bind the answer to the browser (`state`), the token to this sign-in (`nonce`), the code to us (PKCE
    `verifier`).
    """

    state: str
    nonce: str
    verifier: str

    @classmethod
    def new(cls) -> Pending:
        """256 random bits each."""
        return cls(*(secrets.token_urlsafe(32) for _ in range(3)))


class PendingSignIns:
    """The pending sign-ins on a database. `now`: the clock."""

    def __init__(self, database: Database, now: Callable[[], datetime]) -> None:
        self._database, self._now = database, now

    def begin(self) -> tuple[str, Pending]:
        """Begin a sign-in; return the secret for the browser's cookie, and what the answer has to match."""
        secret, pending, now = new_secret(), Pending.new(), self._now().astimezone(UTC)
        row = {"hash": hashed(secret), "expires_at": (now + LASTS).isoformat()}
        with self._database.write() as connection:
            connection.execute(delete(sign_ins).where(sign_ins.c.expires_at < now.isoformat()))
            if connection.execute(select(func.count()).select_from(sign_ins)).scalar_one() >= MOST:
                raise SignInRefused("too many sign-ins are pending; try again in some minutes")
            bindings = {"state": pending.state, "nonce": pending.nonce, "verifier": pending.verifier}
            connection.execute(insert(sign_ins).values(**row, **bindings))
        return secret, pending

    def take(self, secret: str, state: str) -> Pending:
        """Take the sign-in of this cookie, once; `SignInRefused` if there is none, or the state differs."""
        this = sign_ins.c.hash == hashed(secret)
        with self._database.write() as connection:
            row = connection.execute(select(sign_ins).where(this)).one_or_none()
            connection.execute(delete(sign_ins).where(this))
        if row is None or self._now() >= datetime.fromisoformat(row.expires_at):
            raise SignInRefused(BEGIN_AGAIN)
        if not hmac.compare_digest(row.state.encode(), state.encode("utf-8", "surrogatepass")):
            raise SignInRefused(BEGIN_AGAIN)
        return Pending(row.state, row.nonce, row.verifier)
