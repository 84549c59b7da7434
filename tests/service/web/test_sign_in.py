"""Sign-in at a provider: who is let in, as whom, and what follows from their groups; a small provider on loopback."""

from __future__ import annotations

from datetime import timedelta

import pytest
from signing_in import OURS, done, entered, me, session_of, signing_in
from stage import API, staged

from mlcd.service.notifications.receivers import NewReceiver, Receivers
from mlcd.service.team.members import Role


@pytest.fixture
def stage(tmp_path, small):
    with signing_in(tmp_path / "home", small) as stage:
        yield stage


def test_somebody_in_a_group_becomes_a_member_with_its_role_team_and_budget(stage, small):
    small.person, small.groups = {"sub": "g-1", "preferred_username": "Grace"}, ("others", "vision")
    told = entered(stage, small)
    mine = me(stage, session_of(told)).json()
    assert (mine["name"], mine["role"], mine["team"], mine["budget_usd"]) == ("grace", "runner", "vision", 50.0)
    assert done(stage, "add member", "sign in") == [
        ("grace", "add member", "ok", "runner of team vision, at most $50.00, by Keycloak"),
        ("grace", "sign in", "ok", "by Keycloak"),
    ]
    flags = {part.strip().lower() for part in told.cookies[0].split(";")[1:]}
    assert {"httponly", "samesite=strict", "path=/", "max-age=43200"} <= flags


def test_the_first_group_of_the_file_counts_and_role_and_team_follow_at_each_sign_in(stage, small):
    small.person, small.groups = {"sub": "g-1", "preferred_username": "grace"}, ("vision", "mlcd-admins")
    assert me(stage, session_of(entered(stage, small))).json()["role"] == "admin"
    stage.state.members.change("grace", budget_usd=7.0)
    small.groups = ("vision",)
    mine = me(stage, session_of(entered(stage, small))).json()
    assert (mine["role"], mine["team"], mine["budget_usd"]) == ("runner", "vision", 7.0)
    assert done(stage, "change member")[-1] == (
        "grace",
        "change member",
        "ok",
        "runner of team vision, at most $7.00, by Keycloak",
    )
    session_of(entered(stage, small))
    assert len(done(stage, "change member")) == 1


def test_a_team_that_an_admin_gave_stays_where_the_groups_name_none(tmp_path, small):
    small.person = {"sub": "g-1", "preferred_username": "grace"}
    with signing_in(tmp_path / "home", small, groups={"mlcd-admins": "runner"}) as stage:
        session_of(entered(stage, small))
        stage.state.members.change("grace", team="nlp")
        assert me(stage, session_of(entered(stage, small))).json()["team"] == "nlp"


def test_who_is_in_no_group_is_refused_unless_there_is_a_default(tmp_path, small):
    small.person, small.groups = {"sub": "e-1", "preferred_username": "eve"}, ("others",)
    with signing_in(tmp_path / "a", small) as stage:
        told = entered(stage, small)
        assert (told.status, told.cookies) == (403, ())
        account = f"(your account: {small.issuer} e-1)"
        assert told.error == f"eve is in no group that may use MLCD; ask an admin of Keycloak {account}"
        assert done(stage, "sign in") == [("127.0.0.1", "sign in", "refused", told.error)]
        assert "eve" not in [each.name for each in stage.state.members.all()]
    with signing_in(tmp_path / "b", small, default="viewer") as stage:
        assert me(stage, session_of(entered(stage, small))).json()["role"] == "viewer"


def test_who_leaves_the_groups_is_out_at_the_next_sign_in_with_all_sessions_and_tokens(stage, small):
    small.person = {"sub": "g-1", "preferred_username": "grace"}
    session = session_of(entered(stage, small))
    made = stage.ask("POST", f"{API}/tokens", body={"name": "ci"}, headers={**session, **OURS}).json()["token"]
    own = stage.ask("POST", f"{API}/me/token", headers={**session, **OURS}).json()["token"]
    session = session_of(entered(stage, small))
    tokens = [{"authorization": f"Bearer {each}"} for each in (made, own)]
    assert [me(stage, each).status for each in (session, *tokens)] == [200, 200, 200]
    small.groups = ()
    assert entered(stage, small).status == 403
    assert [me(stage, each).status for each in (session, *tokens)] == [401, 401, 401]
    small.groups = ("vision",)
    session_of(entered(stage, small))
    assert [me(stage, each).status for each in tokens] == [200, 200]


