"""Named tokens: what each may, how long, and that nothing but a hash of them is kept."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import text

from mlcd.core.database import Database
from mlcd.core.errors import UnknownName, UserError
from mlcd.service.team.members import Members, Role, Scope
from mlcd.service.team.tokens import MOST, NamedTokens


@pytest.fixture
def tokens(database: Database, members: Members, day: Any) -> NamedTokens:
    members.add("ada", Role.ADMIN)
    members.add("ron", Role.RUNNER)
    members.add("vera", Role.VIEWER)
    return NamedTokens(database, day.now)


def test_a_token_stands_for_its_member_with_no_more_than_its_scope_and_their_role(
    tokens: NamedTokens, members: Members
):
    roles = {}
    for name in ("ada", "ron", "vera"):
        for scope in (Scope.READ, Scope.RUN):
            _, secret = tokens.add(name, f"by-{scope}", scope, 30)
            found = members.by_token(secret)
            assert found is not None
            assert (found.name, found.scope, found.token) == (name, scope, f"by-{scope}")
            roles[name, scope] = found.role
    assert set(roles.values()) == {Role.VIEWER, Role.RUNNER}
    assert all(role is Role.VIEWER for (_, scope), role in roles.items() if scope is Scope.READ)
    assert roles["ada", Scope.RUN] is Role.RUNNER
    assert roles["vera", Scope.RUN] is Role.VIEWER


def test_a_token_ends_when_its_days_are_over(tokens: NamedTokens, members: Members, day: Any):
    made, secret = tokens.add("ron", "ci", Scope.RUN, 7)
    assert made.expires_at is not None
    day.pass_by(days=7, seconds=-1)
    assert members.by_token(secret) is not None
    day.pass_by(seconds=1)
    assert members.by_token(secret) is None
    assert tokens.all("ron")[0].expired
    _, endless = tokens.add("ron", "endless", Scope.READ, None)
    day.pass_by(days=10_000)
    assert members.by_token(endless) is not None


def test_a_rotated_token_has_a_new_secret_and_lasts_as_long_again(tokens: NamedTokens, members: Members, day: Any):
    _, old = tokens.add("ron", "ci", Scope.RUN, 7)
    day.pass_by(days=5)
    made, new = tokens.rotate("ron", "ci")
    assert members.by_token(old) is None
    assert made.scope is Scope.RUN
    day.pass_by(days=6)
    assert members.by_token(new) is not None
    assert [each.name for each in tokens.all("ron")] == ["ci"]


def test_a_revoked_token_is_void_at_once_and_its_name_is_free(tokens: NamedTokens, members: Members):
    _, secret = tokens.add("ron", "ci", Scope.RUN, 7)
    with pytest.raises(UserError, match="already"):
        tokens.add("ron", "ci", Scope.READ, 7)
    tokens.revoke("ron", "ci")
    assert members.by_token(secret) is None
    assert tokens.all("ron") == []
    for act in (tokens.revoke, tokens.rotate):
        with pytest.raises(UnknownName):
            act("ron", "ci")
    _, again = tokens.add("ron", "ci", Scope.READ, 7)
    assert members.by_token(again) is not None
    assert members.by_token(secret) is None


def test_nobody_touches_the_tokens_of_another(tokens: NamedTokens, members: Members):
    _, secret = tokens.add("ron", "ci", Scope.RUN, 7)
    for act in (tokens.revoke, tokens.rotate):
        with pytest.raises(UnknownName):
            act("vera", "ci")
    assert members.by_token(secret) is not None


def test_who_is_removed_or_gets_a_new_token_of_an_admin_has_no_named_one_any_more(
    tokens: NamedTokens, members: Members
):
    _, first = tokens.add("ron", "ci", Scope.RUN, None)
    members.renew("ron", keep_named=True)
    assert members.by_token(first) is not None
    members.renew("ron")
    assert members.by_token(first) is None
    _, second = tokens.add("ron", "ci", Scope.RUN, None)
    members.remove("ron")
    assert members.by_token(second) is None
    members.add("ron", Role.RUNNER)
    assert members.by_token(second) is None
    assert tokens.all("ron") == []


def test_the_last_use_is_noted_to_the_minute(tokens: NamedTokens, members: Members, day: Any):
    _, secret = tokens.add("ron", "ci", Scope.READ, 7)
    assert tokens.all("ron")[0].used_at is None
    members.by_token(secret)
    first = tokens.all("ron")[0].used_at
    assert first == day.now()
    day.pass_by(seconds=59)
    members.by_token(secret)
    assert tokens.all("ron")[0].used_at == first
    day.pass_by(seconds=1)
    members.by_token(secret)
    assert tokens.all("ron")[0].used_at == day.now()


def test_only_a_hash_is_kept(tokens: NamedTokens, database: Database):
    _, secret = tokens.add("ron", "ci", Scope.READ, 7)
    with database.read() as connection:
        rows = connection.execute(text("SELECT * FROM tokens")).all()
    assert secret not in str(rows)
    assert secret[5:25] not in str(rows)


def test_what_cannot_be_a_token_is_said_in_one_line(tokens: NamedTokens):
    for name, scope, days in (("A b", Scope.READ, 7), ("ci", Scope.FULL, 7), ("ci", Scope.READ, 0), ("", Scope.RUN, 1)):
        with pytest.raises(UserError):
            tokens.add("ron", name, scope, days)
    with pytest.raises(UserError, match="3651 days"):
        tokens.add("ron", "ci", Scope.READ, 3_651)
    for number in range(MOST):
        tokens.add("ron", f"t{number}", Scope.READ, 7)
    with pytest.raises(UserError, match="revoke one first"):
        tokens.add("ron", "one-more", Scope.READ, 7)
