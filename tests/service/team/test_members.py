"""Who is in the team: roles, tokens, sessions. A secret that is not exactly right is nobody's."""

from __future__ import annotations

import string
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from mlcd.core.database import Database, schema
from mlcd.core.errors import UnknownName, UserError, WrongState
from mlcd.service.team.budget import Budget, Per
from mlcd.service.team.members import Member, Members, Role, hashed, new_secret, without_secrets

LETTERS = string.ascii_letters + string.digits + "-_"


def everything(database: Database) -> str:
    """All that is kept of members and sessions."""
    with database.read() as connection:
        return repr([connection.execute(select(table)).all() for table in (schema.members, schema.sessions)])


def test_a_role_may_what_lower_ones_may():
    order = [Role.VIEWER, Role.RUNNER, Role.ADMIN]
    for high, low in product(range(3), range(3)):
        assert order[high].may(order[low]) is (high >= low)


def test_a_token_names_its_member_and_is_not_kept(members: Members, database: Database):
    token = members.add("ada", Role.RUNNER, "vision", 50.0)
    other = members.add("bob", Role.VIEWER)
    assert members.by_token(token) == Member("ada", Role.RUNNER, "vision", 50.0) == members.get("ada")
    assert members.by_token(other) == Member("bob", Role.VIEWER)
    assert [member.name for member in members.all()] == ["ada", "bob"]
    secret = members.open_session(members.get("ada"))
    kept = everything(database)
    assert hashed(token) in kept
    assert hashed(secret) in kept
    for each in (token, other, secret):
        assert each not in kept
        assert each.removeprefix("mlcd_") not in kept


def test_a_secret_has_256_bits_and_a_prefix():
    made = {new_secret() for _ in range(1_000)}
    assert len(made) == 1_000
    for secret in made:
        assert secret.startswith("mlcd_")
        assert len(secret) == 5 + 43
        assert set(secret[5:]) <= set(LETTERS)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(0, 47), shift=st.integers(1, 63), cut=st.integers(0, 47))
def test_a_secret_with_any_change_is_nobodys(members: Members, place: int, shift: int, cut: int):
    name = f"m{len(members.all())}"
    token = members.add(name, Role.ADMIN)
    secret = members.open_session(members.get(name))
    for right, find in ((token, members.by_token), (secret, members.by_session)):
        letter = LETTERS[(LETTERS.index(right[place]) + shift) % 64]
        wrong = [
            right[:place] + letter + right[place + 1 :],
            right[:cut],
            right[cut + 1 :],
            right + letter,
            f" {right}",
            f"{right}\n",
            right.swapcase(),
            hashed(right),
        ]
        assert [find(each) for each in wrong] == [None] * len(wrong)
        assert find(right) == members.get(name)
    assert members.by_token(secret) is None
    assert members.by_session(token) is None


@pytest.mark.parametrize("text", ["", "mlcd_", "\x00", "' OR 1=1 --", "\ud800", "é" * 10_000, "%", "mlcd_%"])
def test_a_text_that_is_no_secret_is_nobodys(members: Members, text: str):
    members.add("ada", Role.ADMIN)
    assert members.by_token(text) is None
    assert members.by_session(text) is None
    members.close_session(text)


def test_a_renewed_token_voids_the_old_one_and_the_sessions(members: Members):
    old = members.add("ada", Role.RUNNER)
    session = members.open_session(members.get("ada"))
    new = members.renew("ada")
    assert members.by_token(old) is None
    assert members.by_session(session) is None
    assert members.by_token(new) == members.get("ada")


def test_a_removed_member_is_nobody_until_they_come_back(members: Members):
    members.add("root", Role.ADMIN)
    token = members.add("ada", Role.RUNNER, usd=5.0)
    ada = members.get("ada")
    session = members.open_session(ada)
    members.remove("ada")
    assert members.by_token(token) is None
    assert members.by_session(session) is None
    assert [member.name for member in members.all()] == ["root"]
    with pytest.raises(UnknownName):
        members.open_session(ada)
    for act in (members.get, members.renew, members.remove, members.change):
        with pytest.raises(UnknownName, match="unknown member 'ada'"):
            act("ada")
    back = members.add("ada", Role.VIEWER)
    assert members.by_token(back) == Member("ada", Role.VIEWER)
    assert members.by_token(token) is None
    assert members.by_session(session) is None


def test_a_session_ends_after_twelve_hours_or_when_it_is_closed(members: Members, day: Any, database: Database):
    members.add("ada", Role.RUNNER)
    ada = members.get("ada")
    secret, closed = members.open_session(ada), members.open_session(ada)
    members.close_session(closed)
    assert members.by_session(closed) is None
    day.pass_by(hours=11, minutes=59)
    assert members.by_session(secret) == ada
    day.pass_by(minutes=1)
    assert members.by_session(secret) is None
    day.pass_by(seconds=1)
    members.open_session(ada)
    assert hashed(secret) not in everything(database)