def test_sessions_and_tokens_end_by_themselves_for_who_never_comes_back(tmp_path, small):
    small.person = {"sub": "g-1", "preferred_username": "grace"}
    with signing_in(tmp_path / "home", small, session_hours=2, tokens_days=5) as stage:
        told = entered(stage, small)
        session = session_of(told)
        made = stage.ask("POST", f"{API}/tokens", body={"name": "ci", "days": None}, headers={**session, **OURS}).json()
        token = {"authorization": f"Bearer {made['token']}"}
        stage.later.append(timedelta(hours=2, seconds=1))
        assert (me(stage, session).status, me(stage, token).status) == (401, 200)
        stage.later.append(timedelta(days=5))
        assert me(stage, token).status == 401
        assert me(stage, {"authorization": f"Bearer {stage.tokens['ada']}"}).status == 200  # by hand: as ever


def test_a_member_made_by_hand_is_not_taken_over_until_an_admin_links_them(stage, small):
    told = entered(stage, small)
    link = f"mlcd team link ada {small.issuer} ada-1"
    assert told.status == 403
    assert told.error == f"'ada' is, or was, a member without this account; an admin can link them: {link}"
    assert done(stage, "sign in")[-1][3] == told.error
    account = {"issuer": small.issuer, "subject": "ada-1"}
    assert stage.ask("PUT", f"{API}/members/ada/account", "ron", account).status == 403
    assert stage.ask("PUT", f"{API}/members/ada/account", "ada", account).status == 204
    assert stage.ask("PUT", f"{API}/members/ron/account", "ada", account).error.endswith("mlcd team unlink ada")
    assert me(stage, session_of(entered(stage, small))).json()["name"] == "ada"
    small.person["preferred_username"] = "countess"  # a name is no identity
    session = session_of(entered(stage, small))
    assert me(stage, session).json()["name"] == "ada"
    assert stage.ask("DELETE", f"{API}/members/ada/account", "ada").status == 204
    assert me(stage, session).status == 401
    assert me(stage, {"authorization": f"Bearer {stage.tokens['ada']}"}).status == 200
    small.person["preferred_username"] = "ada"
    assert entered(stage, small).status == 403


def test_what_a_refused_sign_in_has_voided_stays_void_when_the_account_is_unlinked_or_another_is_linked(stage, small):
    for sub, change in (("g-1", "DELETE"), ("h-1", "PUT")):
        name = f"member-{sub}"
        small.person, small.groups = {"sub": sub, "preferred_username": name}, ("vision",)
        session = {**session_of(entered(stage, small)), **OURS}
        made = stage.ask("POST", f"{API}/tokens", body={"name": "ci"}, headers=session).json()["token"]
        own = stage.ask("POST", f"{API}/me/token", headers=session).json()["token"]
        small.groups = ()
        assert entered(stage, small).status == 403
        account = {"issuer": small.issuer, "subject": f"{sub}-new"} if change == "PUT" else None
        assert stage.ask(change, f"{API}/members/{name}/account", "ada", account).status == 204
        assert [me(stage, {"authorization": f"Bearer {each}"}).status for each in (made, own)] == [401, 401]


def test_news_of_their_runs_goes_no_more_to_somebody_who_was_shut_out(stage, small):
    small.person, small.groups = {"sub": "g-1", "preferred_username": "grace"}, ("vision",)
    session_of(entered(stage, small))
    receivers = Receivers(stage.state.database, stage.state.members.now)
    receivers.add(NewReceiver(kind="mail", address="grace@example.org"), owner="grace")
    assert [each.owner for each in receivers.due()] == ["grace"]
    small.groups = ()
    assert entered(stage, small).status == 403
    assert receivers.due() == []


def test_nothing_is_mailed_to_somebody_who_would_have_to_sign_in_again(tmp_path, small):
    small.person, small.groups = {"sub": "g-1", "preferred_username": "grace"}, ("vision",)
    with signing_in(tmp_path / "home", small, tokens_days=5) as stage:
        session_of(entered(stage, small))
        receivers = Receivers(stage.state.database, stage.state.members.now)
        receivers.add(NewReceiver(kind="mail", address="grace@example.org"), owner="grace")
        receivers.add(NewReceiver(kind="mail", address="ops@example.org"), owner=None)
        stage.later.append(timedelta(days=6))
        assert [each.owner for each in receivers.due()] == [None]
        stage.later.clear()
        assert [each.owner for each in receivers.due()] == ["grace", None]


def test_named_tokens_of_an_unlinked_member_expire_when_they_would_have_without_a_new_sign_in(tmp_path, small):
    small.person, small.groups = {"sub": "g-1", "preferred_username": "grace"}, ("vision",)
    with signing_in(tmp_path / "home", small, tokens_days=5) as stage:
        session = {**session_of(entered(stage, small)), **OURS}
        body = {"name": "ci", "days": None}
        made = stage.ask("POST", f"{API}/tokens", body=body, headers=session).json()["token"]
        token = {"authorization": f"Bearer {made}"}
        assert stage.ask("DELETE", f"{API}/members/grace/account", "ada").status == 204
        assert me(stage, token).status == 200
        stage.later.append(timedelta(days=6))
        assert me(stage, token).status == 401


def test_who_is_linked_to_another_account_is_signed_out_where_the_first_one_signed_in(stage, small):
    small.person = {"sub": "g-1", "preferred_username": "grace"}
    session = session_of(entered(stage, small))
    account = {"issuer": small.issuer, "subject": "g-2"}
    assert stage.ask("PUT", f"{API}/members/grace/account", "ada", account).status == 204
    assert me(stage, session).status == 401
    assert entered(stage, small).status == 403
    small.person["sub"] = "g-2"
    session = session_of(entered(stage, small))
    assert stage.ask("PUT", f"{API}/members/grace/account", "ada", account).status == 204
    assert me(stage, session).status == 200, "nothing has changed"


def test_another_account_of_the_same_name_is_not_let_in_as_the_first(stage, small):
    small.person = {"sub": "g-1", "preferred_username": "grace"}
    session_of(entered(stage, small))
    small.person = {"sub": "g-2", "preferred_username": "GRACE"}
    assert "'grace' is, or was, a member" in entered(stage, small).error


def test_a_removed_member_stays_out_until_an_admin_adds_them_again(stage, small):
    small.person = {"sub": "g-1", "preferred_username": "grace"}
    session = session_of(entered(stage, small))
    stage.state.members.remove("grace")
    assert me(stage, session).status == 401
    assert (
        "grace was removed from MLCD; an admin can add them again: mlcd team add grace" in entered(stage, small).error
    )
    small.person = {"sub": "g-2", "preferred_username": "grace"}
    assert "'grace' is, or was, a member" in entered(stage, small).error
    stage.later.append(timedelta(days=90))
    token = stage.state.members.add("grace", Role.VIEWER)
    assert me(stage, {"authorization": f"Bearer {token}"}).status == 200


def test_the_last_admin_is_not_made_less_by_their_groups(stage, small):
    account = {"issuer": small.issuer, "subject": "ada-1"}
    stage.ask("PUT", f"{API}/members/ada/account", "ada", account)
    small.groups = ("vision",)
    told = entered(stage, small)
    assert told.status == 403
    assert told.error.startswith("'ada' is the only admin; make another member an admin first")
    assert stage.state.members.get("ada").role is Role.ADMIN


def test_names_and_groups_come_from_the_claims_that_the_operator_says(tmp_path, small):
    small.person, small.groups = (
        {"sub": "9", "email": "Kim@Example.org", "email_verified": True, "hd": "example.org"},
        None,
    )
    changes = {"groups_claim": "hd", "groups": {"example.org": "runner"}}
    with signing_in(tmp_path / "google", small, **changes) as stage:
        assert me(stage, session_of(entered(stage, small))).json()["name"] == "kim@example.org"
        small.person["email_verified"] = False
        assert "has not verified the email address" in entered(stage, small).error
        del small.person["email"]
        assert "sends no claim preferred_username or email" in entered(stage, small).error
    small.person = {"sub": "10", "nick": "Kim Possible", "hd": "example.org"}
    with signing_in(tmp_path / "nick", small, name_claim="nick", **changes) as stage:
        assert "a name has up to 60 small letters" in entered(stage, small).error
        small.person["nick"] = "\N{KELVIN SIGN}im"  # whose small letter is k
        assert "a name has up to 60 small letters" in entered(stage, small).error
        small.person["nick"] = "kim"
        assert me(stage, session_of(entered(stage, small))).json()["name"] == "kim"


def test_groups_that_only_userinfo_tells_are_asked_for_and_must_be_of_the_same_person(tmp_path, small):
    small.person, small.groups = {"sub": "g-1"}, None
    small.userinfo = {"sub": "g-1", "preferred_username": "grace", "groups": ["vision"]}
    with signing_in(tmp_path / "home", small) as stage:
        assert me(stage, session_of(entered(stage, small))).json()["team"] == "vision"
        small.userinfo = {**small.userinfo, "sub": "somebody-else", "groups": ["mlcd-admins"]}
        told = entered(stage, small)
        assert (told.status, told.error) == (502, "Keycloak answers about another person than the one who signed in")


def test_the_page_is_told_who_signs_in_and_a_token_still_does(stage, small, tmp_path):
    assert stage.ask("GET", f"{API}/health").json()["provider"] == "Keycloak"
    assert stage.sign_in("ron")
    with staged(tmp_path / "without") as without:
        assert without.ask("GET", f"{API}/health").json()["provider"] is None
        for path in ("/sign-in", "/sign-in/callback"):
            assert without.ask("POST", API + path, body={"state": "x"}, headers=OURS).status == 409