def test_a_session_follows_what_its_member_may_do_now(members: Members):
    members.add("root", Role.ADMIN)
    members.add("ada", Role.ADMIN)
    secret = members.open_session(members.get("ada"))
    members.change("ada", role=Role.VIEWER)
    assert members.by_session(secret) == Member("ada", Role.VIEWER)


def test_a_change_leaves_what_it_does_not_name(members: Members):
    members.add("ada", Role.RUNNER, "vision", 50.0)
    assert members.change("ada", budget_usd=60.0) == Member("ada", Role.RUNNER, "vision", 60.0)
    assert members.change("ada", role=Role.ADMIN) == Member("ada", Role.ADMIN, "vision", 60.0)
    assert members.change("ada", team="speech") == Member("ada", Role.ADMIN, "speech", 60.0)
    assert members.change("ada", team=None, budget_usd=None) == Member("ada", Role.ADMIN)
    assert members.change("ada") == members.get("ada")


def test_the_last_admin_stays(members: Members):
    members.add("root", Role.ADMIN)
    members.add("ada", Role.RUNNER)
    for act in (lambda: members.remove("root"), lambda: members.change("root", role=Role.RUNNER)):
        with pytest.raises(WrongState, match="'root' is the only admin"):
            act()
    members.change("root", budget_usd=1.0)
    members.change("ada", role=Role.ADMIN)
    members.remove("root")
    assert members.all() == [Member("ada", Role.ADMIN)]


def test_a_team_is_there_when_it_is_named_and_keeps_its_budget(members: Members):
    members.add("ada", Role.RUNNER, "vision")
    assert members.teams() == {"vision": Budget()}
    members.set_team_budget("vision", 100.0)
    members.set_team_budget("speech", 0.0)
    members.add("bob", Role.RUNNER, "vision")
    members.change("bob", team="robots")
    assert members.teams() == {"robots": Budget(), "speech": Budget(0.0), "vision": Budget(100.0)}
    members.set_team_budget("vision", None)
    assert members.teams()["vision"] == Budget()


def test_a_budget_keeps_its_time_until_another_is_told(members: Members):
    members.add("ada", Role.RUNNER, None, 50.0, Per.MONTH)
    assert members.change("ada", budget_usd=80.0).budget == Budget(80.0, Per.MONTH)
    assert members.change("ada", budget_usd=None).budget == Budget(None, Per.MONTH)
    assert members.change("ada", budget_usd=9.0, budget_per=Per.TOTAL).budget == Budget(9.0)
    assert members.set_team_budget("vision", 400.0) == Budget(400.0)
    assert members.set_team_budget("vision", 400.0, Per.MONTH) == Budget(400.0, Per.MONTH)
    assert members.set_team_budget("vision", 500.0) == Budget(500.0, Per.MONTH) == members.teams()["vision"]


@pytest.mark.parametrize("name", ["", "Ada", "a b", "../x", "a\x00", "-ada", "a" * 61, "a\n", "<b>", "'; --", "\ud800"])
def test_a_name_that_is_none_is_refused_and_found_nowhere(members: Members, name: str):
    for add in (
        lambda: members.add(name, Role.RUNNER),
        lambda: members.add("ada", Role.RUNNER, team=name),
        lambda: members.set_team_budget(name, 1.0),
    ):
        with pytest.raises(UserError, match="small letters, digits"):
            add()
    with pytest.raises(UnknownName):
        members.get(name)
    assert members.all() == []
    assert members.teams() == {}


@pytest.mark.parametrize("usd", [-1.0, float("nan"), float("inf")])
def test_a_budget_that_is_none_is_refused(members: Members, usd: float):
    members.add("ada", Role.RUNNER)
    for act in (
        lambda: members.add("bob", Role.RUNNER, usd=usd),
        lambda: members.change("ada", budget_usd=usd),
        lambda: members.set_team_budget("vision", usd),
    ):
        with pytest.raises(UserError, match="expected dollars"):
            act()


def test_nobody_is_added_twice(members: Members):
    token = members.add("ada", Role.RUNNER)
    with pytest.raises(UserError, match="'ada' is a member already; a new token: mlcd team token ada"):
        members.add("ada", Role.ADMIN)
    assert members.by_token(token) == Member("ada", Role.RUNNER)


def test_secrets_are_blotted_out_of_a_text():
    secret = new_secret()
    assert without_secrets(f"wrong token {secret}, again {secret[:30]}!") == "wrong token mlcd_***, again mlcd_***!"
    assert without_secrets("mlcd_tracker is not one") == "mlcd_tracker is not one"
